"""How many requests each server answers on one core, and how much processor time a request costs it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from generators import Row, redis_benchmark, snugly_bench
from peers import VALKEY, Peer, Server, start
from progress import Progress
from results import Aim, Results, judge, table

SERVER_CORE = 0
LOAD_CORE = 1
VALUE_BYTES = 900
KEYS = 100_000
QUICK_KEYS = 2_000
QUICK_REQUESTS = 5_000
TESTS = {"get": "GET", "set": "SET"}
"""What `snugly bench` calls them; it fills all keys before the first GET, so a SET always replaces a value."""
RATE, CPU, BUSY = "requests/s", "CPU µs/request", "server busy"
GENERATORS = ("redis-benchmark", "snugly bench server")


@dataclass(frozen=True)
class Load:
    """How the load generator asks."""

    name: str
    connections: int
    pipeline: int
    requests: int
    """Of each test; enough for two seconds or more."""

    def options(self, quick: bool) -> list[str]:
        """As `snugly bench server` and redis-benchmark both take them."""
        requests = QUICK_REQUESTS if quick else self.requests
        keys = QUICK_KEYS if quick else KEYS
        options = {"-c": self.connections, "-P": self.pipeline, "-n": requests, "-r": keys}
        return [word for option, value in options.items() for word in (option, str(value))]

    def workload(self, test: str) -> str:
        return f"{test}, {self.name}"


LOADS = (
    Load("1 connection", connections=1, pipeline=1, requests=60_000),
    Load("50 connections", connections=50, pipeline=1, requests=200_000),
    Load("50 connections pipelined by 16", connections=50, pipeline=16, requests=800_000),
)
ALL = tuple(load.workload(test) for load in LOADS for test in TESTS.values())
UNPIPELINED = tuple(load.workload(test) for load in LOADS for test in TESTS.values() if load.pipeline == 1)
AIMS = (
    Aim("snugly none", CPU, "most", 1.0, VALKEY, ALL),
    Aim("snugly lz4", RATE, "least", 0.9, "snugly none", UNPIPELINED),
    Aim("snugly zstd", RATE, "least", 0.6, "snugly none", UNPIPELINED),
)


def measure(program: str, peers: list[Peer], rounds: int, quick: bool) -> Results:
    """Asks the servers in turn under every load; each round with servers just started, and another one first."""
    results = Results()
    progress = Progress(rounds * len(LOADS) * len(peers))
    for number in range(rounds):
        with ExitStack() as running:
            servers = [running.enter_context(start(peer, SERVER_CORE)) for peer in peers]
            first = number % len(servers)
            for load in LOADS:
                for server in servers[first:] + servers[:first]:
                    with progress.step(1, f"round {number + 1} of {rounds}: {load.name}, {server.peer.name}"):
                        rows = ask(program, server, load, quick)
                    for row in rows:
                        results.add(load.workload(TESTS[row["test"]]), server.peer.name, metrics(row))
    return results


def ask(program: str, server: Server, load: Load, quick: bool) -> list[Row]:
    """A line of results for each test."""
    options = ["--tests", ",".join(TESTS), "--generate", f"json:{VALUE_BYTES}", "--threads", "1", *load.options(quick)]
    rows = snugly_bench(program, "server", server, options, LOAD_CORE)
    server.check_pinned(SERVER_CORE)
    return rows


def metrics(row: Row) -> dict[str, float]:
    rate, cpu = float(row["requests_per_second"]), float(row["server_cpu_us_per_request"])
    return {RATE: rate, CPU: cpu, BUSY: rate * cpu / 1e6}


def report(results: Results, rounds: int) -> str:
    header = ["requests", "server", RATE, "of valkey's", CPU, "of valkey's", BUSY, "aim"]
    rows = [
        [
            workload,
            server,
            results.spread(workload, server, RATE).show(0),
            results.ratio(workload, server, RATE, VALKEY).show(),
            results.spread(workload, server, CPU).show(2),
            results.ratio(workload, server, CPU, VALKEY).show(),
            f"{results.spread(workload, server, BUSY).median:.0%}",
            judge(AIMS, results, workload, server),
        ]
        for workload, server in results.rows()
    ]
    return f"""## Throughput, and processor time per request

{table(header, rows, texts=(0, 1, 7))}

Generated JSON of {VALUE_BYTES} B; a SET replaces a value. Every server serves with one thread, and all threads it has
are pinned to core {SERVER_CORE}, the load generator to core {LOAD_CORE}. Rounds: {rounds}, the servers in turn within
each; shown are medians (lowest to highest), and ratios are medians of each round's ratio. Processor time is what the
server says in INFO, user and system. Where a server is busy for much less than 100 %, its throughput is bounded by the
load generator and the network: compare the processor time.
"""


def check_generator(program: str, peer: Peer, redis: str, rounds: int, quick: bool) -> Results:
    """Loads one server by redis-benchmark and by `snugly bench server` in turn."""
    results = Results()
    loads = [load for load in LOADS if load.connections > 1]
    progress = Progress(rounds * len(loads) * len(GENERATORS))
    for number in range(rounds):
        for load in loads:
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
            results.ratio(workload, generator, RATE, GENERATORS[0]).show(),
        ]
        for workload, generator in results.rows()
    ]
    return f"""## The load generator beside redis-benchmark

{table(header, rows, texts=(0, 1))}

Both on the same valkey-server, pinned to core {SERVER_CORE}, from core {LOAD_CORE}; values of {VALUE_BYTES} B. Rounds:
{rounds}; shown are medians (lowest to highest).
"""
