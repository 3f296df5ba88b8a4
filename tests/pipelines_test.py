"""Clients that write a whole pipeline before they read, and clients that stop writing, or go, while something waits."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from info import info
from resp import Connection, Simple, encode
from servers import Server
from tested import Start
from waiting import until

SECONDS = 120
LARGE = b"v" * 100_000


@contextlib.contextmanager
def blocking(server: Server) -> Iterator[socket.socket]:
    """A socket that waits for each write, as most clients' do."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
        yield connection


def read_exactly(connection: socket.socket, replies: Iterator[bytes]) -> None:
    with connection.makefile("rb") as stream:
        for number, reply in enumerate(replies):
            assert stream.read(len(reply)) == reply, f"reply {number}"


PIPELINES = {
    "large sets and gets": (100, encode("SET", "k", LARGE) + encode("GET", "k"), b"+OK\r\n$100000\r\n%b\r\n" % LARGE),
    "large getsets": (100, encode("GETSET", "k", LARGE), b"$100000\r\n%b\r\n" % LARGE),
    "many gets": (300_000, encode("GET", "short"), b"$200\r\n%b\r\n" % (b"s" * 200)),
    "sets": (1_000_000, encode("SET", "short", "s" * 200), b"+OK\r\n"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "sets" else ()) for name in PIPELINES]
)
@pytest.mark.parametrize(
    "ends", [False, pytest.param(True, marks=pytest.mark.snugly_only)], ids=["open", "half-closed"]
)
def test_a_pipeline_that_is_written_before_any_reply_is_read_is_answered(server: Server, name: str, ends: bool) -> None:
    count, request, reply = PIPELINES[name]
    with server.connect() as other:
        other.command("SET", "k", LARGE)
        other.command("SET", "short", b"s" * 200)
        with blocking(server) as connection:
            for _ in range(100):
                connection.sendall(request * (count // 100))
            if ends:
                connection.shutdown(socket.SHUT_WR)
            assert other.command("PING") == Simple(b"PONG"), "others are served"
            read_exactly(connection, (reply for _ in range(count)))


@pytest.mark.snugly_only
def test_a_client_that_reads_nothing_is_closed_at_its_limit_with_a_line_in_the_log(start: Start) -> None:
    server = start("--max-request-bytes", "8mb")
    with server.connect() as other, blocking(server) as connection:
        other.command("SET", "k", LARGE)
        pipeline = encode("GET", "k") * 1_000_000
        with pytest.raises(ConnectionError):
            connection.sendall(pipeline)
        until(lambda: info(other, "clients", "connected_clients") == 1)
        assert info(other, "stats", "client_query_buffer_limit_disconnections") == 1
    assert server.says("max-request-bytes")


def lose(connection: socket.socket, how: str) -> None:
    """Closes a connection as a program does that ends, or as one does that is killed with bytes unread."""
    if how == "RST":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("how", ["FIN", "RST"])
@pytest.mark.parametrize("waits", [("WAIT", "1", "0"), ("BLPOP", "nothing", "0"), ("AUTH", "wrong")], ids=" ".join)
def test_a_client_that_goes_is_noticed_whatever_waits_behind_its_request(
    start: Start, waits: tuple[str, ...], how: str
) -> None:
    server = start(password="secret")
    with server.connect() as other:
        other.command("AUTH", "secret")
        before = info(other, "stats", "total_connections_received")
        for _ in range(20):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
            login = b"" if waits[0] == "AUTH" else encode("AUTH", "secret")
            connection.sendall(login + encode(*waits) + encode("PING") * 10_000)
            lose(connection, how)
        # A busy server accepts them when they have gone already.
        until(lambda: info(other, "stats", "total_connections_received") == before + 20, seconds=SECONDS)
        until(lambda: info(other, "clients", "connected_clients") == 1, seconds=SECONDS)
        until(lambda: info(other, "clients", "blocked_clients") == 0, seconds=SECONDS)


@pytest.mark.slow
def test_an_element_that_a_client_is_given_as_it_half_closes_is_not_lost(start: Start) -> None:
    server = start("--threads", "2")
    rounds = 10_000
    with server.connect() as pusher:
        lost = sum(not survives(server, pusher, b"element %d" % number) for number in range(rounds))
    assert lost == 0, f"of {rounds}"


def survives(server: Server, pusher: Connection, element: bytes) -> bool:
    with blocking(server) as waiter:
        waiter.sendall(encode("BLPOP", "list", "0"))
        until(lambda: info(pusher, "clients", "blocked_clients") == 1)
        closing = threading.Thread(target=waiter.shutdown, args=(socket.SHUT_WR,))
        closing.start()
        pusher.command("RPUSH", "list", element)
        closing.join()
        with waiter.makefile("rb") as stream:
            reply = stream.read()
        left = pusher.command("LPOP", "list")
    return (element in reply) != (left == element)
