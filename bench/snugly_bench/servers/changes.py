"""Processor time of changes and reads in the middle of large values."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import valkey

from snugly_bench.progress import Progress
from snugly_bench.results import Aim, Results, judge, table
from snugly_bench.servers.info import cpu_seconds
from snugly_bench.servers.loads import SERVER_CORE
from snugly_bench.servers.peers import VALKEY, Peer, start

CPU = "CPU µs/command"
BITS = 16 << 23
"""Of a bitmap of 16 MiB."""
LONG_BITS = 512 << 23
PIPELINE = 100
SUBJECT = "snugly zstd"

Command = tuple[str | int | bytes, ...]


@dataclass(frozen=True)
class Workload:
    """Commands whose processor time is measured, behind others that prepare the value."""

    name: str
    prepare: tuple[Command, ...]
    command: Callable[[random.Random], Command]
    times: int
    is_aimed_at: bool = True


def any_bit(rng: random.Random) -> Command:
    return ("SETBIT", "bits", rng.randrange(BITS), 1)


SPARSE: Command = ("SETBIT", "bits", BITS - 1, 1)
FIRST: Command = ("SETBIT", "bits", 0, 1)
WORKLOADS = (
    Workload("SETBIT makes 16 MiB", (), lambda _rng: SPARSE, 1, is_aimed_at=False),
    Workload("SETBIT changes 16 MiB", (SPARSE,), any_bit, 1, is_aimed_at=False),
    Workload("SETBIT changes them again", (SPARSE, FIRST), any_bit, 1),
    Workload("further SETBITs, 16 MiB", (SPARSE, FIRST, FIRST), any_bit, 5_000),
    Workload(
        "APPEND of 100 bytes, log of 1 MiB",
        (("SET", "log", b"GET /index.html 200 12 ms\n" * 40_330),),
        lambda rng: ("APPEND", "log", f"GET /{rng.randrange(10**9)} 200\n".ljust(100)),
        500,
    ),
    Workload(
        "GETBIT, 512 MiB",
        (("SETBIT", "long", LONG_BITS - 1, 1),),
        lambda rng: ("GETBIT", "long", rng.randrange(LONG_BITS)),
        5_000,
    ),
)
AIMS = (Aim(SUBJECT, CPU, "most", 10, VALKEY, tuple(load.name for load in WORKLOADS if load.is_aimed_at)),)


def measure(peers: list[Peer], rounds: int, quick: bool) -> Results:
    """Every workload on a fresh server of each kind in each round."""
    results = Results(VALKEY)
    with Progress(len(WORKLOADS) * len(peers) * rounds) as progress:
        for number in range(rounds):
            for workload in WORKLOADS:
                for peer in peers:
                    with progress.step(1, f"{workload.name} on {peer.name}"):
                        used = processor_time(peer, workload, number, quick)
                    results.add(workload.name, peer.name, {CPU: used})
    return results


def processor_time(peer: Peer, workload: Workload, seed: int, quick: bool) -> float:
    """Microseconds of the server for each command."""
    rng = random.Random(seed)
    times = min(workload.times, PIPELINE) if quick else workload.times
    with start(peer, SERVER_CORE) as server, valkey.Valkey(port=server.port) as client:
        for command in workload.prepare:
            client.execute_command(*command)
        before = cpu_seconds(client)
        for first in range(0, times, PIPELINE):
            with client.pipeline(transaction=False) as pipeline:
                for _ in range(min(PIPELINE, times - first)):
                    pipeline.execute_command(*workload.command(rng))
                pipeline.execute()
        return (cpu_seconds(client) - before) / times * 1e6


def report(results: Results, rounds: int) -> str:
    header = ["commands", "server", CPU, "of valkey's", "aim"]
    rows = [
        [
            workload,
            server,
            results.spread(workload, server, CPU).show(),
            results.ratio(workload, server, CPU, VALKEY).show(),
            judge(AIMS, results, workload, server),
        ]
        for workload, server in results.rows()
    ]
    return f"""## Changes in the middle of large values

{table(header, rows, texts=(0, 1, 4))}

A fresh server for each line and round, with one serving thread, all of its threads pinned to core {SERVER_CORE}.
Rounds: {rounds}, the servers in turn; shown are medians (lowest to highest), and ratios are medians of each round's
ratio. Processor time is what the server says in INFO, user and system; lines of one command include what INFO takes.
"""
