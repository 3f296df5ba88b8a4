"""asyncio clients of a cluster whose nodes are all away together: they find it again, whichever way they were made."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import valkey.asyncio

import servers
import snugly
import snugly.asyncio
from kinds import given
from nodes import ask
from servers import Server
from snugly.lasting_nodes import LastingNodes
from waiting import until

pytestmark = pytest.mark.slow

PAGE = b"<html><body><p>hello</p></body></html>" * 50
TAGS = ("{a}", "{b}")
"""Of keys that different nodes have."""
AWAY = 2.0
"""Seconds for which the nodes are away."""
FORMS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "native": (snugly.asyncio.ValkeyCluster, {}),
    "not native": (snugly.asyncio.ValkeyCluster, {"native": False}),
    "one connection": (snugly.asyncio.ValkeyCluster, {"max_connections": 1}),
    "client-side cache": (snugly.asyncio.ValkeyCluster, {"cache_enabled": True, "protocol": 3}),
    "compressed afterwards": (given(valkey.asyncio.ValkeyCluster), {}),
    "not compressed": (snugly.asyncio.ValkeyCluster, {"native": False, "compression": None}),
}


@pytest.fixture(params=FORMS)
def make(request: pytest.FixtureRequest) -> Callable[[Server], Any]:
    constructor, options = FORMS[request.param]

    def made(node: Server) -> Any:
        compression = {"compression": True, **options}
        return constructor(host="127.0.0.1", port=node.port, socket_timeout=2.0, **compression)

    return made


@contextmanager
def restarted(nodes: list[Server]) -> Iterator[None]:
    """The nodes, killed and started again with what they knew of their cluster, but without values."""
    for node in nodes:
        node.process.kill()
        node.process.wait()
    time.sleep(AWAY)
    started = [subprocess.Popen(node.process.args, cwd=node.log.parent, stdout=subprocess.DEVNULL) for node in nodes]
    try:
        until(lambda: all(servers.answers_ping(node.port) for node in nodes))
        servers.wait_for_cluster(nodes, len(nodes), 0)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


async def until_all_are_written(client: Any) -> None:
    """Writes and reads a key of each node, at the same time, until that works."""

    async def written(tag: str) -> bool:
        with suppress(valkey.exceptions.ValkeyError, valkey.exceptions.ValkeyClusterException, OSError):
            await client.set(tag, PAGE)
            return bool(await client.get(tag) == PAGE)
        return False

    deadline = time.monotonic() + 60
    while not all(await asyncio.gather(*map(written, TAGS))):
        assert time.monotonic() < deadline, "the client does not recover"
        await asyncio.sleep(0.05)


def test_a_client_recovers_once_all_nodes_were_killed_and_came_back(
    make: Callable[[Server], Any], own_cluster: list[Server]
) -> None:
    async def main() -> None:
        client = make(own_cluster[0])
        await until_all_are_written(client)
        for node in own_cluster:
            node.process.kill()
            node.process.wait()
        for _ in range(5):
            gone = await asyncio.gather(*(client.set(tag, PAGE) for tag in TAGS), return_exceptions=True)
            assert all(isinstance(each, Exception) for each in gone)
        with restarted(own_cluster):
            await until_all_are_written(client)
            await client.aclose()

    asyncio.run(main())


def test_a_client_recovers_once_all_its_connections_were_killed(
    make: Callable[[Server], Any], own_cluster: list[Server]
) -> None:
    async def main() -> None:
        client = make(own_cluster[0])
        for _ in range(3):
            await until_all_are_written(client)
            for node in own_cluster:
                ask(node, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await until_all_are_written(client)
        await client.aclose()

    asyncio.run(main())


def test_start_up_nodes_last(own_cluster: list[Server]) -> None:
    async def main() -> None:
        client: Any = snugly.asyncio.ValkeyCluster(host="127.0.0.1", port=own_cluster[0].port, native=False)
        assert type(client.nodes_manager) is LastingNodes
        await client.initialize()
        client.nodes_manager.startup_nodes.clear()
        client.nodes_manager.nodes_cache.clear()
        await client.nodes_manager.initialize()
        assert f"127.0.0.1:{own_cluster[0].port}" in client.nodes_manager.nodes_cache
        await client.aclose()

    asyncio.run(main())
