"""The admin endpoint: whether the server is alive, and whether it can serve."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import servers
from admin import begin, request
from mounts import small_disk
from resp import Failure
from tested import Start
from waiting import until, until_written

pytestmark = pytest.mark.snugly_only


def test_a_server_that_serves_is_alive_and_ready(start: Start, admin: int) -> None:
    begin(start, admin)
    for path in ("/health", "/healthz", "/readyz"):
        # The regular work, which it looks for, has begun or is about to.
        assert request(admin, "GET", path) == (200, "ok")
        assert request(admin, "HEAD", path) == (200, "")


def test_a_server_whose_disk_is_full_is_alive_and_not_ready_until_there_is_room(tmp_path: Path, admin: int) -> None:
    with small_disk(tmp_path / "disk", 16 << 20) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(8 << 20))
        options = ["--storage", str(disk / "store"), "--durability", "fsync", "--max-memory", "2mb"]
        with servers.snugly(*options, "--admin-address", f"127.0.0.1:{admin}") as server:
            assert request(admin, "GET", "/readyz") == (200, "ok")
            with server.connect() as connection:
                number, reply = 0, connection.command("PING")
                while not isinstance(reply, Failure):
                    number += 1
                    reply = connection.command("SET", f"key:{number}", random.Random(number).randbytes(20_000))
            until(lambda: request(admin, "GET", "/readyz")[0] == 503)
            reason = request(admin, "GET", "/readyz")[1]
            assert "disk cannot be written" in reason
            assert str(disk) not in reason, "everybody may read it"
            assert request(admin, "GET", "/healthz") == (200, "ok")
            ballast.unlink()
            until_written(server)
            until(lambda: request(admin, "GET", "/readyz") == (200, "ok"))
