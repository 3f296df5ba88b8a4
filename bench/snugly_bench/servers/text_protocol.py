"""Memcached's text protocol for many values: pipelined sets and gets of several keys, every byte compared.

Knows how requests and replies are laid out; knows no server and nothing of what is measured.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from types import TracebackType
from typing import Self, TypeAlias

Record: TypeAlias = tuple[bytes, bytes]
"""A key and its value."""
BATCH_KEYS = 20
"""Keys of a get, and sets that are sent at once."""
BATCH_BYTES = 4 << 20
"""Values of a batch take no more, unless it is one."""
IN_FLIGHT = 4
"""Batches that are sent before the first one's replies are read, so that the server need not wait for the client."""
TIMEOUT_SECONDS = 120.0
BUFFER_BYTES = 1 << 20
STORED, END, REFUSED = b"STORED\r\n", b"END\r\n", b"SERVER_ERROR "


def batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    taken = 0
    for record in records:
        if batch and (len(batch) == BATCH_KEYS or taken + len(record[1]) > BATCH_BYTES):
            yield batch
            batch, taken = [], 0
        batch.append(record)
        taken += len(record[1])
    if batch:
        yield batch


class TextConnection:
    """One connection, which ends the program where a server answers what it must not."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb", buffering=BUFFER_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.replies.close()
        self.socket.close()

    def set_all(self, records: Iterable[Record], pace: float = inf) -> int:
        """Stores the values, at most `pace` of them a second, and returns how many were taken: memcached refuses some
        when it is out of memory."""
        stored = sent = 0
        begun = time.monotonic()
        waiting: deque[int] = deque()
        for batch in batches(records):
            time.sleep(max(0.0, begun + sent / pace - time.monotonic()))
            sent += len(batch)
            parts = [(b"set %b 0 0 %d\r\n" % (key, len(value)), value, b"\r\n") for key, value in batch]
            self.socket.sendall(b"".join(piece for part in parts for piece in part))
            waiting.append(len(batch))
            if len(waiting) == IN_FLIGHT:
                stored += self.take_stored(waiting.popleft())
        return stored + sum(map(self.take_stored, waiting))

    def take_stored(self, count: int) -> int:
        stored = 0
        for _ in range(count):
            reply = self.replies.readline()
            if reply == STORED:
                stored += 1
            elif not reply.startswith(REFUSED):
                raise SystemExit(f"a set was answered {reply!r}")
        return stored

    def get_all(self, records: Iterable[Record]) -> int:
        """Reads the values of the keys and compares them with the given ones; returns how many there were."""
        hits = 0
        waiting: deque[Sequence[Record]] = deque()
        for batch in batches(records):
            self.socket.sendall(b"get %b\r\n" % b" ".join(key for key, _ in batch))
            waiting.append(batch)
            if len(waiting) == IN_FLIGHT:
                hits += self.take_values(waiting.popleft())
        return hits + sum(map(self.take_values, waiting))

    def take_values(self, batch: Sequence[Record]) -> int:
        """Values come in the order of the keys, without those that are missing."""
        hits = 0
        due = iter(batch)
        while (line := self.replies.readline()) != END:
            words = line.split()
            if len(words) != 4 or words[0] != b"VALUE":
                raise SystemExit(f"a get was answered {line[:100]!r}")
            found = self.replies.read(int(words[3]) + 2)
            if not any(key == words[1] and matches(found, value) for key, value in due):
                raise SystemExit(f"{words[1].decode(errors='replace')} came back different, or was not asked for")
            hits += 1
        return hits

    def stats(self) -> dict[str, str]:
        """Numbers of the server about itself."""
        self.socket.sendall(b"stats\r\n")
        found = {}
        while (line := self.replies.readline()) != END:
            words = line.decode(errors="replace").split(maxsplit=2)
            if len(words) < 2 or words[0] != "STAT":
                raise SystemExit(f"stats was answered {line[:100]!r}")
            found[words[1]] = words[2].strip() if len(words) == 3 else ""
        return found


def matches(found: bytes, value: bytes) -> bool:
    return len(found) == len(value) + 2 and found.startswith(value) and found.endswith(b"\r\n")
