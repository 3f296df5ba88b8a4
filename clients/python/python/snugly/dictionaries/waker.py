"""Callback of native code while dictionaries are used: their manager may have ended unnoticed."""

from __future__ import annotations

import weakref
from typing import Protocol


class Startable(Protocol):
    """A manager of dictionaries that can be started."""

    def start(self) -> None: ...


class Waker:
    """Starts a manager. It does not keep it: native code is unknown to Python's garbage collector."""

    __slots__ = ("_manager",)

    def __init__(self) -> None:
        self._manager: weakref.ReferenceType[Startable] | None = None

    def wakes(self, manager: Startable) -> None:
        self._manager = weakref.ref(manager)

    def __call__(self) -> None:
        manager = self._manager() if self._manager is not None else None
        if manager is not None:
            manager.start()
