"""Valkey with the module: what it compresses in the background, and who notices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import servers
import valkey_module
from info import info
from keyspace_events_test import EVERYTHING, listening
from plays import emptied
from replicas import until_caught_up, until_up
from resp import Argument, Connection, Reply, Simple, encode
from servers import Server
from valkey_module import TEXT, VALUES, restored, size_in_memory
from waiting import until

pytestmark = pytest.mark.snugly_only
OK = Simple(b"OK")
# Nothing is compressed until a test says so.
PLAIN = ("--snugly.compression", "no")
# Seconds without use, after which a string is compressed; and the default after which it is compressed once more.
SETTLED, COLD = 10, 600
# But one that is damaged, which nobody can read.
TEXTS = {name: value for name, value in VALUES.items() if name != "DAMAGED"}


def compressed(connection: Connection) -> int:
    """How many strings have been compressed in the background."""
    return info(connection, "snugly", "snugly_background_compressed_strings")


def rounds(connection: Connection) -> int:
    return info(connection, "snugly", "snugly_background_rounds")


def put(connection: Connection, key: str, value: Argument, idle: int, milliseconds: int = 0) -> None:
    """A string that nobody has used for so many seconds, with an expiry if it is not 0."""
    assert connection.command("SET", key, value) == OK
    payload = connection.command("DUMP", key)
    assert isinstance(payload, bytes)
    assert connection.command("RESTORE", key, milliseconds, payload, "REPLACE", "IDLETIME", idle) == OK


def compress(connection: Connection, *settings: Argument) -> None:
    """Lets the background begin a round now."""
    assert connection.command("CONFIG", "SET", "snugly.compression", "yes", *settings) == OK


def until_a_round_has_ended(connection: Connection) -> None:
    """One that has begun after this was called."""
    before = rounds(connection)
    # A setting that changes lets a round begin.
    for seconds in (COLD - 1, COLD):
        assert connection.command("CONFIG", "SET", "snugly.cold-after", seconds) == OK
    until(lambda: rounds(connection) > before)


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    with valkey_module.serving(*PLAIN, *valkey_module.EAGER, "--databases", "4") as server:
        yield server


@pytest.fixture
def connection(shared: Server) -> Iterator[Connection]:
    with shared.connect() as connection:
        connection.command(
            *("CONFIG", "SET", "snugly.compression", "no", "snugly.codec", "lz4", "snugly.cold-after", COLD),
            *("snugly.background-cpu-percent", 100),
        )
        emptied(shared)
        yield connection


def test_strings_that_are_there_are_compressed_and_read_back(connection: Connection) -> None:
    for database in range(4):
        connection.command("SELECT", database)
        for name, value in TEXTS.items():
            put(connection, name, value, SETTLED + 10)
    before = compressed(connection)
    small = size_in_memory(connection, "TEXT")
    compress(connection)
    until(lambda: compressed(connection) >= before + 4 * 3)
    until_a_round_has_ended(connection)
    for database in range(4):
        connection.command("SELECT", database)
        for name, value in TEXTS.items():
            assert connection.command("GET", name) == restored(value), name
        assert size_in_memory(connection, "TEXT") < small


def test_they_take_no_more_memory_than_such_as_are_compressed_when_they_are_written(connection: Connection) -> None:
    put(connection, "before", TEXT, SETTLED + 10)
    compress(connection)
    connection.command("SET", "after!", TEXT)
    plain = size_in_memory(connection, "before")
    until(lambda: size_in_memory(connection, "before") < plain)
    # Another header, and what an allocation is rounded up to.
    assert size_in_memory(connection, "before") - size_in_memory(connection, "after!") < 64


def test_a_key_keeps_its_expiry_and_its_age(connection: Connection) -> None:
    put(connection, "k", TEXT, 1000, 5_000_000)
    expiry = connection.command("PEXPIRETIME", "k")
    before = compressed(connection)
    compress(connection)
    until(lambda: compressed(connection) > before)
    idle = connection.command("OBJECT", "IDLETIME", "k")
    assert isinstance(idle, int)
    assert idle >= 1000
    assert connection.command("PEXPIRETIME", "k") == expiry
    assert connection.command("GET", "k") == TEXT


def test_a_string_that_was_used_a_moment_ago_stays_plain(connection: Connection) -> None:
    connection.command("SET", "used", TEXT)
    put(connection, "unused", TEXT, SETTLED + 10)
    before, plain = compressed(connection), size_in_memory(connection, "used")
    compress(connection)
    until(lambda: compressed(connection) > before)
    connection.command("GET", "used")
    until_a_round_has_ended(connection)
    assert size_in_memory(connection, "used") == plain


def test_numbers_and_short_strings_are_stored_as_they_were(connection: Connection) -> None:
    strings = {"number": b"12345", "embedded": b"short", "short": VALUES["SHORT"]}
    for key, value in strings.items():
        put(connection, key, value, SETTLED + 10)

    def told() -> list[Reply]:
        return [connection.command("OBJECT", "ENCODING", key) for key in strings]

    encodings = told()
    compress(connection)
    until_a_round_has_ended(connection)
    assert told() == encodings
    assert [connection.command("GET", key) for key in strings] == list(strings.values())


def test_strings_that_nobody_uses_are_compressed_once_more(connection: Connection) -> None:
    compress(connection)
    put(connection, "warm", TEXT, COLD - 100)
    put(connection, "cold", TEXT, COLD + 100)
    before, lz4 = compressed(connection), size_in_memory(connection, "warm")
    assert connection.command("CONFIG", "SET", "snugly.codec", "zstd") == OK
    connection.command("SET", "new", TEXT)
    # Plain as they are given, both become LZ4 first; then the cold one becomes zstd.
    until(lambda: size_in_memory(connection, "cold") <= size_in_memory(connection, "new"))
    assert compressed(connection) > before
    assert size_in_memory(connection, "warm") < lz4
    assert connection.command("GET", "cold") == TEXT


def test_watchers_caching_clients_and_listeners_notice_nothing(shared: Server, connection: Connection) -> None:
    with listening(shared, EVERYTHING) as (client, told), shared.connect(3) as caching:
        put(client, "k", TEXT, SETTLED + 10)
        client.command("WATCH", "k")
        caching.command("CLIENT", "TRACKING", "ON", "BCAST")
        before, events = compressed(connection), told.all()
        assert events
        compress(connection)
        until(lambda: compressed(connection) > before)
        assert told.all() == []
        # A message would come first.
        caching.send(encode("PING"))
        assert caching.read_raw() == b"+PONG\r\n"
        client.command("MULTI")
        client.command("GET", "k")
        assert client.command("EXEC") == [TEXT]


def test_nothing_is_done_without_a_share_of_the_processor(connection: Connection) -> None:
    put(connection, "k", TEXT, SETTLED + 10)
    assert connection.command("CONFIG", "SET", "snugly.background-cpu-percent", 0) == OK
    before = compressed(connection)
    compress(connection)
    plain = size_in_memory(connection, "k")
    # It would be done by now: another server with a share has done as much.
    with another() as other:
        put(other, "k", TEXT, SETTLED + 10)
        compress(other)
        until(lambda: compressed(other) == 1)
    assert (compressed(connection), size_in_memory(connection, "k")) == (before, plain)
    assert connection.command("CONFIG", "SET", "snugly.background-cpu-percent", 100) == OK
    until(lambda: size_in_memory(connection, "k") < plain)


@contextmanager
def another(*options: str) -> Iterator[Connection]:
    with valkey_module.serving(*PLAIN, *options) as server, server.connect() as connection:
        yield connection


@pytest.mark.slow
def test_it_pauses_while_a_child_shares_the_memory() -> None:
    with another() as connection, another() as other:
        # A save that takes two seconds a key.
        connection.command("CONFIG", "SET", "rdb-key-save-delay", 2_000_000)
        for each in (connection, other):
            put(each, "k", TEXT, SETTLED + 10)
        connection.command("BGSAVE")
        assert info(connection, "persistence", "rdb_bgsave_in_progress") == 1
        for each in (connection, other):
            compress(each)
        until(lambda: compressed(other) == 1)
        if info(connection, "persistence", "rdb_bgsave_in_progress") == 1:
            assert compressed(connection) == 0
        until(lambda: compressed(connection) == 1)


@pytest.mark.slow
def test_replicas_compress_their_own_and_are_told_nothing() -> None:
    # With this policy a replica is told how old keys are.
    options = ("--repl-diskless-sync-delay", "0", "--maxmemory-policy", "allkeys-lru")
    with another(*options) as client:
        put(client, "k", TEXT, SETTLED + 10)
        port = client.command("CONFIG", "GET", "port")
        assert isinstance(port, list)
        assert isinstance(port[1], bytes)
        follow = ("--replicaof", f"127.0.0.1 {port[1].decode()}", *options)
        with another(*follow) as replica, servers.valkey(*follow) as stock, stock.connect() as reader:
            for each in (replica, reader):
                until_up(each)
            compress(client)
            until(lambda: compressed(client) == 1)
            until_caught_up(client, reader)
            assert reader.command("GET", "k") == TEXT
            assert compressed(replica) == 0
            compress(replica)
            until(lambda: compressed(replica) == 1)
            assert replica.command("GET", "k") == TEXT
