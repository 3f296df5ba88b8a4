"""The native transport does what valkey-py's does, and what it does not do goes that way by itself."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import socket
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import redis
import valkey
import valkey.asyncio
from hypothesis import given
from hypothesis import strategies as st
from valkey.asyncio.retry import Retry as AsyncRetry
from valkey.backoff import NoBackoff
from valkey.retry import Retry
from valkey.utils import LIBVALKEY_AVAILABLE

import servers
import snugly
import snugly.asyncio
from resp import Connection
from servers import Server
from snugly.transport.blocking import BlockingNode
from snugly.transport.shared import SharedNode
from waiting import until

PAGE = b"<html><body><p>hello</p></body></html>" * 50
LONG = 60_000
"""Milliseconds that nobody waits for."""

SCRIPTS = [
    "return {1, 'two', {3, {4, {}}}, false}",
    "redis.setresp(3); return {map={a={double=1.5}, b=true}}",
    "redis.setresp(3); return {set={1, 2, 3}}",
    "redis.setresp(3); return {big_number='123456789012345678901234567890'}",
    "redis.setresp(3); return {verbatim_string={format='txt', string='hello'}}",
    "redis.setresp(3); return redis.call('zrange', KEYS[1], 0, -1, 'withscores')",
    "redis.setresp(3); return {true, false, 3.5}",
    "return redis.status_reply('FINE')",
    "return {redis.error_reply('ERR inside')}",
]
COMMANDS: list[tuple[Any, ...]] = [
    ("HGETALL", "hash"),
    ("HRANDFIELD", "single", 1, "WITHVALUES"),
    ("SMEMBERS", "set"),
    ("ZRANGE", "zset", 0, -1, "WITHSCORES"),
    ("ZSCORE", "zset", "one"),
    ("ZSCORE", "zset", "nobody"),
    ("XRANGE", "stream", "-", "+"),
    ("GEOPOS", "nowhere", "a"),
    ("LRANGE", "list", 0, -1),
    ("OBJECT", "ENCODING", "hash"),
    ("CONFIG GET", "maxmemory*"),
    ("COMMAND INFO", "get", "nothing"),
    ("SCAN", 0, "COUNT", 100, "MATCH", "hash"),
    ("INFO", "modules"),
    ("ECHO", ""),
    ("TYPE", "hash"),
    ("EXISTS", "hash", "set"),
    ("MGET", "text", "nothing", "hash"),
    ("GET", "text"),
    ("GET", "nothing"),
]


@contextmanager
def raw(server: Server) -> Iterator[Connection]:
    with server.connect() as connection:
        yield connection


def kill_others(connection: Connection) -> None:
    connection.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def kill_clients(server: Server) -> None:
    """Ends all connections that there are."""
    with raw(server) as connection:
        kill_others(connection)


@pytest.fixture
def filled(valkey_server: Server) -> Server:
    with raw(valkey_server) as connection:
        for line in (
            "FLUSHALL",
            "HSET hash one 1 two 2",
            "HSET single one 1",
            "SADD set a b c",
            "ZADD zset 1 one 2.5 two",
            "XADD stream 1-1 field value",
            "RPUSH list a b c",
            "SET text hello",
        ):
            connection.command(*line.split())
    return valkey_server


def run(server: Server, use: Callable[[Any], Awaitable[Any]], **options: Any) -> Any:
    """Returns the result of `use` for an asyncio client of snugly."""

    async def within() -> Any:
        client = snugly.asyncio.Valkey(port=server.port, **options)
        try:
            return await use(client)
        finally:
            await client.aclose()

    return asyncio.run(within())


def outcome(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    try:
        return call(*args, **options)
    except Exception as error:
        return type(error), str(error)


def same(one: Any, other: Any) -> bool:
    """Returns whether replies are equal, types and all; exceptions by their messages."""
    if isinstance(one, Exception):
        return type(one) is type(other) and str(one) == str(other)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("decode_responses", [False, True], ids=["bytes", "text"])
@pytest.mark.parametrize("protocol", [2, 3])
def test_replies_are_those_of_valkey_py(filled: Server, protocol: int, decode_responses: bool) -> None:
    if protocol == 3 and LIBVALKEY_AVAILABLE:
        pytest.skip("the parser in C has other types than the one in Python")
    options: Any = {"port": filled.port, "protocol": protocol, "decode_responses": decode_responses}
    scripts = [("EVAL", script, 1, "zset") for script in SCRIPTS]
    commands = [*COMMANDS, *scripts]
    with valkey.Valkey(**options) as plain, snugly.Valkey(**options) as native:
        for command in commands:
            assert same(outcome(native.execute_command, *command), outcome(plain.execute_command, *command)), command

        def together(client: Any, transaction: bool) -> Any:
            pipeline = client.pipeline(transaction=transaction)
            for command in commands:
                pipeline.execute_command(*command)
            return outcome(pipeline.execute, raise_on_error=False)

        for transaction in (False, True):
            assert same(together(native, transaction), together(plain, transaction))

    async def separately(client: Any) -> list[Any]:
        asked = (client.execute_command(*command) for command in commands)
        replies = await asyncio.gather(*asked, return_exceptions=True)
        await client.aclose()
        return replies

    async def both() -> bool:
        clients = snugly.asyncio.Valkey(**options), valkey.asyncio.Valkey(**options)
        return same(*[await separately(client) for client in clients])

    assert asyncio.run(both())


ARGUMENTS = st.one_of(st.binary(), st.text(), st.integers(), st.floats(), st.just(memoryview(b"view")))


@given(st.lists(ARGUMENTS, max_size=5))
def test_arguments_are_sent_as_valkey_py_sends_them(valkey_server: Server, arguments: list[Any]) -> None:
    script = "return ARGV"
    with snugly.Valkey(port=valkey_server.port) as native, valkey.Valkey(port=valkey_server.port) as plain:
        assert outcome(native.eval, script, 0, *arguments) == outcome(plain.eval, script, 0, *arguments)


@pytest.mark.parametrize("argument", [None, True, [], {}, object, bytearray(b"value")], ids=repr)
def test_what_valkey_py_does_not_send_is_not_sent(valkey_server: Server, argument: Any) -> None:
    with snugly.Valkey(port=valkey_server.port) as client:
        with pytest.raises(valkey.DataError, match="Invalid input of type"):
            client.set("k", argument)
        with pytest.raises(valkey.DataError, match="Invalid input of type"):
            client.pipeline().set("k", argument).execute()
        assert client.ping()

    async def use(client: Any) -> None:
        with pytest.raises(valkey.DataError, match="Invalid input of type"):
            await client.set("k", argument)
        assert await client.ping()

    run(valkey_server, use)


def test_errors_are_raised_as_by_valkey_py(filled: Server) -> None:
    def errors(client: Any) -> list[str]:
        found = []
        calls: list[Callable[[], Any]] = [
            lambda: client.get("hash"),
            lambda: client.pipeline(transaction=False).set("a", 1).get("hash").execute(),
            lambda: client.pipeline().set("a", 1).get("hash").execute(),
            lambda: client.pipeline().set("a", 1).execute_command("GET").execute(),
            lambda: client.evalsha("0" * 40, 0),
        ]
        for call in calls:
            with pytest.raises(valkey.ResponseError) as caught:
                call()
            found.append(f"{type(caught.value).__name__}: {caught.value}")
        return found

    with snugly.Valkey(port=filled.port) as native, valkey.Valkey(port=filled.port) as plain:
        assert errors(native) == errors(plain)


@pytest.mark.slow
def test_commands_of_one_turn_leave_in_one_write(valkey_server: Server) -> None:
    async def use(client: Any) -> None:
        await client.ping()
        before = (await client.info("stats"))["total_reads_processed"]
        await asyncio.gather(*(client.incr("n") for _ in range(200)))
        after = (await client.info("stats"))["total_reads_processed"]
        assert after - before < 20
        assert int(await client.get("n")) == 200
        assert len(await client.client_list()) == 1

    with raw(valkey_server) as connection:
        connection.command("FLUSHALL")
    kill_clients(valkey_server)
    run(valkey_server, use)


def test_who_waits_keeps_nobody_else(valkey_server: Server) -> None:
    async def use(client: Any) -> None:
        await client.delete("queue")
        waiting = asyncio.create_task(client.blpop("queue", timeout=10))
        async with client.pubsub() as messages:
            await messages.subscribe("news")
            await client.publish("news", PAGE)
            async for message in messages.listen():
                if message["type"] == "message":
                    assert message["data"] == PAGE
                    break
        async with client.pipeline() as pipeline:
            await pipeline.watch("n")
            assert not waiting.done()
            pipeline.multi()
            await pipeline.set("n", 1).execute()
        await client.rpush("queue", "item")
        assert await waiting == (b"queue", b"item")

    run(valkey_server, use, compression=True)


def test_a_reply_that_nobody_waits_for_any_more_is_nobody_elses(valkey_server: Server) -> None:
    async def use(client: Any) -> None:
        await client.mset({f"k{number}": number for number in range(50)})
        for _ in range(20):
            tasks = [asyncio.create_task(client.get(f"k{number}")) for number in range(50)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            replies = await asyncio.gather(*tasks, return_exceptions=True)
            for number, reply in enumerate(replies):
                assert isinstance(reply, asyncio.CancelledError) if number % 2 == 0 else reply == b"%d" % number

    run(valkey_server, use)


@pytest.mark.slow
def test_whoever_waits_too_long_gets_an_error_and_then_a_new_connection(valkey_server: Server) -> None:
    async def use(client: Any) -> None:
        await client.set("k", PAGE)
        with raw(valkey_server) as connection:
            connection.command("CLIENT", "PAUSE", LONG, "WRITE")
            replies = await asyncio.gather(*(client.set("k", b"late") for _ in range(3)), return_exceptions=True)
            assert [type(reply) for reply in replies] == [valkey.TimeoutError] * 3
            assert "Timeout reading from" in str(replies[0])
            kill_others(connection)
            connection.command("CLIENT", "UNPAUSE")
        assert await client.get("k") == PAGE

    run(valkey_server, use, socket_timeout=1.0)
    with snugly.Valkey(port=valkey_server.port, socket_timeout=1.0) as client, raw(valkey_server) as connection:
        connection.command("CLIENT", "PAUSE", LONG, "WRITE")
        calls: list[Callable[[], Any]] = [
            lambda: client.set("k", b"late"),
            lambda: client.pipeline().set("k", b"late").execute(),
        ]
        for call in calls:
            with pytest.raises(valkey.TimeoutError, match="Timeout reading from"):
                call()
        kill_others(connection)
        connection.command("CLIENT", "UNPAUSE")
        assert client.get("k") == PAGE


@pytest.mark.slow
def test_who_gets_replies_slowly_does_not_wait_too_long(valkey_server: Server) -> None:
    async def use() -> None:
        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """Relays the server's answer to a pipeline in pieces that together take longer than the timeout."""
            answers, asks = await asyncio.open_connection("127.0.0.1", valkey_server.port)
            while data := await reader.read(1 << 20):
                asks.write(data)
                answer = await answers.read(1 << 20)
                for start in range(0, len(answer), 10_000):
                    writer.write(answer[start : start + 10_000])
                    await asyncio.sleep(0.2)
            asks.close()
            writer.close()

        slow = await asyncio.start_server(relay, "127.0.0.1", 0)
        client = snugly.asyncio.Valkey(port=slow.sockets[0].getsockname()[1], socket_timeout=2.0)
        assert await client.echo(b"x" * 120_000) == b"x" * 120_000
        await client.aclose()
        slow.close()

    asyncio.run(use())


