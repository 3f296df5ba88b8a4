"""Transparent compression for the clients of Valkey and Redis.

    import snugly

    cache = snugly.Valkey(host="localhost", compression=True)
    cache.set("page:1", b"<html>" * 1000)
    assert cache.get("page:1") == b"<html>" * 1000

`snugly.asyncio`, imported by itself, has the same for asyncio, `snugly.compress` gives it to a client that is there
already, and `snugly.codec` is for values without a client.
"""

from snugly._native import __version__
from snugly.clients import Compression, compress, statistics
from snugly.configuration import (
    CompressionBackend,
    CompressionConfiguration,
    ExistingEnvelopes,
    Goal,
    OnUndecodable,
    ValueType,
)
from snugly.dictionary import Dictionary
from snugly.errors import CommandRefusedError, ConfigurationError, DictionaryError, SnuglyError, UndecodableError
from snugly.explanation import Explanation, Measured, explain
from snugly.valkey_clients import Valkey, ValkeyCluster

__all__ = [
    "CommandRefusedError",
    "Compression",
    "CompressionBackend",
    "CompressionConfiguration",
    "ConfigurationError",
    "Dictionary",
    "DictionaryError",
    "ExistingEnvelopes",
    "Explanation",
    "Goal",
    "Measured",
    "OnUndecodable",
    "SnuglyError",
    "UndecodableError",
    "Valkey",
    "ValkeyCluster",
    "ValueType",
    "__version__",
    "compress",
    "explain",
    "statistics",
]
