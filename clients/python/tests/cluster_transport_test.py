"""The native transport of asyncio clusters: one connection to each node, on which nobody gets in another's way."""

from __future__ import annotations

import asyncio
import gc
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import valkey
import valkey.asyncio
from valkey.crc import key_slot

import snugly
import snugly.asyncio
from nodes import ask, identity
from servers import Server
from snugly import codec
from snugly.restoration import OPTION
from snugly.transport.cluster import SharedCluster
from snugly.transport.wire import WIRE
from waiting import until

PAGE = b"<html><body><p>hello</p></body></html>" * 50
LONG = 60_000
"""Milliseconds that nobody waits for."""
HERE, THERE = "{a}", "{b}"
"""What keys have in common whose slots the second node has at first, and those that the first has."""
NAME = "tested"
MANY = 40
WRAP = snugly.CompressionConfiguration(existing_envelopes=snugly.ExistingEnvelopes.WRAP)


def field_of(node: Server, section: str, field: str) -> str:
    info = ask(node, "INFO", section)
    assert isinstance(info, bytes)
    lines = [line.partition(":")[2] for line in info.decode().splitlines() if line.startswith(field)]
    return lines[0] if lines else ""


def calls_of(node: Server, command: str) -> int:
    """Number of times that a node has been asked a command."""
    found = field_of(node, "commandstats", f"cmdstat_{command}:")
    return int(found.split(",")[0].removeprefix("calls=")) if found else 0


def errors_of(node: Server, name: str) -> int:
    """Number of times that a node has answered with an error of this name."""
    return int(field_of(node, "errorstats", f"errorstat_{name}:").removeprefix("count=") or 0)


def connections_to(node: Server) -> list[str]:
    """The connections of the client under test."""
    listed = ask(node, "CLIENT", "LIST")
    assert isinstance(listed, bytes)
    return [line for line in listed.decode().splitlines() if f" name={NAME} " in line]