def test_who_has_not_logged_in_is_told_so_as_by_valkey_py() -> None:
    def told(client: Any) -> list[tuple[type, str]]:
        calls: list[Callable[[], Any]] = [
            lambda: client.get("k"),
            lambda: client.pipeline(transaction=False).set("k", 1).get("k").execute(raise_on_error=False),
            lambda: client.pipeline().set("k", 1).get("k").execute(raise_on_error=False),
        ]
        return [outcome(call) for call in calls]

    with servers.valkey("--requirepass", "secret") as server:
        with snugly.Valkey(port=server.port) as native, valkey.Valkey(port=server.port) as plain:
            assert told(native) == told(plain)
        with snugly.Valkey(port=server.port, password="secret", compression=True) as client:
            assert client.pipeline().set("k", PAGE).get("k").execute() == [True, PAGE]


@pytest.mark.slow
def test_a_connection_of_a_loop_that_is_lost_is_opened_again(valkey_server: Server) -> None:
    async def use(client: Any) -> None:
        await client.set("k", PAGE)
        for _ in range(3):
            kill_clients(valkey_server)
            await asyncio.sleep(0.05)
            assert await client.get("k") == PAGE

    run(valkey_server, use)


def test_a_connection_that_is_lost_is_opened_again(valkey_server: Server) -> None:
    with snugly.Valkey(port=valkey_server.port) as client:
        client.set("k", PAGE)
        for _ in range(3):
            kill_clients(valkey_server)
            assert client.get("k") == PAGE


