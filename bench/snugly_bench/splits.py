"""Values to learn from, and others to measure with. Knows no server and no client."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

from snugly_bench.corpora import Corpus

TRAINED = 5
"""One of so many values is learned from."""


@dataclass(frozen=True)
class Split:
    """A corpus in two parts. Raises ValueError if a value is in both."""

    name: str
    """Of the corpus."""
    training: tuple[bytes, ...]
    measured: tuple[bytes, ...]

    def __post_init__(self) -> None:
        if not set(self.training).isdisjoint(self.measured):
            raise ValueError(f"values of {self.name} would be measured that were learned from")


def is_learned_from(number: int) -> bool:
    """Whether the value with this number is for learning, the same in every run."""
    return crc32(str(number).encode()) % TRAINED == 0


def split(corpus: Corpus) -> Split:
    """A fifth of the values by the hash of their numbers, and all others that differ from each of these.

    Exits if that leaves nothing on one side.
    """
    training = tuple(value for number, value in enumerate(corpus.values) if is_learned_from(number))
    known = set(training)
    measured = tuple(value for value in corpus.values if value not in known)
    if not training or not measured:
        raise SystemExit(f"{corpus.name} has too few values to learn from some and measure with others: give more")
    return Split(corpus.name, training, measured)
