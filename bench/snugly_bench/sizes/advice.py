"""Advice on the backend, from nothing but measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from snugly_bench.clients.plan import NONE

READS = 0.8
"""The share of operations that are GETs, in what compression is taken to cost."""
LEAST_SAVING = 0.05
"""The share of memory that compression must save to be worth anything."""


@dataclass(frozen=True)
class Point:
    """One backend for values of one type and size."""

    memory: float
    """Bytes for each value in the server."""
    stored: float
    """Bytes of each value as it lies there, without key and overhead."""
    set_us: float
    """Microseconds of the client's processor time for a SET."""
    get_us: float
    """The same for a GET."""

    @property
    def cost(self) -> float:
        """Microseconds for an operation, of which `READS` are GETs."""
        return READS * self.get_us + (1 - READS) * self.set_us


@dataclass(frozen=True)
class Goal:
    """A goal of users."""

    name: str
    most_cost: float
    """Of the client's processor time without compression, as a ratio."""

    @property
    def purpose(self) -> str:
        if self.most_cost == inf:
            return "the most memory saved, whatever it costs"
        return f"the most memory saved for at most {self.most_cost - 1:.0%} more client CPU"


GOALS = (Goal("Smallest", inf), Goal("Balanced", 1.5), Goal("Fastest", 1.1))


@dataclass(frozen=True)
class Choice:
    """A backend, with what it does beside no compression."""

    backend: str
    saving: float
    """The share of memory."""
    cost: float
    """Processor time as a ratio."""


def choices(points: Mapping[str, Point]) -> list[Choice]:
    """The results of every backend for values of one type and size; `points` are by backend, with that for none.

    Values that are stored as they were given save nothing: where `used_memory` differs all the same, it is by what the
    server has taken for itself.
    """
    plain = points[NONE]
    return [
        Choice(
            backend,
            1 - point.memory / plain.memory if point.stored < plain.stored else 0.0,
            point.cost / plain.cost,
        )
        for backend, point in points.items()
    ]


def choose(points: Mapping[str, Point], goal: Goal) -> Choice:
    """The backend that saves most within the goal's cost; none if that is not worth it."""
    worth = [each for each in choices(points) if each.saving >= LEAST_SAVING and each.cost <= goal.most_cost]
    return max(worth, key=lambda choice: choice.saving, default=Choice(NONE, 0.0, 1.0))


def worth_from(savings: Sequence[tuple[int, float]]) -> int | None:
    """The size from which on everything measured saves enough: what `min_compression_size` may be.

    `savings` are sizes, rising, with the share of memory that is saved. `None` if even the largest size does not save
    enough.
    """
    found = None
    for size, saving in reversed(savings):
        if saving < LEAST_SAVING:
            break
        found = size
    return found