@pytest.mark.slow
def test_who_waits_on_a_connection_that_is_lost_gets_an_error_or_a_retry(valkey_server: Server) -> None:
    async def asked(client: Any) -> Any:
        await client.set("k", PAGE)
        with raw(valkey_server) as connection:
            connection.command("CLIENT", "PAUSE", LONG, "WRITE")
            pipeline = client.pipeline().set("k", PAGE)
            waiting = [asyncio.create_task(client.set("k", PAGE)), asyncio.create_task(pipeline.execute())]
            await asyncio.sleep(0.05)
            kill_others(connection)
            connection.command("CLIENT", "UNPAUSE")
            return await asyncio.gather(*waiting, return_exceptions=True)

    lost = run(valkey_server, asked)
    assert [type(reply) for reply in lost] == [valkey.ConnectionError] * 2
    retrying = {"retry": AsyncRetry(NoBackoff(), 3), "retry_on_error": [valkey.ConnectionError]}
    assert run(valkey_server, asked, **retrying) == [True, [True]]


def test_a_synchronous_client_tries_again_as_it_is_told(valkey_server: Server) -> None:
    with snugly.Valkey(
        port=valkey_server.port, retry=Retry(NoBackoff(), 3), retry_on_error=[valkey.ConnectionError], compression=True
    ) as client:
        client.set("k", PAGE)
        connection = client.connection_pool.get_connection("GET")
        connection._sock.close()
        client.connection_pool.release(connection)
        assert client.get("k") == PAGE