def begin_move(tag: str, source: Server, target: Server, *moved: str) -> int:
    """Begins to move a slot, with some of its keys moved already. Returns the slot."""
    slot = key_slot(tag.encode())
    ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", identity(source))
    ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", identity(target))
    if moved:
        ask(source, "MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *moved)
    return slot


def end_move(slot: int, source: Server, target: Server) -> None:
    for node in (target, source):
        ask(node, "CLUSTER", "SETSLOT", slot, "NODE", identity(target))


def run(node: Server, use: Callable[[Any], Awaitable[Any]], **options: Any) -> Any:
    """Returns the result of `use` for an asyncio client of snugly."""

    async def within() -> Any:
        client = snugly.asyncio.ValkeyCluster(host="127.0.0.1", port=node.port, client_name=NAME, **options)
        try:
            return await use(client)
        finally:
            await client.aclose()

    return asyncio.run(within())


@pytest.mark.parametrize(
    "compression", [pytest.param(None, marks=pytest.mark.slow, id="plain"), pytest.param(WRAP, id="compressed")]
)
def test_asking_is_for_nobody_elses_command(own_cluster: list[Server], compression: snugly.Compression) -> None:
    target, source = own_cluster
    moved = [f"{HERE} moved {number}" for number in range(MANY)]
    others = [f"{THERE} {number}" for number in range(MANY)]

    async def use(client: Any) -> None:
        await asyncio.gather(*(client.set(key, PAGE + key.encode()) for key in (*moved, *others)))
        begin_move("a", source, target, *moved)

        async def check(key: str) -> None:
            assert await client.get(key) == PAGE + key.encode()

        for _ in range(10):
            await asyncio.gather(*(check(key) for pair in zip(moved, others, strict=True) for key in pair))
        # Without ASKING they are sent away, and whoever gets it instead is not.
        assert errors_of(source, "ASK") == calls_of(target, "asking") == 10 * MANY
        assert errors_of(target, "MOVED") == 0
        assert await client.pipeline().get(moved[0]).get(others[0]).get(moved[1]).execute() == [
            PAGE + key.encode() for key in (moved[0], others[0], moved[1])
        ]
        assert errors_of(target, "MOVED") == 0

    run(source, use, compression=compression)


@pytest.mark.slow
def test_asking_goes_ahead_of_commands_that_wait_too(own_cluster: list[Server]) -> None:
    target, source = own_cluster
    queues = [f"{HERE} queue {number}" for number in range(MANY)]
    others = [f"{THERE} queue {number}" for number in range(MANY)]

    async def use(client: Any) -> None:
        for key in (*queues, *others):
            await client.rpush(key, PAGE, PAGE)
        begin_move("a", source, target, *queues)
        keys = [key for pair in zip(queues, others, strict=True) for key in pair]
        for _ in range(2):
            popped = await asyncio.gather(*(client.blpop(key, timeout=10) for key in keys))
            assert popped == [(key.encode(), PAGE) for key in keys]
        assert errors_of(target, "MOVED") == 0

    run(source, use, compression=True)


def test_a_pipeline_finds_what_has_moved_and_encodes_it_once(own_cluster: list[Server]) -> None:
    target, source = own_cluster
    keys = [f"{tag} {number}" for number in range(10) for tag in (HERE, THERE)]

    async def use(client: Any) -> None:
        await client.ping()
        end_move(begin_move("a", source, target), source, target)
        pipeline = client.pipeline()
        for key in keys:
            pipeline.set(key, PAGE + key.encode()).get(key)
        results = await pipeline.execute()
        assert results == [each for key in keys for each in (True, PAGE + key.encode())]
        assert snugly.statistics(client)["encoded_values_zstd"] == len(keys)
        assert errors_of(source, "MOVED") > 0

    run(source, use, compression=WRAP)
    with target.connect() as connection:
        stored = connection.command("GET", keys[0])
        assert isinstance(stored, bytes)
        assert codec.decode(stored) == PAGE + keys[0].encode()


@pytest.mark.slow
def test_commands_and_pipelines_share_one_connection_to_each_node(own_cluster: list[Server]) -> None:
    async def use(client: Any) -> None:
        await client.initialize()
        opened = [len(connections_to(node)) for node in own_cluster]
        reads = [int(field_of(node, "stats", "total_reads_processed:")) for node in own_cluster]
        keys = [f"{tag} {number}" for number in range(100) for tag in (HERE, THERE)]
        await asyncio.gather(*(client.set(key, PAGE) for key in keys))
        await asyncio.gather(*(client.pipeline().get(key).execute() for key in keys))
        for node, before, read in zip(own_cluster, opened, reads, strict=True):
            assert len(connections_to(node)) == before + 1
            assert int(field_of(node, "stats", "total_reads_processed:")) - read < 50

    run(own_cluster[0], use)
    until(lambda: not any(map(connections_to, own_cluster)))


def test_a_pipeline_keeps_its_order_around_commands_that_have_connections_of_their_own(cluster: list[Server]) -> None:
    async def use(client: Any) -> None:
        pipeline = client.pipeline()
        pipeline.delete("queue").rpush("queue", PAGE, b"two").blpop("queue", timeout=1).lpop("queue").llen("queue")
        assert (await pipeline.execute())[1:] == [2, (b"queue", PAGE), b"two", 0]

    run(cluster[0], use, compression=True)


@pytest.mark.slow
def test_who_waits_gets_a_reply_though_the_topology_is_read_again(own_cluster: list[Server]) -> None:
    async def use(client: Any) -> None:
        await asyncio.gather(*(client.set(tag, PAGE) for tag in (HERE, THERE)))
        for node in own_cluster:
            ask(node, "CLIENT", "PAUSE", LONG, "WRITE")
        waiting = [asyncio.create_task(client.set(tag, PAGE + b"!")) for tag in (HERE, THERE) * MANY]
        await asyncio.sleep(0.05)
        await client._reset_for_reinitialize()
        assert await asyncio.gather(*map(client.get, (HERE, THERE))) == [PAGE, PAGE]
        assert not any(task.done() for task in waiting)
        for node in own_cluster:
            ask(node, "CLIENT", "UNPAUSE")
        assert await asyncio.gather(*waiting) == [True] * len(waiting)
        assert await asyncio.gather(*map(client.get, (HERE, THERE))) == [PAGE + b"!"] * 2

    run(own_cluster[0], use)
    until(lambda: not any(map(connections_to, own_cluster)))


@pytest.mark.slow
def test_clients_live_on_when_slots_move_under_many_commands(own_cluster: list[Server]) -> None:
    """valkey-py forgets all nodes when connections are closed on commands to all of them."""
    target, source = own_cluster
    tags = [f"{{{number}}}" for number in range(200)]
    moving = [tag for tag in tags if key_slot(tag[1:-1].encode()) >= 8192][:20]

    async def use(client: Any) -> None:
        stopping = asyncio.Event()

        async def work(tag: str) -> None:
            while not stopping.is_set():
                await client.incr(f"{tag} count")

        tasks = [asyncio.create_task(work(tag)) for tag in tags]
        for tag in moving:
            slot = await asyncio.to_thread(begin_move, tag[1:-1], source, target, f"{tag} count")
            await asyncio.to_thread(end_move, slot, source, target)
        stopping.set()
        await asyncio.gather(*tasks)
        assert errors_of(source, "MOVED") > client.reinitialize_steps

    run(source, use)


@pytest.mark.slow
def test_a_connection_that_is_lost_is_an_error_or_a_retry(own_cluster: list[Server]) -> None:
    async def asked(client: Any) -> Any:
        await asyncio.gather(*(client.set(tag, PAGE) for tag in (HERE, THERE)))
        lost = own_cluster[0]
        ask(lost, "CLIENT", "PAUSE", LONG, "WRITE")
        commands = [client.set(THERE, PAGE), client.pipeline().set(THERE, PAGE).execute(), client.set(HERE, PAGE)]
        waiting = [asyncio.create_task(command) for command in commands]
        await asyncio.sleep(0.05)
        with lost.connect() as connection:
            connection.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            connection.command("CLIENT", "UNPAUSE")
        replies = await asyncio.gather(*waiting, return_exceptions=True)
        assert await client.get(THERE) == PAGE
        return replies

    assert run(own_cluster[0], asked) == [True, [True], True]
    single, together, other = run(own_cluster[0], asked, cluster_error_retry_attempts=1)
    assert (single, other) == (True, True)
    assert isinstance(together, valkey.ConnectionError)


@pytest.mark.slow
def test_a_client_recovers_once_all_nodes_were_away_together(own_cluster: list[Server]) -> None:
    async def answered(client: Any) -> list[bool]:
        """Returns whether each node answers. Both are asked at the same time, so that both are found to be away."""
        values = await asyncio.gather(*(client.get(tag) for tag in (HERE, THERE)), return_exceptions=True)
        return [value == PAGE for value in values]

    async def use(client: Any) -> None:
        await asyncio.gather(*(client.set(tag, PAGE) for tag in (HERE, THERE)))
        for node in own_cluster:
            node.process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(5):
                assert await answered(client) == [False, False]
        finally:
            for node in own_cluster:
                node.process.send_signal(signal.SIGCONT)
        deadline = time.monotonic() + 60
        while not all(await answered(client)):
            assert time.monotonic() < deadline, "the client does not recover"
            await asyncio.sleep(0.1)

    run(own_cluster[0], use, socket_timeout=0.2, socket_connect_timeout=0.2)


@pytest.mark.slow
def test_who_waits_on_a_node_that_is_killed_gets_an_error(own_cluster: list[Server]) -> None:
    async def use(client: Any) -> None:
        await asyncio.gather(*(client.set(tag, PAGE) for tag in (HERE, THERE)))
        killed = own_cluster[1]
        ask(killed, "CLIENT", "PAUSE", LONG, "WRITE")
        waiting = [asyncio.create_task(client.set(HERE, PAGE)) for _ in range(MANY)]
        await asyncio.sleep(0.05)
        killed.process.kill()
        replies = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(reply) for reply in replies} == {valkey.ConnectionError}
        assert await client.get(THERE) == PAGE

    run(own_cluster[0], use)


