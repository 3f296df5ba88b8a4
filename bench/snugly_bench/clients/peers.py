"""The client libraries that are measured: a row each, and what adapts it. Knows nothing of what is measured.

All are asked through asyncio. A pipeline is what the library sends together without a transaction. Each is imported
only where it is used, so that a process has no library but the one that it measures.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from snugly_bench.clients.plan import ALL_BACKENDS, BACKENDS, LEARNED, LZ4, NONE, ZSTD, named_version

DICTIONARY_BYTES = 64 << 10
"""Bytes that a client's dictionary may have."""
Training = tuple[bytes, ...]
"""Values to learn from."""
REQUEST_SECONDS = 60.0
"""Time after which a library gives up a request; long enough for any load."""


@dataclass(frozen=True)
class Address:
    """The server's address."""

    host: str
    port: int


@dataclass(frozen=True)
class Client:
    """One client object of a library."""

    set: Callable[[str, bytes], Awaitable[object]]
    get: Callable[[str], Awaitable[object]]
    set_all: Callable[[Sequence[tuple[str, bytes]]], Awaitable[object]]
    """In one pipeline, as `get_all`."""
    get_all: Callable[[Sequence[str]], Awaitable[list[Any] | None]]
    close: Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Peer:
    """A client library."""

    name: str
    distribution: str
    """The name of its package in pip."""
    module: str
    backends: tuple[str, ...]
    """Its backends of compression."""
    open: Callable[[Address, str, int, Training], Awaitable[Client]]
    """Makes a client of the server at an address, with a backend, for so many requests at once; it may learn before."""
    parser: str | None = None
    """Another distribution that it parses replies with where that is installed."""

    def version(self) -> str | None:
        """The installed version; `None` if there is none."""
        found = importlib.util.find_spec(self.module)
        if found is None or found.origin is None:
            return None
        own = installed_version(self.distribution) or "of the source tree"
        parser = self.parser and installed_version(self.parser)
        return f"{own} with {self.parser} {parser}" if parser else own


def installed_version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


async def open_glide(address: Address, backend: str, requests: int, _training: Training) -> Client:
    import glide

    glide.Logger.set_logger_config(glide.LogLevel.ERROR)
    compression = None
    if backend != NONE:
        chosen = {LZ4: glide.CompressionBackend.LZ4, ZSTD: glide.CompressionBackend.ZSTD}[backend]
        compression = glide.CompressionConfiguration(enabled=True, backend=chosen)
    client = await glide.GlideClient.create(
        glide.GlideClientConfiguration(
            [glide.NodeAddress(address.host, address.port)],
            request_timeout=int(REQUEST_SECONDS * 1000),
            inflight_requests_limit=max(1000, requests),
            compression=compression,
        )
    )

    async def set_all(values: Sequence[tuple[str, bytes]]) -> object:
        batch = glide.Batch(is_atomic=False)
        for key, value in values:
            batch.set(key, value)
        return await client.exec(batch, raise_on_error=True)

    async def get_all(keys: Sequence[str]) -> list[Any] | None:
        batch = glide.Batch(is_atomic=False)
        for key in keys:
            batch.get(key)
        return await client.exec(batch, raise_on_error=True)

    return Client(client.set, client.get, set_all, get_all, client.close)


async def open_valkey(address: Address, _backend: str, requests: int, _training: Training) -> Client:
    import valkey.asyncio

    return pipelining(valkey.asyncio.Valkey(host=address.host, port=address.port, max_connections=requests))


async def open_redis(address: Address, _backend: str, requests: int, _training: Training) -> Client:
    import redis.asyncio

    return pipelining(redis.asyncio.Redis(host=address.host, port=address.port, max_connections=requests))


def has_dictionaries() -> bool:
    """Whether the snugly that is installed has them; asked in a process of its own."""
    asked = [sys.executable, "-c", "import snugly; snugly.Dictionary"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


@cache
def learned(training: Training) -> Any:
    """A dictionary from these values, once for all clients of a process."""
    return importlib.import_module("snugly").Dictionary.train(list(training), DICTIONARY_BYTES)


async def open_snugly(address: Address, backend: str, requests: int, training: Training) -> Client:
    snugly = importlib.import_module("snugly")
    clients = importlib.import_module("snugly.asyncio")
    compression = None
    if backend in LEARNED:
        compression = snugly.CompressionConfiguration(backend=LEARNED[backend], dictionary=learned(training))
    elif backend != NONE:
        chosen = snugly.CompressionBackend[backend.upper()]
        compression = snugly.CompressionConfiguration(backend=chosen)
    return pipelining(
        clients.Valkey(host=address.host, port=address.port, max_connections=requests, compression=compression)
    )


def pipelining(client: Any) -> Client:
    """A client with the interface of valkey-py."""

    async def set_all(values: Sequence[tuple[str, bytes]]) -> object:
        pipeline = client.pipeline(transaction=False)
        for key, value in values:
            pipeline.set(key, value)
        return await pipeline.execute()

    async def get_all(keys: Sequence[str]) -> list[Any] | None:
        pipeline = client.pipeline(transaction=False)
        for key in keys:
            pipeline.get(key)
        replies: list[Any] = await pipeline.execute()
        return replies

    return Client(client.set, client.get, set_all, get_all, client.aclose)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("snugly", "snugly", "snugly", ALL_BACKENDS, open_snugly, "libvalkey"),
        Peer("valkey-glide", "valkey-glide", "glide", BACKENDS, open_glide),
        Peer("valkey-py", "valkey", "valkey", (NONE,), open_valkey, "libvalkey"),
        Peer("redis-py", "redis", "redis", (NONE,), open_redis, "hiredis"),
    )
}
OURS, BASE = "snugly", "valkey-glide"
"""The peer with targets, and the peer that all are compared with."""


def base_of(peers: Sequence[str]) -> str:
    """The peer that the others are compared with: the installed version of `BASE`, else another one, else the first."""
    return next(iter(versions_of_base(peers)), peers[0])


def versions_of_base(peers: Iterable[str]) -> list[str]:
    """The installed one first."""
    return sorted(peer for peer in peers if named_version(peer)[0] == BASE)
