"""Clients that return text (`decode_responses=True`).

Their parsers turn every reply into text before anybody else sees it, which compressed bytes would not survive. So their
connections read with the error handler `surrogateescape`, from which the bytes can be had back, and the compressor
decodes values strictly, as the client was told to.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from snugly.errors import ConfigurationError

ESCAPES = "surrogateescape"

# Settings of clients before their connections were set to ESCAPES; a pool may serve several clients.
_told: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class TextEncoding:
    """Conversion of a client's text to bytes, and of replies to text if it `decodes`.

    Raises ConfigurationError for an encoding that bytes do not survive.
    """

    encoding: str
    errors: str
    decodes: bool

    def __post_init__(self) -> None:
        if self.decodes and not survives(self.encoding):
            raise ConfigurationError(
                f"decode_responses with the encoding {self.encoding} does not go with compression, since not all "
                "bytes survive it: use utf-8, or decode_responses=False"
            )


def survives(encoding: str) -> bool:
    """Returns whether any bytes survive as text in this encoding."""
    every = bytes(range(256))
    try:
        return every.decode(encoding, ESCAPES).encode(encoding, ESCAPES) == every
    except UnicodeError:
        return False


def text_encoding(client: Any) -> TextEncoding:
    encoder = client.get_encoder()
    errors = _told.get(owner(client), encoder.encoding_errors)
    return TextEncoding(encoder.encoding, errors, encoder.decode_responses)


def read_escaped(client: Any) -> None:
    """Makes the client's connections, existing and future ones, read with ESCAPES.

    Raises ConfigurationError if asyncio connections would have to be closed.
    """
    holders = list(holders_of(client))
    connections = [connection for holder in holders for connection in connections_of(holder)]
    if any(inspect.iscoroutinefunction(each.disconnect) and each.is_connected for each in connections):
        raise ConfigurationError(
            "the client has decode_responses and is connected already: compress it before its first command"
        )
    _told.setdefault(owner(client), client.get_encoder().encoding_errors)
    for holder in holders:
        holder.connection_kwargs["encoding_errors"] = ESCAPES
    for connection in connections:
        # Parsers take the error handler when they connect. redis-py's client-side cache wraps the connection.
        getattr(connection, "_conn", connection).encoder.encoding_errors = ESCAPES
        if not inspect.iscoroutinefunction(connection.disconnect):
            connection.disconnect()


def owner(client: Any) -> Any:
    return getattr(client, "connection_pool", client)


def holders_of(client: Any) -> Iterator[Any]:
    """Returns the objects that make connections for the client, from settings called connection_kwargs."""
    manager = getattr(client, "nodes_manager", None)
    if manager is None:
        yield client.connection_pool
        return
    yield manager
    if hasattr(client, "connection_kwargs"):
        yield client
    for node in known_nodes(manager):
        connected = getattr(node, "valkey_connection", None) or getattr(node, "redis_connection", None)
        if hasattr(node, "connection_kwargs"):
            yield node
        elif connected is not None:
            yield connected.connection_pool


def known_nodes(manager: Any) -> list[Any]:
    """The nodes of a cluster that its client has heard of so far."""
    return [*manager.nodes_cache.values(), *manager.startup_nodes.values()]


def connections_of(holder: Any) -> Iterator[Any]:
    for name in ("_available_connections", "_in_use_connections", "_connections"):
        yield from getattr(holder, name, ())
