"""Progress of a long measurement, and the time left, for people at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import rich.progress
from rich.console import Console

ESTIMATE_SECONDS = 600.0
"""The period whose speed tells the time left: steps differ."""


class Progress:
    """A bar with the time left and the running step, on a terminal; nothing elsewhere."""

    def __init__(self, total: float) -> None:
        """`total` is the weight of all steps together."""
        console = Console(stderr=True)
        self.bar = rich.progress.Progress(
            rich.progress.BarColumn(30),
            rich.progress.TaskProgressColumn(),
            rich.progress.TimeRemainingColumn(compact=True),
            rich.progress.TextColumn("{task.description}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
            speed_estimate_period=ESTIMATE_SECONDS,
        )
        self.task = self.bar.add_task("", total=total)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    @contextmanager
    def step(self, weight: float, what: str) -> Iterator[None]:
        """Shows `what` while it runs."""
        self.bar.update(self.task, description=what)
        try:
            yield
        finally:
            self.bar.advance(self.task, weight)
