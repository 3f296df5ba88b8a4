"""Effects: generators that yield what is to be done, and are sent the outcome or have errors thrown in.

They yield commands, which are tuples, numbers of seconds to wait, and the classes of this module. Those who carry the
effects out know connections, and threads or event loops.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")
Effects = Generator[Any, Any, Result]


@dataclass(frozen=True)
class Work:
    """Computation or file access. No event loop waits for it."""

    do: Callable[[], Any]


@dataclass(frozen=True)
class Batch:
    """Commands that are sent in one round trip. The outcome is the list of replies; errors are among them."""

    commands: list[tuple[Any, ...]]


@dataclass(frozen=True)
class Dedicated:
    """Effects that are all taken on a connection of their own to the node that has a key."""

    key: bytes
    effects: Effects[Any]
