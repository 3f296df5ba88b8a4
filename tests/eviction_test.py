"""A full memory: what goes, what stays, and what the client is told."""

from __future__ import annotations

import random

import pytest

from info import info
from resp import Connection, Failure, Reply, Simple, encode
from tested import Start

LIMIT = 16 << 20
VALUE_BYTES = 4000
OOM = Failure(b"OOM command not allowed when used memory > 'maxmemory'.")


def value(number: int) -> bytes:
    """Random, so that no compression saves the server from being full."""
    return random.Random(number).randbytes(VALUE_BYTES)


def fill(connection: Connection, numbers: range, *options: str) -> list[Reply]:
    replies = []
    for first in range(numbers.start, numbers.stop, 100):
        batch = range(first, min(first + 100, numbers.stop))
        connection.send(b"".join(encode("SET", f"key:{number}", value(number), *options) for number in batch))
        replies += [connection.read() for _ in batch]
    return replies


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_full_cache_takes_new_values_and_forgets_old_ones(start: Start, policy: str) -> None:
    server = start(memory="16mb", policy=policy)
    with server.connect() as connection:
        count = 4 * LIMIT // VALUE_BYTES
        assert set(fill(connection, range(count))) == {Simple(b"OK")}
        kept = connection.command("DBSIZE")
        assert isinstance(kept, int)
        assert 0.3 * LIMIT < kept * VALUE_BYTES < LIMIT
        assert info(connection, "stats", "evicted_keys") == pytest.approx(count - kept, rel=0.01)
        for number in range(count):
            read = connection.command("GET", f"key:{number}")
            assert read in (None, value(number))


# valkey-server tells recent from old by the second, and this test takes less.
@pytest.mark.parametrize("policy", [pytest.param("allkeys-lru", marks=pytest.mark.snugly_only), "allkeys-lfu"])
def test_what_is_in_use_stays(start: Start, policy: str) -> None:
    server = start(memory="16mb", policy=policy)
    with server.connect() as connection:
        for number in range(20):
            connection.command("SET", f"hot:{number}", b"x" * 1000)
        for first in range(0, 12_000, 100):
            fill(connection, range(first, first + 100))
            for _ in range(3):
                for number in range(20):
                    connection.command("GET", f"hot:{number}")
        assert info(connection, "stats", "evicted_keys") > 1000
        hot = connection.command("EXISTS", *(f"hot:{number}" for number in range(20)))
        assert isinstance(hot, int)
        assert hot >= 18


def test_noeviction_refuses_writes_and_nothing_else(start: Start) -> None:
    server = start(memory="16mb", policy="noeviction")
    with server.connect() as connection:
        replies = fill(connection, range(3 * LIMIT // VALUE_BYTES))
        assert set(replies) == {Simple(b"OK"), OOM}
        stored = replies.count(Simple(b"OK"))
        assert connection.command("DBSIZE") == stored
        assert 0.3 * LIMIT < stored * VALUE_BYTES < LIMIT
        for command in (("APPEND", "key:0"), ("SET", "new"), ("MSET", "new"), ("SETNX", "new"), ("GETSET", "new")):
            assert connection.command(*command, value(1)) == OOM, command
        assert connection.command("GET", "key:0") == value(0)
        assert connection.command("EXPIRE", "key:0", 100) == 1
        assert connection.command("STRLEN", "key:1") == VALUE_BYTES
        assert connection.command("DEL", *(f"key:{number}" for number in range(500))) == 500
        assert connection.command("SET", "again", "value") == Simple(b"OK")


def test_volatile_policies_take_only_keys_with_a_lifetime(start: Start) -> None:
    server = start(memory="16mb", policy="volatile-ttl")
    with server.connect() as connection:
        assert set(fill(connection, range(1000))) == {Simple(b"OK")}
        assert set(fill(connection, range(1000, 8000), "EX", "1000")) == {Simple(b"OK")}
        assert connection.command("EXISTS", *(f"key:{number}" for number in range(1000))) == 1000
        assert info(connection, "stats", "evicted_keys") > 1000
        connection.command("FLUSHALL")
        assert OOM in fill(connection, range(8000))


def test_the_limit_can_be_changed_while_the_server_runs(start: Start) -> None:
    server = start()
    with server.connect() as connection:
        fill(connection, range(6000))
        assert connection.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru") == Simple(b"OK")
        assert connection.command("CONFIG", "SET", "maxmemory", str(LIMIT)) == Simple(b"OK")
        assert connection.command("SET", "one", "more") == Simple(b"OK")
        kept = connection.command("DBSIZE")
        assert isinstance(kept, int)
        assert kept * VALUE_BYTES < LIMIT
        assert connection.command("CONFIG", "GET", "maxmemory") == [b"maxmemory", str(LIMIT).encode()]
