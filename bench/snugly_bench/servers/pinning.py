"""The core of the load generator where it is this process. Knows no server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Keeps this thread on one core, and what it starts unless that is pinned elsewhere."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
