"""Clients that a real sentinel finds the server for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis.sentinel
import valkey.asyncio.sentinel
import valkey.sentinel

import servers
import snugly
import snugly.asyncio
from published import USERS, publish, user
from servers import Server

# The module without the types that it lacks.
asyncio_sentinel: Any = valkey.asyncio.sentinel
PAGE = b"<html><body><p>hello</p></body></html>" * 60


@pytest.fixture(scope="module")
def sentinel(valkey_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings: Path = tmp_path_factory.mktemp("sentinel") / "sentinel.conf"
    settings.write_text(f"bind 127.0.0.1\nsentinel monitor pages 127.0.0.1 {valkey_server.port} 1\n")
    with servers.serving("sentinel", [str(servers.valkey_binary()), str(settings), "--sentinel"]) as server:
        yield server


@pytest.mark.parametrize("library", [valkey.sentinel, redis.sentinel], ids=["valkey-py", "redis-py"])
def test_a_client_made_by_a_sentinel_compresses(sentinel: Server, valkey_server: Server, library: Any) -> None:
    client = snugly.compress(library.Sentinel([("127.0.0.1", sentinel.port)]).master_for("pages"))
    client.set("k", PAGE)
    assert client.get("k") == PAGE
    assert client.pipeline().get("k").execute() == [PAGE]
    with valkey_server.connect() as connection:
        stored = connection.command("GET", "k")
    assert isinstance(stored, bytes)
    assert len(stored) < 200
    client.close()


@pytest.mark.parametrize("library", [valkey.sentinel, redis.sentinel], ids=["valkey-py", "redis-py"])
def test_a_client_made_by_a_sentinel_finds_dictionaries(sentinel: Server, valkey_server: Server, library: Any) -> None:
    with valkey.Valkey(port=valkey_server.port) as plain:
        publish(lambda name, *args: getattr(plain, name)(*args), ("*", USERS))
        stored = snugly.codec.Codec(snugly.CompressionConfiguration(dictionary=USERS)).encode(user(1))
        plain.set("user:1", stored)
        client = snugly.compress(library.Sentinel([("127.0.0.1", sentinel.port)]).master_for("pages"))
        assert client.get("user:1") == user(1)
        client.close()
        plain.flushall()


def test_an_asyncio_client_made_by_a_sentinel_compresses(sentinel: Server) -> None:
    async def main() -> None:
        finder: Any = asyncio_sentinel.Sentinel([("127.0.0.1", sentinel.port)])
        client: Any = snugly.compress(finder.master_for("pages", decode_responses=True))
        await client.set("k", PAGE)
        assert await client.get("k") == PAGE.decode()
        await client.aclose()
        for one in finder.sentinels:
            await one.aclose()

    asyncio.run(main())


def test_a_sentinel_can_make_clients_of_this_package(sentinel: Server) -> None:
    library: Any = valkey.sentinel
    finder: Any = library.Sentinel([("127.0.0.1", sentinel.port)])
    client: Any = finder.master_for("pages", valkey_class=snugly.Valkey, compression=True)
    assert issubclass(client.__class__, snugly.Valkey)
    client.set("k", PAGE)
    assert client.get("k") == PAGE
    assert snugly.statistics(client)["encoded_values_zstd"] == 1
    client.close()


def test_a_sentinel_can_make_asyncio_clients_of_this_package(sentinel: Server) -> None:
    async def main() -> None:
        finder: Any = asyncio_sentinel.Sentinel([("127.0.0.1", sentinel.port)])
        client: Any = finder.master_for("pages", valkey_class=snugly.asyncio.Valkey, compression="lz4")
        await client.set("k", PAGE)
        assert await client.get("k") == PAGE
        assert snugly.statistics(client)["encoded_values_lz4"] == 1
        await client.aclose()
        for one in finder.sentinels:
            await one.aclose()

    asyncio.run(main())
