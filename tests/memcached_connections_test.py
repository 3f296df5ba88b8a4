"""Connections of memcached hold what those of RESP do: readers who stop, half requests, many who idle."""

from __future__ import annotations

import contextlib
import resource
import socket
from collections.abc import Iterator

import pytest

import memcached
import servers
from info import info
from memcached import Cache, Client
from resp import Simple
from waiting import until

pytestmark = pytest.mark.snugly_only

MB = 1 << 20
LARGE = b"x" * 100_000
OK = Simple(b"OK")


@contextlib.contextmanager
def spoken(*options: str) -> Iterator[Cache]:
    with memcached.spoken_by_snugly(*options) as cache:
        yield cache


def held(cache: Cache) -> int:
    """Bytes of requests and replies that the server keeps for its clients."""
    with cache.server.connect() as connection:
        return int(info(connection, "memory", "mem_clients_normal"))


def test_a_pipeline_that_is_written_before_any_reply_is_read_is_answered(memcached_server: Cache) -> None:
    rounds = 300
    with memcached_server.connect() as client:
        asked = b"".join(
            b"set key:%d 0 0 %d\r\n%b\r\nget key:%d\r\n" % (number, len(LARGE), LARGE, number)
            for number in range(rounds)
        )
        client.send(asked)
        answered = b"".join(
            b"STORED\r\nVALUE key:%d 0 %d\r\n%b\r\nEND\r\n" % (number, len(LARGE), LARGE) for number in range(rounds)
        )
        assert client.replies() == answered


@pytest.mark.parametrize(
    "request_", [b"get" + b" key" * 1_000 + b"\r\n", b"mg key v\r\n" * 1_000], ids=["one line", "a pipeline"]
)
def test_a_reader_who_stops_makes_the_server_hold_little_and_gets_everything(request_: bytes) -> None:
    # Each value is sent a thousand times.
    with spoken("--max-memory-clients", "64mb") as cache, cache.connect() as other, cache.connect() as stopped:
        other.ask(b"set key 0 0 %d\r\n%b\r\n" % (len(LARGE), LARGE))
        stopped.send(request_)
        assert other.ask(b"get key\r\n").startswith(b"VALUE key 0")
        assert held(cache) < 16 * MB
        assert stopped.replies().count(LARGE) == 1_000


def test_a_value_that_does_not_come_takes_no_room_and_one_that_comes_slowly_is_stored() -> None:
    with spoken("--max-value-bytes", "64mb") as cache, cache.connect() as slow:
        slow.send(b"set key 0 0 %d\r\n" % (32 * MB))
        with cache.connect() as other:
            assert other.ask(b"get key\r\n") == b"END\r\n"
        assert held(cache) < MB
        for _ in range(32):
            slow.send(b"y" * MB)
        assert slow.ask(b"\r\n") == b"STORED\r\n"
        assert slow.ask(b"get key\r\n").count(b"y") == 32 * MB + 1


def test_a_client_that_goes_in_the_middle_of_a_request_leaves_nothing(memcached_server: Cache) -> None:
    for half in (b"get half", b"set half 0 0 100\r\nhalf", b"\x80\x01\x00", b"mg half v s t"):
        with memcached_server.connect() as client:
            client.send(half)
    with memcached_server.connect() as client, memcached_server.server.connect() as connection:
        assert client.ask(b"get half\r\n") == b"END\r\n"
        # These two.
        until(lambda: int(info(connection, "clients", "connected_clients")) == 2)


def test_there_are_no_more_connections_than_max_clients_and_the_refusal_says_so() -> None:
    with spoken("--max-clients", "3") as cache, contextlib.ExitStack() as stack:
        refused = b""
        while refused == b"":
            client = stack.enter_context(cache.connect())
            refused = client.ask(b"version\r\n").removeprefix(b"VERSION 1.6.18\r\n")
        assert refused == b"ERROR Too many open connections\r\n"


def test_idle_connections_are_closed_after_the_timeout() -> None:
    with spoken("--timeout", "1") as cache, cache.connect() as idle:
        assert idle.rest() == b""


def test_protected_mode_holds_for_the_port() -> None:
    addresses = servers.addresses_of_this_machine()
    if not addresses:
        pytest.skip("this machine has no address beside the loopback's")
    with spoken("--bind", "0.0.0.0") as cache:
        with socket.create_connection((addresses[0], cache.port), timeout=60) as other:
            assert other.recv(100).startswith(b"SERVER_ERROR protected mode")
        with cache.connect() as near:
            assert near.ask(b"version\r\n").startswith(b"VERSION ")


def test_writes_of_clients_of_memcached_wait_for_the_end_of_a_pause(memcached_server: Cache) -> None:
    with memcached_server.connect() as client, memcached_server.server.connect() as connection:
        assert client.ask(b"set key 0 0 3\r\nold\r\n") == b"STORED\r\n"
        assert connection.command("CLIENT", "PAUSE", 60_000, "WRITE") == OK
        client.send(b"set key 0 0 3\r\nnew\r\n")
        with memcached_server.connect() as reader:
            assert reader.ask(b"get key\r\n") == b"VALUE key 0 3\r\nold\r\nEND\r\n"
        assert connection.command("CLIENT", "UNPAUSE") == OK
        assert client.replies() == b"STORED\r\n"


def test_the_binary_protocol_is_told_by_its_first_byte_on_the_main_port() -> None:
    with spoken("--protocols", "resp,binary") as cache, Client(cache.server.port) as client:
        version = memcached.Packet(memcached.VERSION)
        assert client.packets(version.request() * 2)[1].value.startswith(b"1.6")
        with cache.server.connect() as connection:
            assert connection.command("PING") == Simple(b"PONG")


@pytest.mark.slow
def test_ten_thousand_idle_connections_are_served() -> None:
    count = 10_000
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < count + 1_000:
        pytest.skip(f"this machine allows {most} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 1_000, most))
    with spoken("--max-clients", "20000") as cache, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", cache.port))) for _ in range(count)]
        with cache.connect() as client:
            assert client.ask(b"set key 0 0 5\r\nvalue\r\n") == b"STORED\r\n"
        for place in range(0, count, 100):
            idle[place].sendall(b"get key\r\n")
            assert idle[place].recv(100) == b"VALUE key 0 5\r\nvalue\r\nEND\r\n"
        assert held(cache) < MB
