"""Sends batches to a server over some connections, and compares every reply."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice, repeat

from snugly_bench.adaptive.workload import Batch
from snugly_bench.servers.peers import Server

CONNECTIONS = 8
BUFFER_BYTES = 1 << 20
"""Of a socket: a batch fits in, so that none waits for its replies to be read before it is sent."""
REPLY_SECONDS = 60.0


@dataclass(frozen=True)
class Driver:
    """Open connections to one server."""

    name: str
    """Of the server."""
    sockets: tuple[socket.socket, ...]

    def run(self, batches: Sequence[Batch], times: int = 1) -> tuple[int, float]:
        """Sends all of them so many times, one for each connection at once; returns requests and seconds.

        Exits at the first reply that is not as it should be.
        """
        began, requests = time.perf_counter(), 0
        rest = chain.from_iterable(repeat(batches, times))
        while together := list(islice(rest, len(self.sockets))):
            for connection, batch in zip(self.sockets, together, strict=False):
                connection.sendall(batch.request)
            for connection, batch in zip(self.sockets, together, strict=False):
                self.expect(connection, batch.reply)
                requests += batch.requests
        return requests, time.perf_counter() - began

    def expect(self, connection: socket.socket, reply: bytes) -> None:
        received = bytearray(len(reply))
        view, filled = memoryview(received), 0
        while filled < len(reply):
            count = connection.recv_into(view[filled:])
            # An error is shorter than what was to be read, so that it is looked at before all of it is there.
            if count == 0 or view[filled : filled + count] != reply[filled : filled + count]:
                told = bytes(view[filled : filled + min(count, 80)])
                raise SystemExit(f"{self.name} answered otherwise than it should: {told!r}")
            filled += count


@contextmanager
def connected(server: Server) -> Iterator[Driver]:
    with ExitStack() as afterwards:
        sockets = tuple(afterwards.enter_context(connect(server.port)) for _ in range(CONNECTIONS))
        yield Driver(server.peer.name, sockets)


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=REPLY_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        connection.setsockopt(socket.SOL_SOCKET, buffer, BUFFER_BYTES)
    return connection
