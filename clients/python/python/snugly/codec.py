"""Envelopes without a client: for caching libraries, tools, and values that travel by other ways.

    from snugly import codec

    stored = codec.encode(page)
    assert codec.decode(stored) == page

A `Codec` has settings and counters of its own, and may be used from any number of threads.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from snugly import _native
from snugly.configuration import (
    AUTO,
    CATALOGUE,
    CompressionBackend,
    CompressionConfiguration,
    ExistingEnvelopes,
    OnUndecodable,
    chosen_globs,
)
from snugly.dictionaries.waker import Waker
from snugly.dictionary import Dictionary
from snugly.errors import ConfigurationError, UndecodableError
from snugly.missed import MissLog

__all__ = ["Codec", "Envelope", "decode", "encode", "inspect"]


@dataclass(frozen=True)
class Envelope:
    """Claims of the first bytes of an envelope, true or not."""

    backend: int
    """The backend's number."""
    name: str | None
    """`zstd`, `lz4`, `zstd_dictionary`, `lz4_dictionary`, or None for a backend that this version does not know."""
    size: int | None
    """The length that is claimed for the value, in bytes. zstd frames need not claim one."""
    dictionary: int | None
    """The ID of the dictionary that is needed."""


class Codec:
    """Encodes and decodes values as `configuration` says (default: `CompressionConfiguration()`).

    `enabled=False` is the same as the backend `none`: nothing is compressed, everything is read. Of dictionaries it
    knows the one that is given; raises ConfigurationError for `dictionary="catalogue"`, `"auto"`, for the backend
    `auto` and for `exclude`, which are for clients.
    """

    def __init__(self, configuration: CompressionConfiguration | None = None) -> None:
        chosen = configuration or CompressionConfiguration()
        if chosen.writes_dictionaries and chosen.dictionary in (CATALOGUE, AUTO):
            raise ConfigurationError(
                f"dictionary is {chosen.dictionary!r}, which only clients can read: give a Dictionary"
            )
        if chosen.backend == CompressionBackend.AUTO:
            raise ConfigurationError("backend is 'auto', which is for clients, who know keys: choose 'zstd' or 'lz4'")
        if chosen.exclude:
            raise ConfigurationError("exclude has patterns of keys, which only clients know: leave it out")
        self._make(chosen, None)

    @classmethod
    def for_client(cls, configuration: CompressionConfiguration, waker: Waker) -> Codec:
        """One whose dictionaries come from a server. `waker` is called when they are used."""
        codec = cls.__new__(cls)
        codec._make(configuration, waker)
        return codec

    def _make(self, configuration: CompressionConfiguration, waker: Waker | None) -> None:
        self.configuration = chosen = configuration
        self._on_undecodable = chosen.on_undecodable
        self._misses = MissLog()
        given = chosen.dictionary
        self.dictionaries = _native.Dictionaries(
            given.native if isinstance(given, Dictionary) else None,
            chosen.enabled and chosen.writes_dictionaries,
            list(chosen_globs("dictionary_exclude", chosen.dictionary_exclude)),
            waker,
        )
        # Default until there is a decision.
        backend = CompressionBackend.ZSTD if chosen.backend == CompressionBackend.AUTO else chosen.backend
        self.learner = self._learner(backend) if chosen.learns else None
        if not chosen.enabled:
            backend = CompressionBackend.NONE
        self.native = _native.Codec(
            backend=backend,
            level=None if backend == CompressionBackend.NONE else chosen.compression_level,
            min_compression_size=chosen.min_compression_size,
            max_decompressed_size=chosen.max_decompressed_size,
            max_reply_bytes=chosen.max_reply_bytes,
            wrap=chosen.existing_envelopes == ExistingEnvelopes.WRAP,
            checksum=chosen.checksum,
            exclude=list(chosen_globs("exclude", chosen.exclude)),
            dictionaries=self.dictionaries,
            learner=self.learner,
        )

    def _learner(self, backend: CompressionBackend) -> _native.Learner:
        chosen = self.configuration
        return _native.Learner(
            goal=chosen.goal if chosen.backend == CompressionBackend.AUTO else None,
            trains=chosen.trains,
            backend=backend,
            level=chosen.compression_level,
            min_compression_size=chosen.min_compression_size,
            memory=chosen.dictionary_memory,
            seed=secrets.randbits(64),
            dictionaries=self.dictionaries,
        )

    def encode(self, value: bytes | bytearray | memoryview) -> bytes:
        """The bytes to store for `value`: an envelope, or the value itself where that gains nothing. Never fails."""
        return self.native.encode(value)

    def decode(self, stored: bytes | bytearray | memoryview, *, key: bytes | None = None) -> bytes | None:
        """The value that `stored` holds: itself if it is no envelope.

        Raises UndecodableError for an envelope that cannot be read; it names `key`. With `on_undecodable` it is what is
        stored (`raw`), or None (`miss`).
        """
        try:
            return self.native.decode(stored)
        except _native.EnvelopeError as error:
            if error.args[3] is not None:
                self.native.count_unread()
            if self._on_undecodable == OnUndecodable.RAW:
                return bytes(stored)
            unread = undecodable(UndecodableError, bytes(stored), key, error)
            if self._on_undecodable != OnUndecodable.MISS:
                raise unread from None
            self._misses.tell(unread)
            return None

    def statistics(self) -> dict[str, int]:
        """Counters of this codec since it was made, by name."""
        return self.native.statistics()


def exact_codec(**options: Any) -> Codec:
    """A codec for a library that hands over all of its values, and wants each back as it was.

    `options` are those of `CompressionConfiguration`, but by default envelopes are wrapped, and what cannot be read is
    a miss.
    """
    defaults = {"existing_envelopes": ExistingEnvelopes.WRAP, "on_undecodable": OnUndecodable.MISS}
    return Codec(CompressionConfiguration(**{**defaults, **options}))


def undecodable(
    kind: type[UndecodableError], stored: bytes, key: bytes | None, error: _native.EnvelopeError, besides: str = ""
) -> UndecodableError:
    """The error to raise for `stored`, which ends with what there is to say `besides`."""
    why, named, backend, _ = error.args
    at = f", at key {key!r}" if key is not None else ""
    message = f"cannot decode an envelope of {len(stored)} bytes, backend {backend:02x}{at}: {why}{besides}"
    return kind(message, kind=named, key=key, backend=backend, stored=stored)


_default = Codec()


def encode(value: bytes | bytearray | memoryview) -> bytes:
    """Like `Codec().encode`: zstd, level 3, from 64 bytes on."""
    return _default.encode(value)


def decode(stored: bytes | bytearray | memoryview, *, key: bytes | None = None) -> bytes:
    """Like `Codec().decode`."""
    value = _default.decode(stored, key=key)
    assert value is not None, "what cannot be read is an error by default"
    return value


def inspect(stored: bytes | bytearray | memoryview) -> Envelope | None:
    """Parses the header of an envelope; None if the bytes are not an envelope."""
    header = _native.inspect(stored)
    return Envelope(*header) if header else None