@pytest.mark.slow
def test_health_checks_find_a_dead_connection(valkey_server: Server) -> None:
    async def use(client: Any) -> None:
        await client.set("k", PAGE)
        assert await client.get("k") == PAGE
        kill_clients(valkey_server)
        await asyncio.sleep(0.1)
        assert await client.get("k") == PAGE

    run(valkey_server, use, health_check_interval=0.05)


class Interrupted(Exception):
    """Exception of a signal handler."""


def connected_before(**options: Any) -> Any:
    """A client of valkey-py that has a connection before it compresses."""
    client = valkey.Valkey(**options)
    client.ping()
    return snugly.compress(client)


INTERRUPTED: dict[str, tuple[Callable[..., Any], type, str]] = {
    "native": (partial(snugly.Valkey, compression=True), valkey.Connection, "on_connect"),
    "not native": (partial(snugly.Valkey, compression=True, native=False), valkey.Connection, "on_connect"),
    "valkey-py": (connected_before, valkey.Connection, "on_connect"),
    "redis-py": (
        lambda **options: snugly.compress(redis.Redis(**options)),
        redis.Connection,
        "on_connect_check_health",
    ),
}


@pytest.mark.parametrize("is_new", [True, False], ids=["handshake", "health check"])
@pytest.mark.parametrize("kind", INTERRUPTED)
def test_whoever_is_interrupted_in_a_handshake_leaves_no_reply_to_others(
    valkey_server: Server, monkeypatch: pytest.MonkeyPatch, kind: str, is_new: bool
) -> None:
    make, connection_class, on_connect = INTERRUPTED[kind]

    def interrupted(connection: Any, **_: Any) -> None:
        assert connection._sock is not None
        connection._sock.sendall(b"DEBUG SLEEP 0.3\r\n")
        raise Interrupted

    client = make(port=valkey_server.port)
    client.set("key", PAGE)
    if is_new:
        client.connection_pool.disconnect()
    with monkeypatch.context() as patch:
        patch.setattr(connection_class, on_connect if is_new else "check_health", interrupted)
        with pytest.raises(Interrupted):
            client.get("key")
    assert client.get("key") == PAGE
    client.close()


