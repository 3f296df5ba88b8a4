"""Servers with more values than memory, asked in turn.

Knows how they are started and what is measured; knows no table.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import valkey

from snugly_bench.corpora import generated
from snugly_bench.progress import Progress
from snugly_bench.results import Results
from snugly_bench.servers.disk import steady, taken_bytes, used_bytes, wait_until_on_disk
from snugly_bench.servers.info import info
from snugly_bench.servers.loads import CPU, LOAD_CORE, RATE, SERVER_CORE
from snugly_bench.servers.peers import Peer, Server, configured_snugly_peer, free_port, start, version_of
from snugly_bench.servers.pinning import pinned
from snugly_bench.servers.process import anonymous_bytes, process_seconds
from snugly_bench.servers.text_protocol import Record, TextConnection

MEMCACHED = "memcached extstore"
SET, ZIPF, UNIFORM, KEPT = "set", "get, Zipf", "get, uniform", "kept"
"""Workloads; the last is what is there at the end."""
PER_HIT = "CPU µs/hit"
HITS, FROM_DISK = "hits", "from disk"
"""Shares of the requests; for sets, hits are those that were taken."""
GIVEN, USED, DISK, ANONYMOUS = "logical MiB", "in use MiB", "disk MiB", "anonymous MiB"
"""In use is the part of the disk's room that the server counts as such."""
MIB = 1 << 20
SIZE = 900
"""Approximate bytes of a value."""
EXPONENT = 0.99
"""Of the Zipf distribution, as in YCSB."""
MEMORY_SHARE = 10
"""There is memory for one value in so many."""
DISK_MIB = 2_048
STORE = "store"
"""The name of the file or folder with the values where a server runs."""
LARGE_PAGES, SMALL_PAGES = "ext_page_size=64,ext_wbuf_size=4", "ext_page_size=2,ext_wbuf_size=2"
"""Memcached's default, in MiB, and its least, for few values: write buffers are beside its memory."""
SMALL_MIB = 128
"""Values that take less get small pages."""
MOVING = "slab_automove=2,slab_automove_window=3"
"""Has memcached give the room of values to the keys of those on disk while it is filled: as it comes, it begins half a
minute later, and has lost most of them by then."""


@dataclass(frozen=True)
class Scale:
    """The size of the measurement."""

    count: int
    """Values."""
    requests: int
    """Gets of each distribution."""
    rounds: int
    pace: int
    """Sets a second; faster ones are evicted from memcached before they are on disk."""


@dataclass(frozen=True)
class Rival:
    """A server to be started; the port of memcached's protocol is its own where there is no other."""

    peer: Peer
    memcached_port: int | None


@dataclass(frozen=True)
class Disk:
    """A server's numbers about its disk."""

    settle: Callable[[], None]
    """Waits until all that was set is there, as far as the server puts it there."""
    reads: Callable[[], int]
    used: Callable[[], int]
    """Bytes."""


@dataclass(frozen=True)
class Asked:
    """A server that runs."""

    server: Server
    connection: TextConnection
    disk: Disk


def memory_mib(values: Sequence[bytes]) -> int:
    """For a tenth of the values; memcached has 2 MiB at least."""
    return max(2, round(sum(map(len, values)) / MEMORY_SHARE / MIB))


def memcached(memory: int, given_mib: float) -> Rival | None:
    """Memcached with external storage; `None` where it is not installed."""
    program = shutil.which("memcached")
    if program is None:
        return None
    pages = LARGE_PAGES if given_mib >= SMALL_MIB else SMALL_PAGES
    storage = ("-o", f"{pages},ext_path={STORE}:{DISK_MIB}M,{MOVING}")
    command = (program, "-p", "{port}", "-U", "0", "-l", "127.0.0.1", "-m", str(memory), *storage)
    # As somebody else it could not write where it runs.
    user = ("-u", "root") if os.geteuid() == 0 else ()
    peer = Peer(MEMCACHED, version_of(program), (*command, *user), one_thread=("-t", "1"), scheme="memcached")
    return Rival(peer, None)


def snugly(program: str, codec: str, memory: int) -> Rival:
    port = free_port()
    limits = ("--max-memory", f"{memory}mb", "--max-memory-policy", "allkeys-lru", "--max-disk", f"{DISK_MIB}mb")
    options = ("--compression", codec, "--dictionaries", "no", "--storage", STORE, *limits)
    peer = configured_snugly_peer(program, f"snugly {codec}", (*options, "--memcached-port", str(port)))
    return Rival(peer, port)


