"""Primaries and the snugly that follows one: starting them, waiting until both have the same, and a line between them
that can be cut.

It knows replication as clients see it (INFO, ROLE). It knows nothing of what is tested.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from typing import TypeAlias

import servers
from resp import Connection, encode
from servers import Server
from waiting import until

# What is at a key: its type, its value, and when it expires in Unix milliseconds.
Contents: TypeAlias = dict[tuple[int, bytes], tuple[bytes, object, int]]
# The types that snugly has.
TYPES = (b"string", b"list")


@contextlib.contextmanager
def primary(kind: str, *options: str) -> Iterator[Server]:
    """A valkey-server or a redis-server that sends its keys as soon as they are asked for."""
    begin = {"valkey": servers.valkey, "redis": servers.redis}[kind]
    with begin("--repl-diskless-sync-delay", "0", *options) as server:
        yield server


@contextlib.contextmanager
def following(port: int, *options: str) -> Iterator[Server]:
    """A snugly that follows the server at this port."""
    with servers.snugly("--replica-of", f"127.0.0.1:{port}", *options) as server:
        yield server


def replication(connection: Connection) -> dict[str, str]:
    """The fields of INFO replication."""
    text = connection.command("INFO", "replication")
    assert isinstance(text, bytes)
    return dict(line.split(":", 1) for line in text.decode().split("\r\n") if ":" in line)


def is_up(replica: Connection) -> bool:
    return replication(replica).get("master_link_status") == "up"


def until_up(replica: Connection) -> None:
    until(lambda: is_up(replica))


def until_caught_up(primary: Connection, replica: Connection) -> None:
    """Waits until the replica has all that the primary had when this was called."""
    wanted = int(replication(primary)["master_repl_offset"])

    def is_there() -> bool:
        told = replication(replica)
        return told.get("master_link_status") == "up" and int(told["slave_repl_offset"]) >= wanted

    until(is_there)


def contents(connection: Connection) -> Contents:
    """All strings and lists."""
    found: Contents = {}
    text = connection.command("INFO", "keyspace")
    assert isinstance(text, bytes)
    databases = [int(line.split(b":")[0][2:]) for line in text.split(b"\r\n") if line.startswith(b"db")]
    for database in databases:
        connection.command("SELECT", database)
        keys = connection.command("KEYS", "*")
        assert isinstance(keys, list)
        for key in keys:
            assert isinstance(key, bytes)
            connection.send(encode("TYPE", key) + encode("PEXPIRETIME", key))
            kind, expiry = connection.read(), connection.read()
            name = getattr(kind, "text", b"")
            if name in TYPES:
                value = connection.command(*(("GET", key) if name == b"string" else ("LRANGE", key, 0, -1)))
                assert isinstance(expiry, int)
                found[database, key] = (name, value, expiry)
    return found


def until_equal(primary: Server, replica: Server) -> None:
    """Waits until both have the same strings and lists; keys may expire meanwhile."""
    with primary.connect() as theirs, replica.connect() as ours:
        until_caught_up(theirs, ours)
        with contextlib.suppress(AssertionError):
            until(lambda: contents(theirs) == contents(ours), 20)
            return
        expected, found = contents(theirs), contents(ours)
    keys = sorted(key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key))
    lines = [f"{key}: {str(expected.get(key))[:200]} is {str(found.get(key))[:200]}" for key in keys]
    assert not lines, "\n".join(lines)


class Line:
    """A port of 127.0.0.1 that leads to another one, until it is cut; then to that again."""

    def __init__(self, port: int) -> None:
        self.port_behind = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        self.lock = threading.Lock()
        self.links = 0
        """Connections that were made."""
        self.most: int | None = None
        """Bytes that a connection carries from the server behind before it is cut."""
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()
        self.cut()

    def accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.port_behind))
            except OSError:
                near.close()
                continue
            with self.lock:
                self.pairs.append((near, far))
                self.links += 1
            threading.Thread(target=self.carry, args=(near, far), daemon=True).start()

    def carry(self, near: socket.socket, far: socket.socket) -> None:
        left = self.most
        # A socket that was cut already is none for a selector.
        with contextlib.suppress(OSError, ValueError), selectors.DefaultSelector() as selector:
            selector.register(near, selectors.EVENT_READ, far)
            selector.register(far, selectors.EVENT_READ, near)
            while True:
                for key, _ in selector.select():
                    source: socket.socket = key.fileobj  # type: ignore[assignment]
                    data = source.recv(1 << 16)
                    if source is far and left is not None:
                        data, left = data[:left], left - len(data[:left])
                    if not data:
                        raise OSError("it has ended, or is cut")
                    key.data.sendall(data)
        end(near, far)

    def cut(self) -> None:
        """Ends all connections."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            end(*pair)


def end(*sockets: socket.socket) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
