"""A disk without room: what is refused, what is taken, and that it is written to again once there is room."""

from __future__ import annotations

import contextlib
import random
import subprocess
from pathlib import Path

import pytest

import servers
from info import info
from mounts import small_disk
from resp import Failure, Simple, encode
from servers import check
from waiting import until, until_written

pytestmark = pytest.mark.snugly_only

DISK_BYTES = 16 << 20
MAX_MEMORY = 2 << 20


def numbered(number: int) -> bytes:
    return random.Random(number).randbytes(20_000)


def test_a_disk_that_has_room_again_is_written_to_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", DISK_BYTES) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(DISK_BYTES // 2))
        options = ["--storage", str(disk / "store"), "--durability", "fsync", "--max-memory", str(MAX_MEMORY)]
        kept = 0
        with servers.snugly(*options) as server:
            with server.connect() as connection:
                while connection.command("SET", f"key:{kept}", numbered(kept)) == Simple(b"OK"):
                    kept += 1
            assert kept > 10
            with server.connect() as connection:
                refusal = connection.command("SET", "more", numbered(kept))
                assert isinstance(refusal, Failure)
                assert refusal.text.startswith(b"MISCONF there is no room left on the disk"), refusal
                assert connection.command("GET", "key:0") == numbered(0)
            ballast.unlink()
            until_written(server)
            server.process.kill()
        with servers.snugly(*options) as server, server.connect() as connection:
            for number in range(kept):
                assert connection.command("GET", f"key:{number}") == numbered(number)


@pytest.mark.parametrize("durability", ["fsync", "batched"])
def test_a_log_on_the_full_disk_costs_nothing_that_was_answered(tmp_path: Path, durability: str) -> None:
    with small_disk(tmp_path / "disk", DISK_BYTES) as disk, servers.reserved_port() as port:
        ballast, log = disk / "ballast", disk / "log"
        ballast.write_bytes(bytes(DISK_BYTES // 2))
        options = ["--storage", str(disk / "store"), "--durability", durability, "--max-memory", str(MAX_MEMORY)]
        command = [str(servers.snugly_binary()), "serve", "--port", str(port), "--log-level", "debug", *options]
        with log.open("wb") as sink:
            process = subprocess.Popen(command, stderr=sink)
        try:
            server = servers.Server("snugly", port, process, log)
            until(lambda: servers.answers_ping(port))
            written = 0
            with server.connect() as connection:
                while connection.command("SET", f"key:{written}", numbered(written)) == Simple(b"OK"):
                    written += 1
            # Not one more byte of the log finds room.
            with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
                while filler.write(bytes(4096)):
                    pass
            for _ in range(100):
                with server.connect() as connection:
                    assert isinstance(connection.command("SET", "more", numbered(written)), Failure)
            ballast.unlink()
            until_written(server)
            with server.connect() as connection:
                removed = [f"key:{number}" for number in range(0, written, 2)]
                assert [connection.command("DEL", key) for key in removed] == [1] * len(removed)
                for number in range(20):
                    assert connection.command("SET", f"new:{number}", numbered(number)) == Simple(b"OK")
                assert "disk_last_commit_status:ok" in str(connection.command("INFO", "disk"))
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
        with servers.snugly(*options) as server, server.connect() as connection:
            assert connection.command("EXISTS", *removed) == 0
            for number in range(20):
                assert connection.command("GET", f"new:{number}") == numbered(number)
            for number in range(1, written, 2):
                assert connection.command("GET", f"key:{number}") == numbered(number)


def test_the_journal_counts_as_long_as_the_disk_has_room_for(tmp_path: Path) -> None:
    """Two files of 16 MiB take that much if there is room for them."""
    with small_disk(tmp_path / "disk", DISK_BYTES) as disk:
        options = ["--storage", str(disk / "store"), "--durability", "fsync"]
        with servers.snugly(*options) as server, server.connect() as connection:
            journal = sum((disk / "store" / name).stat().st_size for name in ("journal.0", "journal.1"))
            assert 0 < journal < info(connection, "disk", "disk_file_bytes") < DISK_BYTES


def test_every_write_to_a_full_disk_is_answered(tmp_path: Path) -> None:
    count = 2 * DISK_BYTES // 20_000
    with small_disk(tmp_path / "disk", DISK_BYTES) as disk:
        options = ["--storage", str(disk / "store"), "--max-memory", str(MAX_MEMORY)]
        with servers.snugly(*options) as server, server.connect() as connection:
            connection.send(b"".join(encode("SET", f"key:{number}", numbered(number)) for number in range(count)))
            replies = [connection.read() for _ in range(count)]
            taken = [number for number, reply in enumerate(replies) if reply == Simple(b"OK")]
            refusal = b"MISCONF there is no room left on the disk or in max-disk"
            assert all(reply in (Simple(b"OK"), Failure(refusal)) for reply in replies)
            assert 0 < len(taken) < count
            for number in taken:
                assert connection.command("GET", f"key:{number}") == numbered(number)


@pytest.mark.parametrize("durability", ["fsync", "batched"])
@pytest.mark.parametrize("removal", ["DEL", "FLUSHALL"])
def test_a_full_disk_takes_what_makes_room(tmp_path: Path, durability: str, removal: str) -> None:
    with small_disk(tmp_path / "disk", DISK_BYTES) as disk:
        options = ["--storage", str(disk / "store"), "--durability", durability, "--max-memory", str(MAX_MEMORY)]
        written = 0
        with servers.snugly(*options) as server:
            with server.connect() as connection:
                while connection.command("SET", f"key:{written}", numbered(written)) == Simple(b"OK"):
                    written += 1
            assert written > 100
            keys = [f"key:{number}" for number in range(0, written, 2)]
            with server.connect() as connection:
                # Not being on the disk yet is an error under fsync, and the connection's end; it will be there.
                connection.command(*(["DEL", *keys] if removal == "DEL" else ["FLUSHALL"]))
            until_written(server)
            with server.connect() as connection:
                assert connection.command("EXISTS", *keys) == 0
        check(disk / "store")
