"""The seam through which replies come: the response callbacks of valkey-py and redis-py.

Clients call them for single commands, in pipelines, and by hand for each reply in a transaction, with the options that
the command was executed with. What is to be done with a reply travels among these options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from functools import partial
from typing import Any

from snugly.compressor import Compressor
from snugly.deferred import Pending, deferred_in
from snugly.restoration import OPTION, Restoration, Transaction

Callback = Callable[..., Any]


MOST_NAMES = 1000
"""Most names that are remembered; applications use fewer, unless they make names up."""


class Callbacks(MutableMapping[Any, Callback]):
    """A client's callbacks, each behind the restoration of its reply.

    `restores` is False where an inner client has restored the reply already: a cluster's nodes do so.
    """

    def __init__(self, inner: MutableMapping[Any, Callback], compressor: Compressor, restores: bool = True) -> None:
        self.inner = inner
        self._compressor = compressor
        self._restores = restores
        # Every name that has been looked for, and what was found. Clients look twice for each reply.
        self._found: dict[Any, Callback | None] = {}

    def _callback(self, name: Any) -> Callback | None:
        try:
            return self._found[name]
        except KeyError:
            found = self._find(name)
            if len(self._found) < MOST_NAMES:
                self._found[name] = found
            return found

    def _find(self, name: Any) -> Callback | None:
        inner = self.inner.get(name)
        if not self._compressor.carries_values(name):
            return inner
        if self._restores:
            return partial(restored, inner)
        return inner and partial(passed, inner)

    def __contains__(self, name: object) -> bool:
        return self._callback(name) is not None

    def __getitem__(self, name: Any) -> Callback:
        callback = self._callback(name)
        if callback is None:
            raise KeyError(name)
        return callback

    def __setitem__(self, name: Any, callback: Callback) -> None:
        self.inner[name] = callback
        self._found.clear()

    def __delitem__(self, name: Any) -> None:
        del self.inner[name]
        self._found.clear()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.inner)

    def __len__(self) -> int:
        return len(self.inner)

    def __eq__(self, other: object) -> bool:
        """Returns whether these are the same callbacks, whatever is in front of them."""
        return bool(self.inner == (other.inner if isinstance(other, Callbacks) else other))

    # Like any mapping that can change.
    __hash__ = None  # type: ignore[assignment]


def restored(inner: Callback | None, reply: Any, **options: Any) -> Any:
    """The reply with its values restored, and then as `inner` has it. An error goes around `inner`."""
    restoration: Restoration | Transaction | None = options.pop(OPTION, None)
    if restoration is not None:
        deferrals = restoration.deferrals
        made = deferrals.made
        reply = restoration(reply)
        if deferrals.made != made and (waiting := list(deferred_in(reply))):
            if restoration.batch is not None:
                pending = Pending(reply, restoration.settled)
                return pending if inner is None else pending.then(partial(inner, **options))
            if deferrals.is_async:
                return settled(inner, restoration, reply, options)
            reply = restoration.settled(reply, deferrals.fetched(waiting))
    return reply if inner is None or isinstance(reply, Exception) else inner(reply, **options)


async def settled(
    inner: Callback | None, restoration: Restoration | Transaction, reply: Any, options: dict[str, Any]
) -> Any:
    """The same for values that have to be waited for, of asyncio clients."""
    reply = restoration.settled(reply, await restoration.deferrals.fetched_async(list(deferred_in(reply))))
    return reply if inner is None or isinstance(reply, Exception) else inner(reply, **options)


def passed(inner: Callback, reply: Any, **options: Any) -> Any:
    options.pop(OPTION, None)
    if isinstance(reply, Pending):
        return reply.then(partial(inner, **options))
    return reply if isinstance(reply, Exception) else inner(reply, **options)