def rivals(program: str, codecs: tuple[str, ...], values: Sequence[bytes]) -> list[Rival]:
    """Memcached where it is installed, then snugly with each codec."""
    memory = memory_mib(values)
    other = memcached(memory, sum(map(len, values)) / MIB)
    return [*([other] if other else []), *(snugly(program, codec, memory) for codec in codecs)]


@contextmanager
def running(rival: Rival) -> Iterator[Asked]:
    with ExitStack() as stack:
        server = stack.enter_context(start(rival.peer, SERVER_CORE))
        connection = stack.enter_context(TextConnection(rival.memcached_port or server.port))
        if rival.memcached_port is None:
            yield Asked(server, connection, disk_of_memcached(connection))
        else:
            client = stack.enter_context(valkey.Valkey(port=server.port))
            yield Asked(server, connection, disk_of_snugly(client))


def disk_of_memcached(connection: TextConnection) -> Disk:
    def count(name: str) -> int:
        return int(connection.stats()[name])

    def settle() -> None:
        steady(lambda: count("extstore_bytes_written"))

    return Disk(settle, reads=lambda: count("get_extstore"), used=lambda: count("extstore_bytes_used"))


def disk_of_snugly(client: valkey.Valkey) -> Disk:
    def settle() -> None:
        wait_until_on_disk(client)
        steady(lambda: used_bytes(client))

    return Disk(settle, reads=lambda: int(info(client, "disk")["disk_reads"]), used=lambda: used_bytes(client))


def orders(scale: Scale) -> dict[str, list[int]]:
    """Numbers of the values that are asked for, the same for all servers."""
    chance = np.random.default_rng(1)
    weights = np.arange(1, scale.count + 1) ** -EXPONENT
    ranks = np.searchsorted(np.cumsum(weights) / weights.sum(), chance.random(scale.requests))
    # Popular values are anywhere, not those that were written first.
    popular = chance.permutation(scale.count)[ranks]
    return {ZIPF: popular.tolist(), UNIFORM: chance.integers(scale.count, size=scale.requests).tolist()}


def made_up(program: str, count: int) -> list[bytes]:
    return generated(program, "json", SIZE, count)


def measure(found: list[Rival], values: Sequence[bytes], scale: Scale) -> Results:
    """Every server in each round, another one first each time, freshly started."""
    records = [(b"value:%012d" % number, value) for number, value in enumerate(values)]
    asked = orders(scale)
    results = Results(MEMCACHED)
    with pinned(LOAD_CORE), Progress(scale.rounds * len(found)) as progress:
        for number in range(scale.rounds):
            first = number % len(found)
            for rival in found[first:] + found[:first]:
                with (
                    progress.step(1, f"round {number + 1} of {scale.rounds}: {rival.peer.name}"),
                    running(rival) as server,
                ):
                    measure_one(results, server, records, asked, scale.pace)
    return results


def measure_one(results: Results, asked: Asked, records: list[Record], orders: dict[str, list[int]], pace: int) -> None:
    name, server, connection = asked.server.peer.name, asked.server, asked.connection

    def add(workload: str, requests: list[Record]) -> None:
        reads, cpu, wall = asked.disk.reads(), process_seconds(server.pid), time.monotonic()
        hits = connection.set_all(requests, pace) if workload == SET else connection.get_all(requests)
        took, count = time.monotonic() - wall, len(requests)
        if workload == SET:
            asked.disk.settle()
        spent = (process_seconds(server.pid) - cpu) * 1e6
        taken = {CPU: spent / count, PER_HIT: spent / max(1, hits), RATE: count / took}
        results.add(workload, name, {**taken, HITS: hits / count, FROM_DISK: (asked.disk.reads() - reads) / count})

    add(SET, records)
    for workload, order in orders.items():
        add(workload, [records[number] for number in order])
    given = sum(len(value) for _, value in records)
    taken = {USED: asked.disk.used(), DISK: taken_bytes(server, STORE), ANONYMOUS: anonymous_bytes(server.pid)}
    results.add(KEPT, name, {GIVEN: given / MIB, **{metric: found / MIB for metric, found in taken.items()}})
    server.check_pinned(SERVER_CORE)
