"""Memory of many small values in the server, all of the process counted, with dictionaries and without."""

from __future__ import annotations

from itertools import product

from snugly_bench.dictionaries.data import measured_file
from snugly_bench.dictionaries.lessons import Lessons
from snugly_bench.progress import Progress
from snugly_bench.results import Aim, Results, judge, table
from snugly_bench.servers.generators import snugly_bench
from snugly_bench.servers.learning import key_prefix
from snugly_bench.servers.peers import (
    LEARNING,
    PLAIN,
    VALKEY,
    Server,
    dictionary_snugly_peer,
    lz4_dictionary_snugly_peer,
    snugly_peer,
    start,
    valkey_peer,
)
from snugly_bench.servers.process import steady_anonymous_bytes
from snugly_bench.splits import Split

SMALLER = 0.8
"""The most of what is taken without dictionaries."""
SETTLE_SECONDS, MOST_SETTLE_SECONDS = 1.0, 20.0
"""An allocator gives memory back for some seconds."""
TOTAL, EACH, VALUE = "anonymous bytes", "bytes per key", "value bytes"


def aims(workloads: tuple[str, ...]) -> tuple[Aim, ...]:
    return (Aim(LEARNING, TOTAL, "most", SMALLER, PLAIN, workloads),)


def measure(program: str, splits: list[Split], keys: int, lessons: Lessons) -> Results:
    """Writes measured values under so many keys; those of a set begin again where there are fewer."""
    results = Results(PLAIN)
    learning = [dictionary_snugly_peer(program), lz4_dictionary_snugly_peer(program)]
    peers = [valkey_peer(), snugly_peer(program, "zstd"), *learning]
    with Progress(len(splits) * len(peers)) as progress:
        for values, peer in product(splits, peers):
            with progress.step(1, f"memory: {values.name} in {peer.name}"), start(peer) as server:
                with lessons.given(server, values, keys):
                    mean = fill(program, server, values, keys)
                    total = steady_anonymous_bytes(server.pid, SETTLE_SECONDS, MOST_SETTLE_SECONDS)
                results.add(values.name, peer.name, {TOTAL: total, EACH: total / keys, VALUE: mean})
    return results


def fill(program: str, server: Server, values: Split, keys: int) -> float:
    """Writes all keys, reads them back and compares; returns the bytes of a value."""
    with measured_file(values) as path:
        named = ["--key-prefix", key_prefix(values.name), "-r", str(keys), "--data", str(path)]
        # `snugly bench server` writes all keys before its first GET.
        (row,) = snugly_bench(program, "server", server, ["--tests", "get", "-n", "1", "--verify", *named])
    return float(row["value_bytes"])


def report(results: Results, keys: int) -> str:
    header = ["data", "server", VALUE, TOTAL, EACH, f"of {PLAIN}'s", "of valkey's", "aim"]
    found = aims(tuple(dict.fromkeys(data for data, _ in results.rows())))
    rows = [
        [
            data,
            server,
            results.spread(data, server, VALUE).show(0),
            results.spread(data, server, TOTAL).show(0),
            results.spread(data, server, EACH).show(1),
            results.ratio(data, server, TOTAL, PLAIN).show(),
            results.ratio(data, server, TOTAL, VALKEY).show(),
            judge(found, results, data, server),
        ]
        for data, server in results.rows()
    ]
    return f"""## Memory of {keys:,} keys

{table(header, rows, texts=(0, 1, 7))}

Anonymous memory of the whole process, dictionaries and what was used to learn them included, in a server just started.
All snuglys were written what two of them learn from, and it was deleted again. When all values of a set were written,
they begin again under other keys.
"""
