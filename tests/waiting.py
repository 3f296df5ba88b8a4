"""Waiting for what takes a server a moment."""

from __future__ import annotations

import time
from collections.abc import Callable

from resp import Simple
from servers import Server


def until(condition: Callable[[], bool], seconds: float = 180) -> None:
    """Waits until the condition holds; fails if it does not in time.

    That is enough for a busy machine, which leaves threads of low priority little of it.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.02)


def until_written(server: Server, database: int = 0) -> None:
    """Waits until the server takes a write and keeps it."""

    def is_written() -> bool:
        # A write that cannot be kept may end its connection.
        with server.connect() as connection:
            connection.command("SELECT", database)
            return connection.command("SET", "written", b"x" * 10_000) == Simple(b"OK")

    until(is_written)
