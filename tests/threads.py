"""Runs jobs at the same time, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable


def in_threads(*jobs: Callable[[], None]) -> None:
    """Runs all at once, waits for all, and fails if one of them did."""
    failures: list[BaseException] = []

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
