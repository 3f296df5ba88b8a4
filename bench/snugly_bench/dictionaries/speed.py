"""Requests for small values that a server answers with dictionaries, and their processor time."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from snugly_bench.dictionaries.data import measured_file
from snugly_bench.dictionaries.lessons import Lessons
from snugly_bench.results import Aim, Results
from snugly_bench.servers import loads
from snugly_bench.servers.learning import key_prefix
from snugly_bench.servers.loads import QUICK_KEYS, RATE, Load, method
from snugly_bench.servers.peers import (
    LEARNING,
    PLAIN,
    Server,
    auto_snugly_peer,
    dictionary_snugly_peer,
    lz4_dictionary_snugly_peer,
    snugly_peer,
    valkey_peer,
)
from snugly_bench.servers.throughput import LOADS
from snugly_bench.splits import Split

FASTER = {"SET": 1.0, "GET": 1.1}
"""The least ratio of requests a second to those without dictionaries."""


def loads_of(values: Split, source: tuple[str, ...]) -> tuple[Load, ...]:
    return tuple(replace(load, name=f"{load.name}, {values.name}", source=source) for load in LOADS)


def aims(found: tuple[Load, ...]) -> tuple[Aim, ...]:
    return tuple(
        Aim(LEARNING, RATE, "least", least, PLAIN, tuple(load.workload(test) for load in found))
        for test, least in FASTER.items()
    )


def measure(program: str, splits: list[Split], rounds: int, quick: bool, lessons: Lessons) -> Results:
    results = Results(PLAIN)
    learning = [dictionary_snugly_peer(program), lz4_dictionary_snugly_peer(program), auto_snugly_peer(program)]
    peers = [valkey_peer(), snugly_peer(program, "zstd"), *learning]
    for values in splits:
        with measured_file(values) as path:
            source = ("--data", str(path), "--key-prefix", key_prefix(values.name))
            asked = loads_of(values, source)
            population = QUICK_KEYS if quick else asked[0].keys

            def taught(server: Server, running: ExitStack, values: Split = values, count: int = population) -> None:
                running.enter_context(lessons.given(server, values, count))

            loads.measure(program, peers, asked, results, rounds, quick, taught)
    return results


def report(results: Results, splits: list[Split], rounds: int) -> str:
    found = tuple(load for values in splits for load in loads_of(values, ()))
    return f"""## Throughput, and processor time per request

{loads.report(results, aims(found))}

{method(rounds, "Values that were not learned from")}
"""
