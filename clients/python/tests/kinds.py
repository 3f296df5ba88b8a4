"""Every kind of client that compresses, driven the same way: synchronous or asyncio, for a server or a cluster."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.asyncio.cluster
import redis.cluster
import valkey
import valkey.asyncio

import snugly
import snugly.asyncio

Make = Callable[..., Any]


def given(constructor: Make) -> Make:
    """A client that somebody else makes, and that is compressed then."""

    def make(compression: snugly.Compression, **options: Any) -> Any:
        return snugly.compress(constructor(**options), compression)

    return make


def from_url(constructor: Make) -> Make:
    def make(host: str, port: int, **options: Any) -> Any:
        return constructor(f"valkey://{host}:{port}", **options)

    return make


@dataclass(frozen=True)
class Kind:
    """A way to a compressing client."""

    name: str
    make: Make
    cluster: bool = False
    transactions: bool = True

    def __str__(self) -> str:
        return self.name


KINDS = [
    Kind("snugly", snugly.Valkey),
    Kind("snugly-url", from_url(snugly.Valkey.from_url)),
    Kind("snugly-not-native", partial(snugly.Valkey, native=False)),
    Kind("valkey-py", given(valkey.Valkey)),
    Kind("redis-py", given(redis.Redis)),
    Kind("snugly-asyncio", snugly.asyncio.Valkey),
    Kind("snugly-asyncio-url", from_url(snugly.asyncio.Valkey.from_url)),
    Kind("snugly-asyncio-not-native", partial(snugly.asyncio.Valkey, native=False)),
    Kind("valkey-py-asyncio", given(valkey.asyncio.Valkey)),
    Kind("redis-py-asyncio", given(redis.asyncio.Redis)),
    Kind("snugly-cluster", snugly.ValkeyCluster, cluster=True, transactions=False),
    Kind("snugly-cluster-url", from_url(snugly.ValkeyCluster.from_url), cluster=True, transactions=False),
    Kind("valkey-py-cluster", given(valkey.ValkeyCluster), cluster=True, transactions=False),
    Kind("redis-py-cluster", given(redis.cluster.RedisCluster), cluster=True),
    Kind("snugly-asyncio-cluster", snugly.asyncio.ValkeyCluster, cluster=True, transactions=False),
    Kind(
        "snugly-asyncio-cluster-not-native",
        partial(snugly.asyncio.ValkeyCluster, native=False),
        cluster=True,
        transactions=False,
    ),
    Kind("valkey-py-asyncio-cluster", given(valkey.asyncio.ValkeyCluster), cluster=True, transactions=False),
    Kind("redis-py-asyncio-cluster", given(redis.asyncio.cluster.RedisCluster), cluster=True),
]

GATE: Set[str] = {"valkey-py-asyncio", "redis-py", "snugly", "snugly-cluster", "snugly-asyncio-cluster"}
"""Names of the kinds that are tested before each commit. They share what the others are made of: both libraries, both
transports of ours and that of valkey-py, threads and event loops, single servers and clusters."""


def gated(kinds: Iterable[Kind | str], gate: Set[str] = GATE) -> list[Any]:
    """Parameters of a test for each of these kinds, or for their names; those outside of the gate are slow."""
    return [pytest.param(kind, id=str(kind), marks=[] if str(kind) in gate else pytest.mark.slow) for kind in kinds]


class Driver:
    """A client whose methods are called the same way, whether they have to be awaited or not."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.runner = asyncio.Runner()
        self.client = self.wait(self.made(make))

    async def made(self, make: Callable[[], Any]) -> Any:
        return make()

    def wait(self, result: Any) -> Any:
        async def awaited(result: Awaitable[Any]) -> Any:
            return await result

        # A pipeline can be awaited too, but is no result.
        if inspect.isawaitable(result) and not hasattr(result, "execute"):
            return self.runner.run(awaited(result))
        return result

    def __call__(self, method: str, *args: Any, **options: Any) -> Any:
        return self.wait(self.on(self.client, method, *args, **options))

    def on(self, target: Any, method: str, *args: Any, **options: Any) -> Any:
        """Calls within the loop, which some asyncio methods ask for."""

        async def called() -> Any:
            return getattr(target, method)(*args, **options)

        if inspect.iscoroutinefunction(getattr(type(self.client), "initialize", None)):
            return self.wait(self.runner.run(called()))
        return getattr(target, method)(*args, **options)

    def batch(self, *commands: tuple[Any, ...], raise_on_error: bool = True, **options: Any) -> Any:
        """Runs commands, each a method and its arguments, in one pipeline; `options` are the pipeline's."""
        pipeline = self.on(self.client, "pipeline", **options)
        for method, *args in commands:
            self.on(pipeline, method, *args)
        return self.wait(self.on(pipeline, "execute", raise_on_error=raise_on_error))

    def close(self) -> None:
        closing = getattr(self.client, "aclose", None) or self.client.close
        self.wait(closing())
        self.runner.close()


Connect = Callable[..., Driver]


@contextmanager
def connected(kind: Kind, port: int, compression: snugly.Compression = True, **options: Any) -> Iterator[Driver]:
    driver = Driver(lambda: kind.make(host="127.0.0.1", port=port, compression=compression, **options))
    try:
        yield driver
    finally:
        driver.close()