@pytest.mark.slow
def test_the_connection_to_a_node_that_is_gone_is_closed(own_cluster: list[Server]) -> None:
    here, gone = own_cluster

    async def use(client: Any) -> None:
        await asyncio.gather(*(client.set(tag, PAGE) for tag in (HERE, THERE)))
        ask(gone, "FLUSHALL")
        for node in own_cluster:
            ask(node, "CLUSTER", "DELSLOTSRANGE", 8192, 16383)
        ask(here, "CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
        until(lambda: knows_one(gone))
        await asyncio.gather(*(client.set(HERE, PAGE) for _ in range(MANY)))
        await client._reset_for_reinitialize()
        assert await client.get(HERE) == PAGE
        assert [node.port for node in client.get_nodes()] == [here.port]
        await asyncio.to_thread(until, lambda: not connections_to(gone))

    run(here, use)


@pytest.mark.slow
def test_the_connection_to_a_node_that_was_given_up_is_closed(own_cluster: list[Server]) -> None:
    async def use(client: Any) -> None:
        await client.set(HERE, PAGE)
        given_up = client.get_node_from_key(HERE)
        await client._reset_for_reinitialize()
        assert await client.get(HERE) == PAGE
        before = len(connections_to(own_cluster[1]))
        request = client.__dict__[WIRE].request(("GET", HERE))
        assert await given_up.execute_command("GET", HERE, **{OPTION: request}) == PAGE
        assert len(connections_to(own_cluster[1])) == before + 1
        del given_up
        gc.collect()
        await asyncio.to_thread(until, lambda: len(connections_to(own_cluster[1])) == before)

    run(own_cluster[0], use)


def knows_one(node: Server) -> bool:
    slots = ask(node, "CLUSTER", "SLOTS")
    return isinstance(slots, list) and len(slots) == 1


def test_connections_may_read_from_replicas_if_the_client_does(cluster: list[Server]) -> None:
    async def use(client: Any) -> None:
        await client.set("k", PAGE)
        assert await client.get("k") == PAGE
        connections = [line for node in cluster for line in connections_to(node)]
        assert connections
        assert all(" flags=r " in line for line in connections)

    run(cluster[0], use, read_from_replicas=True)


COMMANDS: list[tuple[Any, ...]] = [
    ("SET", "text", PAGE),
    ("GET", "text"),
    ("HSET", "hash", "one", 1),
    ("HGETALL", "hash"),
    ("GET", "hash"),
    ("ZADD", "zset", 1.5, "one"),
    ("ZRANGE", "zset", 0, -1, "WITHSCORES"),
    ("MGET", "text", "hash"),
    ("MGET", "{text}", "text"),
    ("EVAL", "return redis.call('get', KEYS[1])", 1, "text"),
    ("EVAL", "return redis.call('get', 'hash')", 1, "text"),
    ("PING",),
    ("DBSIZE",),
    ("KEYS", "*"),
    ("SCAN", 0),
    ("SCRIPT LOAD", "return 1"),
    ("INFO", "keyspace"),
    ("FLUSHALL",),
    ("GET", "text"),
]


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("decode_responses", [False, True], ids=["bytes", "text"])
def test_replies_are_those_of_valkey_py(cluster: list[Server], protocol: int, decode_responses: bool) -> None:
    options: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": cluster[0].port,
        "protocol": protocol,
        "decode_responses": decode_responses,
    }

    async def outcomes(client: Any) -> list[str]:
        found = []
        await client.flushall()
        for command in COMMANDS:
            try:
                found.append(repr(await client.execute_command(*command)))
            except Exception as error:
                found.append(repr(error))
        for raise_on_error in (False, True):
            pipeline = client.pipeline().set("text", PAGE).hset("hash", "one", 1).get("hash").hgetall("hash")
            try:
                found.append(repr(await pipeline.execute(raise_on_error)))
            except Exception as error:
                found.append(repr(error))
        await client.aclose()
        return found

    async def both() -> None:
        native = await outcomes(snugly.asyncio.ValkeyCluster(**options))
        assert native == await outcomes(valkey.asyncio.ValkeyCluster(**options))

    asyncio.run(both())


