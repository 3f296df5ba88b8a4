"""What native code calls while dictionaries are used: whoever looks after them may have ended without a word."""

from __future__ import annotations

import weakref
from typing import Protocol


class Startable(Protocol):
    """What looks after dictionaries, once it is started."""

    def start(self) -> None: ...


class Waker:
    """Starts a keeper. It does not keep it: native code is unknown to Python's garbage collector."""

    __slots__ = ("_keeper",)

    def __init__(self) -> None:
        self._keeper: weakref.ReferenceType[Startable] | None = None

    def wakes(self, keeper: Startable) -> None:
        self._keeper = weakref.ref(keeper)

    def __call__(self) -> None:
        keeper = self._keeper() if self._keeper is not None else None
        if keeper is not None:
            keeper.start()
