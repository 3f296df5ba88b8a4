"""Links: connections that speak one protocol over a port, inside TLS, or over a socket at a path.

A link knows how to connect and where a reply ends; it knows nothing of what is asked. Two rows of the table differ in
what carries them or in what they speak.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import memcached
from resp import Connection, Failure, tcp

# Seconds that a reply may take on a machine that is busy with everything else.
PATIENCE = 120.0
# Statuses of memcached's binary protocol: there is no room for a value, and something else went wrong in the server.
BINARY_REFUSALS = (0x82, 0x84)


@dataclass(frozen=True)
class Addresses:
    """Addresses of one server, and the file with the authority of its certificate."""

    port: int
    tls_port: int
    memcached_port: int
    path: Path
    authority: str


class Link(Protocol):
    """A connection with requests on their way, whose replies come in order."""

    def send(self, data: bytes) -> None: ...

    def receive(self) -> object: ...

    def refusal(self, reply: object) -> bytes | None:
        """The text of an error; None if the reply is none."""

    def only(self) -> tuple[str | int, ...]:
        """The filter of CLIENT KILL that this connection alone passes."""

    def close(self) -> None: ...


class Resp:
    """A link that speaks RESP."""

    def __init__(self, carrier: socket.socket, protocol: int) -> None:
        self.connection = Connection(carrier, protocol)
        self.id = self.connection.command("CLIENT", "ID")

    def send(self, data: bytes) -> None:
        self.connection.send(data)

    def receive(self) -> object:
        return self.connection.read()

    def refusal(self, reply: object) -> bytes | None:
        return reply.text if isinstance(reply, Failure) else None

    def only(self) -> tuple[str | int, ...]:
        assert isinstance(self.id, int)
        return "ID", self.id

    def close(self) -> None:
        self.connection.close()


class Memcached:
    """A link that speaks memcached's text and meta protocols: a reply is its bytes, value included."""

    def __init__(self, port: int) -> None:
        self.client = memcached.Client(port, PATIENCE)

    def send(self, data: bytes) -> None:
        self.client.send(data)

    def receive(self) -> object:
        line = self.client.line()
        word, *rest = line.split()
        if word == b"VALUE":
            return line + self.client.read(int(rest[2]) + 2) + self.client.line()
        if word == b"VA":
            return line + self.client.read(int(rest[0]) + 2)
        return line

    def refusal(self, reply: object) -> bytes | None:
        return reply.strip() if isinstance(reply, bytes) and b"ERROR" in reply.split(b" ", 1)[0] else None

    def only(self) -> tuple[str | int, ...]:
        (host, port), (server, server_port) = self.client.socket.getsockname(), self.client.socket.getpeername()
        return "ADDR", f"{host}:{port}", "LADDR", f"{server}:{server_port}"

    def close(self) -> None:
        self.client.socket.close()


class Binary(Memcached):
    """A link that speaks memcached's binary protocol: a reply is its status and its value."""

    def receive(self) -> object:
        packet = self.client.packet()
        return packet.status, packet.value

    def refusal(self, reply: object) -> bytes | None:
        return reply[1] if isinstance(reply, tuple) and reply[0] in BINARY_REFUSALS else None


def plain(at: Addresses) -> socket.socket:
    return tcp(at.port, PATIENCE)


def inside_tls(at: Addresses) -> socket.socket:
    context = ssl.create_default_context(cafile=at.authority)
    return context.wrap_socket(tcp(at.tls_port, PATIENCE), server_hostname="127.0.0.1")


def over_path(at: Addresses) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(PATIENCE)
    made.connect(str(at.path))
    return made


def over_memcached_port(at: Addresses) -> socket.socket:
    return tcp(at.memcached_port, PATIENCE)


# Ways for bytes to a server.
CARRIERS: dict[str, Callable[[Addresses], socket.socket]] = {
    "plain": plain,
    "tls": inside_tls,
    "path": over_path,
    "memcached": over_memcached_port,
}


@dataclass(frozen=True)
class Dialect:
    """A protocol on a way to the server: its name, its connection, and the table of its load."""

    name: str
    connect: Callable[[Addresses], Link]
    speaks: str


DIALECTS = (
    Dialect("resp2", lambda at: Resp(plain(at), 2), "resp"),
    Dialect("resp3", lambda at: Resp(plain(at), 3), "resp"),
    Dialect("resp2 tls", lambda at: Resp(inside_tls(at), 2), "resp"),
    Dialect("resp3 tls", lambda at: Resp(inside_tls(at), 3), "resp"),
    Dialect("resp2 path", lambda at: Resp(over_path(at), 2), "resp"),
    Dialect("resp3 path", lambda at: Resp(over_path(at), 3), "resp"),
    Dialect("text", lambda at: Memcached(at.memcached_port), "text"),
    Dialect("meta", lambda at: Memcached(at.memcached_port), "meta"),
    Dialect("binary", lambda at: Binary(at.memcached_port), "binary"),
)
