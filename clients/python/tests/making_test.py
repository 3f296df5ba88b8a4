"""Ways to say that a client shall compress: arguments, names of backends, and URLs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import valkey
from valkey.connection import Connection

import snugly
import snugly.asyncio
from servers import Server
from snugly.transport.blocking import BlockingNode

PAGE = b"<html><body><p>hello</p></body></html>" * 60


def written_with(client: Any) -> list[str]:
    """The codecs that a client has written values with."""
    counted = snugly.statistics(client)
    return [codec for codec in ("zstd", "lz4", "none") if counted[f"encoded_values_{codec}"]]


@pytest.mark.parametrize(
    ("query", "expected"), [("compression=lz4", "lz4"), ("compression=yes", "zstd"), ("compression=none", "none")]
)
def test_a_url_can_say_how_to_compress(valkey_server: Server, query: str, expected: str) -> None:
    with snugly.Valkey.from_url(f"valkey://127.0.0.1:{valkey_server.port}/0?{query}&socket_timeout=5") as client:
        client.set("page", PAGE)
        assert client.get("page") == PAGE
        assert written_with(client) == [expected]


def test_a_url_can_say_so_for_asyncio_and_for_clusters(valkey_server: Server, cluster: list[Server]) -> None:
    query = "compression=lz4&native=no"

    async def main() -> None:
        for made, port in (
            (snugly.asyncio.Valkey, valkey_server.port),
            (snugly.asyncio.ValkeyCluster, cluster[0].port),
        ):
            client: Any = made.from_url(f"valkey://127.0.0.1:{port}?{query}")
            await client.set("page", PAGE)
            assert await client.get("page") == PAGE
            assert written_with(client) == ["lz4"]
            await client.aclose()

    asyncio.run(main())
    made: Any = snugly.ValkeyCluster
    client = made.from_url(f"valkey://127.0.0.1:{cluster[0].port}?{query}")
    client.set("page", PAGE)
    assert (client.get("page"), written_with(client)) == (PAGE, ["lz4"])
    client.close()


def test_a_url_wins_over_arguments_and_both_choose_the_transport(valkey_server: Server) -> None:
    url = f"valkey://127.0.0.1:{valkey_server.port}"
    with snugly.Valkey.from_url(f"{url}?compression=lz4&native=no", compression="zstd") as client:
        client.set("page", PAGE)
        assert written_with(client) == ["lz4"]
        assert not isinstance(client, BlockingNode)
    for native in (True, False):
        with snugly.Valkey.from_url(url, compression=True, native=native) as client:
            assert isinstance(client, BlockingNode) is native


def test_a_pool_is_left_to_the_client_that_takes_it(valkey_server: Server) -> None:
    pool: Any = valkey.ConnectionPool(port=valkey_server.port)
    client = snugly.Valkey.from_pool(pool, compression="lz4")
    client.set("page", PAGE)
    assert written_with(client) == ["lz4"]
    assert client.auto_close_connection_pool
    assert issubclass(pool.connection_class, Connection)
    assert "Connection(" in repr(pool) or "Connection<" in repr(pool)
    client.close()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("wrong", ["gzip", "", 3])
def test_what_says_nothing_is_refused_before_there_is_a_connection(wrong: Any) -> None:
    expected = "give True, False, 'zstd', 'lz4', 'auto', 'none' or a CompressionConfiguration"
    with pytest.raises(snugly.ConfigurationError, match=expected):
        snugly.Valkey(port=1, compression=wrong)
    with pytest.raises(snugly.ConfigurationError, match=expected):
        snugly.Valkey.from_url("valkey://127.0.0.1:1", compression=wrong)
    with pytest.raises(snugly.ConfigurationError, match=expected):
        snugly.compress(valkey.Valkey(port=1), wrong)


def test_the_version_is_that_of_the_package() -> None:
    assert snugly.__version__.count(".") == 2
