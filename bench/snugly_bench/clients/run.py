"""Measures contenders in turn: the memory that their values take, and how fast they are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy

from snugly_bench.clients import fleet
from snugly_bench.clients.fleet import Fleet
from snugly_bench.clients.plan import (
    CPU,
    MEMORY,
    PERCENTILES,
    RATE,
    SERVER_CPU,
    STORED,
    VALUE,
    Cell,
    Contender,
    Workload,
    by_processes,
    memory_workload,
    turn,
)
from snugly_bench.clients.target import Target
from snugly_bench.clients.worker import Fill, Measure, Sample, Values
from snugly_bench.corpora import Corpus
from snugly_bench.progress import Progress
from snugly_bench.results import Results

FILL_WEIGHT = 0.5
CONNECT_WEIGHT = 0.3
"""About how many seconds filling and connecting take, for the time left."""


@dataclass(frozen=True)
class Asked:
    """The plan of a run."""

    contenders: list[Contender]
    corpora: list[Corpus]
    """All for memory."""
    timed: list[Corpus]
    """The corpora that speed is measured with."""
    cells: list[Cell]
    rounds: int
    seconds: float
    iterations: int | None
    own: bool
    """Whether each client has a client object of its own."""

    @property
    def peers(self) -> list[str]:
        return list(dict.fromkeys(contender.peer for contender in self.contenders))

    def weight(self) -> float:
        """About how many seconds all takes."""
        fills = len(self.corpora) + len(self.timed) * len(by_processes(self.cells))
        measurements = self.rounds * len(self.cells) * len(self.timed)
        each = fills * FILL_WEIGHT + measurements * (2 * self.seconds + CONNECT_WEIGHT)
        return len(self.contenders) * each


def prefix(contender: Contender, data: str) -> str:
    """The prefix of a contender's keys, so that it finds the values that it has written."""
    return f"snugly-bench:{data}:{contender.peer}:{contender.backend}:"


def named(corpus: Corpus) -> Values:
    return [(str(number), value) for number, value in enumerate(corpus.values)]


def run(asked: Asked, server: Target, results: Results) -> None:
    """Adds all samples to `results`, and leaves none of its keys in the server."""
    try:
        with Progress(asked.weight()) as progress:
            measure(asked, server, results, progress)
    finally:
        server.clear([prefix(contender, corpus.name) for corpus in asked.corpora for contender in asked.contenders])


def measure(asked: Asked, server: Target, results: Results, progress: Progress) -> None:
    warm_up(asked, server)
    for corpus in asked.corpora:
        measure_memory(asked, corpus, server, results, progress)
    for corpus in asked.timed:
        for processes, cells in by_processes(asked.cells).items():
            with ExitStack() as afterwards:
                fleets = {peer: afterwards.enter_context(fleet.running(peer, processes)) for peer in asked.peers}
                measure_speed(asked, corpus, cells, fleets, server, results, progress)
        server.clear([prefix(contender, corpus.name) for contender in asked.contenders])


def warm_up(asked: Asked, server: Target) -> None:
    """Fills the server once for nothing: what it reserves for its first requests is no value's memory."""
    contender, corpus = asked.contenders[0], asked.corpora[0]
    with fleet.running(contender.peer, 1) as one:
        one.take(named(corpus), corpus.training)
        one.fill(Fill(contender, server.address, prefix(contender, corpus.name)))
    server.clear([prefix(contender, corpus.name)])


def measure_memory(asked: Asked, corpus: Corpus, server: Target, results: Results, progress: Progress) -> None:
    """Fills the server with every contender's values in turn; each alone, since an emptied server keeps memory."""
    for peer in asked.peers:
        with fleet.running(peer, 1) as one:
            one.take(named(corpus), corpus.training)
            for contender in (each for each in asked.contenders if each.peer == peer):
                with progress.step(FILL_WEIGHT, f"memory: {corpus.name}, {contender}"):
                    keys = prefix(contender, corpus.name)
                    server.clear([keys])
                    before = server.memory()
                    one.fill(Fill(contender, server.address, keys))
                    taken = (server.memory() - before) / len(corpus.values)
                    stored = server.stored([keys + name for name, _ in named(corpus)]) / len(corpus.values)
                    server.clear([keys])
                sizes = {MEMORY: taken, STORED: stored, VALUE: corpus.mean_bytes}
                results.add(memory_workload(corpus.name), str(contender), sizes)


def measure_speed(
    asked: Asked,
    corpus: Corpus,
    cells: list[Cell],
    fleets: dict[str, Fleet],
    server: Target,
    results: Results,
    progress: Progress,
) -> None:
    """Asks the contenders in turn in every cell of every round."""
    for one in fleets.values():
        one.take(named(corpus), corpus.training)
    for contender in asked.contenders:
        with progress.step(FILL_WEIGHT, f"filling: {corpus.name}, {contender}"):
            fleets[contender.peer].fill(Fill(contender, server.address, prefix(contender, corpus.name)))
    for number in range(asked.rounds):
        for cell in cells:
            for contender in turn(asked.contenders, number):
                what = f"round {number + 1} of {asked.rounds}: {describe(cell)}, {contender}"
                order = Measure(
                    contender,
                    server.address,
                    prefix(contender, corpus.name),
                    clients=cell.clients,
                    own=asked.own,
                    batch=cell.batch,
                    seconds=asked.seconds,
                    iterations=None if asked.iterations is None else -(-asked.iterations // cell.processes),
                )
                with progress.step(2 * asked.seconds + CONNECT_WEIGHT, what):
                    found = fleets[contender.peer].measure(order, server.cpu)
                for operation, (samples, server_cpu) in found.items():
                    workload = str(Workload(corpus.name, operation, cell))
                    results.add(workload, str(contender), metrics(samples, server_cpu))


def describe(cell: Cell) -> str:
    return f"T={cell.processes} C={cell.clients} B={cell.batch}"


def metrics(samples: Sequence[Sample], server_cpu: float) -> dict[str, float]:
    """The measurements of all processes together; exits if they have done nothing."""
    operations = sum(sample.operations for sample in samples)
    if operations == 0:
        raise SystemExit("there was no time for a single operation: measure for more --seconds")
    seconds = max(sample.ended for sample in samples) - min(sample.began for sample in samples)
    latencies = numpy.concatenate([numpy.asarray(sample.latencies) for sample in samples])
    found = numpy.percentile(latencies, list(PERCENTILES)) * 1e3
    return {
        RATE: operations / seconds,
        CPU: sum(sample.cpu for sample in samples) / operations * 1e6,
        SERVER_CPU: server_cpu / operations * 1e6,
        **dict(zip(PERCENTILES.values(), map(float, found), strict=True)),
    }
