"""What steps are: generators that yield what is to be done, and are sent what came of it or have errors thrown in.

They yield commands, which are tuples, numbers of seconds to wait, and what follows here. Who takes the steps knows
connections and threads or event loops.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")
Steps = Generator[Any, Any, Result]


@dataclass(frozen=True)
class Work:
    """Something that keeps a processor busy for a while. No event loop waits for it."""

    do: Callable[[], Any]


@dataclass(frozen=True)
class Alone:
    """Steps that are all taken on a connection of their own to the node that has a key."""

    key: bytes
    steps: Steps[Any]
