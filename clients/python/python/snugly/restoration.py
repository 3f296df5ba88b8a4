"""Restoration of the values in a reply, as a client carries it from a request to its reply.

It knows what a compressor gives it, and no client.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from snugly import _native
from snugly.deferred import NONE, Found, settled
from snugly.errors import UndecodableError

if TYPE_CHECKING:
    from snugly.compressor import Compressor

OPTION = "_snugly"
"""The option that holds a command's Restoration. Whoever has it has been encoded."""


class Batch:
    """The commands of a pipeline's next `execute`."""

    __slots__ = ("budget", "collects")

    def __init__(self, budget: _native.Budget) -> None:
        self.budget = budget
        """Most bytes of the values of all replies together."""
        self.collects = False
        """Whether an error takes its command's place in the results, instead of being raised."""


class Restoration:
    """Treatment of the reply to one command. Clients carry it from the request to the reply.

    That a command has one also says that its values have been encoded: retries and redirections leave it alone.
    """

    __slots__ = ("_args", "_compressor", "batch", "deferrals")

    def __init__(self, compressor: Compressor | None = None, args: tuple[Any, ...] = ()) -> None:
        """For the reply to `args`, as they are sent; without a compressor for one without values."""
        self._compressor = compressor
        self._args = args
        self.batch: Batch | None = None
        self.deferrals = compressor.deferrals if compressor is not None else NONE
        """Of values in restored replies that have to be waited for."""

    def __call__(self, reply: Any, budget: _native.Budget | None = None) -> Any:
        """The reply with its values restored, within what it has left. Raises UndecodableError, or returns it if its
        batch collects.
        """
        compressor = self._compressor
        if compressor is None:
            return reply
        if budget is None:
            budget = self.batch.budget if self.batch is not None else compressor.codec.native.budget()
        try:
            return compressor.interpreter.restored(self._args, reply, compressor.decoded, budget)
        except UndecodableError as error:
            if self.batch is not None and self.batch.collects:
                return error
            raise

    def settled(self, reply: Any, found: Found) -> Any:
        """A restored reply with the values that had to be waited for. Raises or returns as before."""
        try:
            return settled(reply, found)
        except UndecodableError as error:
            if self.batch is not None and self.batch.collects:
                return error
            raise


class Transaction:
    """Treatment of EXEC's reply: each element is treated like the reply of its command."""

    __slots__ = ("_compressor", "_queued", "batch", "deferrals")

    def __init__(self, queued: Sequence[Restoration | None], compressor: Compressor) -> None:
        self._queued = queued
        self._compressor = compressor
        self.batch: Batch | None = None
        self.deferrals = compressor.deferrals

    def settled(self, reply: Any, found: Found) -> Any:
        """Like that of a Restoration."""
        if not isinstance(reply, list):
            return reply
        return [
            restore.settled(item, found) if restore else item for restore, item in zip(self._queued, reply, strict=True)
        ]

    def __call__(self, reply: Any, budget: _native.Budget | None = None) -> Any:
        if not isinstance(reply, list) or len(reply) != len(self._queued):
            return reply
        if budget is None:
            budget = self._compressor.codec.native.budget()
        return [restore(item, budget) if restore else item for restore, item in zip(self._queued, reply, strict=True)]
