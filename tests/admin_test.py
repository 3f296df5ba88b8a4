"""The admin endpoint: whether the server is alive, whether it can serve, and who may read the rest."""

from __future__ import annotations

import contextlib
import http.client
import random
import subprocess
from pathlib import Path

import pytest

import servers
from admin import answer, begin, request
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


TOKEN = "correct-horse/battery+staple="


@pytest.fixture(name="token_file")
def file_with_token(tmp_path: Path) -> str:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    return str(file)


def test_pages_with_data_take_the_token(start: Start, admin: int, token_file: str) -> None:
    server = begin(start, admin, "--admin-token-file", token_file)
    for path in ("/metrics", "/health"):
        for wrong in (None, "", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer"):
            for method in ("GET", "HEAD"):
                status, headers, text = answer(admin, method, path, wrong)
                assert (status, headers["WWW-Authenticate"]) == (401, 'Bearer realm="snugly"'), (path, wrong)
                assert "snugly_" not in text
        for right in (f"Bearer {TOKEN}", f"bearer {TOKEN}"):
            assert request(admin, "GET", path, right)[0] == 200
    assert server.says("wrong token were refused")
    assert TOKEN not in server.output()


def test_health_takes_no_token(start: Start, admin: int, token_file: str) -> None:
    begin(start, admin, "--admin-token-file", token_file)
    for path in ("/healthz", "/readyz"):
        assert request(admin, "GET", path) == (200, "ok")
        assert request(admin, "GET", path, "Bearer wrong") == (200, "ok")


def test_the_token_is_shown_nowhere(start: Start, admin: int, token_file: str) -> None:
    with begin(start, admin, "--admin-token-file", token_file).connect() as connection:
        assert connection.command("CONFIG", "GET", "admin-token-file") == [b"admin-token-file", token_file.encode()]
        assert connection.command("CONFIG", "GET", "admin-token") == []
        shown = [connection.command("CONFIG", "GET", "*"), connection.command("INFO", "everything")]
    assert TOKEN not in repr(shown)


def test_a_token_that_cannot_be_had_is_a_clear_error(tmp_path: Path) -> None:
    empty, spaced = tmp_path / "empty", tmp_path / "spaced"
    empty.write_text("\n")
    spaced.write_text("two words\n")
    for file, told in ((tmp_path / "missing", "No such file"), (empty, "is empty"), (spaced, "without spaces")):
        command = [str(servers.snugly_binary()), "serve", "--port", "0", "--admin-token-file", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, told in done.stderr) == (1, True), done.stderr
        assert "two words" not in done.stderr


def test_a_page_of_a_stranger_whose_name_leads_here_learns_nothing(start: Start, admin: int) -> None:
    def asked(host: str) -> int:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", admin, timeout=60)) as connection:
            connection.request("GET", "/metrics", headers={"Host": host})
            return connection.getresponse().status

    begin(start, admin)
    assert (asked(f"localhost:{admin}"), asked(f"127.0.0.1:{admin}"), asked("stranger.example")) == (200, 200, 403)


def test_an_endpoint_for_others_without_a_token_is_warned_of(start: Start, admin: int, token_file: str) -> None:
    warning = "set --admin-token-file"
    server = start("--admin-address", f"0.0.0.0:{admin}")
    assert server.says(warning)
    with servers.reserved_port() as port:
        quiet = start("--admin-address", f"0.0.0.0:{port}", "--admin-token-file", token_file)
        assert quiet.says("To try it")
        assert warning not in quiet.output()
    with servers.reserved_port() as port:
        local = start("--admin-address", f"127.0.0.1:{port}")
        assert local.says("To try it")
        assert warning not in local.output()
