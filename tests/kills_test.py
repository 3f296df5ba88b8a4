"""kill -9 at random moments: what was promised is there after a restart, and everything that counts it agrees."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import servers
from histories import Commits, Contents, Writer
from info import info
from mounts import small_disk
from resp import Connection, Failure, Simple
from servers import Server, check
from threads import in_threads
from waiting import until, until_written

pytestmark = pytest.mark.snugly_only

KILLS = int(os.environ.get("SNUGLY_KILLS", "10"))
each_count = pytest.mark.parametrize("kills", [1, pytest.param(KILLS, marks=pytest.mark.slow, id="many")])
WRITERS = 4
EVERYTHING = {
    "SET": 10.0,
    "SET PXAT": 4,
    "MSET": 4,
    "DEL": 3,
    "APPEND": 2,
    "PEXPIREAT": 2,
    "PERSIST": 1,
    "FLUSHDB": 0.2,
    "EXEC": 3,
}
MAX_MEMORY = 2 << 20
# The store looks for something to evict for so long only: what one read or write leaves over, the next ones make good.
SOME_VALUES = 4 * 60_000
MAX_DISK = 16 << 20


def rng(name: str) -> random.Random:
    return random.Random(os.environ.get("SNUGLY_SEED", name))


def unexpected(failure: Failure) -> None:
    raise AssertionError(f"a write failed: {failure.text!r}")


def kill_while_writing(
    options: list[str],
    writers: list[Writer],
    wait: Callable[[Commits], None],
    failures: Callable[[Failure], None] = unexpected,
) -> float:
    """Starts a server, lets the writers write, and kills it once `wait` returns; says until when an answer was a
    promise."""
    with servers.snugly(*options) as server:
        killed, commits = 0.0, Commits()

        def kill() -> None:
            nonlocal killed
            try:
                wait(commits)
            finally:
                killed = time.monotonic()
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()

        in_threads(
            kill,
            lambda: commits.watch_until_killed(server.port),
            *(lambda w=writer: w.write_until_killed(server.port, failures) for writer in writers),
        )
    return killed if "fsync" in options else commits.done_before


def a_moment(random_: random.Random) -> Callable[[Commits], None]:
    seconds = random_.uniform(0.05, 0.6)
    return lambda _: time.sleep(seconds)


def a_promise(commits: Commits) -> None:
    """Until something is on disk, which a busy machine may not have done in a moment."""
    until(lambda: commits.done_before > 0)


def waits(random_: random.Random, kills: int) -> list[Callable[[Commits], None]]:
    return [a_promise, *(a_moment(random_) for _ in range(kills - 1))]


def scan_all(connection: Connection, writers: list[Writer]) -> list[Contents]:
    """The contents of the databases of each writer, after which memory must be inside its budget."""
    contents = [writer.scan(connection) for writer in writers]
    assert info(connection, "memory", "used_memory_dataset") <= MAX_MEMORY + SOME_VALUES
    return contents


@each_count
@pytest.mark.parametrize("durability", ["fsync", "batched"])
def test_a_kill_loses_nothing_that_was_promised(tmp_path: Path, durability: str, kills: int) -> None:
    folder, random_ = tmp_path / "store", rng(durability)
    writers = [
        Writer(random.Random(random_.random()), range(database, database + 1), EVERYTHING)
        for database in range(WRITERS)
    ]
    options = ["--storage", str(folder), "--durability", durability, "--max-memory", str(MAX_MEMORY)]
    for wait in waits(random_, kills):
        promised = kill_while_writing(options, writers, wait)
        check(folder)
        with servers.snugly(*options) as server, server.connect() as connection:
            for writer, found in zip(writers, scan_all(connection, writers), strict=True):
                writer.verify_order(found, promised)


@each_count
def test_a_kill_tears_no_change_of_whole_databases_apart(tmp_path: Path, kills: int) -> None:
    folder, random_ = tmp_path / "store", rng("whole databases")
    kinds = EVERYTHING | {"FLUSHDB": 1, "FLUSHALL": 1, "SWAPDB": 2}
    writer = Writer(random.Random(random_.random()), range(4), kinds)
    options = ["--storage", str(folder), "--max-memory", str(MAX_MEMORY)]
    for wait in waits(random_, kills):
        promised = kill_while_writing(options, [writer], wait)
        check(folder)
        with servers.snugly(*options) as server, server.connect() as connection:
            (found,) = scan_all(connection, [writer])
            writer.verify_order(found, promised)


@each_count
def test_a_kill_in_a_full_cache_leaves_it_inside_its_budget_and_true(tmp_path: Path, kills: int) -> None:
    folder, random_ = tmp_path / "store", rng("full cache")
    # Together twice what the file may hold.
    writers = [
        Writer(
            random.Random(random_.random()),
            range(database, database + 1),
            {"SET": 10, "SET PXAT": 2, "MSET": 2, "DEL": 1},
            keys=400,
            lengths=(300, 9_000, 50_000),
        )
        for database in range(WRITERS)
    ]
    options = ["--storage", str(folder), "--durability", "fsync", "--max-memory", str(MAX_MEMORY)]
    options += ["--max-disk", str(MAX_DISK), "--max-memory-policy", "allkeys-lru"]
    fill(options, writers)
    for _ in range(kills):
        promised = kill_while_writing(options, writers, a_moment(random_))
        check(folder)
        assert sum(file.stat().st_size for file in folder.iterdir() if file.name != "lock.mdb") <= MAX_DISK
        with servers.snugly(*options) as server, server.connect() as connection:
            until_nothing_is_evicted(server)
            for writer, found in zip(writers, scan_all(connection, writers), strict=True):
                writer.verify_keys(found, promised, may_be_missing=True)


def until_nothing_is_evicted(server: Server) -> None:
    """The journal may have more than the file may hold: each commit checks it."""
    evicted = None
    with server.connect() as connection:
        connection.command("SELECT", WRITERS)
        while evicted != (evicted := info(connection, "disk", "disk_evicted_keys")):
            assert connection.command("SET", "another", "commit") == Simple(b"OK")
            until(lambda: info(connection, "disk", "disk_pending_bytes") == 0)


def fill(options: list[str], writers: list[Writer]) -> None:
    """Gives every key a value, and sees that not all of them stay."""
    noise = random.Random("fill")
    with servers.snugly(*options) as server, server.connect() as connection:
        for writer in writers:
            connection.command("SELECT", writer.databases[0])
            for number in range(writer.keys):
                assert connection.command("SET", b"key:%d" % number, noise.randbytes(20_000)) == Simple(b"OK")
        until(lambda: info(connection, "stats", "evicted_keys") > 0)
        until_nothing_is_evicted(server)
        for writer, found in zip(writers, scan_all(connection, writers), strict=True):
            writer.state = found


@each_count
def test_a_kill_on_a_full_disk_loses_nothing_that_was_promised(tmp_path: Path, kills: int) -> None:
    random_ = rng("full disk")
    # Together some times what the disk holds.
    writers = [
        Writer(
            random.Random(random_.random()),
            range(database, database + 1),
            {"SET": 10, "MSET": 2, "DEL": 1},
            keys=400,
            lengths=(300, 9_000, 50_000),
        )
        for database in range(WRITERS)
    ]
    with small_disk(tmp_path / "disk", MAX_DISK) as disk:
        folder = disk / "store"
        options = ["--storage", str(folder), "--durability", "fsync", "--max-memory", str(MAX_MEMORY)]
        refused = 0

        def note(failure: Failure) -> None:
            nonlocal refused
            assert failure.text.startswith((b"MISCONF ", b"EXECABORT ")), failure.text
            refused += 1
            time.sleep(0.01)

        for _ in range(kills):
            enough = refused + random_.randrange(1, 30)
            promised = kill_while_writing(options, writers, lambda _: until(lambda: refused >= enough), note)  # noqa: B023
            check(folder)
            with servers.snugly(*options) as server, server.connect() as connection:
                for writer, found in zip(writers, scan_all(connection, writers), strict=True):
                    writer.verify_keys(found, promised, may_be_missing=False)
                delete_half(connection, writers)
                until_written(server, WRITERS)


def delete_half(connection: Connection, writers: list[Writer]) -> None:
    for writer in writers:
        connection.command("SELECT", writer.databases[0])
        entries = sorted(writer.state)[::2]
        assert connection.command("DEL", "nothing", *(key for _, key in entries)) == len(entries)
        for entry in entries:
            del writer.state[entry]
