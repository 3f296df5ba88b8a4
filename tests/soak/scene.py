"""The scene of a disturbance: the server that it disturbs, who writes to it, and ways to check what it did."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from resp import Reply, Simple
from soak.instances import Instance
from soak.ledger import Wrong, short
from soak.writer import Writer
from waiting import until

OK = Simple(b"OK")
# Seconds that a condition has to come true on a busy machine.
SECONDS = 120.0


@dataclass
class Scene:
    """The scene of one disturbance: an instance, who writes to it, and the end of the soak."""

    instance: Instance
    writers: Sequence[Writer]
    stop: threading.Event
    rng: random.Random
    # Words about what it did, for the summary.
    told: list[str] = field(default_factory=list)

    def waits(self, seconds: float) -> None:
        """Lets time pass, unless the soak ends."""
        self.stop.wait(seconds)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            until(condition, SECONDS)
        except AssertionError:
            raise Wrong(f"{what} did not happen in {SECONDS:.0f} s") from None

    def expect(self, reply: Reply, expected: Reply, what: str) -> None:
        if reply != expected:
            raise Wrong(f"{what} was answered {short(reply)}, and should be {short(expected)}")
