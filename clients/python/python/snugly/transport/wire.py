"""How a client's commands and replies look on the wire: what the native module is told about one client."""

from __future__ import annotations

import codecs
import functools
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Literal

from valkey._parsers.base import BaseParser
from valkey.client import CaseInsensitiveDict

from snugly import _native
from snugly.callbacks import OPTION, Callbacks
from snugly.clients import COMPRESSOR
from snugly.compressor import Compressor
from snugly.dictionaries.deferred import NONE, Deferrals
from snugly.table import NO_VALUES, Plan, table_for
from snugly.text import text_encoding

WIRE = "_snugly_wire"
"""Where a client, or a pipeline, has its Wire."""

BLOCKING = {
    *("BLMOVE", "BLMOVEM", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN"),
    *("XREAD", "XREADGROUP"),
}
"""Commands that wait: they would make others wait that share their connection.

WAIT and WAITAOF do so, since they are about what their own connection has written.
"""
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
    if not first or not (first[0] in names() or name in OF_THE_CLIENT) or name == "SCRIPT DEBUG":
        return None
    return compressor.plan(name, words) if compressor else NO_VALUES


def unused(*_: Any) -> Any:
    raise AssertionError("nothing is compressed, so nothing can be asked about it")


def wire_for(client: Any, parse_error: Callable[[str], Exception] = BaseParser.parse_error) -> _native.Wire:
    """What packs the commands of this client, and restores its replies. `parse_error` is its parser's."""
    compressor: Compressor | None = client.__dict__.get(COMPRESSOR)
    encoder, text = client.get_encoder(), text_encoding(client)
    sends_utf8 = codecs.lookup(text.encoding).name == "utf-8" and text.errors == "strict"
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


def deferrals_of(client: Any) -> Deferrals:
    """How many values of the client wait for dictionaries."""
    compressor: Compressor | None = client.__dict__.get(COMPRESSOR)
    return compressor.deferrals if compressor else NONE


def suits(pool: Any, connections: Collection[type]) -> bool:
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


def is_awaitable(result: Any) -> bool:
    return hasattr(type(result), "__await__")
