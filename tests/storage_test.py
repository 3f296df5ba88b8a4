"""What the disk tier promises, seen from outside: restarts, kills, and stores that cannot be used."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pytest

import servers
from resp import Connection, Failure
from servers import snugly_binary

pytestmark = pytest.mark.snugly_only

KILLS = int(os.environ.get("SNUGLY_KILLS", "10"))
WRITERS = 4
KEYS = 12
COMMIT_INTERVAL = 0.1
# What a busy machine may add to the interval between a commit's time and its being on disk.
GRACE = 0.4

Database: TypeAlias = dict[bytes, bytes]


def check(folder: Path) -> str:
    """`snugly check`, which must find no fault."""
    command = [str(snugly_binary()), "check", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no faults" in done.stdout
    return done.stdout


def until(condition: Callable[[], bool]) -> None:
    """Waits for what takes a moment."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def contents(connection: Connection, database: int) -> Database:
    """All keys and values of a database, by SCAN, which must agree with DBSIZE."""
    connection.command("SELECT", database)
    keys: set[bytes] = set()
    cursor: bytes | str = "0"
    while True:
        reply = connection.command("SCAN", cursor, "COUNT", 5)
        assert isinstance(reply, list)
        cursor, found = reply  # type: ignore[assignment]
        keys.update(found)  # type: ignore[arg-type]
        if cursor == b"0":
            break
    assert connection.command("DBSIZE") == len(keys)
    values = {key: connection.command("GET", key) for key in keys}
    return {key: value for key, value in values.items() if isinstance(value, bytes)}


@dataclass
class Operation:
    """One write: what is sent, what it does to the keys, and when it was answered."""

    command: tuple[bytes | str | int, ...]
    apply: Callable[[Database], None]
    answered: float | None = None


@dataclass
class Writer:
    """One client with a database of its own, who notes what was answered. Its writes reach the disk in order, so that
    what a restart brings back is the state after one of them."""

    database: int
    rng: random.Random
    state: Database = field(default_factory=dict)
    log: list[Operation] = field(default_factory=list)

    def operation(self) -> Operation:
        rng = self.rng
        key, other = (b"key:%d" % rng.randrange(KEYS) for _ in range(2))
        length = rng.choice([10, 300, 1_990, 4_090, 9_000, 60_000])
        value = rng.randbytes(8) * (length // 8)
        kind = rng.choices(["SET", "MSET", "DEL", "APPEND", "FLUSHDB"], [10, 4, 3, 2, 0.2])[0]
        if kind == "SET":
            return Operation(("SET", key, value), lambda state: state.update({key: value}))
        if kind == "MSET":
            pair = {key: value, other: value[::-1]}
            return Operation(
                ("MSET", *(part for item in pair.items() for part in item)), lambda state: state.update(pair)
            )
        if kind == "DEL":
            return Operation(("DEL", key), lambda state: drop(state, key))
        if kind == "APPEND":
            more = value[:100]
            return Operation(("APPEND", key, more), lambda state: state.update({key: state.get(key, b"") + more}))
        return Operation(("FLUSHDB",), lambda state: state.clear())

    def write(self, port: int) -> None:
        """Writes until the server is killed."""
        self.log = []
        try:
            with Connection(port, timeout=10.0) as connection:
                connection.command("SELECT", self.database)
                while True:
                    operation = self.operation()
                    self.log.append(operation)
                    reply = connection.command(*operation.command)
                    assert not isinstance(reply, Failure), reply
                    operation.answered = time.monotonic()
        except (OSError, EOFError):
            return

    def verify(self, found: Database, promised_before: float) -> None:
        """Whether the database is in the state after some write, none that was promised missing."""
        promised = [
            at
            for at, operation in enumerate(self.log)
            if operation.answered is not None and operation.answered <= promised_before
        ]
        least = promised[-1] + 1 if promised else 0
        state = dict(self.state)
        matches = []
        for count in range(len(self.log) + 1):
            if state == found:
                matches.append(count)
            if count < len(self.log):
                self.log[count].apply(state)
        assert matches, f"database {self.database} is in no state that it ever was in, of {len(self.log)} writes"
        assert matches[-1] >= least, (
            f"database {self.database} is as after write {matches[-1]} of {len(self.log)}; {least} were promised"
        )
        self.state = found


def drop(state: Database, key: bytes) -> None:
    state.pop(key, None)


@pytest.mark.parametrize("durability", ["fsync", "batched"])
def test_a_kill_loses_nothing_that_was_promised(tmp_path: Path, durability: str) -> None:
    rng = random.Random(os.environ.get("SNUGLY_SEED", durability))
    folder = tmp_path / "store"
    writers = [Writer(database, random.Random(rng.random())) for database in range(WRITERS)]
    options = ["--storage", str(folder), "--durability", durability, "--max-memory", "2mb"]
    for _ in range(KILLS):
        with servers.snugly(*options) as server:
            threads = [threading.Thread(target=writer.write, args=(server.port,)) for writer in writers]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.05, 0.6))
            killed = time.monotonic()
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            for thread in threads:
                thread.join()
        window = 0.0 if durability == "fsync" else COMMIT_INTERVAL + GRACE
        check(folder)
        with servers.snugly(*options) as server, server.connect() as connection:
            for writer in writers:
                found = contents(connection, writer.database)
                writer.verify(found, killed - window)


