"""A store whose max-disk is used up: what is removed stays removed, and what was answered survives a restart."""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import servers
from resp import Connection, Failure, Reply, Simple, encode
from servers import Server, check
from waiting import until, until_written

pytestmark = pytest.mark.snugly_only

MAX_DISK = 16 << 20
VALUE_BYTES = 100
# Longer than a batched write waits for its commit.
COMMITTED_AFTER = 1.0


@contextmanager
def opened(folder: Path, *options: str, max_disk: int = MAX_DISK) -> Iterator[tuple[Server, Connection]]:
    arguments = ["--storage", str(folder), "--max-disk", str(max_disk), *options]
    with servers.snugly(*arguments) as server, server.connect() as connection:
        yield server, connection


def value(number: int) -> bytes:
    return random.Random(number).randbytes(VALUE_BYTES)


def pipelined(connection: Connection, requests: list[list[bytes | str]]) -> list[Reply]:
    connection.send(b"".join(encode(*request) for request in requests))
    return [connection.read() for _ in requests]


def fill(connection: Connection) -> int:
    """Writes small values until they are refused; says how many were written."""
    written = 0
    while True:
        requests: list[list[bytes | str]] = [
            ["SET", f"key:{number}", value(number)] for number in range(written, written + 200)
        ]
        replies = pipelined(connection, requests)
        taken = sum(reply == Simple(b"OK") for reply in replies)
        written += taken
        if taken < len(replies):
            refusals = {reply.text.split(b" ")[0] for reply in replies if isinstance(reply, Failure)}
            assert refusals <= {b"MISCONF", b"OOM"}, refusals
            return written


def deletes(numbers: list[int]) -> list[list[bytes | str]]:
    return [["DEL", f"key:{number}"] for number in numbers]


@pytest.mark.parametrize("durability", ["fsync", "batched"])
@pytest.mark.parametrize("pipeline", [1, 500])
def test_whatever_is_deleted_in_a_full_store_is_gone(tmp_path: Path, durability: str, pipeline: int) -> None:
    options = ("--durability", durability)
    with opened(tmp_path, *options) as (server, connection):
        written = fill(connection)
        assert written > 10_000
        deleted = list(range(0, written, 2))
        random.Random(1).shuffle(deleted)
        for start in range(0, len(deleted), pipeline):
            replies = pipelined(connection, deletes(deleted[start : start + pipeline]))
            assert all(reply == 1 for reply in replies), replies[:3]
        if durability == "batched":
            until_written(server)
            assert connection.command("DEL", "written") == 1
            time.sleep(COMMITTED_AFTER)
        server.process.kill()
    with opened(tmp_path, *options) as (_, connection):
        gone = set(deleted)
        for number in range(written):
            expected = None if number in gone else value(number)
            assert connection.command("GET", f"key:{number}") == expected
        assert connection.command("DBSIZE") == written - len(deleted)
    check(tmp_path)


@pytest.mark.parametrize("durability", ["fsync", "batched"])
def test_a_transaction_of_deletes_is_kept_or_refused(tmp_path: Path, durability: str) -> None:
    options = ("--durability", durability)
    with opened(tmp_path, *options) as (server, connection):
        written = fill(connection)
        gone: list[int] = []
        order = random.Random(2).sample(range(written), 11_000)
        for count in (10_000, 100, 100):
            chosen, order = order[:count], order[count:]
            reply = pipelined(connection, [["MULTI"], *deletes(chosen), ["EXEC"]])[-1]
            if isinstance(reply, Failure):
                assert reply.text.startswith(b"EXECABORT Transaction discarded because of its 10000 changes")
            else:
                assert reply == [1] * count
                gone += chosen
        assert len(gone) == 200
        if durability == "batched":
            time.sleep(COMMITTED_AFTER)
        server.process.kill()
    with opened(tmp_path, *options) as (_, connection):
        assert connection.command("DBSIZE") == written - len(gone)
        assert connection.command("EXISTS", *(f"key:{number}" for number in gone)) == 0
    check(tmp_path)


def test_a_lower_budget_is_refused_or_leaves_a_store_that_works(tmp_path: Path) -> None:
    with opened(tmp_path, max_disk=2 * MAX_DISK) as (_, connection):
        written = fill(connection)

    def refusal(max_disk: int) -> str:
        arguments = ["serve", "--port", "0", "--storage", str(tmp_path), "--max-disk", str(max_disk)]
        command = [str(servers.snugly_binary()), *arguments]
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert outcome.returncode == 1
        return outcome.stderr

    found = re.search(r"give at least (\d+), or make its file smaller first with `snugly compact`", refusal(MAX_DISK))
    assert found
    least = int(found[1])
    assert MAX_DISK < least < 2 * MAX_DISK
    assert str(least) in refusal(least - 1)
    for _ in range(2):
        with opened(tmp_path, max_disk=least) as (_, connection):
            until(lambda: isinstance(connection.command("SET", "more", "x" * 100), Failure))
            assert connection.command("DBSIZE") in (written, written + 1)
    with opened(tmp_path, max_disk=least) as (server, connection):
        assert connection.command("FLUSHALL") == Simple(b"OK")
        until_written(server)
    with opened(tmp_path, max_disk=least) as (_, connection):
        assert connection.command("DBSIZE") == 1


def assert_no_room(reply: Reply) -> None:
    assert isinstance(reply, Failure)
    assert reply.text.startswith(b"OOM the disk tier has no room for it"), reply


@pytest.mark.parametrize("policy", ["noeviction", "allkeys-lru"])
def test_a_value_that_the_budget_has_no_room_for_is_refused_and_harms_nobody(tmp_path: Path, policy: str) -> None:
    with opened(tmp_path, "--max-memory-policy", policy) as (_, connection):
        assert connection.command("SET", "before", "1") == Simple(b"OK")
        assert_no_room(connection.command("SET", "large", random.Random(1).randbytes(MAX_DISK)))
        pairs = [(f"many:{number}", random.Random(number).randbytes(MAX_DISK // 16)) for number in range(16)]
        assert_no_room(connection.command("MSET", *(part for pair in pairs for part in pair)))
        assert connection.command("SET", "after", "2") == Simple(b"OK")
        assert connection.command("MGET", "before", "after", "large", "many:0") == [b"1", b"2", None, None]