def test_one_client_serves_one_loop_after_the_other(valkey_server: Server) -> None:
    client = snugly.asyncio.Valkey(port=valkey_server.port, compression=True)
    for number in range(3):

        async def use(number: int = number) -> None:
            await client.set("k", PAGE + b"%d" % number)
            assert await client.get("k") == PAGE + b"%d" % number

        asyncio.run(use())
    asyncio.run(client.aclose())


def test_a_client_that_is_forgotten_is_closed(valkey_server: Server) -> None:
    async def use() -> None:
        with valkey.Valkey(port=valkey_server.port) as watching:
            before = len(watching.client_list())
            client = snugly.asyncio.Valkey(port=valkey_server.port)
            await client.ping()
            assert len(watching.client_list()) == before + 1
            with pytest.warns(ResourceWarning, match="Unclosed client session"):
                del client
            while len(watching.client_list()) != before:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(use(), 60))


def test_a_pool_of_somebody_else_keeps_its_connections(valkey_server: Server) -> None:
    async def use() -> None:
        pool = valkey.asyncio.ConnectionPool(port=valkey_server.port, max_connections=3)
        for _ in range(10):
            client = snugly.asyncio.Valkey(connection_pool=pool, compression=True)
            await client.set("k", PAGE)
            assert await client.get("k") == PAGE
        await pool.disconnect()

    asyncio.run(use())


def test_connections_of_loops_that_have_ended_are_closed(valkey_server: Server) -> None:
    client: Any = snugly.asyncio.Valkey(port=valkey_server.port)
    with valkey.Valkey(port=valkey_server.port) as watching, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        before = len(watching.client_list())
        for _ in range(5):
            asyncio.run(client.ping())
        gc.collect()
        until(lambda: len(watching.client_list()) <= before + 1)
        asyncio.run(client.aclose())


def test_two_loops_may_take_turns_with_one_client(valkey_server: Server) -> None:
    client: Any = snugly.asyncio.Valkey(port=valkey_server.port)
    with valkey.Valkey(port=valkey_server.port) as watching, asyncio.Runner() as one, asyncio.Runner() as other:
        before = len(watching.client_list())
        for number in range(5):
            for runner in (one, other):
                runner.run(client.set("k", number))
                assert runner.run(client.get("k")) == b"%d" % number
        one.run(asyncio.sleep(0.01))
        other.run(asyncio.sleep(0.01))
        until(lambda: len(watching.client_list()) <= before + 1)
        other.run(client.aclose())


