"""Pipelines whose commands are packed and sent together: how they are staged, and what their replies become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from valkey.exceptions import ExecAbortError, ResponseError, WatchError

from snugly import _native
from snugly.clients import Plain
from snugly.transport.wire import FOREIGN_OPTIONS, WIRE, callback_finder

FOREIGN = "_snugly_foreign"
"""Whether a pipeline has a command that is not for this transport."""
Command = tuple[tuple[Any, ...], dict[str, Any]]
"""Its arguments, the name first, and the options that callbacks get."""


def executed_of(client: Any, commands: Sequence[Command], replies: Sequence[Any]) -> list[Any]:
    """The replies of a transaction from the replies to MULTI, to each command, and to EXEC, as valkey-py has them."""
    queued, executed = replies[:-1], replies[-1]
    broken = next((reply for reply in queued if is_broken(reply)), None)
    if broken is not None:
        raise broken
    errors = [(max(at - 1, 0), reply) for at, reply in enumerate(queued) if isinstance(reply, ResponseError)]
    for at, error in errors:
        client.annotate_exception(error, at + 1, commands[at][0])
    if isinstance(executed, ExecAbortError) and errors:
        raise errors[0][1] from executed
    if isinstance(executed, Exception):
        raise executed
    if executed is None:
        raise WatchError("Watched variable changed.")
    if not isinstance(executed, list) or len(executed) + len(errors) != len(commands):
        raise ResponseError("Wrong number of response items from pipeline execution")
    for at, error in errors:
        executed.insert(at, error)
    return executed


def is_broken(reply: Any) -> bool:
    """Returns whether a reply is an error of the connection, or cannot be read."""
    return isinstance(reply, Exception) and not isinstance(reply, ResponseError)


def results_of(
    client: Any, commands: Sequence[Command], replies: Sequence[Any], transaction: bool, raise_on_error: bool
) -> list[Any]:
    """Returns a pipeline's results, from the replies to all that has been sent for it. Errors stand among the results.

    Raises the first of them if it is to, and what is wrong with the whole.
    """
    if transaction:
        replies = executed_of(client, commands, replies)
    find_callback = callback_finder(client)
    results = []
    for (args, options), reply in zip(commands, replies, strict=True):
        if isinstance(reply, Exception):
            if not isinstance(reply, ResponseError):
                raise reply
        elif (callback := find_callback(args[0])) is not None:
            try:
                reply = callback(reply, **options)
            except ResponseError as error:
                reply = error
        results.append(reply)
    if raise_on_error:
        client.raise_first_error(commands, results)
    return results


class StagingPipeline(Plain):  # type: ignore[misc]
    """For pipelines of clients of one server: commands are staged as they are."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        # Like valkey-py.
        if (self.watching or args[0] == "WATCH") and not self.explicit_transaction:
            return super().execute_command(*args, **options)
        options.pop("keys", None)
        own = self.__dict__
        # A refused command is refused here.
        if not own[WIRE].takes(args) or (options and not FOREIGN_OPTIONS.isdisjoint(options)):
            own[FOREIGN] = True
        self.command_stack.append((args, options))
        return self


def request_of(pipeline: Any, transaction: bool) -> _native.Request | None:
    """All that has been staged, ready to be sent; None if it has to go the way of valkey-py.

    Raises DataError for an argument that cannot be sent.
    """
    foreign = pipeline.__dict__.pop(FOREIGN, False) or pipeline.connection is not None or pipeline.scripts
    if foreign or not pipeline.command_stack:
        return None
    request: _native.Request | None = pipeline.__dict__[WIRE].request_all(pipeline.command_stack, transaction)
    return request


def stage_again(pipeline: Any) -> None:
    """Stages the same commands the way of valkey-py."""
    commands, pipeline.command_stack = pipeline.command_stack, []
    for args, options in commands:
        pipeline.pipeline_execute_command(*args, **options)
