"""Wire format of a client's commands and replies: the native module's settings for one client."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from valkey._parsers.base import BaseParser
from valkey.client import CaseInsensitiveDict

from snugly import _native
from snugly.callbacks import Callbacks
from snugly.clients import COMPRESSOR
from snugly.compressor import Compressor
from snugly.deferred import NONE, Deferrals
from snugly.handshakes import plain_class
from snugly.restoration import OPTION
from snugly.text import text_encoding

WIRE = "_snugly_wire"
"""Attribute of a client, or a pipeline, with its Wire."""

FOREIGN_OPTIONS = frozenset({"NEVER_DECODE", "EMPTY_RESPONSE", OPTION})
"""Options that say how a reply is read."""
FOREIGN_SETTINGS = frozenset({"cache_enabled", "client_cache", "encoder_class", "parser_class"})
"""Settings of connections that are about what this transport replaces."""


def unused(*_: Any) -> Any:
    raise AssertionError("nothing is compressed, so nothing can be asked about it")


def wire_for(client: Any, parse_error: Callable[[str], Exception] = BaseParser.parse_error) -> _native.Wire:
    """Returns the wire that packs the commands of this client, and restores its replies. `parse_error` is its
    parser's."""
    compressor: Compressor | None = client.__dict__.get(COMPRESSOR)
    encoder, text = client.get_encoder(), text_encoding(client)
    sends_utf8 = codecs.lookup(text.encoding).name == "utf-8" and text.errors == "strict"
    decodes = (text.encoding, text.errors) if text.decodes else None
    return _native.Wire(
        codec=compressor.codec.native if compressor else None,
        interpreter=compressor.interpreter if compressor else None,
        encode=encoder.encode,
        sends_utf8=sends_utf8,
        decodes=decodes,
        parse_error=parse_error,
        unreadable=compressor.unreadable if compressor else unused,
        as_text=compressor.as_text if compressor else unused,
    )


def deferrals_of(client: Any) -> Deferrals:
    """Returns the counts of the client's values that wait for dictionaries."""
    compressor: Compressor | None = client.__dict__.get(COMPRESSOR)
    return compressor.deferrals if compressor else NONE


def suits(pool: Any, connections: Collection[type]) -> bool:
    """Returns whether the connections of a pool can be used, of which classes are known."""
    return plain_class(pool.connection_class) in connections and not any(
        pool.connection_kwargs.get(setting) for setting in FOREIGN_SETTINGS
    )


def callback_finder(client: Any) -> Callable[[str], Callable[..., Any] | None]:
    """Returns a function that finds the callback for a restored reply, by the name of its command in capitals."""
    callbacks = client.response_callbacks
    if callbacks.__class__ is Callbacks:
        callbacks = callbacks.inner
    # This one would turn every name into capitals again.
    return partial(dict.get, callbacks) if callbacks.__class__ is CaseInsensitiveDict else callbacks.get


def is_awaitable(result: Any) -> bool:
    return hasattr(type(result), "__await__")
