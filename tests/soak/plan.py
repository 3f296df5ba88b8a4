"""The plan of a soak: who is disturbed when. The same seed gives the same plan.

It knows the table of disturbances and nothing of what they do.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from soak.disturbances import DISTURBANCES, Disturbance

# The first disturbance of each kind comes within this share of its interval, so that a short soak has all of them.
FIRST = 0.8


@dataclass(frozen=True)
class Event:
    """A disturbance of a server at a time, in seconds from the start; `seed` draws what it does."""

    at: float
    disturbance: Disturbance
    instance: str
    seed: str


def events(seed: str, seconds: float, instances: Iterable[str]) -> dict[tuple[str, str], list[Event]]:
    """The events of each pair of a disturbance and an instance, in their order."""
    there = set(instances)
    return {
        (disturbance.name, instance): _series(seed, seconds, disturbance, instance)
        for disturbance in DISTURBANCES
        for instance in disturbance.to
        if instance in there
    }


def _series(seed: str, seconds: float, disturbance: Disturbance, instance: str) -> list[Event]:
    name = f"{seed}:{disturbance.name}:{instance}"
    rng = random.Random(name)
    at, found = rng.uniform(0, FIRST * disturbance.every), list[Event]()
    while at < seconds and not (disturbance.lasts and found):
        found.append(Event(at, disturbance, instance, f"{name}:{len(found)}"))
        at += rng.uniform(0.5, 1.5) * disturbance.every
    return found
