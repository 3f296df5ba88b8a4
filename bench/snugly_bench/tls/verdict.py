"""The tables of what TLS costs: each server beside itself without, and beside the peer with it."""

from __future__ import annotations

import textwrap

from snugly_bench.results import Results, table
from snugly_bench.servers.loads import CPU, LOAD_CORE, RATE, SERVER_CORE, WIDTH
from snugly_bench.tls.measure import CONNECT, CONNECTIONS, IDLE, MEMORY, SUITE, subject
from snugly_bench.tls.peers import PLAIN, TLS


def compared(results: Results, workload: str, name: str, peer: str, metric: str, decimals: int) -> list[str]:
    """Cells of one server: a metric without TLS and with it, as a ratio, and beside the peer's with it."""
    plain, inside = subject(name, PLAIN), subject(name, TLS)
    return [
        results.spread(workload, plain, metric).show(decimals),
        results.spread(workload, inside, metric).show(decimals),
        results.ratio(workload, inside, metric, plain).show(),
        results.ratio(workload, plain, metric, subject(peer, PLAIN)).show(),
        results.ratio(workload, inside, metric, subject(peer, TLS)).show(),
    ]


def header(first: str, metric: str, peer: str) -> list[str]:
    return [first, "server", metric, "with TLS", "TLS of plain", f"plain of {peer}'s", f"TLS of {peer}'s"]


def report(results: Results, names: list[str], rounds: int) -> str:
    peer = names[0]
    workloads = list(dict.fromkeys(workload for workload, _ in results.rows()))
    times = [
        [workload, name, *compared(results, workload, name, peer, CPU, 2)] for workload in workloads for name in names
    ]
    rates = [
        [workload, name, *compared(results, workload, name, peer, RATE, 0)] for workload in workloads for name in names
    ]
    method = textwrap.fill(
        f"JSON of 1 KB by redis-benchmark, {CONNECTIONS} connections, {SUITE}; `{CONNECT}` is a connection, with TLS a "
        f"handshake with a certificate on P-256, and one request. Every server has one thread on core {SERVER_CORE}, "
        f"redis-benchmark is on core {LOAD_CORE}, which encrypts as well and bounds the rates: compare the processor "
        f"time. Rounds: {rounds}, the servers in turn within each; shown are medians (lowest to highest), and ratios "
        "are medians of each round's ratio.",
        WIDTH,
    )
    return f"""## Processor time of a request

{table(header("requests", CPU, peer), times, texts=(0, 1))}

## Requests a second

{table(header("requests", RATE, peer), rates, texts=(0, 1))}

{method}
"""


def report_idle(results: Results, names: list[str], connections: int) -> str:
    peer = names[0]
    rows = [[IDLE, name, *compared(results, IDLE, name, peer, MEMORY, 0)] for name in names]
    return f"""## Memory of idle connections

{table(header("connections", MEMORY, peer), rows, texts=(0, 1))}

Growth of the process's anonymous memory by {connections:,} connections that have had one PING answered. What the
system keeps for a socket is not in it.
"""