def test_a_pipeline_with_an_argument_that_cannot_be_sent_is_empty_again(valkey_server: Server) -> None:
    unsendable: Any = None
    with snugly.Valkey(port=valkey_server.port, compression=True) as client:
        pipeline = client.pipeline()
        with pytest.raises(valkey.DataError):
            pipeline.set("a", 1).set("b", unsendable).execute()
        assert pipeline.set("a", 2).execute() == [True]

    async def use(client: Any) -> None:
        pipeline = client.pipeline()
        with pytest.raises(valkey.DataError):
            await pipeline.set("a", 1).set("b", unsendable).execute()
        assert await pipeline.set("a", 2).execute() == [True]

    run(valkey_server, use)


def test_a_pipeline_with_a_command_of_valkey_pys_encodes_each_value_once(valkey_server: Server) -> None:
    with snugly.Valkey(port=valkey_server.port, compression=True) as client:
        pipeline = client.pipeline().set("k", PAGE).set("l", PAGE)
        pipeline.execute_command("get", "k")
        assert pipeline.execute() == [True, True, PAGE]
        assert snugly.statistics(client)["encoded_values_zstd"] == 2
        with pytest.raises(snugly.CommandRefusedError):
            client.pipeline().execute_command("append", "k", "v")


def test_commands_stay_in_a_pipeline_that_gets_no_connection(valkey_server: Server) -> None:
    async def use() -> None:
        client: Any = snugly.asyncio.Valkey(port=1)
        pipeline = client.pipeline().set("k", PAGE)
        with pytest.raises(valkey.ConnectionError):
            await pipeline.execute()
        assert len(pipeline) == 1
        await client.aclose()
        client = snugly.asyncio.Valkey(port=valkey_server.port)
        forgotten = client.pipeline().set("k", PAGE)
        del client
        assert await forgotten.execute() == [True]
        with pytest.warns(ResourceWarning, match="Unclosed client session"):
            del forgotten

    asyncio.run(use())


def in_child(client: Any) -> None:
    assert client.pipeline().mset({f"k{number}": PAGE * 50 for number in range(20)}).get("k1").execute()[1] == PAGE * 50


def test_a_forked_child_has_connections_and_threads_of_its_own(valkey_server: Server) -> None:
    with snugly.Valkey(port=valkey_server.port, compression=True) as client:
        in_child(client)
        child = multiprocessing.get_context("fork").Process(target=in_child, args=(client,))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        in_child(client)


@pytest.mark.parametrize("native", [True, False])
def test_large_values_and_large_batches_survive(valkey_server: Server, native: bool) -> None:
    large = [PAGE * 10_000, bytes(range(256)) * 40_000, b""]
    with snugly.Valkey(port=valkey_server.port, compression=True, native=native) as client:
        client.mset({f"k{at}": value for at, value in enumerate(large)})
        assert client.mget("k0", "k1", "k2", "none") == [*large, None]

    async def use(client: Any) -> None:
        pipeline = client.pipeline(transaction=False)
        for number in range(2000):
            pipeline.set(f"k{number}", PAGE + b"%d" % number, ex=100)
        assert await pipeline.execute() == [True] * 2000
        for number in range(2000):
            pipeline.get(f"k{number}")
        assert await pipeline.execute() == [PAGE + b"%d" % number for number in range(2000)]

    run(valkey_server, use, compression=True, native=native)


def test_statistics_count_the_same_by_either_transport(valkey_server: Server) -> None:
    def counted(native: bool) -> dict[str, int]:
        with snugly.Valkey(port=valkey_server.port, compression=True, native=native) as client:
            client.set("k", PAGE)
            client.set("small", b"small")
            pipeline = client.pipeline()
            for number in range(100):
                pipeline.set(f"k{number}", PAGE, px=10_000 + number)
            pipeline.execute()
            client.mget("k", "small", "none")
            found = snugly.statistics(client)
            return {name: value for name, value in found.items() if "nanoseconds" not in name}

    assert counted(native=True) == counted(native=False)


