"""Real clients of memcached, as they come: everyday things, with memcached and with snugly."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import aiomcache
import pymemcache
import pytest
from django.core.cache.backends.memcached import PyMemcacheCache
from pymemcache.client.hash import HashClient
from pymemcache.client.retrying import RetryingClient
from pymemcache.serde import pickle_serde

from memcached import TOO_LARGE, Cache
from threads import in_threads

TEXT = "Zürich, 🦊"
BINARY = bytes(range(256)) * 3
OBJECT = {"name": TEXT, "tags": ["cache", "compressed"], "number": 1 << 70, "nothing": None}
KINDS = {"client": pymemcache.Client, "pooled": pymemcache.PooledClient, "hash": HashClient}

each_kind = pytest.mark.parametrize("kind", KINDS)


@contextlib.contextmanager
def connected(cache: Cache, kind: str = "client", **options: Any) -> Iterator[Any]:
    address = ("127.0.0.1", cache.port)
    client = KINDS[kind]([address] if kind == "hash" else address, **options)
    try:
        yield client
    finally:
        client.close()


@each_kind
def test_values(cache: Cache, kind: str) -> None:
    with connected(cache, kind) as client:
        assert client.set("key", BINARY) is True
        assert client.get("key") == BINARY
        assert client.get("none") is None
        assert client.get("none", default="default") == "default"
        assert client.set("empty", b"") is True
        assert client.get("empty") == b""
        assert client.add("key", "again", noreply=False) is False
        assert client.replace("none", "again", noreply=False) is False
        assert client.append("key", "!", noreply=False) is True
        assert client.prepend("key", "?", noreply=False) is True
        assert client.get("key") == b"?" + BINARY + b"!"
        assert client.delete("key", noreply=False) is True
        assert client.delete("key", noreply=False) is False


@each_kind
def test_objects_are_kept_with_the_flags_that_tell_their_type(cache: Cache, kind: str) -> None:
    with connected(cache, kind, serde=pickle_serde) as client:
        values = {"object": OBJECT, "text": TEXT, "bytes": BINARY, "number": 42, "large": 1 << 100}
        assert client.set_many(values, noreply=False) == []
        assert client.get_many([*values, "none"]) == values
        assert client.get("object") == OBJECT


@each_kind
def test_many(cache: Cache, kind: str) -> None:
    values = {f"key:{number}": b"value %d" % number * 20 for number in range(1_000)}
    with connected(cache, kind) as client:
        assert client.set_many(values, noreply=False) == []
        assert client.get_many(list(values)) == values
        assert {key: value for key, (value, _) in client.gets_many(list(values)).items()} == values
        assert client.delete_many(list(values)[:500], noreply=False) is True
        assert len(client.get_many(list(values))) == 500


@each_kind
def test_without_replies(cache: Cache, kind: str) -> None:
    """As these clients are unless they are told otherwise."""
    with connected(cache, kind) as client:
        for number in range(500):
            client.set(f"key:{number}", b"%d" % number)
            client.add(f"key:{number}", b"again")
            client.append(f"key:{number}", b"!")
        client.incr("none", 1, noreply=True)
        client.delete_many([f"key:{number}" for number in range(100)])
        client.touch("key:100", -1)
        assert client.get("key:100") is None
        assert client.get_many([f"key:{number}" for number in range(500)]) == {
            f"key:{number}": b"%d!" % number for number in range(101, 500)
        }


@each_kind
def test_counting(cache: Cache, kind: str) -> None:
    with connected(cache, kind) as client:
        assert client.incr("counter", 1) is None
        client.set("counter", 10)
        assert client.incr("counter", 32) == 42
        assert client.decr("counter", 100) == 0
        client.set("counter", (1 << 63) - 1)
        assert client.incr("counter", (1 << 63) + 3) == 2
        client.set("text", TEXT.encode())
        with pytest.raises(pymemcache.MemcacheClientError, match="non-numeric value"):
            client.incr("text", 1)
        assert client.get("text") == TEXT.encode()


@each_kind
def test_nobodys_count_is_lost_with_cas(cache: Cache, kind: str) -> None:
    def count() -> None:
        with connected(cache, kind) as client:
            for _ in range(25):
                done = False
                while not done:
                    value, number = client.gets("counter")
                    done = client.cas("counter", int(value) + 1, number, noreply=False)

    with connected(cache, kind) as client:
        client.set("counter", 0, noreply=False)
        in_threads(*[count] * 4)
        assert client.get("counter") == b"100"
        assert client.cas("none", 1, b"1", noreply=False) is None


@each_kind
def test_times_to_live(cache: Cache, kind: str) -> None:
    with connected(cache, kind) as client:
        client.set("gone", "value", expire=-1, noreply=False)
        assert client.get("gone") is None
        client.set("key", "value", expire=100)
        assert client.touch("key", 200, noreply=False) is True
        assert client.touch("none", 200, noreply=False) is False
        assert client.get("key") == b"value"
        assert client.touch("key", -1, noreply=False) is True
        assert client.get("key") is None


@each_kind
def test_an_error_is_told_and_the_client_goes_on(cache: Cache, kind: str) -> None:
    with connected(cache, kind) as client:
        with pytest.raises(pymemcache.MemcacheServerError, match="too large"):
            client.set("key", bytes(TOO_LARGE), noreply=False)
        with pytest.raises(pymemcache.MemcacheIllegalInputError):
            client.get("k" * 251)
        assert client.set("key", "value", noreply=False) is True
        assert client.get("key") == b"value"


def test_the_server_tells_about_itself(cache: Cache) -> None:
    with connected(cache) as client:
        client.set("key", "value", noreply=False)
        assert client.version().count(b".") == 2
        told = client.stats()
        assert told[b"curr_items"] >= 1
        assert told[b"version"] == client.version()
        assert client.stats("settings")
        assert client.cache_memlimit(64) is True
        assert client.flush_all(noreply=False) is True
        assert client.get("key") is None


def test_meta_commands_by_hand(cache: Cache) -> None:
    with connected(cache) as client:
        assert client.raw_command("ms key 5 T100\r\nvalue") == b"HD"
        assert client.raw_command("mg key s f") == b"HD s5 f0"
        assert client.raw_command("md key") == b"HD"


def test_a_client_that_tries_again(cache: Cache) -> None:
    with connected(cache) as client:
        patient = RetryingClient(client, attempts=2, retry_for=[pymemcache.MemcacheUnexpectedCloseError])
        assert patient.set("key", "value", noreply=False) is True
        patient.quit()
        assert patient.get("key") == b"value"


def test_several_servers(cache: Cache, memcached_peer: Cache) -> None:
    servers = [("127.0.0.1", cache.port), ("127.0.0.1", memcached_peer.port)]
    values = {f"key:{number}": b"%d" % number for number in range(200)}
    memcached_peer.empty()
    client = HashClient(servers, use_pooling=True)
    try:
        assert client.set_many(values, noreply=False) == []
        assert client.get_many(list(values)) == values
        with connected(cache) as one:
            found = one.get_many(list(values))
        assert len(found) > 0
        assert (len(found) < len(values)) == (cache.port != memcached_peer.port)
        client.delete_many(list(values))
        assert client.get_many(list(values)) == {}
    finally:
        client.close()


def test_django_keeps_its_cache(cache: Cache) -> None:
    django = PyMemcacheCache(f"127.0.0.1:{cache.port}", {"KEY_PREFIX": "test", "TIMEOUT": 300})
    try:
        django.set("key", OBJECT, timeout=100)
        assert django.get("key") == OBJECT
        assert django.add("key", "again") is False
        assert django.get_or_set("computed", lambda: TEXT) == TEXT
        assert django.set_many({"a": 1, "b": 2}) == []
        assert django.get_many(["a", "b", "none"]) == {"a": 1, "b": 2}
        assert django.incr("a", 41) == 42
        with pytest.raises(ValueError, match="not found"):
            django.incr("none")
        assert django.touch("key", 50) is True
        assert django.delete("key") is True
        django.clear()
        assert django.get("b") is None
    finally:
        django.close()


def test_asyncio(cache: Cache) -> None:
    async def use() -> None:
        client = aiomcache.Client("127.0.0.1", cache.port, pool_size=8)
        try:
            assert await client.set(b"key", BINARY, exptime=100) is True
            assert await client.get(b"key") == BINARY
            assert await client.get(b"none") is None
            assert await client.add(b"key", b"again") is False
            assert await client.append(b"key", b"!") is True
            assert await client.multi_get(b"key", b"none") == (BINARY + b"!", None)
            _, number = await client.gets(b"key")
            assert number is not None
            assert await client.cas(b"key", b"new", number) is True
            assert await client.cas(b"key", b"newer", number) is False
            assert await client.touch(b"key", 200) is True
            assert await client.set(b"counter", b"10") is True
            assert await client.incr(b"counter", 32) == 42
            assert await client.decr(b"counter", 2) == 40
            assert await client.delete(b"key") is True
            assert await client.delete(b"key") is False
            await asyncio.gather(*(client.set(b"key:%d" % number, b"x" * number) for number in range(100)))
            values = await asyncio.gather(*(client.get(b"key:%d" % number) for number in range(100)))
            assert values == [b"x" * number for number in range(100)]
            assert (await client.version()).count(b".") == 2
            assert b"curr_items" in await client.stats()
            await client.flush_all()
            assert await client.get(b"counter") is None
        finally:
            await client.close()

    asyncio.run(use())
