"""Behaviour of every kind of compressing client for an application, and the values that the server then has."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.cluster
import valkey
from redis.cache import CacheConfig
from redis.connection import CacheProxyConnection
from valkey._parsers import _RESP3Parser

import snugly
import snugly.asyncio
from kinds import KINDS, Connect, Driver, Kind, connected
from servers import Server
from snugly import CompressionConfiguration, ExistingEnvelopes, ValueType, codec

JSON = b'{"name": "value", "tags": ["cache", "cached", "caching"]}' * 40
PAGE = b"<html><body><p>hello</p></body></html>" * 60
NOISE = bytes((number * number * 2654435761 >> 7) & 0xFF for number in range(2000))
# The start of a well-formed envelope, and of one that no backend can read.
LIKE_AN_ENVELOPE = b"\x00\x01\x02\x00\x03" + b"x" * 10

MULTI_AND_EXEC: list[tuple[Any, Any]] = [
    ("MULTI", "EXEC"),
    ("multi", "exec"),
    ("Multi", "Exec"),
    ("MULTI ", " EXEC"),
    (b"MULTI", b"EXEC"),
    ("MULTI", b"exec"),
]
SAME_SLOT = ("{a}1", "{a}2", "{a}3")
each_protocol = pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])


@each_protocol
def test_a_value_is_stored_compressed_and_read_as_it_was(connect: Connect, plain: Driver, protocol: int) -> None:
    client = connect(protocol=protocol)
    assert client("set", "page", PAGE) is True
    assert client("get", "page") == PAGE
    stored = plain("get", "page")
    assert stored[:5] == b"\x00\x01\x02\x00\x01"
    assert len(stored) < len(PAGE) / 10


@each_protocol
def test_what_does_not_shrink_is_stored_as_it_is(connect: Connect, plain: Driver, protocol: int) -> None:
    client = connect(protocol=protocol)
    for value in (b"", b"short", NOISE[:40], NOISE):
        client("set", "k", value)
        assert plain("get", "k") == value
        assert client("get", "k") == value


def test_a_well_formed_envelope_passes_unchanged_unless_it_is_to_be_wrapped(connect: Connect, plain: Driver) -> None:
    """The one value that is not read as it was written under the default setting: an envelope is its value."""
    envelope = codec.encode(PAGE)
    connect()("set", "k", envelope)
    assert plain("get", "k") == envelope
    assert connect()("get", "k") == PAGE
    connect(CompressionConfiguration(existing_envelopes=ExistingEnvelopes.WRAP))("set", "k", envelope)
    assert plain("get", "k") != envelope
    assert connect()("get", "k") == envelope


def test_what_only_looks_like_an_envelope_is_read_as_it_was(client: Driver, plain: Driver) -> None:
    for value in (LIKE_AN_ENVELOPE, b"\x00\x01\x02\x00\x01", b"\x00\x01\x02" + bytes(range(3, 100))):
        client("set", "k", value)
        assert client("get", "k") == value
    client("set", "k", LIKE_AN_ENVELOPE)
    assert plain("get", "k") != LIKE_AN_ENVELOPE


@each_protocol
def test_every_way_to_write_and_to_read_a_string(connect: Connect, plain: Driver, protocol: int) -> None:
    client = connect(protocol=protocol)
    one, two, three = SAME_SLOT

    def stored() -> bytes:
        value: bytes = plain("get", one)
        return value

    client("set", one, PAGE, ex=100)
    assert len(stored()) < 200
    assert client("set", one, JSON, xx=True, get=True) == PAGE
    assert client("getset", one, PAGE) == JSON
    assert client("getex", one, ex=50) == PAGE
    assert client("getdel", one) == PAGE
    assert client("get", one) is None
    assert client("setnx", one, JSON) in (True, 1)
    assert client("setex", two, 100, PAGE) is True
    assert client("psetex", three, 100_000, PAGE) is True
    assert len(stored()) < 200
    assert client("mget", one, two, "{a}none", three) == [JSON, PAGE, None, PAGE]
    assert client("mset", {one: PAGE, two: b"short"}) is True
    assert client("mget", [one, two]) == [PAGE, b"short"]
    client("delete", one, two)
    assert client("msetnx", {one: JSON, two: PAGE}) in (True, 1)
    assert len(stored()) < 200
    assert client("mget", [one, two]) == [JSON, PAGE]


def test_names_of_commands_may_be_written_in_any_way(client: Driver, plain: Driver, kind: Kind) -> None:
    names: list[tuple[Any, Any]] = [("set", "get"), ("Set", "geT")]
    # Clusters look for the keys of a command, by a name that is text.
    names += [] if kind.cluster else [(b"SET", b"get")]
    for write, read in names:
        client("execute_command", write, "k", PAGE)
        assert len(plain("get", "k")) < 200
        assert client("execute_command", read, "k") == PAGE


def test_a_name_with_arguments_in_the_same_string_is_understood(valkey_server: Server) -> None:
    with snugly.Valkey(port=valkey_server.port, compression=True) as client:
        client.execute_command("SET k", PAGE)
        assert client.execute_command("GET k") == PAGE
        with pytest.raises(snugly.CommandRefusedError, match="APPEND is refused"):
            client.execute_command("APPEND k", "more")


@pytest.mark.parametrize("wrap", [bytearray, memoryview])
def test_bytes_like_values_are_written_as_their_bytes(client: Driver, wrap: Any) -> None:
    for value in (b"short", PAGE, NOISE):
        client("set", "k", wrap(value))
        assert client("get", "k") == value
    client("set", "k", memoryview(PAGE)[::-1])
    assert client("get", "k") == PAGE[::-1]


def test_text_is_written_in_the_encoding_of_the_client(connect: Connect) -> None:
    text = "Zürich, 🦊 " * 50
    client = connect()
    client("set", "k", text)
    assert client("get", "k") == text.encode()


def test_numbers_stay_numbers(client: Driver, plain: Driver) -> None:
    client("set", "counter", 41)
    assert client("incr", "counter") == 42
    client("set", "ratio", 0.5)
    assert client("incrbyfloat", "ratio", 0.25) == 0.75
    assert client("decrby", "counter", 2) == 40
    assert plain("get", "counter") == b"40"
    client("set", "page", PAGE)
    with pytest.raises((valkey.ResponseError, redis.ResponseError), match="not an integer"):
        client("incr", "page")


def test_what_is_no_value_is_refused_by_the_library_as_ever(client: Driver) -> None:
    for value in (None, True, [], object()):
        with pytest.raises((valkey.DataError, redis.DataError)):
            client("set", "k", value)


@each_protocol
@pytest.mark.parametrize("transaction", [False, True], ids=["pipeline", "transaction"])
def test_pipelines_write_and_read_as_single_commands_do(
    connect: Connect, kind: Kind, plain: Driver, protocol: int, transaction: bool
) -> None:
    if transaction and not kind.transactions:
        pytest.skip("valkey-py's clusters have no transactions")
    client = connect(protocol=protocol)
    key = SAME_SLOT[0]
    commands = [("set", key, PAGE), ("get", key), ("getset", key, JSON), ("incr", SAME_SLOT[1]), ("getdel", key)]
    commands += [("get", key), ("execute_command", "SET", key, PAGE, "GET"), ("execute_command", "get", key)]
    options = {"transaction": transaction} if kind.transactions else {}
    client("delete", key)
    written, *read = client.batch(*commands, **options)
    # redis-py's clusters leave the OK of a transaction as it is.
    assert written in (True, b"OK")
    assert read == [PAGE, PAGE, 1, JSON, None, None, PAGE]
    assert len(plain("get", key)) < 200


def test_a_refused_command_is_not_sent(client: Driver, plain: Driver) -> None:
    client("set", "k", "v")
    client("set", "l", "v")
    with pytest.raises(snugly.CommandRefusedError) as caught:
        client("append", "k", "more")
    assert caught.value.command == "APPEND"
    refusal = "APPEND is refused because compression is on: the server would read or change a part of the compressed"
    assert str(caught.value).startswith(refusal)
    for command in (
        ("STRLEN", "k"),
        ("GETRANGE", "k", 0, 1),
        ("SETRANGE", "k", 0, "x"),
        ("SETBIT", "k", 1, 1),
        ("set", "k", "w", "ifeq", "v"),
        ("SORT", "k", "GET", "l"),
    ):
        with pytest.raises(snugly.CommandRefusedError, match=f"^{str(command[0]).upper()} is refused"):
            client("execute_command", *command)
        with pytest.raises(snugly.CommandRefusedError):
            client.batch(("set", "l", "changed"), ("execute_command", *command))
    assert plain("get", "k") == b"v"
    assert plain("get", "l") == b"v"


def test_a_refused_command_reaches_no_server(
    client: Driver, kind: Kind, valkey_server: Server, request: pytest.FixtureRequest
) -> None:
    nodes: list[Server] = request.getfixturevalue("cluster") if kind.cluster else [valkey_server]

    def calls(command: str) -> int:
        found = 0
        for node in nodes:
            with node.connect() as connection:
                info = connection.command("INFO", "commandstats")
            assert isinstance(info, bytes)
            found += info.count(f"cmdstat_{command}:".encode())
        return found

    client("get", "k")
    for node in nodes:
        with node.connect() as connection:
            connection.command("CONFIG", "RESETSTAT")
    refused = (("append", "k", "v"), ("strlen", "k"), ("getbit", "k", 1), ("setrange", "k", 0, "v"))
    for method, *args in refused:
        with pytest.raises(snugly.CommandRefusedError):
            client(method, *args)
        with pytest.raises(snugly.CommandRefusedError):
            client.batch(("set", "k", "v"), ("get", "k"), (method, *args))
    assert [calls(method) for method, *_ in (*refused, ("set",), ("get",))] == [0] * 6
    client.batch(("set", "k", "v"))
    assert calls("set") == 1


def test_scripts_and_messages_pass_untouched(valkey_server: Server) -> None:
    with snugly.Valkey(port=valkey_server.port, compression=True) as client, client.pubsub() as subscriber:
        assert client.eval("return {KEYS[1], ARGV[1]}", 1, "k", PAGE) == [b"k", PAGE]
        client.eval("return redis.call('SET', KEYS[1], ARGV[1])", 1, "k", PAGE)
        assert client.get("k") == PAGE
        script = client.register_script("return redis.call('GET', KEYS[1])")
        client.set("k", PAGE)
        assert script(["k"])[:5] == b"\x00\x01\x02\x00\x01"
        pipeline = client.pipeline()
        script(["k"], client=pipeline)
        assert pipeline.get("k").execute()[1] == PAGE
        subscriber.subscribe("news")
        assert subscriber.get_message(timeout=60)["type"] == "subscribe"
        client.publish("news", PAGE)
        assert subscriber.get_message(timeout=60)["data"] == PAGE
        client.sadd("set", PAGE)
        assert set(client.smembers("set")) == {PAGE}
        client.restore("copy", 0, client.dump("k"))
        assert client.get("copy") == PAGE


def test_scripts_pass_untouched_through_clients_of_every_kind(client: Driver, plain: Driver) -> None:
    assert client("eval", "return {KEYS[1], ARGV[1]}", 1, "k", PAGE) == [b"k", PAGE]
    client("eval", "return redis.call('SET', KEYS[1], ARGV[1])", 1, "k", PAGE)
    assert plain("get", "k") == client("get", "k") == PAGE
    client("set", "k", PAGE)
    read = "return redis.call('GET', KEYS[1])"
    assert client("eval", read, 1, "k") == client("eval_ro", read, 1, "k") == plain("get", "k")
    assert plain("get", "k") == codec.encode(PAGE)


def test_messages_pass_untouched_through_asyncio_clients(valkey_server: Server) -> None:
    async def main(client: Any) -> None:
        async with client.pubsub() as subscriber:
            await subscriber.subscribe("news")
            assert (await subscriber.get_message(timeout=60))["type"] == "subscribe"
            await client.publish("news", PAGE)
            assert (await subscriber.get_message(timeout=60))["data"] == PAGE
        await client.aclose()

    for protocol in (2, 3):
        asyncio.run(main(snugly.asyncio.Valkey(port=valkey_server.port, protocol=protocol, compression=True)))
        asyncio.run(main(snugly.compress(redis.asyncio.Redis(port=valkey_server.port, protocol=protocol))))


def test_locks_work_whatever_the_least_size(valkey_server: Server) -> None:
    configuration = CompressionConfiguration(min_compression_size=6, compression_level=19)
    with snugly.Valkey(port=valkey_server.port, compression=configuration) as client:
        for _ in range(20):
            with client.lock("lock", timeout=10) as lock:
                lock.extend(5)
                assert lock.owned()


@pytest.mark.parametrize("value_type", ["hashes", "lists", "streams"])
def test_other_types_are_untouched_without_their_opt_in(client: Driver, plain: Driver, value_type: str) -> None:
    commands: dict[str, tuple[Any, Any]] = {
        "hashes": (("hset", "k", "f", PAGE), ("hget", "k", "f")),
        "lists": (("rpush", "k", PAGE), ("lindex", "k", 0)),
        "streams": (("xadd", "k", {"f": PAGE}, "1-1"), ("xrange", "k")),
    }
    write, read = commands[value_type]
    client(*write)
    assert client(*read) == plain(*read)
    assert PAGE in repr(plain(*read)).encode()


@each_protocol
def test_hashes_by_opt_in(connect: Connect, plain: Driver, protocol: int) -> None:
    client = connect(CompressionConfiguration(value_types={ValueType.HASHES}), protocol=protocol)
    client("hset", "h", mapping={"f": PAGE, "g": b"short"})
    assert len(plain("hget", "h", "f")) < 200
    assert client("hget", "h", "f") == PAGE
    assert client("hgetall", "h") == {b"f": PAGE, b"g": b"short"}
    assert client("hmget", "h", ["f", "none", "g"]) == [PAGE, None, b"short"]
    assert sorted(client("hvals", "h")) == sorted([PAGE, b"short"])
    assert client("hscan", "h")[1] == {b"f": PAGE, b"g": b"short"}
    assert client.batch(("hgetall", "h")) == [{b"f": PAGE, b"g": b"short"}]
    client("set", "k", PAGE)
    assert plain("get", "k") == PAGE
    assert client("append", "k", b"!") == len(PAGE) + 1
    with pytest.raises(snugly.CommandRefusedError, match="HSTRLEN is refused"):
        client("hstrlen", "h", "f")


@each_protocol
def test_lists_and_streams_by_opt_in(connect: Connect, plain: Driver, protocol: int) -> None:
    client = connect(CompressionConfiguration(value_types={ValueType.LISTS, ValueType.STREAMS}), protocol=protocol)
    client("rpush", "l", PAGE, JSON, b"short")
    assert len(plain("lindex", "l", 0)) < 200
    assert client("lrange", "l", 0, -1) == [PAGE, JSON, b"short"]
    assert client("lpop", "l") == PAGE
    assert list(client("blpop", ["l"], 1)) == [b"l", JSON]
    client("xadd", "x", {"f": PAGE}, "1-1")
    assert client("xrange", "x") == [(b"1-1", {b"f": PAGE})]
    assert PAGE in repr(client("xread", {"x": 0})).encode()
    assert len(plain("xrange", "x")[0][1][b"f"]) < 200
    with pytest.raises(snugly.CommandRefusedError, match="LREM is refused"):
        client("lrem", "l", 0, "x")


def test_a_callback_of_the_application_gets_the_restored_value(connect: Connect) -> None:
    client = connect()
    callbacks = getattr(client.client, "response_callbacks", {})
    assert callbacks == dict(getattr(callbacks, "inner", {}))
    client.client.set_response_callback("GET", lambda reply, **_: ("seen", reply))
    client("set", "k", PAGE)
    assert client("get", "k") == ("seen", PAGE)
    assert client.batch(("get", "k")) == [("seen", PAGE)]


def test_off_is_the_class_of_the_library_untouched(valkey_server: Server) -> None:
    for off in (None, False, CompressionConfiguration(enabled=False)):
        with snugly.Valkey(port=valkey_server.port, compression=off, native=False) as client:
            assert type(client) is snugly.Valkey
            for method in ("execute_command", "pipeline", "parse_response"):
                assert getattr(type(client), method) is getattr(valkey.Valkey, method)
            client.set("k", PAGE)
            assert client.get("k") == PAGE
            assert client.strlen("k") == len(PAGE)
            assert type(client.pipeline()) is valkey.client.Pipeline
            given = redis.Redis(port=valkey_server.port)
            assert snugly.compress(given, off) is given
            assert type(given) is redis.Redis
            assert not any(snugly.statistics(client).values())


def test_a_compressed_client_is_still_of_its_class(valkey_server: Server) -> None:
    class Own(valkey.Valkey):
        def greeting(self) -> str:
            return "hello"

    own: Any = snugly.compress(Own(port=valkey_server.port))
    assert issubclass(own.__class__, Own)
    assert own.greeting() == "hello"
    assert type(own).__name__ == "Own"
    with snugly.Valkey(port=valkey_server.port, compression=True) as client:
        client.set("k", PAGE)
        assert own.get("k") == PAGE
        with client.client() as twin:
            assert twin.get("k") == PAGE
        with type(client)(port=valkey_server.port) as other:
            assert other.get("k") != PAGE
        with type(client)(port=valkey_server.port, compression=True) as other:
            assert other.get("k") == PAGE
    own.close()


def test_a_subclass_may_compress_all_that_it_makes(valkey_server: Server) -> None:
    class Always(snugly.Valkey):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{"compression": True, **options})

    with Always(port=valkey_server.port) as client, client.client() as twin:
        client.set("k", PAGE)
        assert client.get("k") == twin.get("k") == PAGE
    with Always.from_url(f"valkey://localhost:{valkey_server.port}") as client:
        assert client.get("k") == PAGE


def test_a_pool_may_be_shared_with_clients_that_do_not_compress(valkey_server: Server) -> None:
    pool = valkey.ConnectionPool(port=valkey_server.port)
    compressing: Any = snugly.Valkey(connection_pool=pool, compression=True)
    plain: Any = valkey.Valkey(connection_pool=pool)
    compressing.set("k", PAGE)
    assert compressing.get("k") == PAGE
    assert len(plain.get("k")) < 200
    connection = plain.client_id()
    with pytest.raises(snugly.ConfigurationError):
        snugly.Valkey.from_pool(pool, compression="gzip")
    assert plain.client_id() == connection
    owner: Any = snugly.Valkey.from_pool(pool, compression=True)
    assert owner.get("k") == PAGE
    owner.close()


def test_only_clients_of_the_two_libraries_are_compressed(valkey_server: Server) -> None:
    for other in (object(), valkey.ConnectionPool(), valkey.Valkey(port=valkey_server.port).pipeline(), "client"):
        with pytest.raises(snugly.ConfigurationError, match="is no client of valkey-py or redis-py"):
            snugly.compress(other)
    client = snugly.Valkey(port=valkey_server.port, compression=True)
    with pytest.raises(snugly.ConfigurationError, match="compressed already"):
        snugly.compress(client)
    with pytest.raises(snugly.ConfigurationError, match="compression is 'gzip': give True, False, 'zstd'"):
        snugly.Valkey(port=1, compression="gzip")


def test_a_transaction_reads_while_it_watches(client: Driver, kind: Kind) -> None:
    if not kind.transactions or "asyncio-cluster" in kind.name:
        pytest.skip("such a client cannot read while it watches")
    key = SAME_SLOT[0]
    client("set", key, PAGE)
    pipeline = client.on(client.client, "pipeline", transaction=True)
    client.wait(client.on(pipeline, "watch", key))
    assert client.wait(client.on(pipeline, "get", key)) == PAGE
    client.on(pipeline, "multi")
    client.on(pipeline, "set", key, JSON)
    client.on(pipeline, "get", key)
    assert client.wait(client.on(pipeline, "execute"))[1] == JSON
    client.wait(client.on(pipeline, "watch", key))
    client("set", key, PAGE)
    client.on(pipeline, "multi")
    client.on(pipeline, "get", key)
    with pytest.raises((valkey.WatchError, redis.WatchError)):
        client.wait(client.on(pipeline, "execute"))


@each_protocol
@pytest.mark.parametrize("library", [valkey.Valkey, redis.Redis])
def test_a_function_runs_as_a_transaction_again_until_nobody_else_writes(
    valkey_server: Server, library: Any, protocol: int
) -> None:
    client: Any = snugly.compress(library(port=valkey_server.port, protocol=protocol))
    client.set("k", PAGE)
    seen = []

    def change(pipeline: Any) -> None:
        seen.append(pipeline.get("k"))
        if len(seen) == 1:
            client.set("k", JSON)
        pipeline.multi()
        pipeline.set("k", seen[-1] + b"!")
        pipeline.get("k")

    assert client.transaction(change, "k") == [True, JSON + b"!"]
    assert seen == [PAGE, JSON]
    client.close()


@each_protocol
@pytest.mark.parametrize("library", [valkey.Valkey, redis.Redis])
def test_a_transaction_that_is_written_out_is_restored_too(valkey_server: Server, library: Any, protocol: int) -> None:
    with library(port=valkey_server.port, protocol=protocol, single_connection_client=True) as client:
        snugly.compress(client)
        client.delete("k", "n")
        for multi, execute in MULTI_AND_EXEC:
            client.execute_command(multi)
            assert client.get("k") == b"QUEUED"
            client.execute_command("DISCARD")
            client.execute_command(multi)
            client.execute_command("SET", "k", PAGE)
            client.execute_command("TTL", "k")
            client.execute_command("GET", "k")
            with pytest.raises(snugly.CommandRefusedError):
                client.append("k", "more")
            client.execute_command("MGET", "k", "none")
            assert client.execute_command(execute)[1:] == [-1, PAGE, [PAGE, None]]
            assert client.get("k") == PAGE
            pipeline = client.pipeline(transaction=False)
            pipeline.execute_command(multi).get("k").set("k", PAGE).execute_command(execute).get("k")
            *_, replies, last = pipeline.execute()
            assert (replies[0], last) == (PAGE, PAGE)


def test_an_asyncio_transaction_that_is_written_out_is_restored_too(valkey_server: Server) -> None:
    async def main() -> None:
        client: Any = snugly.asyncio.Valkey(
            port=valkey_server.port, single_connection_client=True, decode_responses=True, compression=True
        )
        await client.execute_command("MULTI")
        await client.set("k", PAGE)
        await client.get("k")
        assert (await client.execute_command("EXEC"))[1] == PAGE.decode()
        await client.aclose()

    asyncio.run(main())


def test_clients_work_with_every_server(any_server: Server) -> None:
    for kind in KINDS:
        if not kind.cluster:
            with connected(kind, any_server.port) as driver:
                driver("set", "k", PAGE)
                assert driver("get", "k") == PAGE
                assert driver.batch(("get", "k"), ("mget", ["k", "none"])) == [PAGE, [PAGE, None]]


def test_the_client_side_cache_of_redis_py_serves_restored_values(
    valkey_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The library asks the server's name, and works with Redis only unless this says that any will do.
    monkeypatch.setattr(CacheProxyConnection, "DEFAULT_SERVER_NAME", "valkey")
    cached = redis.Redis(port=valkey_server.port, protocol=3, cache_config=CacheConfig(max_size=100))
    client: Any = snugly.compress(cached)
    client.set("k", PAGE)
    reads = [client.get("k") for _ in range(3)]
    assert reads == [PAGE] * 3
    assert client.get_cache().size > 0
    with snugly.Valkey(port=valkey_server.port, compression=True) as other:
        other.set("k", JSON)
    client.ping()
    assert client.get("k") == JSON
    client.close()


def test_the_client_side_cache_of_a_cluster_serves_restored_values(
    cluster: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CacheProxyConnection, "DEFAULT_SERVER_NAME", "valkey")
    client: Any = snugly.compress(
        redis.cluster.RedisCluster(
            host="127.0.0.1", port=cluster[0].port, protocol=3, cache_config=CacheConfig(max_size=100)
        )
    )
    for key in ("k", "l", "m"):
        client.set(key, PAGE)
        assert [client.get(key) for _ in range(3)] == [PAGE] * 3
        assert client.pipeline().get(key).execute() == [PAGE]
    client.close()


def test_the_client_side_cache_of_valkey_py_serves_restored_values(valkey_server: Server) -> None:
    """With the parser in Python, which is the one that caches."""
    pool = valkey.ConnectionPool(port=valkey_server.port, protocol=3, cache_enabled=True, parser_class=_RESP3Parser)
    with snugly.Valkey.from_pool(pool, compression=True) as client:
        client.set("k", PAGE)
        before = client.info("commandstats")["cmdstat_get"]["calls"]
        assert [client.get("k") for _ in range(3)] == [PAGE] * 3
        assert client.info("commandstats")["cmdstat_get"]["calls"] == before + 1
