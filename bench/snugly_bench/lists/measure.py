"""Asks servers for the same of their lists, in turn in every round."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import valkey

from snugly_bench.lists.choices import BASES, DATA, DICTIONARY
from snugly_bench.lists.driver import driving
from snugly_bench.progress import Progress
from snugly_bench.results import Results
from snugly_bench.servers.generators import Row
from snugly_bench.servers.info import info
from snugly_bench.servers.learning import hurrying, learned
from snugly_bench.servers.loads import CPU, RATE, SERVER_CORE
from snugly_bench.servers.peers import Peer, Server, start
from snugly_bench.servers.process import anonymous_bytes

P50, P99 = "p50 µs", "p99 µs"
USED, ANONYMOUS, GIVEN = "used_memory", "anonymous memory", "given bytes"
TESTS = {
    "fill-rpush": "populate, RPUSH",
    "lindex-fixed": "LINDEX, fixed place",
    "lindex-random": "LINDEX, random place",
    "lrange-fixed": "LRANGE of 100, fixed place",
    "lrange-random": "LRANGE of 100, random place",
    "lrange-all": "LRANGE 0 -1",
    "lset-fixed": "LSET, fixed place",
    "lset-random": "LSET, random place",
    "lpush": "LPUSH",
    "rpush": "RPUSH",
    "rpop": "RPOP",
    "fill-lpush": "populate, LPUSH",
}
"""Names of the tests in `snugly bench lists` and in reports, in the order in which they run."""
FILLED = "fill-rpush"
"""The test after which memory is told."""
CONNECTIONS = 50


@dataclass(frozen=True)
class Scale:
    """The size of the measurement."""

    lists: int
    elements: int
    """Of a list."""
    element_size: int
    """In bytes, about."""
    requests: int
    """Of each test that does not populate; fewer of those that take long."""
    rounds: int

    @property
    def connections(self) -> int:
        """Each has lists of its own."""
        return min(CONNECTIONS, self.lists)

    def options(self, data: str) -> list[str]:
        """As `snugly bench lists` takes them."""
        found = {
            "--lists": self.lists,
            "--elements": self.elements,
            "--generate": f"{DATA[data]}:{self.element_size}",
            "--requests": self.requests,
            "--connections": self.connections,
            "--tests": ",".join(TESTS),
        }
        return [word for option, value in found.items() for word in (option, str(value))]


def workload(test: str, data: str) -> str:
    """The name of a test in results, by its name in `snugly bench lists`."""
    return f"{TESTS[test]}, {data}"


def memory_workload(data: str) -> str:
    return f"memory, {data}"


def measure(program: str, peers: Sequence[Peer], data: str, scale: Scale) -> Results:
    """Each round with servers just started, and another one first."""
    results = Results("", dict(BASES))
    with Progress(scale.rounds * (1 + len(TESTS)) * len(peers)) as progress:
        for number in range(scale.rounds):
            measure_round(program, peers, data, scale, number, results, progress)
    return results


def measure_round(
    program: str, peers: Sequence[Peer], data: str, scale: Scale, number: int, results: Results, progress: Progress
) -> None:
    what = f"{data}, round {number + 1} of {scale.rounds}"
    first = number % len(peers)
    with ExitStack() as running:
        servers = [running.enter_context(start(peer, SERVER_CORE)) for peer in (*peers[first:], *peers[:first])]
        drivers = [running.enter_context(driving(program, server, scale.options(data))) for server in servers]
        for test, name in TESTS.items():
            for driver in drivers:
                server = driver.server.peer.name
                with progress.step(1, f"{what}: {name}, {server}"):
                    row = driver.step()
                results.add(workload(test, data), server, metrics(row))
                if test == FILLED:
                    results.add(memory_workload(data), server, memory(row, driver.server))
        for driver in drivers:
            with progress.step(1, f"{what}: comparing all of {driver.server.peer.name}"):
                driver.finish()


def metrics(row: Row) -> dict[str, float]:
    return {
        RATE: float(row["requests_per_second"]),
        CPU: float(row["server_cpu_us_per_request"]),
        P50: float(row["p50_us"]),
        P99: float(row["p99_us"]),
    }


def memory(row: Row, server: Server) -> dict[str, float]:
    """By how much it grew when lists were filled, and what they were filled with."""
    given = {GIVEN: float(row["given_bytes"])}
    grown = {USED: float(row["used_memory"]), ANONYMOUS: float(row["anonymous_bytes"])}
    if server.peer.name != DICTIONARY:
        return given | grown
    with valkey.Valkey(port=server.port) as client, hurrying(client):
        before = taken(server, client)
        learned(server, client)
        after = taken(server, client)
    return given | {way: grown[way] + after[way] - before[way] for way in grown}


def taken(server: Server, client: valkey.Valkey) -> dict[str, float]:
    """At this moment."""
    return {USED: info(client, "memory")["used_memory"], ANONYMOUS: anonymous_bytes(server.pid)}
