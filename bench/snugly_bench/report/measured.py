"""Results by what they are of, so that figures can ask for a line or a cell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from snugly_bench.clients.plan import (
    ALL_BACKENDS,
    MEMORY,
    STORED,
    VALUE,
    Cell,
    Contender,
    Operation,
    Workload,
    memory_workload,
)
from snugly_bench.results import Results, Spread


@dataclass(frozen=True)
class Measured:
    """The results of `clients` or `sizes`."""

    results: Results

    @cached_property
    def contenders(self) -> list[Contender]:
        """By backend, in the order of measuring."""
        found = dict.fromkeys(Contender.parse(subject) for _, subject in self.results.rows())
        return sorted(found, key=lambda contender: ALL_BACKENDS.index(contender.backend))

    @cached_property
    def peers(self) -> list[str]:
        return list(dict.fromkeys(contender.peer for contender in self.contenders))

    @cached_property
    def backends(self) -> list[str]:
        return list(dict.fromkeys(contender.backend for contender in self.contenders))

    @cached_property
    def workloads(self) -> list[Workload]:
        found = (Workload.parse(text) for text, _ in self.results.rows())
        return list(dict.fromkeys(workload for workload in found if workload is not None))

    @cached_property
    def data(self) -> list[str]:
        """All corpora, those that only memory was measured with too."""
        names = (text.partition(" ")[0].removeprefix("data=") for text, _ in self.results.rows())
        return list(dict.fromkeys(names))

    @cached_property
    def cells(self) -> list[Cell]:
        return sorted({workload.cell for workload in self.workloads})

    def median(self, data: str, operation: Operation, cell: Cell, contender: Contender, metric: str) -> float | None:
        """The measurement; `None` if there is none."""
        found = self.spread(data, operation, cell, contender, metric)
        return None if found is None else found.median

    def spread(self, data: str, operation: Operation, cell: Cell, contender: Contender, metric: str) -> Spread | None:
        """The median and the range of the rounds."""
        workload = str(Workload(data, operation, cell))
        if not self.results.has(workload, str(contender), metric):
            return None
        return self.results.spread(workload, str(contender), metric)

    def ratio(
        self, data: str, operation: Operation, cell: Cell, contender: Contender, base: Contender, metric: str
    ) -> Spread | None:
        """One contender over another; `None` if one of them was not measured."""
        workload = str(Workload(data, operation, cell))
        if not all(self.results.has(workload, str(each), metric) for each in (contender, base)):
            return None
        return self.results.ratio(workload, str(contender), metric, str(base))

    def memory(self, data: str, contender: Contender) -> float | None:
        """Bytes for each value in the server."""
        return self.value(memory_workload(data), contender, MEMORY)

    def stored(self, data: str, contender: Contender) -> float | None:
        """Bytes that the server stores of each value."""
        return self.value(memory_workload(data), contender, STORED)

    def value_bytes(self, data: str) -> float:
        """Bytes of a value as the application has it."""
        found = (self.value(memory_workload(data), contender, VALUE) for contender in self.contenders)
        return next(size for size in found if size is not None)

    def value(self, workload: str, contender: Contender, metric: str) -> float | None:
        if not self.results.has(workload, str(contender), metric):
            return None
        return self.results.spread(workload, str(contender), metric).median
