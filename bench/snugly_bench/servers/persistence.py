"""The same requests of servers that keep every write on disk, some soon and some before they answer."""

from __future__ import annotations

import tempfile
import textwrap

from snugly_bench.results import Aim, Results
from snugly_bench.servers import loads
from snugly_bench.servers.loads import CPU, RATE, WIDTH, Load, method
from snugly_bench.servers.peers import CODECS, VALKEY, keeping_snugly_peer, keeping_valkey_peer

KEYS = 20_000
CONNECTIONS = {1: "1 connection", 16: "16 connections", 64: "64 connections"}
SOON, FIRST = "on disk soon", "on disk first"
REQUESTS = {SOON: {1: 20_000, 16: 60_000, 64: 60_000}, FIRST: {1: 2_000, 16: 10_000, 64: 20_000}}
PROMISES = {SOON: ("everysec", "batched"), FIRST: ("always", "fsync")}
"""Names of the durability in each server: Valkey and snugly."""
LOADS = {
    promise: tuple(
        Load(f"{name}, {promise}", connections, pipeline=1, requests=REQUESTS[promise][connections], keys=KEYS)
        for connections, name in CONNECTIONS.items()
    )
    for promise in PROMISES
}
AIMS = (
    *(
        Aim(f"snugly {codec}, batched", CPU, "most", 40, None, tuple(load.workload("SET") for load in LOADS[SOON]))
        for codec in CODECS
    ),
    *(
        Aim(f"snugly {codec}, fsync", RATE, "least", 1.0, f"{VALKEY} always", (LOADS[FIRST][-1].workload("SET"),))
        for codec in CODECS
    ),
)


def measure(program: str, rounds: int, quick: bool) -> list[Results]:
    """Results for each promise, since only servers that promise the same are compared."""
    found = []
    for promise, (synced, durability) in PROMISES.items():
        valkey = keeping_valkey_peer(synced)
        found.append(Results(valkey.name))
        peers = [valkey, *(keeping_snugly_peer(program, codec, durability) for codec in CODECS)]
        loads.measure(program, peers, LOADS[promise], found[-1], rounds, quick)
    return found


def report(found: list[Results], rounds: int) -> str:
    tables = "\n\n".join(loads.report(results, AIMS) for results in found)
    promises = textwrap.fill(
        f"*{SOON.capitalize()}*: snugly commits within 100 ms, Valkey syncs its log each second. "
        f"*{FIRST.capitalize()}*: a write is answered when it is on the disk. "
        f"All files are in {tempfile.gettempdir()}. Keys: {KEYS:,}.",
        WIDTH,
    )
    return f"""## Throughput and processor time of servers that keep everything

{tables}

{promises}

{method(rounds)}
"""
