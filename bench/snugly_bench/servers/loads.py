"""Servers asked in turn by the load generator: how they are asked, and what is measured of it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product

from snugly_bench.progress import Progress
from snugly_bench.results import Aim, Results, judge, table
from snugly_bench.servers.generators import Row, snugly_bench
from snugly_bench.servers.peers import Peer, Server, start

SERVER_CORE = 0
LOAD_CORE = 1
VALUE_BYTES = 900
QUICK_KEYS = 2_000
QUICK_REQUESTS = 5_000
TESTS = {"get": "GET", "set": "SET"}
"""Names of the tests in `snugly bench`; it fills all keys before the first GET, so a SET always replaces a value."""
WIDTH = 120
"""Of texts, in characters."""
RATE, CPU, BUSY = "requests/s", "CPU µs/request", "server busy"


@dataclass(frozen=True)
class Load:
    """The requests of the load generator."""

    name: str
    connections: int
    pipeline: int
    requests: int
    """Of each test; enough for two seconds or more."""
    keys: int = 100_000
    source: tuple[str, ...] = ("--generate", f"json:{VALUE_BYTES}")
    """Values and keys, as options of `snugly bench server`."""
    tests: tuple[str, ...] = tuple(TESTS)
    keys_per_get: int = 1

    def options(self, quick: bool) -> list[str]:
        """As `snugly bench server` and redis-benchmark both take them."""
        requests = QUICK_REQUESTS if quick else self.requests
        keys = QUICK_KEYS if quick else self.keys
        options = {"-c": self.connections, "-P": self.pipeline, "-n": requests, "-r": keys}
        return [word for option, value in options.items() for word in (option, str(value))]

    def workload(self, test: str) -> str:
        return f"{test}, {self.name}"


def workloads(loads: tuple[Load, ...]) -> tuple[str, ...]:
    return tuple(load.workload(test) for load in loads for test in TESTS.values())


Prepare = Callable[[Server, ExitStack], None]
"""Preparation of a server before requests; the stack is for the work to be done after them."""


def as_it_is(_server: Server, _running: ExitStack) -> None:
    """Prepares nothing."""


def measure(
    program: str,
    peers: list[Peer],
    loads: tuple[Load, ...],
    results: Results,
    rounds: int,
    quick: bool,
    prepare: Prepare = as_it_is,
) -> None:
    """Asks the servers in turn under every load; each round with servers just started, and another one first.

    Each is prepared before any of them is asked.
    """
    with Progress(rounds * (1 + len(loads)) * len(peers)) as progress:
        for number in range(rounds):
            measure_round(program, peers, loads, results, number, rounds, quick, prepare, progress)


def measure_round(
    program: str,
    peers: list[Peer],
    loads: tuple[Load, ...],
    results: Results,
    number: int,
    rounds: int,
    quick: bool,
    prepare: Prepare,
    progress: Progress,
) -> None:
    with ExitStack() as running:
        servers = []
        for peer in peers:
            with progress.step(1, f"round {number + 1} of {rounds}: starting {peer.name}"):
                servers.append(running.enter_context(start(peer, SERVER_CORE)))
                prepare(servers[-1], running)
        first = number % len(servers)
        for load, server in product(loads, servers[first:] + servers[:first]):
            with progress.step(1, f"round {number + 1} of {rounds}: {load.name}, {server.peer.name}"):
                rows = ask(program, server, load, quick)
            for row in rows:
                results.add(load.workload(TESTS[row["test"]]), server.peer.name, metrics(row))


def ask(program: str, server: Server, load: Load, quick: bool) -> list[Row]:
    """A line of results for each test."""
    tests = ["--tests", ",".join(load.tests), "--keys-per-get", str(load.keys_per_get)]
    options = [*tests, *load.source, "--threads", "1", *load.options(quick)]
    rows = snugly_bench(program, "server", server, options, LOAD_CORE)
    server.check_pinned(SERVER_CORE)
    return rows


def metrics(row: Row) -> dict[str, float]:
    rate, cpu = float(row["requests_per_second"]), float(row["server_cpu_us_per_request"])
    return {RATE: rate, CPU: cpu, BUSY: rate * cpu / 1e6}


def report(results: Results, aims: tuple[Aim, ...]) -> str:
    """A table of rates and processor time, beside those of the base."""
    of_base = f"of {results.base}'s"
    header = ["requests", "server", RATE, of_base, CPU, of_base, BUSY, "aim"]
    rows = [
        [
            workload,
            server,
            results.spread(workload, server, RATE).show(0),
            results.ratio(workload, server, RATE, results.base).show(),
            results.spread(workload, server, CPU).show(2),
            results.ratio(workload, server, CPU, results.base).show(),
            f"{results.spread(workload, server, BUSY).median:.0%}",
            judge(aims, results, workload, server),
        ]
        for workload, server in results.rows()
    ]
    return table(header, rows, texts=(0, 1, 7))


def method(rounds: int, values: str = f"Generated JSON of {VALUE_BYTES} B") -> str:
    """The method, and how to read the results."""
    return textwrap.fill(
        f"{values}; a SET replaces a value. Every server serves with one thread, and all "
        f"threads it has are pinned to core {SERVER_CORE}, the load generator to core {LOAD_CORE}. Rounds: {rounds}, "
        "the servers in turn within each; shown are medians (lowest to highest), and ratios are medians of each "
        "round's ratio. Processor time is what the server says of itself, user and system. Where a server is busy for "
        "much less than 100 %, its throughput is bounded by the load generator, the network or the disk: compare the "
        "processor time.",
        WIDTH,
    )
