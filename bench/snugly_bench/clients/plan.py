"""The measurements, and their order. Knows no library and no socket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

Operation = Literal["SET", "GET"]
OPERATIONS: tuple[Operation, ...] = ("SET", "GET")
NONE, LZ4, ZSTD = "none", "lz4", "zstd"
BACKENDS = (NONE, LZ4, ZSTD)
LZ4_DICTIONARY, ZSTD_DICTIONARY = "lz4+dictionary", "zstd+dictionary"
LEARNED = {LZ4_DICTIONARY: LZ4, ZSTD_DICTIONARY: ZSTD}
"""Backends that learn from some values first; each is compared with this one where a library has no such thing."""
ALL_BACKENDS = (*BACKENDS, *LEARNED)
RATE, CPU, SERVER_CPU = "operations/s", "client CPU µs/operation", "server CPU µs/operation"
PERCENTILES = {50: "p50 ms", 95: "p95 ms", 99: "p99 ms"}
"""Of the time of a request, which is a whole batch."""
MEMORY, STORED, VALUE = "server bytes/value", "stored bytes/value", "value bytes"
"""Names of results."""


@dataclass(frozen=True)
class Contender:
    """A library with the compression that it is set to."""

    peer: str
    backend: str

    def __str__(self) -> str:
        return f"{self.peer} {self.backend}"

    @classmethod
    def parse(cls, text: str) -> Contender:
        """The contender that `text` is the name of."""
        peer, backend = text.rsplit(" ", 1)
        return cls(peer, backend)


def named_version(peer: str) -> tuple[str, str]:
    """A library, and the version that its name asks for as in `valkey-glide==2.6.0`; empty for the one installed."""
    library, _, version = peer.partition("==")
    return library, version


@dataclass(frozen=True, order=True)
class Cell:
    """The number of concurrent requests, and their size."""

    processes: int
    clients: int
    """In each process: how many requests are under way at once."""
    batch: int
    """Commands in a request."""


@dataclass(frozen=True)
class Workload:
    """The key of a result: one operation on one corpus in one cell."""

    data: str
    operation: Operation
    cell: Cell

    def __str__(self) -> str:
        cell = self.cell
        return (
            f"data={self.data} operation={self.operation} "
            f"processes={cell.processes} clients={cell.clients} batch={cell.batch}"
        )

    @classmethod
    def parse(cls, text: str) -> Workload | None:
        """The workload that `text` is the name of; `None` if it names something else."""
        fields = dict(word.partition("=")[::2] for word in text.split())
        if set(fields) != {"data", "operation", "processes", "clients", "batch"}:
            return None
        operation: Operation = "SET" if fields["operation"] == "SET" else "GET"
        numbers = (int(fields[name]) for name in ("processes", "clients", "batch"))
        return cls(fields["data"], operation, Cell(*numbers))


def memory_workload(data: str) -> str:
    """The key of the memory that a corpus takes."""
    return f"data={data}"


def memory_data(text: str) -> str | None:
    """The corpus of such a workload; `None` if it is another one."""
    name, _, data = text.partition("=")
    return data if name == "data" and " " not in data else None


@dataclass(frozen=True)
class Extent:
    """The size of the measurement."""

    processes: tuple[int, ...]
    clients: tuple[int, ...]
    batches: tuple[int, ...]
    rounds: int
    seconds: float
    """Of each measurement."""
    values: int
    """Of each corpus."""


FULL = Extent((1, 2, 4, 8), (10, 25, 100, 1000), (1, 5, 10, 20), rounds=3, seconds=1.0, values=10_000)
QUICK = Extent((1, 2), (10, 100), (1, 20), rounds=3, seconds=0.3, values=2_000)
SMOKE = Extent((1, 2), (2, 4), (1, 5), rounds=1, seconds=0.03, values=400)


def cells(extent: Extent, every: bool) -> list[Cell]:
    """The cells to measure, by processes.

    All combinations if `every`; else all of clients and batch with the fewest processes, and beside them the fewest
    clients with the smallest and the largest batch for all processes: enough for every figure of the report.
    """
    if every:
        found = {Cell(*cell) for cell in product(extent.processes, extent.clients, extent.batches)}
    else:
        batches = (min(extent.batches), max(extent.batches))
        found = {Cell(min(extent.processes), *cell) for cell in product(extent.clients, extent.batches)}
        found |= {
            Cell(processes, min(extent.clients), batch) for processes, batch in product(extent.processes, batches)
        }
    return sorted(found)


def by_processes(found: Iterable[Cell]) -> dict[int, list[Cell]]:
    groups: dict[int, list[Cell]] = {}
    for cell in sorted(found):
        groups.setdefault(cell.processes, []).append(cell)
    return groups


def contenders(peers: Mapping[str, Sequence[str]], backends: Sequence[str]) -> list[Contender]:
    """Every peer with every backend that is asked for and that it has; those that are compared side by side."""
    return [
        Contender(peer, backend) for backend in backends for peer, supported in peers.items() if backend in supported
    ]


def counterpart(contender: Contender, base: str) -> Contender:
    """The contender of the peer `base` that a contender is compared with."""
    if contender.peer == base:
        return contender
    return Contender(base, LEARNED.get(contender.backend, contender.backend))


def turn(found: list[Contender], number: int) -> list[Contender]:
    """The order in round `number`: another one first each time."""
    first = number % len(found)
    return found[first:] + found[:first]


def bases(found: list[Contender], base: str) -> dict[str, str]:
    """The contender that each one is compared with: its counterpart of the peer `base`, if there is one."""
    return {str(each): str(other) for each in found if (other := counterpart(each, base)) in found}
