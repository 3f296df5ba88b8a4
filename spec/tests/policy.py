"""The policy, written down once more: the reference for what each client decides about an attempt to compress.

It knows values and what came of attempts, and nothing of codecs. The crate codec explains the reasons (policy).
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "data"
POLICY: dict[str, Any] = json.loads((DATA / "policy.json").read_text())
MAGIC = [(row["offset"], bytes.fromhex(row["hex"])) for row in json.loads((DATA / "magic.json").read_text())]


def has_magic(value: bytes) -> bool:
    return any(value[offset:].startswith(start) for offset, start in MAGIC)


def spread_of(value: bytes) -> str:
    """How evenly a value's bytes are distributed: `even`, `mixed` or `skewed`."""
    probe = POLICY["probe"]
    runs = probe["runs_of_long"] if len(value) >= probe["long"] else probe["runs"]
    sample = value
    if len(value) > runs * probe["run"]:
        stride = (len(value) - probe["run"]) // (runs - 1)
        sample = b"".join(value[run * stride :][: probe["run"]] for run in range(runs))
    collisions = sum(count * (count - 1) // 2 for count in (sample.count(byte) for byte in set(sample)))
    pairs = max(len(sample) * (len(sample) - 1) // 2, 1)
    excess = collisions * 256 * 100 // pairs
    if excess <= probe["even"] + probe["scatter"] // max(len(sample), 1):
        return "even"
    return "mixed" if excess <= probe["mixed"] else "skewed"


@dataclass
class Backoff:
    failures: int = 0
    skip: int = 0

    def report(self, spread: str, gained: bool) -> None:
        if gained:
            self.failures = self.skip = 0
            return
        self.failures = min(self.failures + 1, POLICY["most_failures"])
        row = POLICY["backoff"][spread]
        power = min(max(self.failures - row["patience"], 0) * row["bits"], row["most_bits"])
        self.skip = (1 << power) - row["less"]


@dataclass
class LengthClass:
    suspicion: int = 0
    backoffs: dict[str, Backoff] = field(default_factory=lambda: defaultdict(Backoff))


class Policy:
    """What is remembered of one codec at one level."""

    def __init__(self) -> None:
        self.classes: dict[tuple[int, bool], LengthClass] = defaultdict(LengthClass)
        self.considered: LengthClass | None = None
        self.spread: str | None = None

    def consider(self, value: bytes, with_dictionary: bool) -> str:
        """What to do with a value of one byte or more: `try`, `doubtful`, `compressed` or `no_gain`."""
        self.considered = of_length = self.classes[len(value).bit_length(), with_dictionary]
        self.spread = None
        magic = has_magic(value)
        if of_length.suspicion == 0 and not magic and len(value) < POLICY["always_looked_at"]:
            return "try"
        self.spread = spread_of(value)
        if magic and self.spread != "skewed":
            return "compressed"
        backoff = of_length.backoffs[self.spread]
        if backoff.skip > 0:
            backoff.skip -= 1
            return "compressed" if self.spread == "even" else "no_gain"
        return "doubtful" if self.spread == "even" and backoff.failures > 0 else "try"

    def report(self, gained: bool) -> None:
        """Notes what came of the attempt on the value that was considered last."""
        assert self.considered is not None
        suspicion = POLICY["suspicion"]
        if gained:
            self.considered.suspicion = max(self.considered.suspicion - 1, 0)
        else:
            self.considered.suspicion = min(self.considered.suspicion + suspicion["step"], suspicion["most"])
        if self.spread is not None:
            self.considered.backoffs[self.spread].report(self.spread, gained)
