"""Keys under other names, in other databases and from other servers: values, lifetimes and memory go along."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import dumps
from resp import Argument, Connection, Failure, Simple, encode
from servers import Server
from tested import Start

FAR = 4_000_000_000
LONG = b'{"id": 1, "name": "customer", "active": true}\n' * 50
VALUES = {
    "empty": b"",
    "short": b"value",
    "integers of every width": b"-1",
    "128": b"128",
    "40000": b"40000",
    "beyond 32 bits": b"-2147483649",
    "no integer": b"007",
    "text": LONG,
    "one byte again and again": b"z" * 70_000,
    "noise": random.Random(1).randbytes(20_000),
    "of the lengths that are written in two bytes": b"\x00\xff" * 40,
    "and in five": random.Random(2).randbytes(16_384),
}


@pytest.fixture
def peer_connection(peer: Server) -> Iterator[Connection]:
    with peer.connect() as connection:
        connection.command("FLUSHALL")
        yield connection


@pytest.mark.parametrize("name", VALUES)
def test_what_one_server_dumps_the_other_restores(
    connection: Connection, peer_connection: Connection, name: str
) -> None:
    for source, target in ((connection, peer_connection), (peer_connection, connection)):
        source.command("SET", "key", VALUES[name])
        payload = source.command("DUMP", "key")
        assert isinstance(payload, bytes)
        assert dumps.value(payload) == VALUES[name]
        assert target.command("RESTORE", "restored", 0, payload, "REPLACE") == Simple(b"OK")
        assert target.command("GET", "restored") == VALUES[name]


@pytest.mark.snugly_only
def test_a_dump_says_a_version_that_valkey_7_2_reads(connection: Connection) -> None:
    connection.command("SET", "key", "value")
    assert connection.command("DUMP", "key") == dumps.payload(dumps.raw(b"value"), version=11)


@pytest.mark.snugly_only
@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["SADD", "key", "a"], "set"),
        (["SADD", "key", "1"], "set"),
        (["ZADD", "key", "1", "a"], "zset"),
        (["HSET", "key", "a", "b"], "hash"),
        (["HSETEX", "key", "EX", "100", "FIELDS", "1", "a", "b"], "hash"),
        (["XADD", "key", "1-1", "a", "b"], "stream"),
        (["PFADD", "key", "a"], None),
        (["GEOADD", "key", "1", "1", "a"], "zset"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_other_types_than_strings_are_refused_by_name(
    connection: Connection, peer_connection: Connection, command: list[str], name: str | None
) -> None:
    assert not isinstance(peer_connection.command(*command), Failure)
    payload = peer_connection.command("DUMP", "key")
    assert isinstance(payload, bytes)
    reply = connection.command("RESTORE", "key", 0, payload)
    if name is None:
        assert reply == Simple(b"OK")
    else:
        assert reply == Failure(
            b"ERR Unsupported data type: %s. Only strings and lists can be restored" % name.encode()
        )
        assert connection.command("EXISTS", "key") == 0


@pytest.mark.parametrize("version", [11, 12, 14, 79, 80, 81])
def test_payloads_of_newer_servers_are_restored_if_the_check_is_relaxed(
    connection: Connection, peer_connection: Connection, version: int
) -> None:
    payload = dumps.payload(dumps.raw(b"value"), version)
    for check in ("relaxed", "strict"):
        commands: list[list[Argument]] = [
            ["CONFIG", "SET", "rdb-version-check", check],
            ["RESTORE", "key", 0, payload, "REPLACE"],
        ]
        replies = [connection.command(*command) for command in commands]
        assert replies == [peer_connection.command(*command) for command in commands]
        assert isinstance(replies[1], Failure) == (check == "strict" and version in (12, 14, 79, 81))


@pytest.mark.snugly_only
def test_a_type_that_only_a_newer_server_has_is_named(connection: Connection) -> None:
    assert connection.command("CONFIG", "SET", "rdb-version-check", "relaxed") == Simple(b"OK")
    reply = connection.command("RESTORE", "key", 0, dumps.payload(b"\x18\x00", version=12))
    assert reply == Failure(b"ERR Bad data format: type 24 of version 12 is not known")
    assert connection.command("CONFIG", "SET", "rdb-version-check", "strict") == Simple(b"OK")


@pytest.mark.snugly_only
def test_a_compressed_string_over_the_limit_is_refused(start: Start) -> None:
    with start("--max-value-bytes", "1mb").connect() as connection:
        largest = dumps.lzf([b"z", *[(256, 1)] * 4095, (255, 1)])
        assert connection.command("RESTORE", "key", 0, dumps.payload(largest)) == Simple(b"OK")
        assert connection.command("STRLEN", "key") == 1 << 20
        larger = dumps.lzf([b"z", *[(256, 1)] * 4096])
        reply = connection.command("RESTORE", "key", 0, dumps.payload(larger), "REPLACE")
        assert reply == Failure(b"ERR string exceeds maximum allowed size (proto-max-bulk-len)")
        assert connection.command("STRLEN", "key") == 1 << 20


def test_a_restored_key_lives_as_long_as_it_is_told(connection: Connection) -> None:
    payload = dumps.payload(dumps.raw(b"value"))
    assert connection.command("RESTORE", "key", 100_000, payload) == Simple(b"OK")
    left = connection.command("PTTL", "key")
    assert isinstance(left, int)
    assert 90_000 < left <= 100_000
    assert connection.command("RESTORE", "key", FAR * 1000, payload, "ABSTTL", "REPLACE") == Simple(b"OK")
    assert connection.command("EXPIRETIME", "key") == FAR
    assert connection.command("RESTORE", "key", 0, payload, "REPLACE") == Simple(b"OK")
    assert connection.command("TTL", "key") == -1


def test_a_time_that_has_come_restores_nothing_and_takes_what_was_there(connection: Connection) -> None:
    payload = dumps.payload(dumps.raw(b"value"))
    times: list[list[Argument]] = [[1, payload, "ABSTTL"], [(1 << 63) - 1, payload]]
    for ttl in times:
        connection.command("SET", "key", "before")
        assert connection.command("RESTORE", "key", *ttl, "REPLACE") == Simple(b"OK")
        assert connection.command("EXISTS", "key") == 0
        assert connection.command("RESTORE", "key", *ttl) == Simple(b"OK")
        assert connection.command("EXISTS", "key") == 0


LONGEST_IDLE = 1 << 24
"""Seconds after which the time that nobody used a key begins anew."""


@pytest.mark.parametrize("seconds", [0, 1000, LONGEST_IDLE - 1, LONGEST_IDLE + 1000, (1 << 63) - 1])
def test_a_restored_key_may_look_unused_for_a_while(connection: Connection, peer: Server, seconds: int) -> None:
    payload = dumps.payload(dumps.raw(b"value"))
    with peer.connect() as valkey:
        idle = []
        for each in (connection, valkey):
            restore = encode("RESTORE", "key", 0, payload, "REPLACE", "IDLETIME", seconds)
            each.send(restore + encode("OBJECT", "IDLETIME", "key"))
            assert each.read() == Simple(b"OK")
            idle.append(each.read())
    ours, theirs = idle
    assert isinstance(ours, int)
    assert isinstance(theirs, int)
    # A second more than the longest time is none.
    apart = (ours - theirs) % LONGEST_IDLE
    assert min(apart, LONGEST_IDLE - apart) <= 2


def test_a_restored_key_may_look_used_often(start: Start) -> None:
    payload = dumps.payload(dumps.raw(b"value"))
    with start(memory="100mb", policy="allkeys-lfu").connect() as connection:
        connection.command("RESTORE", "key", 0, payload, "FREQ", 3)
        assert connection.command("OBJECT", "FREQ", "key") == 3
        connection.command("RESTORE", "key", 0, payload, "REPLACE", "FREQ", 0)
        assert connection.command("OBJECT", "FREQ", "key") == 0


def test_values_move_with_their_lifetimes(connection: Connection) -> None:
    connection.command("SET", "a", LONG, "EXAT", FAR)
    assert connection.command("RENAME", "a", "b") == Simple(b"OK")
    assert connection.command("RENAMENX", "b", "c") == 1
    assert connection.command("COPY", "c", "d") == 1
    assert connection.command("MOVE", "d", 1) == 1
    assert connection.command("EXISTS", "a", "b", "d") == 0
    assert connection.command("GET", "c") == LONG
    assert connection.command("EXPIRETIME", "c") == FAR
    assert connection.command("SELECT", 1) == Simple(b"OK")
    assert connection.command("GET", "d") == LONG
    assert connection.command("EXPIRETIME", "d") == FAR


def test_the_lifetime_of_what_is_replaced_is_lost(connection: Connection) -> None:
    for command in (["RENAME", "a", "b"], ["COPY", "a", "b", "REPLACE"]):
        connection.command("SET", "a", "value")
        connection.command("SET", "b", "before", "EX", 100)
        connection.command(*command)
        assert connection.command("GET", "b") == b"value"
        assert connection.command("TTL", "b") == -1


@pytest.mark.snugly_only
def test_a_value_that_moves_is_neither_decompressed_nor_compressed(server: Server) -> None:
    with server.connect() as connection:
        connection.command("SET", "a", LONG)
        before = connection.command("INFO", "compression")
        for command in (["RENAME", "a", "b"], ["COPY", "b", "a"], ["COPY", "b", "c", "DB", "1"], ["MOVE", "b", "1"]):
            assert not isinstance(connection.command(*command), Failure)
        assert connection.command("INFO", "compression") == before
        assert connection.command("STRLEN", "a") == len(LONG)
        assert b"lz4" in connection.command_raw("OBJECT", "COMPRESSION", "a")


def test_databases_are_exchanged_under_their_clients(server: Server) -> None:
    with server.connect() as first, server.connect() as other:
        other.command("SELECT", 9)
        first.command("SET", "key", "of 0", "EXAT", FAR)
        other.command("SET", "key", "of 9")
        assert first.command("SWAPDB", 0, 9) == Simple(b"OK")
        assert first.command("GET", "key") == b"of 9"
        assert other.command("GET", "key") == b"of 0"
        assert other.command("EXPIRETIME", "key") == FAR
        assert other.command("SWAPDB", 9, 5) == Simple(b"OK")
        assert other.command("DBSIZE") == 0
        assert other.command("SWAPDB", 0, 5) == Simple(b"OK")
        assert first.command("GET", "key") == b"of 0"


def test_a_full_memory_lets_keys_be_renamed_but_not_copied(start: Start) -> None:
    with start(memory="4mb", policy="noeviction").connect() as connection:
        noise = random.Random(3)
        number = 0
        while connection.command("SET", f"key:{number:06}", noise.randbytes(4000)) == Simple(b"OK"):
            number += 1
        assert number > 10
        assert connection.command("RENAME", "key:000000", "new:000000") == Simple(b"OK")
        assert connection.command("MOVE", "new:000000", 1) == 1
        reply = connection.command("COPY", "key:000001", "new:000001")
        assert reply == Failure(b"OOM command not allowed when used memory > 'maxmemory'.")
        assert connection.command("EXISTS", "new:000001") == 0


def test_nobody_sees_a_key_twice_or_not_at_all_while_it_is_renamed(server: Server) -> None:
    with server.connect() as first, server.connect() as second:
        first.command("SET", "a", LONG)
        there, back, seen = encode("RENAME", "a", "b"), encode("RENAME", "b", "a"), encode("MGET", "a", "b")
        for _ in range(100):
            first.send((there + back) * 20)
            second.send(seen * 20)
            for _ in range(20):
                found = second.read()
                assert isinstance(found, list)
                assert sorted(found, key=lambda value: value is None) == [LONG, None]
            assert {first.read() for _ in range(40)} == {Simple(b"OK")}
