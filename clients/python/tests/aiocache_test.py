"""aiocache with a serializer that compresses, and with a client that does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiocache
import pytest
from aiocache.serializers import JsonSerializer, PickleSerializer, StringSerializer

import snugly
from servers import Server
from snugly.aiocache import SnuglySerializer

PAGE = {"title": "hello", "body": "<p>hello</p>" * 500}


def with_cache(server: Server, serializer: Any, work: Callable[[Any], Awaitable[None]]) -> None:
    """Runs `work` with a cache on the server, which is empty."""

    async def main() -> None:
        async with aiocache.RedisCache(port=server.port, serializer=serializer) as cache:
            await work(cache)

    with server.connect() as connection:
        connection.command("FLUSHALL")
    asyncio.run(main())


def stored(server: Server, key: str) -> bytes:
    with server.connect() as connection:
        found = connection.command("GET", key)
    assert isinstance(found, bytes)
    return found


@pytest.mark.parametrize("serializer", [None, JsonSerializer(), PickleSerializer()], ids=["default", "json", "pickle"])
def test_a_cache_stores_envelopes_and_reads_what_was_set(valkey_server: Server, serializer: Any) -> None:
    async def work(cache: Any) -> None:
        await cache.set("page", PAGE, ttl=60)
        assert stored(valkey_server, "page").startswith(b"\0\1\2\0\1")
        assert await cache.get("page") == PAGE
        await cache.multi_set([("a", PAGE), ("b", "short")], ttl=60)
        assert await cache.multi_get(["a", "b", "none"]) == [PAGE, "short", None]
        assert await cache.get("none", default="nothing") == "nothing"

    with_cache(valkey_server, SnuglySerializer(serializer), work)


def test_what_was_stored_before_is_read_and_options_are_taken(valkey_server: Server) -> None:
    async def work(cache: Any) -> None:
        with valkey_server.connect() as connection:
            connection.command("SET", "old", "Zürich".encode())
        assert await cache.get("old") == "Zürich"
        await cache.set("new", "Zürich" * 100)
        assert stored(valkey_server, "new").startswith(b"\0\1\2\0\2")
        assert await cache.get("new") == "Zürich" * 100

    with_cache(valkey_server, SnuglySerializer(StringSerializer(), backend="lz4"), work)


def test_a_decorated_function_is_called_once(valkey_server: Server) -> None:
    calls = []

    async def render() -> dict[str, str]:
        calls.append(1)
        return PAGE

    async def work(_: Any) -> None:
        cached: Any = aiocache.cached(
            cache=aiocache.RedisCache, port=valkey_server.port, key="page", serializer=SnuglySerializer()
        )
        page = cached(render)
        assert [await page(), await page()] == [PAGE, PAGE]
        await page.cache.close()

    with_cache(valkey_server, None, work)
    assert len(calls) == 1
    assert stored(valkey_server, "page").startswith(b"\0\1\2\0\1")


def test_the_client_of_a_cache_may_compress_instead(valkey_server: Server) -> None:
    async def work(cache: Any) -> None:
        await cache.set("old", PAGE)
        snugly.compress(cache.client)
        await cache.multi_set([("a", PAGE), ("b", PAGE)], ttl=60)
        assert await cache.multi_get(["old", "a", "none"]) == [PAGE, PAGE, None]
        assert stored(valkey_server, "a").startswith(b"\0\1\2\0\1")

    with_cache(valkey_server, None, work)


async def missed() -> None:
    serializer = SnuglySerializer()
    assert serializer.loads(snugly.codec.encode(b"x" * 500)[:-1]) is None
    with pytest.raises(snugly.UndecodableError):
        SnuglySerializer(on_undecodable="raise").loads(snugly.codec.encode(b"x" * 500)[:-1])


def test_what_cannot_be_read_is_a_miss() -> None:
    asyncio.run(missed())
