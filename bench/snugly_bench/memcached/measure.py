"""Servers that are asked in memcached's protocol: requests on one core, and the memory of values.

Knows how they are started and taught, and what is measured; knows no table.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from itertools import product

import valkey

from snugly_bench.corpora import generated_corpus
from snugly_bench.dictionaries.data import measured_file
from snugly_bench.dictionaries.lessons import Lessons
from snugly_bench.progress import Progress
from snugly_bench.results import Results
from snugly_bench.servers import loads
from snugly_bench.servers.generators import snugly_bench
from snugly_bench.servers.info import info
from snugly_bench.servers.learning import key_prefix
from snugly_bench.servers.loads import QUICK_KEYS, Load
from snugly_bench.servers.peers import (
    LEARNING,
    MEMCACHED,
    Peer,
    Server,
    asked_as_memcached,
    dictionary_snugly_peer,
    free_port,
    snugly_peer,
    start,
)
from snugly_bench.servers.process import steady_anonymous_bytes
from snugly_bench.splits import Split, split

CONNECTIONS = (1, 16, 64)
KEYS_PER_GET = 20
SMALL_BYTES = 1_000
"""Approximate bytes of the values that dictionaries are for."""
SMALL_VALUES = 10_000
SETTLE_SECONDS, MOST_SETTLE_SECONDS = 1.0, 20.0
PASS_SECONDS = 3.0
"""Recompression is done once a pass, which begins every second, has tried nothing for so long."""
PASSES_SECONDS = 300.0
"""Longest time for it."""
WRITTEN, RECOMPRESSED = "as written", "recompressed"
VALUE, TOTAL = "value bytes", "bytes per value"


@dataclass(frozen=True)
class Size:
    """Values of one size."""

    name: str
    size: int
    """Approximate bytes of a value."""
    keys: int
    requests: int
    """With one key and several connections; enough for a second or so."""


SIZES = (
    Size("100 B", 100, keys=100_000, requests=120_000),
    Size("1 KB", SMALL_BYTES, keys=100_000, requests=120_000),
    Size("16 KB", 16_000, keys=10_000, requests=40_000),
    Size("200 KB", 200_000, keys=1_000, requests=4_000),
)


@dataclass
class Peers:
    """The servers; of each snugly the port of RESP, over which it is taught and asked about itself."""

    peers: list[Peer] = field(default_factory=list)
    resp_ports: dict[str, int] = field(default_factory=dict)

    def of_resp(self, server: Server) -> Server | None:
        """The same server, as RESP reaches it; `None` of memcached."""
        port = self.resp_ports.get(server.peer.name)
        return None if port is None else replace(server, port=port)


def all_peers(program: str, memcached: Peer) -> Peers:
    """Memcached, snugly that compresses nothing, and snugly as it comes, with dictionaries."""
    snuglies = (snugly_peer(program, "none"), dictionary_snugly_peer(program))
    ports = {peer.name: free_port() for peer in snuglies}
    return Peers([memcached, *(asked_as_memcached(peer, ports[peer.name]) for peer in snuglies)], ports)


def small_values(program: str) -> Split:
    """JSON to learn from, and to measure with."""
    return split(generated_corpus(program, "json", SMALL_BYTES, SMALL_VALUES))


def loads_of(size: Size, source: tuple[str, ...]) -> tuple[Load, ...]:
    """Requests for values of a size by each number of connections: of one key, and gets of many."""
    found = []
    for connections in CONNECTIONS:
        name = f"{size.name}, {connections} connection{'s' if connections > 1 else ''}"
        requests = size.requests if connections > 1 else size.requests // 3
        one = Load(name, connections, pipeline=1, requests=requests, keys=size.keys, source=source)
        many = replace(
            one, name=f"{name}, {KEYS_PER_GET} keys", requests=requests // 4, tests=("get",), keys_per_get=KEYS_PER_GET
        )
        found += [one, many]
    return tuple(found)


def measure(program: str, peers: Peers, small: Split, rounds: int, quick: bool, lessons: Lessons) -> Results:
    """Asks all servers for values of each size; of the small ones, those that learn have learned from others."""
    results = Results(MEMCACHED)
    with measured_file(small) as path:
        for size in SIZES:
            source: tuple[str, ...] = ("--generate", f"json:{size.size}")
            if size.size == SMALL_BYTES:
                source = ("--data", str(path), "--key-prefix", key_prefix(small.name))

            def prepared(server: Server, running: ExitStack, size: Size = size) -> None:
                if size.size == SMALL_BYTES:
                    running.enter_context(taught(peers, server, small, QUICK_KEYS if quick else size.keys, lessons))

            loads.measure(program, peers.peers, loads_of(size, source), results, rounds, quick, prepared)
    return results


def taught(
    peers: Peers, server: Server, values: Split, population: int, lessons: Lessons
) -> AbstractContextManager[None]:
    """Has a snugly learn what is for that; what has been written for it is deleted."""
    resp = peers.of_resp(server)
    return nullcontext() if resp is None else lessons.given(resp, values, population)


def measure_memory(program: str, peers: Peers, small: Split, keys: int, lessons: Lessons) -> Results:
    """Writes small values under so many keys, and waits until no more of them are recompressed."""
    results = Results(MEMCACHED)
    with measured_file(small) as path, Progress(2 * len(peers.peers)) as progress:
        source = ["--data", str(path), "--key-prefix", key_prefix(small.name)]
        fill = ["--tests", "get", "-n", "1", "--verify", "-r", str(keys), *source]
        for state, peer in product((WRITTEN, RECOMPRESSED), peers.peers):
            recompresses = state == RECOMPRESSED and peer.name == LEARNING
            with (
                progress.step(1, f"memory: {peer.name}, {state}"),
                start(recompressing(peer) if recompresses else peer) as server,
                taught(peers, server, small, keys, lessons),
            ):
                (row,) = snugly_bench(program, "server", server, fill)
                resp = peers.of_resp(server)
                if recompresses and resp is not None:
                    wait_for_recompression(resp)
                total = steady_anonymous_bytes(server.pid, SETTLE_SECONDS, MOST_SETTLE_SECONDS)
            metrics = {VALUE: float(row["value_bytes"]), TOTAL: total / keys}
            results.add(state, peer.name, metrics)
    return results


def recompressing(peer: Peer) -> Peer:
    """A snugly that recompresses values as soon and as fast as it can."""
    return replace(peer, command=(*peer.command, "--cold-after", "1", "--background-cpu-percent", "100"))


def wait_for_recompression(server: Server) -> None:
    """Waits until a snugly has recompressed all values. Exits if that takes too long."""
    with valkey.Valkey(port=server.port) as client:
        deadline = time.monotonic() + PASSES_SECONDS
        before = 0
        while True:
            time.sleep(PASS_SECONDS)
            tries = int(info(client, "compression")["recompression_tries"])
            if tries == before > 0:
                return
            if time.monotonic() > deadline:
                raise SystemExit(f"{server.peer.name} still recompresses after {PASSES_SECONDS:.0f} seconds")
            before = tries
