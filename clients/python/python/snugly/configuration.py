"""How values are compressed: the settings, their defaults and what they may be."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from snugly import _native
from snugly.errors import ConfigurationError

LEAST_MIN_COMPRESSION_SIZE = 6
DEFAULT_MAX_DECOMPRESSED_SIZE = 512 << 20
# What an LZ4 payload can declare.
MOST_BYTES = (1 << 32) - 1


class CompressionBackend(enum.StrEnum):
    """What new values are compressed with. Every client reads all of them."""

    ZSTD = "zstd"
    """Small. Levels -131072 to 22, default 3."""
    LZ4 = "lz4"
    """Fast. Levels -128 to 12, default 0."""
    NONE = "none"
    """Compresses nothing and reads everything: for readers that go first in a roll-out."""


class ExistingEnvelopes(enum.StrEnum):
    """What becomes of a value that is a well-formed envelope before it is written."""

    KEEP = "keep"
    """It is sent as it is, so that nothing is compressed twice."""
    WRAP = "wrap"
    """It is encoded like any other value and read back as it was: for values that strangers make."""


class OnUndecodable(enum.StrEnum):
    """What a reader gets for an envelope that cannot be read."""

    RAISE = "raise"
    """`UndecodableError`."""
    RAW = "raw"
    """The bytes as they are stored."""


class ValueType(enum.StrEnum):
    """Whose values are compressed."""

    STRINGS = "strings"
    HASHES = "hashes"
    LISTS = "lists"
    STREAMS = "streams"


@dataclass(frozen=True, kw_only=True)
class CompressionConfiguration:
    """How a client compresses. Names and defaults are those of Valkey GLIDE where it has them.

    enabled                 False is the same as no configuration at all. Default True.
    backend                 `CompressionBackend.ZSTD` (default), `LZ4` or `NONE`, or its name.
    compression_level       zstd -131072 to 22 (default 3), lz4 -128 to 12 (default 0). Lower is faster, higher smaller.
    min_compression_size    Shorter values are sent as they are, in bytes, from 6. Default 64. Values under 32 bytes
                            always are.
    max_decompressed_size   Longer values are neither compressed nor decoded, in bytes. Default 512 MiB.
    existing_envelopes      `ExistingEnvelopes.KEEP` (default) or `WRAP`.
    checksum                Whether zstd frames carry a checksum of the value, 4 bytes. Default False.
    on_undecodable          `OnUndecodable.RAISE` (default) or `RAW`.
    value_types             Some of `ValueType`. Default: strings only.

    Raises ConfigurationError for anything else.
    """

    enabled: bool = True
    backend: CompressionBackend = CompressionBackend.ZSTD
    compression_level: int | None = None
    min_compression_size: int = 64
    max_decompressed_size: int = DEFAULT_MAX_DECOMPRESSED_SIZE
    existing_envelopes: ExistingEnvelopes = ExistingEnvelopes.KEEP
    checksum: bool = False
    on_undecodable: OnUndecodable = OnUndecodable.RAISE
    value_types: Iterable[ValueType] = field(default=frozenset({ValueType.STRINGS}))

    def __post_init__(self) -> None:
        for name in ("enabled", "checksum"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigurationError(f"{name} is {getattr(self, name)!r}: choose True or False")
        for name, kind in (
            ("backend", CompressionBackend),
            ("existing_envelopes", ExistingEnvelopes),
            ("on_undecodable", OnUndecodable),
        ):
            object.__setattr__(self, name, chosen(name, getattr(self, name), kind))
        lowest, highest, _ = _native.levels(self.backend)
        if self.compression_level is not None:
            in_range("compression_level", self.compression_level, lowest, highest, f"for {self.backend} ")
        in_range("min_compression_size", self.min_compression_size, LEAST_MIN_COMPRESSION_SIZE, MOST_BYTES)
        in_range("max_decompressed_size", self.max_decompressed_size, 1, MOST_BYTES)
        object.__setattr__(self, "value_types", chosen_types(self.value_types))


def chosen(name: str, value: object, kind: type[enum.StrEnum]) -> enum.StrEnum:
    try:
        return kind(str(value))
    except ValueError:
        raise ConfigurationError(f"{name} is {value!r}: choose {one_of(kind)}") from None


def chosen_types(value: object) -> frozenset[enum.StrEnum]:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        raise ConfigurationError(f"value_types is {value!r}: give a set with some of {one_of(ValueType)}")
    types = frozenset(chosen("value_types", each, ValueType) for each in value)
    if not types:
        raise ConfigurationError(f"value_types is empty: give some of {one_of(ValueType)}, or compression=False")
    return types


def one_of(kind: type[enum.StrEnum]) -> str:
    return ", ".join(repr(str(each)) for each in kind)


def in_range(name: str, value: object, lowest: int, highest: int, whose: str = "") -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise ConfigurationError(f"{name} is {value!r}: {whose}it is a number from {lowest} to {highest}")
