"""Memory of a value in each server, overhead included."""

from __future__ import annotations

from itertools import product

from snugly_bench.progress import Progress
from snugly_bench.results import Aim, Results, judge, table
from snugly_bench.servers.generators import snugly_bench
from snugly_bench.servers.peers import VALKEY, Peer, start

SIZES = (300, 900, 2500)
"""About how many bytes the values have."""
VALUE, TOTAL, OVERHEAD = "value bytes", "total per value", "overhead per key"
WORKLOADS = {f"JSON of {size} B": f"json:{size}" for size in SIZES}
"""Names for people, and kinds that `snugly bench` generates."""
AIMS = (
    Aim("snugly none", OVERHEAD, "most", 0.9, VALKEY, tuple(WORKLOADS)),
    Aim("snugly zstd", TOTAL, "most", 0.55, VALKEY, ("JSON of 2500 B",)),
)


def measure(program: str, peers: list[Peer], values: int) -> Results:
    """Fills every server with `values` of every size; each time a fresh one, since an emptied one keeps memory."""
    results = Results(VALKEY)
    metrics = {VALUE: "value_bytes", TOTAL: "bytes_per_value", OVERHEAD: "overhead_per_key"}
    with Progress(len(WORKLOADS) * len(peers)) as progress:
        for (workload, kind), peer in product(WORKLOADS.items(), peers):
            with progress.step(1, f"memory: {workload} in {peer.name}"), start(peer) as server:
                options = ["--values", str(values), "--generate", kind, "--pid", str(server.pid)]
                (row,) = snugly_bench(program, "memory", server, options)
            results.add(workload, peer.name, {metric: float(row[column]) for metric, column in metrics.items()})
    return results


def report(results: Results, values: int) -> str:
    header = ["values", "server", VALUE, TOTAL, "of valkey's", OVERHEAD, "of valkey's", "aim"]
    rows = [
        [
            workload,
            server,
            results.spread(workload, server, VALUE).show(1),
            results.spread(workload, server, TOTAL).show(1),
            results.ratio(workload, server, TOTAL, VALKEY).show(),
            results.spread(workload, server, OVERHEAD).show(1),
            results.ratio(workload, server, OVERHEAD, VALKEY).show(),
            judge(AIMS, results, workload, server),
        ]
        for workload, server in results.rows()
    ]
    return f"""## Memory per value

{table(header, rows, texts=(0, 1, 7))}

Bytes. {values:,} unique generated values, each under a key of 16 bytes, in a server just started. The total is the
growth of the process's anonymous resident memory by each value; the overhead is the total less the value's own bytes,
so it holds the key, and what compression saves makes it negative. Valkey's allocator is named in its version above;
most packages of Valkey use jemalloc.
"""
