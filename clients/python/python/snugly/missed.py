"""Warnings of values that cannot be read and that count as absent: nobody sees their errors otherwise."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger("snugly")

PAUSE = 60.0
"""Least time between two warnings of one client, in seconds: a whole cache may be unreadable."""


class MissLog:
    """The warnings of one client or codec, from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._quiet_until = clock()
        self._untold = 0

    def tell(self, error: Exception) -> None:
        """Logs an error, or counts it for the next warning."""
        now = self._clock()
        with self._lock:
            if now < self._quiet_until:
                self._untold += 1
                return
            untold, self._untold, self._quiet_until = self._untold, 0, now + PAUSE
        others = f" ({untold} more since the last of these warnings)" if untold else ""
        logger.warning("a value counts as absent: %s%s", error, others)
