"""A server of a test's own, and who looks after the dictionaries there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import valkey

import servers
from kinds import Driver
from published import WITH_DICTIONARY
from servers import Server
from snugly import CompressionConfiguration
from waiting import until

REFRESH = 0.6
READER = CompressionConfiguration(dictionary_refresh=REFRESH)
# Clients that wait for a missing dictionary as long as a busy machine takes to put it where it belongs.
PATIENT = CompressionConfiguration(dictionary="catalogue", dictionary_refresh=600.0)
CATALOGUE = CompressionConfiguration(dictionary="catalogue", dictionary_refresh=REFRESH)


@contextmanager
def own_server(*options: str) -> Iterator[tuple[Server, Any]]:
    """The server, and a client that does not compress."""
    with servers.valkey(*options) as server, valkey.Valkey(port=server.port) as plain:
        yield server, plain


def all_threads() -> list[threading.Thread]:
    """Threads of synchronous clients."""
    return [thread for thread in threading.enumerate() if thread.name == "snugly-dictionaries"]


def write_until(client: Driver, plain: Driver, key: str, value: bytes, start: bytes = WITH_DICTIONARY) -> None:
    """Writes a value until it is stored with a dictionary, or as else it should start."""

    def is_so() -> bool:
        client("set", key, value)
        return bytes(plain("get", key)).startswith(start)

    until(is_so)
