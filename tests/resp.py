"""A raw RESP connection: what the tests need to see is the bytes, which a client library hides.

It knows the wire protocol (https://valkey.io/topics/protocol/) and nothing about any command.
"""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from typing import TypeAlias

Argument: TypeAlias = bytes | str | int | float


@dataclass(frozen=True)
class Simple:
    """A simple string, `+OK`."""

    text: bytes


@dataclass(frozen=True)
class Failure:
    """An error reply, `-ERR ...` (or RESP3's blob error)."""

    text: bytes


@dataclass(frozen=True)
class Other:
    """A scalar that no test takes apart: double, boolean, big number, verbatim string."""

    kind: bytes
    text: bytes


@dataclass(frozen=True)
class Map:
    """A RESP3 map, in the order of the wire; keys need not be hashable."""

    pairs: list[tuple[Reply, Reply]]


@dataclass(frozen=True)
class Items:
    """A RESP3 set (`~`) or push (`>`)."""

    kind: bytes
    items: list[Reply]


Reply: TypeAlias = "bytes | int | list[Reply] | Map | Items | Simple | Failure | Other | None"


class Incomplete(Exception):
    """The bytes so far are a proper prefix of a reply, which is at least `size` bytes long."""

    def __init__(self, size: int) -> None:
        self.size = size


def encode(*args: Argument) -> bytes:
    """One command as an array of bulk strings."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        raw = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    return b"".join(parts)


def parse(data: bytes | bytearray, at: int = 0) -> tuple[Reply, int]:
    """The reply that starts at offset `at`, and the offset behind it.

    Raises Incomplete when more bytes are needed and ValueError when no server should send this.
    """
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Incomplete(len(data) + 1)
    kind, line, after = bytes(data[at : at + 1]), bytes(data[at + 1 : end]), end + 2
    if kind == b"+":
        return Simple(line), after
    if kind == b"-":
        return Failure(line), after
    if kind == b":":
        return int(line), after
    if kind == b"_":
        return None, after
    if kind in (b",", b"#", b"("):
        return Other(kind, line), after
    if kind in (b"$", b"=", b"!"):
        size = int(line)
        if size < 0:
            return None, after
        if len(data) < after + size + 2:
            raise Incomplete(after + size + 2)
        body = bytes(data[after : after + size])
        scalar: Reply = body if kind == b"$" else Failure(body) if kind == b"!" else Other(kind, body)
        return scalar, after + size + 2
    if kind in (b"*", b"%", b"~", b">"):
        count = int(line)
        if count < 0:
            return None, after
        items: list[Reply] = []
        for _ in range(count * 2 if kind == b"%" else count):
            item, after = parse(data, after)
            items.append(item)
        if kind == b"%":
            return Map(list(zip(items[::2], items[1::2], strict=True))), after
        return (items if kind == b"*" else Items(kind, items)), after
    raise ValueError(f"no RESP type starts with {kind!r}: {bytes(data[at : at + 60])!r}")


def tcp(port: int, timeout: float) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=timeout)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


class Connection:
    """One socket; requests go out as given, replies come back as bytes or parsed."""

    def __init__(self, to: int | socket.socket, protocol: int = 2, timeout: float = 60.0) -> None:
        """A connection to a port of this machine, or over a socket that is connected already."""
        self.socket = tcp(to, timeout) if isinstance(to, int) else to
        self.pending = bytearray()
        if protocol == 3:
            self.command("HELLO", 3)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Bytes as they are; what the server refuses to read any more is not an error here."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def read_raw(self) -> bytes:
        """The bytes of exactly one reply; EOFError when the server closed the connection before it."""
        while True:
            try:
                _, end = parse(self.pending)
            except Incomplete as short:
                while len(self.pending) < short.size:
                    piece = self.socket.recv(1 << 20)
                    if not piece:
                        raise EOFError("the server closed the connection") from None
                    self.pending += piece
            else:
                raw = bytes(self.pending[:end])
                del self.pending[:end]
                return raw

    def read(self) -> Reply:
        return parse(self.read_raw())[0]

    def read_to_end(self) -> bytes:
        """Everything the server still sends until it closes the connection."""
        data = bytes(self.pending)
        self.pending.clear()
        while True:
            try:
                piece = self.socket.recv(1 << 20)
            except ConnectionResetError:
                return data
            if not piece:
                return data
            data += piece

    def command_raw(self, *args: Argument) -> bytes:
        self.send(encode(*args))
        return self.read_raw()

    def command(self, *args: Argument) -> Reply:
        return parse(self.command_raw(*args))[0]
