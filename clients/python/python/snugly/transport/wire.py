"""How a client's commands and replies look on the wire: what the native module is told about one client."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from valkey._parsers.base import BaseParser
from valkey.client import CaseInsensitiveDict
from valkey.exceptions import ExecAbortError, ResponseError, WatchError

from snugly import _native
from snugly.callbacks import OPTION, Callbacks
from snugly.clients import COMPRESSOR, Plain
from snugly.compressor import Compressor
from snugly.table import NO_VALUES, Plan, table_for
from snugly.text import text_encoding

WIRE = "_snugly_wire"
"""Where a client, or a pipeline, has its Wire."""
Command = tuple[tuple[Any, ...], dict[str, Any]]
"""Its arguments, the name first, and the options that callbacks get."""

BLOCKING = {
    *("BLMOVE", "BLMOVEM", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN"),
    *("WAIT", "WAITAOF", "XREAD", "XREADGROUP"),
}
"""Commands that wait: they would make others wait that share their connection."""
OTHERWISE = {
    *("ASKING", "CLIENT", "DEBUG", "DISCARD", "EXEC", "HELLO", "MONITOR", "MULTI", "PSYNC", "QUIT"),
    *("PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE", "UNSUBSCRIBE"),
    *("REPLCONF", "RESET", "SHUTDOWN", "SYNC", "UNWATCH", "WATCH"),
}
"""Commands that are about a connection of their own, change how replies come, or have none or many."""
OF_THE_CLIENT = {
    f"CLIENT {word}"
    for word in (
        *("GETNAME", "GETREDIR", "ID", "INFO", "KILL", "LIST", "NO-EVICT", "NO-TOUCH", "PAUSE", "SETINFO", "SETNAME"),
        *("TRACKINGINFO", "UNBLOCK", "UNPAUSE"),
    )
}
"""Of CLIENT, those that may share a connection, as valkey-py writes them."""
FOREIGN_OPTIONS = frozenset({"NEVER_DECODE", "EMPTY_RESPONSE", OPTION})
"""Options that say how a reply is read."""
FOREIGN_SETTINGS = frozenset({"cache_enabled", "client_cache", "encoder_class", "parser_class"})
"""Settings of connections that are about what this transport replaces."""


@functools.cache
def names() -> frozenset[str]:
    """The commands that are for this transport: those of the table, since of others nobody knows what they do."""
    return table_for(frozenset()).names - BLOCKING - OTHERWISE


def plan(compressor: Compressor | None, name: str, words: int) -> Plan | Literal[False] | None:
    """What the native module asks of each name and number of words."""
    first = name.split(maxsplit=1)[:1]
    if not first or not (first[0] in names() or name in OF_THE_CLIENT):
        return None
    return compressor.plan(name, words) if compressor else NO_VALUES


def unused(*_: Any) -> Any:
    raise AssertionError("nothing is compressed, so nothing can be asked about it")


def wire_for(client: Any, parse_error: Callable[[str], Exception] = BaseParser.parse_error) -> _native.Wire:
    """What packs the commands of this client, and restores its replies. `parse_error` is its parser's."""
    compressor: Compressor | None = client.__dict__.get(COMPRESSOR)
    encoder, text = client.get_encoder(), text_encoding(client)
    sends_utf8 = text.encoding.lower().replace("_", "-") in ("utf-8", "utf8") and text.errors == "strict"
    decodes = (text.encoding, text.errors) if text.decodes else None
    return _native.Wire(
        codec=compressor.codec.native if compressor else None,
        plan=partial(plan, compressor),
        request=compressor.request if compressor else unused,
        refuse=compressor.refuse if compressor else unused,
        encode=encoder.encode,
        sends_utf8=sends_utf8,
        decodes=decodes,
        parse_error=parse_error,
        unreadable=compressor.unreadable if compressor else unused,
        as_text=compressor.as_text if compressor else unused,
    )


def suits(pool: Any, connections: Sequence[type]) -> bool:
    """Whether the connections of a pool can be used, of which classes are known."""
    return pool.connection_class in connections and not any(
        pool.connection_kwargs.get(setting) for setting in FOREIGN_SETTINGS
    )


def callback_finder(client: Any) -> Callable[[str], Callable[..., Any] | None]:
    """What finds the callback for a reply that has been restored, by the name of its command in capitals."""
    callbacks = client.response_callbacks
    if callbacks.__class__ is Callbacks:
        callbacks = callbacks.inner
    # This one would turn every name into capitals again.
    return partial(dict.get, callbacks) if callbacks.__class__ is CaseInsensitiveDict else callbacks.get


def executed_of(client: Any, commands: Sequence[Command], replies: Sequence[Any]) -> list[Any]:
    """The replies of a transaction from the replies to MULTI, to each command, and to EXEC, as valkey-py has them."""
    queued, executed = replies[:-1], replies[-1]
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


def results_of(
    client: Any, commands: Sequence[Command], replies: Sequence[Any], transaction: bool, raise_on_error: bool
) -> list[Any]:
    """What a pipeline returns, from the replies to all that has been sent for it. Errors stand among the results.

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
        # As valkey-py decides it.
        if (self.watching or args[0] == "WATCH") and not self.explicit_transaction:
            return super().execute_command(*args, **options)
        options.pop("keys", None)
        self.__dict__[WIRE].takes(args)  # Raises CommandRefusedError.
        self.command_stack.append((args, options))
        return self


def stage_again(pipeline: Any) -> None:
    """Stages the same commands the way of valkey-py."""
    commands, pipeline.command_stack = pipeline.command_stack, []
    for args, options in commands:
        pipeline.pipeline_execute_command(*args, **options)


def is_awaitable(result: Any) -> bool:
    return hasattr(type(result), "__await__")
