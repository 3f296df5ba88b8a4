"""Values whose dictionaries are not at hand: what stands for them until all that a reply needs is fetched."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from snugly import _native

if TYPE_CHECKING:
    from snugly.dictionaries.managers import AsyncDictionaryManager, DictionaryManager

Found = dict[int, _native.Dictionary]
"""Dictionaries by their IDs."""


class Deferrals:
    """Counts of one client's values that were left for later, and of those not restored yet."""

    __slots__ = ("_lock", "count", "is_async", "made", "manager")

    def __init__(self, manager: DictionaryManager | AsyncDictionaryManager | None = None) -> None:
        self.manager = manager
        """Manager that fetches the dictionaries they need."""
        self.is_async = manager is not None and inspect.iscoroutinefunction(manager.fetch)
        self.count = 0
        self.made = 0
        self._lock = threading.RLock()

    def add(self) -> None:
        with self._lock:
            self.made += 1
            self.count += 1

    def fetched(self, values: Sequence[Deferred]) -> Found:
        """The dictionaries that these values need, those that there are. For synchronous clients."""
        found: Found = self.manager.fetch({each.dictionary for each in values})  # type: ignore[union-attr, assignment]
        return found

    async def fetched_async(self, values: Sequence[Deferred]) -> Found:
        """The same for asyncio clients."""
        found: Found = await self.manager.fetch({each.dictionary for each in values})  # type: ignore[union-attr, misc]
        return found


NONE = Deferrals()
"""Of those who never defer."""


class Deferred:
    """Stands for one value. `restore` is given this and its dictionary, to return the value or to raise."""

    __slots__ = ("_deferrals", "as_text", "budget", "dictionary", "error", "key", "restore", "stored")

    def __init__(
        self,
        deferrals: Deferrals,
        stored: bytes,
        key: Any,
        error: Exception,
        dictionary: int,
        budget: _native.Budget | None,
        restore: Callable[[Deferred, _native.Dictionary | None], Any],
    ) -> None:
        self._deferrals = deferrals
        self.stored = stored
        self.key = key
        self.error = error
        self.dictionary = dictionary
        self.budget = budget
        self.restore = restore
        self.as_text = False
        """Whether the value is wanted as text."""
        deferrals.add()

    def __del__(self) -> None:
        self._deferrals.count -= 1


class Pending:
    """Stands for the reply to a command of a pipeline until all that its pipeline needs is fetched."""

    __slots__ = ("_next", "_settled", "reply")

    def __init__(self, reply: Any, settled: Callable[[Any, Found], Any]) -> None:
        """`settled` is given a reply and dictionaries, and returns it restored, or raises."""
        self.reply = reply
        self._settled = settled
        self._next: list[Callable[[Any], Any]] = []

    def then(self, callback: Callable[[Any], Any]) -> Pending:
        """Adds a callback for the reply."""
        self._next.append(callback)
        return self

    def result(self, found: Found) -> Any:
        """Returns the application's result. Raises."""
        reply = self._settled(self.reply, found)
        for callback in self._next:
            if isinstance(reply, Exception):
                break
            reply = callback(reply)
        return reply


def settle(deferrals: Deferrals, reply: Any) -> Any:
    """The reply with all of its values, for synchronous clients. Raises what restoring one of them raises."""
    waiting = list(deferred_in(reply))
    return settled(reply, deferrals.fetched(waiting)) if waiting else reply


async def settle_async(deferrals: Deferrals, reply: Any) -> Any:
    """The same for asyncio clients."""
    waiting = list(deferred_in(reply))
    return settled(reply, await deferrals.fetched_async(waiting)) if waiting else reply


def each_settled(replies: Sequence[Any], found: Found, errors: type[Exception]) -> list[Any]:
    """The same for each of several replies; an error of one of them takes its place."""
    results: list[Any] = []
    for reply in replies:
        try:
            results.append(settled(reply, found))
        except errors as error:
            results.append(error)
    return results


def deferred_in(reply: Any) -> Iterator[Deferred]:
    if isinstance(reply, Deferred):
        yield reply
    elif isinstance(reply, Pending):
        yield from deferred_in(reply.reply)
    elif isinstance(reply, dict):
        for item in reply.values():
            yield from deferred_in(item)
    elif isinstance(reply, list | tuple):
        for item in reply:
            yield from deferred_in(item)


def settled(reply: Any, found: Found) -> Any:
    """The reply with its values restored. Raises what restoring one of them raises."""
    if isinstance(reply, Deferred):
        return reply.restore(reply, found.get(reply.dictionary))
    if isinstance(reply, dict):
        return {name: settled(item, found) for name, item in reply.items()}
    if isinstance(reply, list):
        return [settled(item, found) for item in reply]
    if type(reply) is tuple:
        return tuple(settled(item, found) for item in reply)
    return reply


def fulfilled(results: list[Any], found: Found, errors: type[Exception], raises: bool) -> list[Any]:
    """The results of a pipeline, without those that are pending. Errors take their places, or are raised."""
    finished: list[Any] = []
    for result in results:
        if isinstance(result, Pending):
            try:
                result = result.result(found)
            except errors as error:
                if raises:
                    raise
                result = error
        finished.append(result)
    return finished


def are_pending(results: Iterable[Any]) -> bool:
    return any(isinstance(result, Pending) for result in results)


async def awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
