"""Values whose dictionary is not at hand, while an event loop fetches it: what stands for them in replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any


class Deferrals:
    """How many values of one client stand in replies that nobody has restored yet."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


NONE = Deferrals()
"""Of those who never defer."""


class Deferred:
    """Stands for one value. `fetch` gets its dictionary, and `restore` is then given this, to return it or to raise."""

    __slots__ = ("_deferrals", "as_text", "dictionary", "error", "fetch", "key", "restore", "stored")

    def __init__(
        self,
        deferrals: Deferrals,
        stored: bytes,
        key: Any,
        error: Exception,
        dictionary: int,
        fetch: Callable[[int], Any],
        restore: Callable[[Deferred], Any],
    ) -> None:
        self._deferrals = deferrals
        self.stored = stored
        self.key = key
        self.error = error
        self.dictionary = dictionary
        self.fetch = fetch
        self.restore = restore
        self.as_text = False
        """Whether the value is wanted as text."""
        deferrals.count += 1

    def __del__(self) -> None:
        self._deferrals.count -= 1


async def settle(reply: Any) -> Any:
    """The reply with all of its values. Raises what restoring one of them raises."""
    waiting = {each.dictionary: each for each in deferred_in(reply)}
    await asyncio.gather(*(each.fetch(dictionary) for dictionary, each in waiting.items()))
    return settled(reply)


async def settle_each(replies: list[Any], errors: type[Exception]) -> list[Any]:
    """The same for each of several replies; an error of one of them takes its place."""
    waiting = {each.dictionary: each for each in deferred_in(replies)}
    await asyncio.gather(*(each.fetch(dictionary) for dictionary, each in waiting.items()))
    results: list[Any] = []
    for reply in replies:
        try:
            results.append(settled(reply))
        except errors as error:
            results.append(error)
    return results


def deferred_in(reply: Any) -> Iterator[Deferred]:
    if isinstance(reply, Deferred):
        yield reply
    elif isinstance(reply, dict):
        for item in reply.values():
            yield from deferred_in(item)
    elif isinstance(reply, list | tuple):
        for item in reply:
            yield from deferred_in(item)


def settled(reply: Any) -> Any:
    if isinstance(reply, Deferred):
        return reply.restore(reply)
    if isinstance(reply, dict):
        return {name: settled(item) for name, item in reply.items()}
    if isinstance(reply, list):
        return [settled(item) for item in reply]
    if type(reply) is tuple:
        return tuple(settled(item) for item in reply)
    return reply
