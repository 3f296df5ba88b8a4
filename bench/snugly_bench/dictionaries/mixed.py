"""Requests as an application makes them: reads with some writes, of a Zipf distribution, one at a time on each socket.

Measured twice: while the server encodes the values that have just been written again, and once that is done.
"""

from __future__ import annotations

from itertools import product

from snugly_bench.dictionaries.data import measured_file
from snugly_bench.dictionaries.lessons import Lessons
from snugly_bench.dictionaries.memory import MOST_SETTLE_SECONDS, SETTLE_SECONDS
from snugly_bench.dictionaries.stages import wait_for_passes
from snugly_bench.progress import Progress
from snugly_bench.results import Results, table
from snugly_bench.servers.generators import snugly_bench
from snugly_bench.servers.learning import key_prefix
from snugly_bench.servers.loads import CPU, LOAD_CORE, RATE, SERVER_CORE
from snugly_bench.servers.peers import (
    AUTO_LEARNING,
    VALKEY,
    Server,
    auto_snugly_peer,
    dictionary_snugly_peer,
    lz4_dictionary_snugly_peer,
    snugly_peer,
    start,
    valkey_peer,
)
from snugly_bench.servers.process import steady_anonymous_bytes
from snugly_bench.splits import Split

WRITTEN, STAYED = "while passes run", "after the passes"
READ_PERCENT = 90
CONNECTIONS = 50
REQUESTS, QUICK_REQUESTS = 400_000, 5_000
P99, EACH = "p99 µs", "bytes per key"
SAVED = "bytes saved per key, for a CPU µs of a request"


def measure(program: str, splits: list[Split], keys: int, rounds: int, quick: bool, lessons: Lessons) -> Results:
    """Fills each server with the measured values of each set under so many keys, and asks it at both moments."""
    results = Results(VALKEY)
    peers = [
        valkey_peer(),
        snugly_peer(program, "none"),
        snugly_peer(program, "lz4"),
        snugly_peer(program, "zstd"),
        lz4_dictionary_snugly_peer(program),
        dictionary_snugly_peer(program),
        auto_snugly_peer(program),
    ]
    with Progress(rounds * len(splits) * len(peers)) as progress:
        for number, values, peer in product(range(rounds), splits, peers):
            what = f"mixed, round {number + 1} of {rounds}: {values.name}, {peer.name}"
            with progress.step(1, what), start(peer, SERVER_CORE) as server, lessons.given(server, values, keys):
                for moment, found in course(program, server, values, keys, quick).items():
                    results.add(f"{values.name}, {moment}", peer.name, found)
    return results


def course(program: str, server: Server, values: Split, keys: int, quick: bool) -> dict[str, dict[str, float]]:
    """The figures of each moment."""
    requests = QUICK_REQUESTS if quick else REQUESTS
    with measured_file(values) as path:
        named = ["--data", str(path), "--key-prefix", key_prefix(values.name), "-r", str(keys)]
        asked = ["--tests", "mixed", "--read-percent", str(READ_PERCENT), "--distribution", "zipf", "-n", str(requests)]

        def figures(*options: str) -> dict[str, float]:
            loaded = ["-c", str(CONNECTIONS), "--threads", "1", *options]
            (row,) = snugly_bench(program, "server", server, [*asked, *named, *loaded], LOAD_CORE)
            each = steady_anonymous_bytes(server.pid, SETTLE_SECONDS, MOST_SETTLE_SECONDS) / keys
            cpu = float(row["server_cpu_us_per_request"])
            return {RATE: float(row["requests_per_second"]), P99: float(row["p99_us"]), CPU: cpu, EACH: each}

        written = figures()
        if server.peer.name == AUTO_LEARNING:
            wait_for_passes(server, quick)
        return {WRITTEN: written, STAYED: figures("--filled")}


def report(results: Results, keys: int, rounds: int) -> str:
    header = ["values", "server", RATE, "of valkey's", P99, "of valkey's", CPU, "of valkey's", EACH, SAVED]

    def saved(workload: str, server: str) -> str:
        less = results.spread(workload, VALKEY, EACH).median - results.spread(workload, server, EACH).median
        return f"{less / results.spread(workload, server, CPU).median:.0f}"

    rows = [
        [
            *row,
            *(
                text
                for metric, digits in ((RATE, 0), (P99, 0), (CPU, 2))
                for text in (
                    results.spread(*row, metric).show(digits),
                    results.ratio(*row, metric, VALKEY).show(),
                )
            ),
            results.spread(*row, EACH).show(0),
            saved(*row),
        ]
        for row in results.rows()
    ]
    return f"""## Reads and writes of an application, {keys:,} keys

{table(header, rows, texts=(0, 1))}

{READ_PERCENT} % reads, keys of a Zipf distribution, {CONNECTIONS} connections with one request at a time; anonymous
memory of the whole process. {rounds} rounds. The passes run on the serving core, within `background-cpu-percent`.
"""
