"""Operations of clients on a store that was killed, and whether the state after a restart is true to them.

A writer has databases of its own and notes each write and when it was answered. It knows commands and what they do to
keys; it knows nothing of servers, kills and disks. Beside the writers somebody watches how far the disk is.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from info import info
from resp import Argument, Connection, Failure, Reply, encode

# The value, and when it expires in Unix milliseconds, as PEXPIRETIME says it.
Value: TypeAlias = tuple[bytes, int]
Contents: TypeAlias = dict[tuple[int, bytes], Value]
Request: TypeAlias = tuple[Argument, ...]
Change: TypeAlias = Callable[[Contents], None]

NEVER = -1
# The year 2100: far enough that nothing expires while a test runs.
FAR = 4_102_444_800_000


@dataclass
class Write:
    """Requests that are sent at once and must come back as a whole or not at all, and their effect."""

    requests: list[Request]
    change: Change
    # The keys that it names; empty if it is about whole databases.
    keys: set[tuple[int, bytes]] = field(default_factory=set)
    # When the last reply came, and none was an error.
    answered: float | None = None

    def send(self, connection: Connection) -> list[Reply]:
        connection.send(b"".join(encode(*request) for request in self.requests))
        return [connection.read() for _ in self.requests]


def scan(connection: Connection, database: int) -> Contents:
    """All keys of a database, by SCAN, which must agree with DBSIZE."""
    connection.command("SELECT", database)
    keys: set[bytes] = set()
    cursor: bytes | str = "0"
    while cursor != b"0":
        reply = connection.command("SCAN", cursor, "COUNT", 100)
        assert isinstance(reply, list)
        cursor, found = reply  # type: ignore[assignment]
        keys.update(found)  # type: ignore[arg-type]
    assert connection.command("DBSIZE") == len(keys)
    contents: Contents = {}
    for key in keys:
        connection.send(encode("GET", key) + encode("PEXPIRETIME", key))
        value, expiry = connection.read(), connection.read()
        assert isinstance(value, bytes), f"{key!r} was scanned and is {value!r}"
        assert isinstance(expiry, int)
        contents[database, key] = (value, expiry)
    return contents


@dataclass
class Commits:
    """Says how far a store is that commits from time to time, however long a busy machine takes for that."""

    done_before: float = 0.0
    """The time before which answered writes are on disk; 0 if none is known to be."""

    def watch_until_killed(self, port: int) -> None:
        """Of two commits that end after a moment, the second begins after it, and has what was answered before."""
        seen: list[tuple[float, int]] = []
        try:
            with Connection(port) as connection:
                while True:
                    at = time.monotonic()
                    commits = info(connection, "disk", "disk_commits")
                    seen.append((at, commits))
                    self.done_before = max((at for at, then in seen if then + 2 <= commits), default=0.0)
                    time.sleep(0.01)
        except (OSError, EOFError):
            return


@dataclass
class Writer:
    """One client, alone in its databases. Its writes reach the disk in order."""

    rng: random.Random
    databases: range
    kinds: dict[str, float]
    """Kinds of writes, and their relative frequency."""
    keys: int = 12
    lengths: tuple[int, ...] = (10, 300, 1_990, 4_090, 9_000, 60_000)
    state: Contents = field(default_factory=dict)
    """The contents before the first write of the log."""
    log: list[Write] = field(default_factory=list)

    def write_until_killed(self, port: int, failures: Callable[[Failure], None]) -> None:
        """Writes until the server is gone. A failure goes to `failures`, which raises if it should not have been;
        afterwards it is not known whether the write will come to the disk."""
        self.log = []
        while True:
            try:
                with Connection(port, timeout=30.0) as connection:
                    while True:
                        write = self.next_write()
                        self.log.append(write)
                        replies = write.send(connection)
                        failed = list(failures_of(replies))
                        for failure in failed:
                            failures(failure)
                        if not failed:
                            write.answered = time.monotonic()
            except ConnectionRefusedError:
                return
            except (OSError, EOFError):
                continue

    def next_write(self) -> Write:
        (kind,) = self.rng.choices(list(self.kinds), list(self.kinds.values()))
        database = self.rng.choice(self.databases)
        write = self.group(database) if kind == "EXEC" else self.single(kind, database)
        write.requests.insert(0, ("SELECT", database))
        return write

    def group(self, database: int) -> Write:
        kinds = [kind for kind in self.kinds if kind not in ("EXEC", "FLUSHALL")]
        parts = [self.single(kind, database) for kind in self.rng.choices(kinds, k=self.rng.randrange(2, 6))]

        def change(contents: Contents) -> None:
            for part in parts:
                part.change(contents)

        requests = itertools.chain.from_iterable(part.requests for part in parts)
        return Write([("MULTI",), *requests, ("EXEC",)], change, set().union(*(part.keys for part in parts)))

    def single(self, kind: str, database: int) -> Write:
        rng = self.rng
        key, other = (b"key:%d" % rng.randrange(self.keys) for _ in range(2))
        value = rng.randbytes(rng.choice(self.lengths))
        expiry = FAR + rng.randrange(1_000_000)
        names = {(database, key)}
        match kind:
            case "SET":
                return Write([("SET", key, value)], put(database, {key: value}), names)
            case "SET PXAT":
                return Write([("SET", key, value, "PXAT", expiry)], put(database, {key: value}, expiry), names)
            case "MSET":
                pair = {key: value, other: value[::-1]}
                return Write(
                    [("MSET", *itertools.chain.from_iterable(pair.items()))],
                    put(database, pair),
                    names | {(database, other)},
                )
            case "DEL":
                return Write([("DEL", key)], lambda contents: drop(contents, database, key), names)
            case "APPEND":
                more = value[:100]
                return Write([("APPEND", key, more)], lambda contents: append(contents, database, key, more), names)
            case "PEXPIREAT":
                return Write(
                    [("PEXPIREAT", key, expiry)], lambda contents: expire(contents, database, key, expiry), names
                )
            case "PERSIST":
                return Write([("PERSIST", key)], lambda contents: expire(contents, database, key, NEVER), names)
            case "FLUSHDB":
                return Write([("FLUSHDB",)], lambda contents: flush(contents, range(database, database + 1)))
            case "FLUSHALL":
                return Write([("FLUSHALL",)], lambda contents: flush(contents, self.databases))
            case "SWAPDB":
                second = rng.choice(self.databases)
                return Write([("SWAPDB", database, second)], lambda contents: swap(contents, database, second))
            case _:
                raise ValueError(kind)

    def scan(self, connection: Connection) -> Contents:
        """The present contents."""
        parts = [scan(connection, database) for database in self.databases]
        return {key: value for part in parts for key, value in part.items()}

    def verify_order(self, found: Contents, promised_before: float) -> None:
        """Fails unless `found` is the state after some write, and no write is missing that was answered in time."""
        least = max((at + 1 for at, write in enumerate(self.log) if is_promised(write, promised_before)), default=0)
        matches = [count for count, state in enumerate(self.states()) if state == found]
        names = f"databases {list(self.databases)}"
        assert matches, f"{names} are in no state that they ever were in, of {len(self.log)} writes"
        assert matches[-1] >= least, (
            f"{names} are as after write {matches[-1]} of {len(self.log)}; {least} were promised"
        )
        self.state = found

    def verify_keys(self, found: Contents, promised_before: float, may_be_missing: bool) -> None:
        """Fails unless each key has its last value that was promised, or one that was written later. For writes that
        name their keys."""
        allowed: dict[tuple[int, bytes], list[Value | None]] = {key: [value] for key, value in self.state.items()}
        state = dict(self.state)
        for write in self.log:
            write.change(state)
            for key in write.keys:
                earlier = [] if is_promised(write, promised_before) else allowed.get(key, [None])
                allowed[key] = [*earlier, state.get(key)]
        for key in found.keys() | allowed.keys():
            value, choice = found.get(key), allowed.get(key, [None])
            is_allowed = value in choice or (value is None and may_be_missing)
            assert is_allowed, f"{key} has {shortened(value)}, and not one of {[shortened(value) for value in choice]}"
        self.state = found

    def states(self) -> Iterator[Contents]:
        """The state before the first write and after each."""
        state = dict(self.state)
        yield state
        for write in self.log:
            write.change(state)
            yield state


def failures_of(replies: list[Reply]) -> Iterator[Failure]:
    """The errors among replies, those in the reply of an EXEC included."""
    for reply in replies:
        if isinstance(reply, Failure):
            yield reply
        elif isinstance(reply, list):
            yield from failures_of(reply)


def is_promised(write: Write, before: float) -> bool:
    return write.answered is not None and write.answered <= before


def shortened(value: Value | None) -> str:
    return "nothing" if value is None else f"{len(value[0])} bytes from {value[0][:8]!r} on, expiry {value[1]}"


def put(database: int, values: dict[bytes, bytes], expiry: int = NEVER) -> Change:
    entries: Contents = {(database, key): (value, expiry) for key, value in values.items()}
    return lambda contents: contents.update(entries)


def drop(contents: Contents, database: int, key: bytes) -> None:
    contents.pop((database, key), None)


def append(contents: Contents, database: int, key: bytes, more: bytes) -> None:
    value, expiry = contents.get((database, key), (b"", NEVER))
    contents[database, key] = (value + more, expiry)


def expire(contents: Contents, database: int, key: bytes, expiry: int) -> None:
    if (database, key) in contents:
        contents[database, key] = (contents[database, key][0], expiry)


def flush(contents: Contents, databases: range) -> None:
    for entry in [entry for entry in contents if entry[0] in databases]:
        del contents[entry]


def swap(contents: Contents, first: int, second: int) -> None:
    other = {first: second, second: first}
    exchanged = {(other.get(database, database), key): value for (database, key), value in contents.items()}
    contents.clear()
    contents.update(exchanged)