@pytest.mark.parametrize("durability", ["fsync", "batched", "none"])
def test_a_graceful_end_keeps_everything(tmp_path: Path, durability: str) -> None:
    options = ["--storage", str(tmp_path / "store"), "--durability", durability]
    with servers.snugly(*options) as server, server.connect() as connection:
        for number in range(500):
            connection.command("SET", f"key:{number}", b"x" * number * 10)
        connection.command("SET", "soon", "gone", "PX", 1)
        connection.command("SET", "late", "there", "EX", 1000)
    check(tmp_path / "store")
    with servers.snugly(*options) as server, server.connect() as connection:
        assert connection.command("GET", "key:499") == b"x" * 4990
        assert connection.command("GET", "soon") is None
        ttl = connection.command("TTL", "late")
        assert isinstance(ttl, int)
        assert 900 < ttl <= 1000
        until(lambda: connection.command("DBSIZE") == 501)  # what has expired is removed in the background
        assert len(contents(connection, 0)) == 501


def test_more_than_memory_holds_is_read_from_disk(tmp_path: Path) -> None:
    values = {b"key:%d" % number: random.Random(number).randbytes(2_000) for number in range(3_000)}
    with (
        servers.snugly("--storage", str(tmp_path / "store"), "--max-memory", "1mb") as server,
        server.connect() as connection,
    ):
        for key, value in values.items():
            connection.command("SET", key, value)
        assert connection.command("DBSIZE") == len(values)
        for key, value in values.items():
            assert connection.command("GET", key) == value
        assert connection.command("EXISTS", *values) == len(values)


def refused(folder: Path, *options: str) -> str:
    """What `snugly serve` says before it ends with an error."""
    command = [str(snugly_binary()), "serve", "--port", "0", "--storage", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1, done.stderr
    return done.stderr


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that was used and closed."""
    folder = tmp_path / "store"
    with servers.snugly("--storage", str(folder)) as server, server.connect() as connection:
        connection.command("SET", "key", "value")
    return folder


def test_a_store_in_use_is_refused(store: Path) -> None:
    with servers.snugly("--storage", str(store)):
        assert "is open in another process" in refused(store)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"garbage" * 10_000, "is no store of snugly"),
        (None, "is truncated"),
    ],
    ids=["empty", "garbage", "truncated"],
)
def test_a_store_that_is_not_whole_is_refused_and_left_alone(store: Path, content: bytes | None, message: str) -> None:
    data = store / "data.mdb"
    content = data.read_bytes()[:9_000] if content is None else content
    data.write_bytes(content)
    assert message in refused(store)
    assert data.read_bytes() == content


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear reader")
    assert "holds files and is no store" in refused(tmp_path)
    assert "is a file" in refused(tmp_path / "letter.txt")


def test_a_budget_that_is_too_small_is_refused(tmp_path: Path) -> None:
    assert "a store needs at least 16777216" in refused(tmp_path / "store", "--max-disk", "1mb")


def test_a_store_is_compacted(store: Path) -> None:
    with servers.snugly("--storage", str(store)) as server, server.connect() as connection:
        for number in range(2_000):
            connection.command("SET", f"key:{number}", random.Random(number).randbytes(3_000))
        connection.command("FLUSHALL")
        connection.command("SET", "last", "one")
        time.sleep(0.5)
    done = subprocess.run([str(snugly_binary()), "compact", str(store)], capture_output=True, text=True, check=True)
    assert "before" in done.stdout
    assert (store / "data.mdb").stat().st_size < 200_000
    assert "1 keys" in check(store)
