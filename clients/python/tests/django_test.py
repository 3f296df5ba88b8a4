"""Django's cache framework with compression: django-valkey, django-redis, and the backend that is Django's own."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import CacheHandler

import snugly
from servers import Server
from snugly.django import SnuglyCompressor, SnuglySerializer

if not settings.configured:
    settings.configure()

PAGE = {"title": "hello", "body": "<p>hello</p>" * 500}

DJANGO_VALKEY = "django_valkey.cache.ValkeyCache"
DJANGO_VALKEY_ASYNC = "django_valkey.async_cache.cache.AsyncValkeyCache"
DJANGO_REDIS = "django_redis.cache.RedisCache"
DJANGO = "django.core.cache.backends.redis.RedisCache"
COMPRESSOR = {"COMPRESSOR": "snugly.django.SnuglyCompressor"}

COMPRESSING = {
    "django-valkey": (DJANGO_VALKEY, COMPRESSOR),
    "django-valkey with a client": (
        DJANGO_VALKEY,
        {"BASE_CLIENT_CLASS": "snugly.Valkey", "BASE_CLIENT_KWARGS": {"compression": True}},
    ),
    "django-redis": (DJANGO_REDIS, COMPRESSOR),
    "django": (DJANGO, {"serializer": "snugly.django.SnuglySerializer"}),
}
each_backend = pytest.mark.parametrize(("backend", "options"), COMPRESSING.values(), ids=list(COMPRESSING))
each_compressor = pytest.mark.parametrize("backend", [DJANGO_VALKEY, DJANGO_REDIS])


def cache_of(server: Server, backend: str, options: dict[str, Any]) -> Any:
    """A cache as Django makes it from settings; everything there is gone."""
    with server.connect() as connection:
        connection.command("FLUSHALL")
    # django-valkey shares pools by URL between its two kinds of cache, so that for asyncio has a URL of its own.
    scheme = "valkey" if backend == DJANGO_VALKEY else "redis"
    location = f"{scheme}://127.0.0.1:{server.port}/0"
    return CacheHandler({"default": {"BACKEND": backend, "LOCATION": location, "OPTIONS": options}})["default"]


def stored(server: Server, cache: Any, key: str) -> bytes:
    with server.connect() as connection:
        found = connection.command("GET", cache.make_key(key))
    assert isinstance(found, bytes)
    return found


def store(server: Server, cache: Any, key: str, value: bytes) -> None:
    with server.connect() as connection:
        connection.command("SET", cache.make_key(key), value)


@each_backend
def test_a_cache_stores_envelopes_and_reads_what_was_set(
    valkey_server: Server, backend: str, options: dict[str, Any]
) -> None:
    cache = cache_of(valkey_server, backend, options)
    cache.set("page", PAGE, timeout=60)
    assert cache.get("page") == PAGE
    envelope = stored(valkey_server, cache, "page")
    assert envelope.startswith(b"\0\1\2\0\1")
    assert len(envelope) < 300
    cache.set_many({"a": PAGE, "b": "short", "c": 7})
    assert cache.get_many(["a", "b", "c", "none"]) == {"a": PAGE, "b": "short", "c": 7}
    assert cache.get_or_set("d", lambda: PAGE) == PAGE
    assert not cache.add("d", "other")
    assert cache.incr("c", 3) == 10
    assert cache.get("c") == 10
    assert cache.touch("page", 30)
    assert cache.delete("page")
    assert cache.get("page", "nothing") == "nothing"


@each_backend
def test_a_cache_reads_what_it_stored_before_it_compressed(
    valkey_server: Server, backend: str, options: dict[str, Any]
) -> None:
    cache = cache_of(valkey_server, backend, options)
    store(valkey_server, cache, "old", pickle.dumps(PAGE))
    cache.set("new", PAGE)
    assert cache.get_many(["old", "new"]) == {"old": PAGE, "new": PAGE}


BROKEN = snugly.codec.encode(b"x" * 500)[:-1]


@pytest.mark.parametrize("backend", [DJANGO_VALKEY, DJANGO_REDIS])
@pytest.mark.parametrize("serializer", ["pickle.PickleSerializer", "json.JSONSerializer"])
def test_an_envelope_that_cannot_be_read_is_a_miss(valkey_server: Server, backend: str, serializer: str) -> None:
    library = "django_valkey.serializers" if backend == DJANGO_VALKEY else "django_redis.serializers"
    cache = cache_of(valkey_server, backend, {**COMPRESSOR, "SERIALIZER": f"{library}.{serializer}"})
    store(valkey_server, cache, "broken", BROKEN)
    assert cache.get("broken") is None
    cache.set("broken", "mended")
    assert cache.get("broken") == "mended"


def test_an_envelope_that_cannot_be_read_is_a_miss_for_djangos_own(valkey_server: Server) -> None:
    cache = cache_of(valkey_server, DJANGO, {"serializer": "snugly.django.SnuglySerializer"})
    store(valkey_server, cache, "broken", BROKEN)
    assert cache.get("broken") is None


@each_compressor
def test_an_envelope_that_cannot_be_read_is_an_error_where_it_is_asked_for(valkey_server: Server, backend: str) -> None:
    cache = cache_of(valkey_server, backend, {**COMPRESSOR, "SNUGLY": {"on_undecodable": "raise"}})
    store(valkey_server, cache, "broken", BROKEN)
    with pytest.raises(snugly.UndecodableError, match="cannot decode an envelope"):
        cache.get("broken")


@each_compressor
def test_the_settings_say_how_a_cache_compresses(valkey_server: Server, backend: str) -> None:
    cache = cache_of(valkey_server, backend, {**COMPRESSOR, "SNUGLY": {"backend": "lz4"}})
    cache.set("page", PAGE)
    assert stored(valkey_server, cache, "page").startswith(b"\0\1\2\0\2")
    reading = cache_of(valkey_server, backend, {**COMPRESSOR, "SNUGLY": {"backend": "none"}})
    reading.set("page", PAGE)
    assert pickle.loads(stored(valkey_server, cache, "page")) == PAGE
    wrong = cache_of(valkey_server, backend, {**COMPRESSOR, "SNUGLY": {"backend": "gzip"}})
    with pytest.raises(snugly.ConfigurationError, match="backend is 'gzip': choose 'zstd'"):
        wrong.get("page")


def test_an_asyncio_cache_compresses_by_compressor_and_by_client(valkey_server: Server) -> None:
    client = {"BASE_CLIENT_CLASS": "snugly.asyncio.Valkey", "BASE_CLIENT_KWARGS": {"compression": True}}

    async def main() -> None:
        for options in (COMPRESSOR, client):
            cache = cache_of(valkey_server, DJANGO_VALKEY_ASYNC, options)
            await cache.aset("page", PAGE)
            assert stored(valkey_server, cache, "page").startswith(b"\0\1\2\0\1")
            assert await cache.aget("page") == PAGE
        await (await cache.client.get_client()).connection_pool.disconnect()

    asyncio.run(main())


def test_a_serializer_with_options_is_given_as_an_object(valkey_server: Server) -> None:
    cache = cache_of(valkey_server, DJANGO, {"serializer": SnuglySerializer(backend="lz4")})
    cache.set("page", PAGE)
    assert stored(valkey_server, cache, "page").startswith(b"\0\1\2\0\2")
    assert cache.get("page") == PAGE


def test_a_value_that_is_an_envelope_itself_is_read_as_it_was() -> None:
    envelope = snugly.codec.encode(b"x" * 500)
    compressor = SnuglyCompressor({})
    assert compressor.decompress(compressor.compress(envelope)) == envelope
