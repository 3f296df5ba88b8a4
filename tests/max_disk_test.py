"""A store whose max-disk is used up: what is removed stays removed, and what was answered survives a restart."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import servers
from info import info
from resp import Connection, Failure, Reply, Simple, encode
from servers import Server, check
from waiting import until, until_written

pytestmark = pytest.mark.snugly_only
slow_with_fsync = pytest.mark.parametrize("durability", [pytest.param("fsync", marks=pytest.mark.slow), "batched"])

MAX_DISK = 16 << 20
VALUE_BYTES = 100
# The year 2100, in Unix milliseconds.
FAR = 4_102_444_800_000


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


def until_committed(connection: Connection) -> None:
    until(lambda: info(connection, "disk", "disk_pending_bytes") == 0)


def deletes(numbers: list[int]) -> list[list[bytes | str]]:
    return [["DEL", f"key:{number}"] for number in numbers]


@slow_with_fsync
@pytest.mark.parametrize("pipeline", [pytest.param(1, marks=pytest.mark.slow), 500])
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
            until_committed(connection)
        server.process.kill()
    with opened(tmp_path, *options) as (_, connection):
        gone = set(deleted)
        for start in range(0, written, 500):
            numbers = range(start, min(start + 500, written))
            found = pipelined(connection, [["GET", f"key:{number}"] for number in numbers])
            assert found == [None if number in gone else value(number) for number in numbers]
        assert connection.command("DBSIZE") == written - len(deleted)
    check(tmp_path)


@slow_with_fsync
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
            until_committed(connection)
        server.process.kill()
    with opened(tmp_path, *options) as (_, connection):
        assert connection.command("DBSIZE") == written - len(gone)
        assert connection.command("EXISTS", *(f"key:{number}" for number in gone)) == 0
    check(tmp_path)


def expire(connection: Connection, numbers: list[int]) -> list[int]:
    """Gives keys an expiry; says for which there was no room."""
    refused = []
    for start in range(0, len(numbers), 200):
        some = numbers[start : start + 200]
        replies = pipelined(connection, [["PEXPIREAT", f"key:{number}", str(FAR + number)] for number in some])
        for number, reply in zip(some, replies, strict=True):
            if reply != 1:
                assert_no_room(reply)
                refused.append(number)
    return refused


def is_taken(connection: Connection, number: int) -> bool:
    """Says whether GETEX had room for giving a key an expiry."""
    reply = connection.command("GETEX", f"key:{number}", "PXAT", FAR)
    if reply == value(number):
        return True
    assert_no_room(reply)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["fsync", "batched"])
def test_expiries_in_a_full_store_leave_the_room_that_deletes_need(tmp_path: Path, durability: str) -> None:
    options = ("--durability", durability)
    with opened(tmp_path, *options) as (_, connection):
        written = fill(connection)
        refused = expire(connection, list(range(written)))
        assert 1_000 < written - len(refused) < written
        # A commit gives back what was reckoned too high, so some are taken before there is no room again.
        last = next(number for number in reversed(refused) if not is_taken(connection, number))
        assert connection.command("PEXPIREAT", "key:0", FAR) == 1, "it has an expiry already"
        assert connection.command("PEXPIREAT", f"key:{last}", 1) == 1, "that removes it"
        kept = [number for number in range(written) if number != last]
        for start in range(0, len(kept), 500):
            replies = pipelined(connection, deletes(kept[start : start + 500]))
            assert all(reply == 1 for reply in replies), replies[:3]
        until_committed(connection)
        assert connection.command("SET", "key", "value") == Simple(b"OK")
    check(tmp_path)


@slow_with_fsync
def test_lists_of_a_full_store_can_be_shortened(tmp_path: Path, durability: str) -> None:
    options = ("--durability", durability)
    random_ = random.Random(3)
    keys = [f"list:{number}" for number in range(50)]
    lengths = dict.fromkeys(keys, 0)
    with opened(tmp_path, *options) as (server, connection):
        is_full = False
        while not is_full:
            for key in keys:
                reply = connection.command("RPUSH", key, *(random_.randbytes(80) for _ in range(50)))
                is_full = isinstance(reply, Failure)
                if is_full:
                    assert_no_room(reply)
                    break
                lengths[key] += 50
        for _ in range(min(lengths.values()) // 2):
            replies = pipelined(connection, [[random_.choice(["LPOP", "RPOP"]), key] for key in keys])
            assert all(isinstance(reply, bytes) for reply in replies), replies[:3]
        assert pipelined(connection, [["LTRIM", key, "0", "9"] for key in keys[::2]]) == [Simple(b"OK")] * 25
        if durability == "batched":
            until_committed(connection)
        server.process.kill()
    with opened(tmp_path, *options) as (_, connection):
        for number, key in enumerate(keys):
            left = lengths[key] - min(lengths.values()) // 2
            assert connection.command("LLEN", key) == (left if number % 2 else min(left, 10))
    check(tmp_path)


def file_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.name != "lock.mdb")


@pytest.mark.parametrize(
    ("before", "policy"),
    [
        ("batched", "noeviction"),
        pytest.param("fsync", "volatile-lru", marks=pytest.mark.slow),
        pytest.param("fsync", "allkeys-lru", marks=pytest.mark.slow),
    ],
)
def test_the_least_budget_that_is_named_is_enough_for_good(tmp_path: Path, before: str, policy: str) -> None:
    """The files stay inside the budget, whatever is written and however the server ends, with the journal."""
    with opened(tmp_path, "--durability", before, max_disk=2 * MAX_DISK) as (server, connection):
        fill(connection)
        server.process.kill()
    found = re.search(r"give at least (\d+)", refusal(tmp_path, MAX_DISK))
    assert found
    least = int(found[1])
    assert str(least) in refusal(tmp_path, MAX_DISK), "looking at the journal changes nothing"
    for start in (1_000_000, 2_000_000, 3_000_000):
        with opened(tmp_path, "--max-memory-policy", policy, max_disk=least) as (server, connection):
            replies = pipelined(
                connection, [["SET", f"key:{start + number}", value(number)] for number in range(3_000)]
            )
            for reply in replies:
                if policy == "allkeys-lru":
                    assert reply == Simple(b"OK")
                else:
                    assert_no_room(reply)
            until_committed(connection)
            # The reserve for deletes may be beyond a budget that was lowered.
            assert file_bytes(tmp_path) <= least + MAX_DISK // 4
            server.process.kill()
    check(tmp_path)


def refusal(folder: Path, max_disk: int) -> str:
    """The output of a server that does not start."""
    arguments = ["serve", "--port", "0", "--storage", str(folder), "--max-disk", str(max_disk)]
    command = [str(servers.snugly_binary()), *arguments]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert outcome.returncode == 1
    return outcome.stderr


@pytest.mark.slow
def test_a_lower_budget_is_refused_or_leaves_a_store_that_works(tmp_path: Path) -> None:
    with opened(tmp_path, max_disk=2 * MAX_DISK) as (_, connection):
        written = fill(connection)

    advice = r"give at least (\d+), or make its file smaller first with `snugly compact`"
    found = re.search(advice, refusal(tmp_path, MAX_DISK))
    assert found
    least = int(found[1])
    assert MAX_DISK < least < 2 * MAX_DISK
    assert str(least) in refusal(tmp_path, least - 1)
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