def test_what_is_about_the_transport_itself_has_valkey_pys(valkey_server: Server) -> None:
    port = valkey_server.port
    assert isinstance(snugly.Valkey(port=port), BlockingNode)
    assert isinstance(snugly.asyncio.Valkey(port=port), SharedNode)
    assert isinstance(snugly.Valkey.from_url(f"valkey://127.0.0.1:{port}"), BlockingNode)
    for options in ({"native": False}, {"protocol": 3, "cache_enabled": True}, {"single_connection_client": True}):
        if "cache_enabled" in options and LIBVALKEY_AVAILABLE:
            continue  # valkey-py has no client-side cache with its parser in C.
        client: Any = snugly.Valkey(port=port, **options)
        assert not isinstance(client, BlockingNode)
        client.set("k", PAGE)
        assert client.get("k") == PAGE
        client.close()
        assert not isinstance(snugly.asyncio.Valkey(port=port, **options), SharedNode)
    assert not isinstance(snugly.asyncio.Valkey(port=port, max_connections=1), SharedNode)
    assert not isinstance(snugly.Valkey.from_url(f"valkey://127.0.0.1:{port}", native=False), BlockingNode)


@pytest.mark.parametrize(
    "nonsense", [b"?what\r\n", b"*1\r\n" * 600 + b":1\r\n", b"$-7\r\n"], ids=["type", "depth", "length"]
)
def test_a_server_that_talks_nonsense_is_left(nonsense: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            # The handshake is two commands, CLIENT SETINFO.
            writer.write(b"+OK\r\n" * data.count(b"SETINFO") or nonsense)
        writer.close()

    async def use() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = snugly.asyncio.Valkey(port=port)
        for _ in range(2):
            with pytest.raises(valkey.InvalidResponse, match="Protocol Error"):
                await client.get("k")
        await client.aclose()
        blocking: Any = snugly.Valkey(port=port)
        with pytest.raises(valkey.InvalidResponse, match="Protocol Error"):
            await asyncio.to_thread(blocking.get, "k")
        blocking.close()
        server.close()

    asyncio.run(use())


@contextmanager
def server_that_reads_no_more_until_it_is_read() -> Iterator[int]:
    """A server that answers each command before it reads the next, with values that no buffer holds."""
    value = b"v" * 100_000

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as connection, connection.makefile("rb") as stream:
            while header := stream.readline():
                args = []
                for _ in range(int(header[1:])):
                    length = int(stream.readline()[1:])
                    args.append(stream.read(length + 2)[:-2])
                connection.sendall(b"$100000\r\n%b\r\n" % value if args[0] == b"GETSET" else b"+OK\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve, args=(listener,), daemon=True)
        serving.start()
        yield listener.getsockname()[1]
    serving.join(60)


def test_a_pipeline_is_written_while_its_replies_are_read() -> None:
    with (
        server_that_reads_no_more_until_it_is_read() as port,
        snugly.Valkey(port=port, compression=False, socket_timeout=60) as client,
    ):
        pipeline = client.pipeline(transaction=False)
        for _ in range(200):
            pipeline.getset("key", b"n" * 100_000)
        assert pipeline.execute() == [b"v" * 100_000] * 200


def test_a_server_that_takes_nothing_ends_a_pipeline_after_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        # A client that introduces itself would wait for an answer to that.
        unknown: Any = {"lib_name": None, "lib_version": None}
        with snugly.Valkey(port=port, compression=False, socket_timeout=0.2, **unknown) as client:
            pipeline = client.pipeline(transaction=False)
            pipeline.set("key", b"n" * (64 << 20))
            with pytest.raises(valkey.TimeoutError):
                pipeline.execute()
