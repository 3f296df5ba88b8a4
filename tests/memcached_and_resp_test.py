"""The same keys, seen by clients of RESP and of memcached's protocols on one server."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable, Iterator

import pytest

from memcached import GET, SET, Cache, Client, Packet
from resp import Argument, Connection, Failure, Items, Simple
from waiting import until

pytestmark = pytest.mark.snugly_only

OK = Simple(b"OK")
VALUES = {
    "empty": b"",
    "short": b"a",
    "all bytes": bytes(range(256)),
    "number": b"42",
    "compressed": json.dumps([{"id": number, "name": "somebody"} for number in range(500)]).encode(),
    "random": random.Random(1).randbytes(50_000),
}


@pytest.fixture
def both(memcached_server: Cache) -> Iterator[tuple[Connection, Client]]:
    """Two connections to a server that was emptied: one of RESP, one of memcached."""
    with memcached_server.server.connect() as connection, memcached_server.connect() as client:
        assert connection.command("FLUSHALL") == OK
        yield connection, client


@pytest.mark.parametrize("name", VALUES)
def test_what_resp_writes_memcached_reads_with_no_flags(both: tuple[Connection, Client], name: str) -> None:
    connection, client = both
    value = VALUES[name]
    connection.command("SET", "k", value)
    assert client.ask(b"get k\r\n") == b"VALUE k 0 %d\r\n%b\r\nEND\r\n" % (len(value), value)
    assert client.ask(b"mg k f t v\r\n") == b"VA %d f0 t-1\r\n%b\r\n" % (len(value), value)


@pytest.mark.parametrize("name", VALUES)
def test_what_memcached_writes_resp_reads(both: tuple[Connection, Client], name: str) -> None:
    connection, client = both
    value = VALUES[name]
    assert client.ask(b"set k 7 0 %d\r\n%b\r\n" % (len(value), value)) == b"STORED\r\n"
    assert connection.command("GET", "k") == value
    assert connection.command("STRLEN", "k") == len(value)
    assert connection.command("TYPE", "k") == Simple(b"string")


def test_what_the_binary_protocol_writes_resp_reads(both: tuple[Connection, Client], memcached_server: Cache) -> None:
    connection, _ = both
    with memcached_server.connect() as client:
        client.packets(Packet(SET, b"a b\r\n", b"value", struct.pack(">II", 7, 100)).request())
        assert connection.command("GET", b"a b\r\n") == b"value"
        connection.command("SET", b"a b\r\n", b"other")
        [reply] = client.packets(Packet(GET, b"a b\r\n").request())
        assert (reply.value, reply.extras) == (b"other", bytes(4))


@pytest.mark.parametrize(
    "command", ["EXPIRE k 100", "EXPIRE k 100 GT", "PERSIST k", "GETEX k EX 100", "GET k", "TOUCH k"]
)
def test_flags_stay_where_the_value_does(both: tuple[Connection, Client], command: str) -> None:
    connection, client = both
    client.ask(b"set k 77 50 1\r\na\r\n")
    connection.command(*command.split())
    assert client.ask(b"get k\r\n") == b"VALUE k 77 1\r\na\r\nEND\r\n"


@pytest.mark.parametrize(
    "command", [["RENAME", "k", "l"], ["RENAMENX", "k", "l"], ["COPY", "k", "l"]], ids=lambda command: command[0]
)
def test_flags_go_with_the_value(both: tuple[Connection, Client], command: list[Argument]) -> None:
    connection, client = both
    client.ask(b"set k 77 50 1\r\na\r\n")
    connection.command(*command)
    assert client.ask(b"get l\r\n") == b"VALUE l 77 1\r\na\r\nEND\r\n"
    assert client.ask(b"mg l t\r\n") in (b"HD t50\r\n", b"HD t49\r\n")


def test_a_new_value_of_resp_has_no_flags(both: tuple[Connection, Client]) -> None:
    connection, client = both
    client.ask(b"set k 77 0 1\r\na\r\n")
    connection.command("SET", "k", "b")
    assert client.ask(b"get k\r\n") == b"VALUE k 0 1\r\nb\r\nEND\r\n"


def test_a_list_is_not_found_and_stays_one(both: tuple[Connection, Client]) -> None:
    connection, client = both
    connection.command("RPUSH", "k", "a", "b")
    assert client.ask(b"get k\r\ngets k\r\ngat 100 k\r\n") == b"END\r\n" * 3
    assert client.ask(b"incr k 1\r\ntouch k 100\r\ncas k 0 0 1 1\r\na\r\n") == b"NOT_FOUND\r\n" * 3
    assert client.ask(b"append k 0 0 1\r\na\r\nprepend k 0 0 1\r\na\r\n") == b"NOT_STORED\r\n" * 2
    assert client.ask(b"mg k v\r\nma k\r\nmg k v T100\r\n") == b"EN\r\nNF\r\nEN\r\n"
    assert connection.command("LRANGE", "k", 0, -1) == [b"a", b"b"]
    assert connection.command("TTL", "k") == -1


def test_set_takes_the_place_of_a_list(both: tuple[Connection, Client]) -> None:
    connection, client = both
    connection.command("RPUSH", "k", "a", "b")
    assert client.ask(b"set k 5 0 1\r\nc\r\nget k\r\n") == b"STORED\r\nVALUE k 5 1\r\nc\r\nEND\r\n"
    assert connection.command("GET", "k") == b"c"


def test_a_string_of_memcached_is_no_list(both: tuple[Connection, Client]) -> None:
    connection, client = both
    client.ask(b"set k 0 0 1\r\na\r\n")
    reply = connection.command("RPUSH", "k", "b")
    assert isinstance(reply, Failure)
    assert reply.text.startswith(b"WRONGTYPE")


def test_times_to_live_are_seen_from_both_sides(both: tuple[Connection, Client]) -> None:
    connection, client = both
    client.ask(b"set k 0 100 1\r\na\r\n")
    assert connection.command("TTL", "k") in (99, 100)
    connection.command("EXPIRE", "k", 200)
    assert client.ask(b"mg k t\r\n") in (b"HD t200\r\n", b"HD t199\r\n")
    client.ask(b"touch k 300\r\n")
    assert connection.command("TTL", "k") in (299, 300)
    connection.command("PERSIST", "k")
    assert client.ask(b"mg k t\r\n") == b"HD t-1\r\n"
    client.ask(b"gat 400 k\r\n")
    assert connection.command("TTL", "k") in (399, 400)
    client.ask(b"touch k 0\r\n")
    assert connection.command("TTL", "k") == -1
    client.ask(b"touch k -1\r\n")
    assert connection.command("EXISTS", "k") == 0


def test_long_keys_are_for_resp_alone(both: tuple[Connection, Client]) -> None:
    connection, client = both
    for length in (250, 251):
        connection.command("SET", b"k" * length, "a")
    assert client.ask(b"get %b\r\n" % (b"k" * 250)) == b"VALUE %b 0 1\r\na\r\nEND\r\n" % (b"k" * 250)
    assert client.ask(b"get %b\r\n" % (b"k" * 251)) == b"CLIENT_ERROR bad command line format\r\n"
    assert connection.command("DBSIZE") == 2


def test_the_number_of_a_key_changes_with_every_write_of_resp(both: tuple[Connection, Client]) -> None:
    connection, client = both
    writes: list[list[Argument]] = [["SET", "k", 1], ["INCR", "k"], ["APPEND", "k", "0"], ["SETRANGE", "k", 0, "7"]]
    writes += [["DEL", "k"], ["SET", "k", 1], ["GETSET", "k", 1], ["MSET", "k", 1], ["SETBIT", "k", 1, 1]]
    numbers = []
    for write in writes:
        connection.command(*write)
        reply = client.ask(b"mg k c\r\n")
        numbers += [int(reply[4:])] if reply != b"EN\r\n" else []
    assert len(set(numbers)) == len(writes) - 1
    assert numbers == sorted(numbers)


def test_cas_fails_after_a_write_of_resp(both: tuple[Connection, Client]) -> None:
    connection, client = both
    connection.command("SET", "k", "a")
    number = client.ask(b"mg k c\r\n")[4:].strip()
    connection.command("SET", "k", "a")
    assert client.ask(b"cas k 0 0 1 %b\r\nb\r\n" % number) == b"EXISTS\r\n"
    assert connection.command("GET", "k") == b"a"


WRITES = {
    "set": b"set k 0 0 1\r\nb\r\n",
    "append": b"append k 0 0 1\r\nb\r\n",
    "incr": b"incr k 1\r\n",
    "delete": b"delete k\r\n",
    "touch": b"touch k 100\r\n",
    "gat": b"gat 100 k\r\n",
    "ms": b"ms k 1\r\nb\r\n",
    "ma": b"ma k\r\n",
    "md": b"md k\r\n",
    "mg with a time": b"mg k T100\r\n",
    "flush_all": b"flush_all\r\n",
}
NO_WRITES = {
    "get": b"get k\r\n",
    "mg": b"mg k v c t\r\n",
    "a failed add": b"add k 0 0 1\r\nb\r\n",
    "a failed cas": b"cas k 0 0 1 1\r\nb\r\n",
    "a write that is refused": b"set k 0 0 x\r\n",
    "another key": b"set l 0 0 1\r\nb\r\n",
}


@pytest.mark.parametrize("name", [*WRITES, *NO_WRITES])
def test_a_transaction_fails_once_memcached_has_written_what_it_watches(
    both: tuple[Connection, Client], name: str
) -> None:
    connection, client = both
    connection.command("SET", "k", 1)
    connection.command("WATCH", "k")
    client.ask((WRITES | NO_WRITES)[name])
    connection.command("MULTI")
    connection.command("SET", "done", 1)
    assert connection.command("EXEC") == ([OK] if name in NO_WRITES else None)


@pytest.mark.parametrize("name", [name for name in WRITES if name != "flush_all"])
def test_client_side_caches_hear_of_writes_of_memcached(memcached_server: Cache, name: str) -> None:
    with memcached_server.server.connect(protocol=3) as connection, memcached_server.connect() as client:
        connection.command("FLUSHALL")
        connection.command("SET", "k", 1)
        connection.command("CLIENT", "TRACKING", "ON")
        connection.command("GET", "k")
        client.ask(WRITES[name])
        assert connection.read() == Items(b">", [b"invalidate", [b"k"]])


def test_flushing_is_seen_from_both_sides(both: tuple[Connection, Client]) -> None:
    connection, client = both
    flushes: list[Callable[[], object]] = [
        lambda: client.ask(b"flush_all\r\n"),
        lambda: connection.command("FLUSHDB"),
        lambda: connection.command("FLUSHALL"),
    ]
    for flush in flushes:
        client.ask(b"set k 0 0 1\r\na\r\n")
        connection.command("SET", "l", 1)
        flush()
        assert client.ask(b"get k l\r\n") == b"END\r\n"
        assert connection.command("MGET", "k", "l") == [None, None]
        assert connection.command("DBSIZE") == 0


@pytest.mark.slow
def test_a_flush_with_a_delay_is_seen_from_both_sides(both: tuple[Connection, Client]) -> None:
    connection, client = both
    connection.command("SET", "k", 1)
    client.ask(b"flush_all 1\r\n")
    until(lambda: connection.command("GET", "k") is None, seconds=10)
    until(lambda: client.ask(b"set k 0 0 1\r\na\r\nmg k\r\n") == b"STORED\r\nHD\r\n", seconds=10)


def test_memcached_sees_the_first_database_alone(both: tuple[Connection, Client]) -> None:
    connection, client = both
    connection.command("SELECT", 1)
    connection.command("SET", "k", 1)
    assert client.ask(b"get k\r\n") == b"END\r\n"
    client.ask(b"set k 0 0 1\r\na\r\n")
    assert connection.command("GET", "k") == b"1"
    connection.command("SELECT", 0)
    assert connection.command("GET", "k") == b"a"


def test_a_number_that_memcached_made_shorter_has_its_spaces_for_resp(both: tuple[Connection, Client]) -> None:
    connection, client = both
    client.ask(b"set k 0 0 3\r\n100\r\ndecr k 1\r\n")
    assert connection.command("GET", "k") == b"99 "


def decoded_values(connection: Connection) -> int:
    fields = connection.command("INFO", "compression")
    assert isinstance(fields, bytes)
    return sum(int(number) for number in re.findall(rb"^decoded_values_\w+:(\d+)", fields, re.M))


def test_what_needs_no_value_decodes_none(both: tuple[Connection, Client]) -> None:
    connection, client = both
    value = VALUES["compressed"]
    client.ask(b"set key 7 0 %d\r\n%b\r\n" % (len(value), value))
    before = decoded_values(connection)
    for request in (
        b"touch key 100\r\n",
        b"mg key s t f c h l\r\n",
        b"mg key T200 R300 s\r\n",
        b"me key\r\n",
        b"add key 0 0 1\r\na\r\n",
        b"cas key 0 0 1 1\r\na\r\n",
        b"md key C1\r\n",
        b"md key I T100\r\n",
        b"mg key s t\r\n",
        b"ms key 1 MR\r\nb\r\n",
        b"delete key\r\n",
    ):
        assert not client.ask(request).startswith((b"ERROR", b"CLIENT_ERROR")), request
    assert decoded_values(connection) == before
    client.ask(b"set key 7 0 %d\r\n%b\r\nget key\r\n" % (len(value), value))
    assert decoded_values(connection) > before
