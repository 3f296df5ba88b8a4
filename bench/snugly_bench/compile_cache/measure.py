"""Servers that keep object files on disk, asked in turn, and the bare codecs on the same files.

Knows what is measured; knows no aim and no table.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import lz4.block
import valkey
import zstandard

from snugly_bench.compile_cache.objects import LEVEL, OBJECTS, Objects
from snugly_bench.progress import Progress
from snugly_bench.results import Results
from snugly_bench.servers.disk import steady, used_bytes, wait_until_on_disk
from snugly_bench.servers.loads import LOAD_CORE, SERVER_CORE
from snugly_bench.servers.peers import Peer, Server, configured_snugly_peer, free_port, start
from snugly_bench.servers.pinning import pinned
from snugly_bench.servers.process import process_seconds
from snugly_bench.servers.text_protocol import Record, TextConnection

NONE, LZ4, ZSTD, AUTO = CHOICES = ("none", "lz4", "zstd", "auto")
"""What `--compression` is given."""
BARE = {codec: f"bare {codec}" for codec in (LZ4, ZSTD)}
"""The codec alone, in Python."""
SUMS = {codec: f"none + bare {codec}" for codec in BARE}
"""The time of a server that does not compress and the time of the codec alone, one after the other."""
SET_CPU, GET_CPU = "Set MiB/s of CPU", "Get MiB/s of CPU"
SET_WALL, GET_WALL = "Set MiB/s", "Get MiB/s"
GIVEN, DISK, SMALLER = "logical MiB", "disk MiB", "times smaller"
MIB = 1 << 20


@dataclass(frozen=True)
class Codec:
    """A codec without a server."""

    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes, int], bytes]
    """Is told the size that is due."""


def codecs() -> dict[str, Codec]:
    """Those of `BARE`, as snugly has them by itself."""
    compressor, decompressor = zstandard.ZstdCompressor(level=LEVEL), zstandard.ZstdDecompressor()
    return {
        LZ4: Codec(
            lambda value: bytes(lz4.block.compress(value, store_size=False)),
            lambda packed, size: bytes(lz4.block.decompress(packed, uncompressed_size=size)),
        ),
        ZSTD: Codec(compressor.compress, lambda packed, _size: decompressor.decompress(packed)),
    }


@dataclass(frozen=True)
class Cache:
    """A server to be started, and its second port."""

    peer: Peer
    memcached_port: int


def cache(program: str, choice: str, max_memory: str) -> Cache:
    """A server with a store where it runs, which is a folder of its own."""
    port = free_port()
    # Without dictionaries: what they add would depend on how soon they are learned.
    options = ("--compression", choice, "--dictionaries", "no", "--storage", "store", "--max-memory", max_memory)
    peer = configured_snugly_peer(program, choice, (*options, "--memcached-port", str(port)))
    return Cache(replace(peer, name=choice), port)


def measure(program: str, objects: Objects, kinds: tuple[str, ...], rounds: int, max_memory: str) -> Results:
    """Every choice for these kinds of values in each round, another choice first each time."""
    results = Results(NONE)
    data = {kind: objects.values if kind == OBJECTS else objects.compressed() for kind in kinds}
    with pinned(LOAD_CORE), Progress(rounds * len(data) * (len(CHOICES) + 1)) as progress:
        for number in range(rounds):
            first = number % len(CHOICES)
            for kind, values in data.items():
                for choice in CHOICES[first:] + CHOICES[:first]:
                    with progress.step(1, f"round {number + 1} of {rounds}: {kind}, {choice}"):
                        results.add(kind, choice, served(cache(program, choice, max_memory), values))
                with progress.step(1, f"round {number + 1} of {rounds}: {kind}, bare codecs"):
                    for codec, of_codec in codecs().items():
                        add_bare(results, kind, codec, bare(of_codec, values))
    return results


def served(cache: Cache, values: tuple[bytes, ...]) -> dict[str, float]:
    """Writes all values to a server just started, waits for its disk, and reads and compares all."""
    records = [(b"object:%012d" % number, value) for number, value in enumerate(values)]
    with (
        start(cache.peer, SERVER_CORE) as server,
        valkey.Valkey(port=server.port) as client,
        TextConnection(cache.memcached_port) as connection,
    ):
        return asked(server, client, connection, records)


def asked(server: Server, client: valkey.Valkey, connection: TextConnection, records: list[Record]) -> dict[str, float]:
    given = sum(len(value) for _, value in records) / MIB
    cpu, wall = process_seconds(server.pid), time.monotonic()
    stored = connection.set_all(records)
    wait_until_on_disk(client)
    set_wall = time.monotonic() - wall
    # Tidying up afterwards is part of the sets.
    disk = steady(lambda: used_bytes(client)) / MIB
    set_cpu = process_seconds(server.pid) - cpu
    cpu, wall = process_seconds(server.pid), time.monotonic()
    hits = connection.get_all(records)
    get_wall, get_cpu = time.monotonic() - wall, (process_seconds(server.pid) - cpu)
    if not stored == hits == len(records):
        raise SystemExit(f"{server.peer.name}: of {len(records)} values {stored} were stored and {hits} came back")
    server.check_pinned(SERVER_CORE)
    return {
        GIVEN: given,
        DISK: disk,
        SMALLER: given / disk,
        SET_CPU: given / set_cpu,
        GET_CPU: given / get_cpu,
        SET_WALL: given / set_wall,
        GET_WALL: given / get_wall,
    }


def bare(codec: Codec, values: tuple[bytes, ...]) -> dict[str, float]:
    """Processor time of the codec alone."""
    before = time.process_time()
    packed = [codec.compress(value) for value in values]
    compressed = time.process_time()
    for value, each in zip(values, packed, strict=True):
        codec.decompress(each, len(value))
    decompressed = time.process_time()
    given = sum(map(len, values))
    return {
        GIVEN: given / MIB,
        SMALLER: given / sum(map(len, packed)),
        SET_CPU: given / MIB / (compressed - before),
        GET_CPU: given / MIB / (decompressed - compressed),
    }


def add_bare(results: Results, kind: str, codec: str, found: dict[str, float]) -> None:
    """Adds a codec alone, and together with the server that does not compress, of the same round."""
    results.add(kind, BARE[codec], found)
    sums = {
        metric: 1 / (1 / results.samples[kind, NONE, metric][-1] + 1 / found[metric]) for metric in (SET_CPU, GET_CPU)
    }
    results.add(kind, SUMS[codec], sums)
