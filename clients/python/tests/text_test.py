"""Clients that return text: `decode_responses=True`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import redis
import valkey
import valkey.asyncio

import snugly
from kinds import Connect, Driver, Kind
from servers import Server
from snugly import CompressionConfiguration, ValueType

TEXT = "Zürich, 🦊 and more of it; " * 60
BINARY = bytes(range(256)) * 10
each_protocol = pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])


@each_protocol
def test_text_is_stored_compressed_and_read_as_text(connect: Connect, plain: Driver, protocol: int) -> None:
    client = connect(decode_responses=True, protocol=protocol)
    for value in (TEXT, "short", "", "ASCII only " * 100, "\x00\x01\x02\x00\x01 and text"):
        client("set", "{a}k", value)
        assert client("get", "{a}k") == value
        assert client("mget", ["{a}k", "{a}none"]) == [value, None]
        assert client("set", "{a}k", value, get=True) == value
    client("set", "{a}k", TEXT)
    assert len(plain("get", "{a}k")) < 300


@each_protocol
@pytest.mark.parametrize("transaction", [False, True], ids=["pipeline", "transaction"])
def test_text_is_read_in_pipelines_too(connect: Connect, kind: Kind, protocol: int, transaction: bool) -> None:
    if transaction and not kind.transactions:
        pytest.skip("valkey-py's clusters have no transactions")
    client = connect(decode_responses=True, protocol=protocol)
    client("delete", "k")
    options = {"transaction": transaction} if kind.transactions else {}
    assert client.batch(("set", "k", TEXT), ("get", "k"), ("getdel", "k"), ("get", "k"), **options)[1:] == [
        TEXT,
        TEXT,
        None,
    ]


@each_protocol
def test_other_types_are_text_by_opt_in_too(connect: Connect, protocol: int) -> None:
    client = connect(CompressionConfiguration(value_types=ValueType), decode_responses=True, protocol=protocol)
    client("hset", "h", mapping={"f": TEXT, "ü": "short"})
    assert client("hgetall", "h") == {"f": TEXT, "ü": "short"}
    client("rpush", "l", TEXT)
    assert client("lrange", "l", 0, -1) == [TEXT]
    client("xadd", "x", {"f": TEXT}, "1-1")
    assert client("xrange", "x") == [("1-1", {"f": TEXT})]


def test_a_value_that_is_no_text_is_an_error_that_leaves_the_connection_usable(connect: Connect) -> None:
    writer, client = connect(), connect(decode_responses=True)
    writer("set", "binary", BINARY)
    writer("set", "raw", b"\xff\xfe")
    writer("set", "text", TEXT)
    for key, stored in (("binary", snugly.codec.encode(BINARY)), ("raw", b"\xff\xfe")):
        with pytest.raises(snugly.UndecodableError, match=f"at key b'{key}' is no text") as caught:
            client("get", key)
        assert (caught.value.kind, caught.value.backend) == ("not_text", None)
        assert snugly.codec.decode(caught.value.stored) == snugly.codec.decode(stored)
        found = client.batch(("get", "text"), ("get", key), ("get", "text"), raise_on_error=False)
        assert (found[0], found[2]) == (TEXT, TEXT)
        assert isinstance(found[1], snugly.UndecodableError)
    assert client("get", "text") == TEXT


def test_other_error_handlers_of_the_client_are_respected(connect: Connect) -> None:
    writer, client = connect(), connect(decode_responses=True, encoding_errors="replace")
    writer("set", "k", BINARY)
    assert client("get", "k") == BINARY.decode("utf-8", "replace")
    latin = connect(decode_responses=True, encoding="latin-1")
    assert latin("get", "k") == BINARY.decode("latin-1")
    latin("set", "k", "ü" * 200)
    assert latin("get", "k") == "ü" * 200
    assert writer("get", "k") == b"\xfc" * 200


def test_an_encoding_that_bytes_do_not_survive_is_refused(valkey_server: Server) -> None:
    for encoding in ("utf-16", "utf-32"):
        with pytest.raises(snugly.ConfigurationError, match=f"the encoding {encoding} does not go with compression"):
            snugly.Valkey(port=valkey_server.port, decode_responses=True, encoding=encoding, compression=True)
        with snugly.Valkey(port=valkey_server.port, encoding=encoding, compression=True) as client:
            client.set("k", TEXT)
            assert client.get("k") == TEXT.encode(encoding)


@pytest.mark.parametrize("library", [valkey.Valkey, redis.Redis])
def test_a_client_with_open_connections_reads_text_from_then_on(valkey_server: Server, library: Any) -> None:
    client = library(port=valkey_server.port, decode_responses=True)
    client.set("k", "before")
    single = client.client()
    assert single.get("k") == "before"
    snugly.compress(client)
    client.set("k", TEXT)
    assert client.get("k") == TEXT
    snugly.compress(single)
    assert single.get("k") == TEXT
    client.set("k", b"\xff")
    with pytest.raises(snugly.UndecodableError):
        client.get("k")
    single.close()
    client.close()


def test_an_asyncio_client_must_be_compressed_before_it_connects(valkey_server: Server) -> None:
    async def main() -> None:
        client = valkey.asyncio.Valkey(port=valkey_server.port, decode_responses=True)
        await client.ping()
        with pytest.raises(snugly.ConfigurationError, match="compress it before its first command"):
            snugly.compress(client)
        assert type(client) is valkey.asyncio.Valkey
        await client.set("k", "untouched")
        assert await client.get("k") == "untouched"
        await client.aclose()

    asyncio.run(main())