def test_statistics_count_the_same_by_either_transport(cluster: list[Server]) -> None:
    async def use(client: Any) -> dict[str, int]:
        await client.set("k", PAGE)
        await client.set("small", b"small")
        pipeline = client.pipeline()
        for number in range(100):
            pipeline.set(f"k{number}", PAGE, px=10_000 + number)
        await pipeline.execute()
        await client.mget_nonatomic("k", "small", "none")
        return {name: value for name, value in snugly.statistics(client).items() if "nanoseconds" not in name}

    native, not_native = (run(cluster[0], use, compression=True, native=native) for native in (True, False))
    assert native == not_native


def test_a_client_compresses_from_when_it_is_told_to(cluster: list[Server]) -> None:
    async def use(client: Any) -> None:
        await client.set("k", PAGE)
        snugly.compress(client)
        assert isinstance(client, SharedCluster)
        await client.set("k", PAGE)
        await client.pipeline().set("l", PAGE).execute()
        assert [await client.get("k"), await client.get("l")] == [PAGE, PAGE]
        assert snugly.statistics(client)["decoded_values_zstd"] == 2

    run(cluster[0], use)
    until(lambda: not any(map(connections_to, cluster)))


def test_a_node_that_somebody_else_made_is_asked_the_way_of_valkey_py(cluster: list[Server]) -> None:
    async def use(client: Any) -> None:
        await client.set("k", PAGE)
        owner = client.get_node_from_key("k")
        node = valkey.asyncio.cluster.ClusterNode("127.0.0.1", owner.port)
        node.response_callbacks = client.response_callbacks
        assert await client.execute_command("GET", "k", target_nodes=node) == PAGE
        await node.disconnect()

    run(cluster[0], use, compression=True)


def test_what_is_about_the_transport_itself_has_valkey_pys(cluster: list[Server]) -> None:
    port = cluster[0].port
    assert isinstance(snugly.asyncio.ValkeyCluster("127.0.0.1", port), SharedCluster)
    assert isinstance(snugly.asyncio.ValkeyCluster.from_url(f"valkey://127.0.0.1:{port}"), SharedCluster)
    for options in ({"native": False}, {"protocol": 3, "cache_enabled": True}, {"max_connections": 1}):
        client: Any = snugly.asyncio.ValkeyCluster("127.0.0.1", port, **options)
        assert not isinstance(client, SharedCluster)
