"""Requests with the replies that are due, sent in batches that are made beforehand.

Knows how requests and replies look on the wire; knows no server and nothing of what is measured.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Self

TIMEOUT_SECONDS = 60.0
OK = b"+OK\r\n"
ERROR = ord("-")
"""The first byte of an error; nothing that is sent here is due to be answered by one."""


@dataclass(frozen=True)
class Exchange:
    """Bytes that are sent, and those that are due: of one request, or of a batch."""

    sent: bytes
    reply: bytes


def request(*words: bytes | str | int) -> bytes:
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(map(bulk, parts))


def bulk(value: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(value), value)


def integer(value: int) -> bytes:
    return b":%d\r\n" % value


def setting(key: str, value: bytes) -> Exchange:
    return Exchange(request("SET", key, value), OK)


def getting(key: str, value: bytes) -> Exchange:
    return Exchange(request("GET", key), bulk(value))


def grouped(exchanges: Iterable[Exchange], count: int) -> Iterator[list[Exchange]]:
    """So many together; the last ones may be fewer."""
    left = iter(exchanges)
    while group := list(islice(left, count)):
        yield group


def in_batches(exchanges: Iterable[Exchange], pipeline: int) -> Iterator[Exchange]:
    """So many requests at a time."""
    for group in grouped(exchanges, pipeline):
        yield Exchange(b"".join(each.sent for each in group), b"".join(each.reply for each in group))


class Client:
    """Connections to a server. Ends the program where it answers what it must not."""

    def __init__(self, port: int, connections: int = 1) -> None:
        self.sockets = [socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) for _ in range(connections)]
        for each in self.sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self.sockets:
            each.close()

    def compare(self, batches: Iterable[Exchange]) -> None:
        """Sends each batch on one connection, and compares every byte of the replies."""
        for batch in batches:
            self.sockets[0].sendall(batch.sent)
            found = bytes(self.receive(self.sockets[0], len(batch.reply)))
            if found != batch.reply:
                raise SystemExit(
                    f"{batch.sent[:100]!r} was answered {found[:100]!r}, and {batch.reply[:100]!r} was due"
                )

    def ask(self, batches: Iterable[Exchange]) -> None:
        """Sends a batch on each connection before it reads what is due on any; compares nothing but lengths."""
        for group in grouped(batches, len(self.sockets)):
            asked = list(zip(self.sockets, group, strict=False))
            for connection, batch in asked:
                connection.sendall(batch.sent)
            for connection, batch in asked:
                self.receive(connection, len(batch.reply))

    def receive(self, connection: socket.socket, due: int) -> memoryview:
        """So many bytes, valid until the next call. Exits if fewer come, or an error comes first."""
        if len(self.buffer) < due:
            self.buffer = bytearray(due)
        view = memoryview(self.buffer)[:due]
        found = 0
        with suppress(TimeoutError):
            while found < due:
                taken = connection.recv_into(view[found:])
                found += taken
                if not taken or view[0] == ERROR:
                    break
        if found < due:
            said = bytes(view[:found][:100])
            raise SystemExit(f"{due:,} bytes were due, and {found:,} came, which begin with {said!r}")
        return view
