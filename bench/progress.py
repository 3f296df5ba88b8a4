"""How far a long measurement is, for people at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

WIDTH = 30


class Progress:
    """A line that names the running step and the time left, on a terminal; nothing elsewhere."""

    def __init__(self, total: float) -> None:
        """`total` is the weight of all steps together."""
        self.total = total
        self.done = 0.0
        self.started = time.monotonic()

    @contextmanager
    def step(self, weight: float, what: str) -> Iterator[None]:
        """Shows `what` while it runs."""
        share = self.done / self.total
        left = "" if share == 0 else f"{(time.monotonic() - self.started) * (1 - share) / share:.0f} s left"
        self.show(f"[{'#' * round(WIDTH * share):<{WIDTH}}] {share:4.0%}  {left:>11}  {what}")
        try:
            yield
        finally:
            self.done += weight
            self.show("")

    def show(self, line: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
