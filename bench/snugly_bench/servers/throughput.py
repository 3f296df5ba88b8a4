"""Requests that each server answers on one core, and the processor time of a request."""

from __future__ import annotations

from itertools import product

from snugly_bench.progress import Progress
from snugly_bench.results import Aim, Results, table
from snugly_bench.servers import loads
from snugly_bench.servers.generators import redis_benchmark
from snugly_bench.servers.loads import (
    CPU,
    LOAD_CORE,
    RATE,
    SERVER_CORE,
    TESTS,
    VALUE_BYTES,
    Load,
    ask,
    method,
    workloads,
)
from snugly_bench.servers.peers import VALKEY, Peer, start

GENERATORS = ("redis-benchmark", "snugly bench server")
LOADS = (
    Load("1 connection", connections=1, pipeline=1, requests=60_000),
    Load("50 connections", connections=50, pipeline=1, requests=200_000),
    Load("50 connections pipelined by 16", connections=50, pipeline=16, requests=800_000),
)
UNPIPELINED = workloads(tuple(load for load in LOADS if load.pipeline == 1))
AIMS = (
    Aim("snugly none", CPU, "most", 1.0, VALKEY, workloads(LOADS)),
    Aim("snugly lz4", RATE, "least", 0.9, "snugly none", UNPIPELINED),
    Aim("snugly zstd", RATE, "least", 0.6, "snugly none", UNPIPELINED),
)


def measure(program: str, peers: list[Peer], rounds: int, quick: bool) -> Results:
    results = Results(VALKEY)
    loads.measure(program, peers, LOADS, results, rounds, quick)
    return results


def report(results: Results, rounds: int) -> str:
    return f"""## Throughput, and processor time per request

{loads.report(results, AIMS)}

{method(rounds)}
"""


def check_generator(program: str, peer: Peer, redis: str, rounds: int, quick: bool) -> Results:
    """Loads one server by redis-benchmark and by `snugly bench server` in turn."""
    results = Results(GENERATORS[0])
    many = [load for load in LOADS if load.connections > 1]
    with Progress(rounds * len(many) * len(GENERATORS)) as progress:
        for number, load in product(range(rounds), many):
            with start(peer, SERVER_CORE) as server:
                what = f"round {number + 1} of {rounds}: {load.name}"
                with progress.step(1, f"{what}, {GENERATORS[1]}"):
                    for row in ask(program, server, load, quick):
                        workload = load.workload(TESTS[row["test"]])
                        results.add(workload, GENERATORS[1], {RATE: float(row["requests_per_second"])})
                with progress.step(1, f"{what}, {GENERATORS[0]}"):
                    options = ["-t", ",".join(TESTS), "-d", str(VALUE_BYTES), *load.options(quick)]
                    for row in redis_benchmark(redis, server, options, LOAD_CORE):
                        results.add(load.workload(row["test"]), GENERATORS[0], {RATE: float(row["rps"])})
    return results


def report_generator(results: Results, rounds: int) -> str:
    header = ["requests", "generator", RATE, f"of {GENERATORS[0]}"]
    rows = [
        [
            workload,
            generator,
            results.spread(workload, generator, RATE).show(0),
            results.ratio(workload, generator, RATE, results.base).show(),
        ]
        for workload, generator in results.rows()
    ]
    return f"""## The load generator beside redis-benchmark

{table(header, rows, texts=(0, 1))}

Both on the same valkey-server, pinned to core {SERVER_CORE}, from core {LOAD_CORE}; values of {VALUE_BYTES} B. Rounds:
{rounds}; shown are medians (lowest to highest).
"""
