"""Targets beside memcached, and the tables of the measurements."""

from __future__ import annotations

from snugly_bench.memcached.measure import (
    CONNECTIONS,
    KEYS_PER_GET,
    RECOMPRESSED,
    SIZES,
    SMALL_BYTES,
    TOTAL,
    VALUE,
    Size,
    loads_of,
)
from snugly_bench.results import Aim, Results, judge, table
from snugly_bench.servers import loads
from snugly_bench.servers.loads import CPU, RATE, TESTS, method
from snugly_bench.servers.peers import LEARNING, MEMCACHED

NONE = "snugly none"
LEAST = {NONE: 1.0, LEARNING: 0.9}
"""The least share of memcached's requests; the processor time of one may be as much more."""
MOST_MEMORY = 0.5
"""Of memcached's, once all values are recompressed."""


def workloads(size: Size) -> tuple[str, ...]:
    return tuple(load.workload(TESTS[test]) for load in loads_of(size, ()) for test in load.tests)


def aims() -> tuple[Aim, ...]:
    """Without compression of all values, with dictionaries of the small ones."""
    every = tuple(workload for size in SIZES for workload in workloads(size))
    small = tuple(workload for size in SIZES if size.size == SMALL_BYTES for workload in workloads(size))
    return tuple(
        aim
        for server, found in ((NONE, every), (LEARNING, small))
        for aim in (
            Aim(server, RATE, "least", LEAST[server], MEMCACHED, found),
            Aim(server, CPU, "most", 1 / LEAST[server], MEMCACHED, found),
        )
    )


def report(results: Results, rounds: int) -> str:
    connections = ", ".join(map(str, CONNECTIONS))
    values = (
        f"Generated JSON, over memcached's text protocol by {connections} connections; a request of {KEYS_PER_GET} "
        f"keys counts as one. The values of {SMALL_BYTES:,} B are not those that were learned from"
    )
    return f"""## Throughput, and processor time per request

{loads.report(results, aims())}

{method(rounds, values)}
"""


def report_memory(results: Results, keys: int) -> str:
    found = (Aim(LEARNING, TOTAL, "most", MOST_MEMORY, MEMCACHED, (RECOMPRESSED,)),)
    header = ["values", "server", VALUE, TOTAL, "of memcached's", "aim"]
    rows = [
        [
            state,
            server,
            results.spread(state, server, VALUE).show(0),
            results.spread(state, server, TOTAL).show(1),
            results.ratio(state, server, TOTAL, MEMCACHED).show(),
            judge(found, results, state, server),
        ]
        for state, server in results.rows()
    ]
    return f"""## Memory of {keys:,} values

{table(header, rows, texts=(0, 1, 5))}

Anonymous memory of the whole process, dictionaries and what was used to learn them included, in a server just started.
Both snuglys were written what one of them learns from, and it was deleted again. Recompressed is what is in memory once
no value can be made smaller (`cold-after 1`).
"""
