"""Settings of compression, their defaults and their ranges."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from snugly import _native
from snugly.dictionary import Dictionary
from snugly.errors import ConfigurationError

LEAST_MIN_COMPRESSION_SIZE = 6
DEFAULT_MAX_DECOMPRESSED_SIZE = 512 << 20
DEFAULT_MAX_REPLY_BYTES = 1 << 30
MOST_DATABASES = (1 << 31) - 1
# Greatest length that an LZ4 payload can declare.
MOST_BYTES = (1 << 32) - 1
MOST_REPLY_BYTES = (1 << 63) - 1
CATALOGUE = "catalogue"
AUTO = "auto"
DEFAULT_MEMORY = 8 << 20
LEAST_MEMORY, MOST_MEMORY = 1 << 20, 1 << 30
DEFAULT_PREFIX = "{snugly}"
DEFAULT_REFRESH = 60.0
LEAST_REFRESH, MOST_REFRESH = 0.1, 86400.0


class CompressionBackend(enum.StrEnum):
    """Backend for new values. Every client reads all of them."""

    ZSTD = "zstd"
    """Small. Levels -131072 to 22, default 3."""
    LZ4 = "lz4"
    """Fast. Levels -128 to 12, default 0."""
    AUTO = "auto"
    """The best backend for each kind of keys by a `Goal`, found by the client."""
    NONE = "none"
    """Compresses nothing and reads everything: for readers that go first in a roll-out."""


class Goal(enum.StrEnum):
    """Goal of the backend `AUTO`: the processor time that a saved byte may cost."""

    MEMORY = "memory"
    """The least memory: up to 500 ns."""
    BALANCED = "balanced"
    """Large savings for the time that they take: up to 20 ns."""
    SPEED = "speed"
    """Savings at next to no cost: up to 5 ns."""


class ExistingEnvelopes(enum.StrEnum):
    """Treatment of a written value that is already a well-formed envelope."""

    KEEP = "keep"
    """Sends it as it is, so that nothing is compressed twice."""
    WRAP = "wrap"
    """Encodes it like any other value, and reads it back as it was: for values that strangers make."""


class OnUndecodable(enum.StrEnum):
    """Result of reading an envelope that cannot be decoded."""

    RAISE = "raise"
    """`UndecodableError`."""
    RAW = "raw"
    """The bytes as they are stored."""
    MISS = "miss"
    """None, as for a key that is not there: for caches, whose values can be had again."""


class ValueType(enum.StrEnum):
    """Types of keys whose values are compressed."""

    STRINGS = "strings"
    HASHES = "hashes"
    LISTS = "lists"
    STREAMS = "streams"


@dataclass(frozen=True, kw_only=True)
class CompressionConfiguration:
    """Compression settings of a client. Names and defaults are those of Valkey GLIDE where it has them.

    enabled                 False is the same as no configuration at all. Default True.
    backend                 `CompressionBackend.ZSTD` (default), `LZ4`, `AUTO` or `NONE`, or its name.
    goal                    Goal of `AUTO`: `Goal.MEMORY`, `BALANCED` (default) or `SPEED`.
    compression_level       zstd -131072 to 22 (default 3), lz4 -128 to 12 (default 0). Lower is faster, higher smaller.
                            With `NONE` it is ignored, so that one setting ends compression.
    min_compression_size    Shorter values are sent as they are, in bytes, from 6. Default 64. Values under 32 bytes
                            always are.
    max_decompressed_size   Longer values are neither compressed nor decoded, in bytes. Default 512 MiB.
    max_reply_bytes         Most bytes of all restored values of one reply, or of the replies to one pipeline; 0 for no
                            bound. Values beyond it are not restored. Default 1 GiB.
    existing_envelopes      `ExistingEnvelopes.KEEP` (default) or `WRAP`.
    checksum                Whether zstd frames carry a checksum of the value, 4 bytes. Default False.
    on_undecodable          `OnUndecodable.RAISE` (default), `RAW` or `MISS`.
    value_types             Some of `ValueType`. Default: strings only.
    exclude                 Globs of keys (as those of KEYS) whose values are sent as they are, for locks and tokens
                            that scripts compare. Default: none.
    dictionary              Dictionaries to write with: "catalogue" for those beside the data, "auto"
                            for the same and to train some from written values, a `Dictionary` or a path to one for
                            that one, whatever the key. Default None: no dictionary. Values that others wrote with
                            one are read in any case. With `NONE` it is for reading only.
    dictionary_prefix       Prefix of the keys of dictionaries. Default "{snugly}".
    dictionary_database     Number of the database that they are in. Default None: the client's own.
    dictionary_refresh      Time between reads of the catalogue, and from the publication of a dictionary to its first
                            use, in seconds from 0.1 to 86,400: the same for all of a fleet. Default 60.
    dictionary_folder       Folder in which copies of fetched dictionaries are kept. Default None: none.
    dictionary_exclude      Globs of keys (as those of KEYS) whose values are neither sampled nor written with a
                            dictionary. Default: none.
    dictionary_memory       Most bytes of samples of written values, from 1 MiB to 1 GiB. Default 8 MiB.

    Raises ConfigurationError for anything else.
    """

    enabled: bool = True
    backend: CompressionBackend = CompressionBackend.ZSTD
    goal: Goal = Goal.BALANCED
    compression_level: int | None = None
    min_compression_size: int = 64
    max_decompressed_size: int = DEFAULT_MAX_DECOMPRESSED_SIZE
    max_reply_bytes: int = DEFAULT_MAX_REPLY_BYTES
    existing_envelopes: ExistingEnvelopes = ExistingEnvelopes.KEEP
    checksum: bool = False
    on_undecodable: OnUndecodable = OnUndecodable.RAISE
    value_types: Iterable[ValueType] = field(default=frozenset({ValueType.STRINGS}))
    exclude: Iterable[str | bytes] = ()
    dictionary: Dictionary | str | os.PathLike[str] | None = None
    dictionary_prefix: str = DEFAULT_PREFIX
    dictionary_database: int | None = None
    dictionary_refresh: float = DEFAULT_REFRESH
    dictionary_folder: str | os.PathLike[str] | None = None
    dictionary_exclude: Iterable[str | bytes] = ()
    dictionary_memory: int = DEFAULT_MEMORY

    def __post_init__(self) -> None:
        for name in ("enabled", "checksum"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigurationError(f"{name} is {getattr(self, name)!r}: choose True or False")
        for name, kind in (
            ("backend", CompressionBackend),
            ("goal", Goal),
            ("existing_envelopes", ExistingEnvelopes),
            ("on_undecodable", OnUndecodable),
        ):
            object.__setattr__(self, name, chosen(name, getattr(self, name), kind))
        if self.compression_level is not None and self.backend != CompressionBackend.NONE:
            if self.backend == CompressionBackend.AUTO:
                raise ConfigurationError("compression_level goes with a backend, and 'auto' chooses both: give a goal")
            lowest, highest, _ = _native.levels(self.backend)
            in_range("compression_level", self.compression_level, lowest, highest, f"for {self.backend} ")
        in_range("min_compression_size", self.min_compression_size, LEAST_MIN_COMPRESSION_SIZE, MOST_BYTES)
        in_range("max_decompressed_size", self.max_decompressed_size, 1, MOST_BYTES)
        in_range("max_reply_bytes", self.max_reply_bytes, 0, MOST_REPLY_BYTES)
        if self.dictionary_database is not None:
            in_range("dictionary_database", self.dictionary_database, 0, MOST_DATABASES)
        object.__setattr__(self, "value_types", chosen_types(self.value_types))
        object.__setattr__(self, "dictionary", chosen_dictionary(self.dictionary))
        if not isinstance(self.dictionary_prefix, str) or not self.dictionary_prefix:
            raise ConfigurationError(f"dictionary_prefix is {self.dictionary_prefix!r}: give some text")
        if not isinstance(self.dictionary_refresh, float):
            in_range("dictionary_refresh", self.dictionary_refresh, 1, int(MOST_REFRESH))
        elif not LEAST_REFRESH <= self.dictionary_refresh <= MOST_REFRESH:
            raise ConfigurationError(
                f"dictionary_refresh is {self.dictionary_refresh!r}: it is a number of seconds from {LEAST_REFRESH} to "
                f"{MOST_REFRESH:.0f}"
            )
        if not isinstance(self.dictionary_folder, str | os.PathLike | None):
            raise ConfigurationError(f"dictionary_folder is {self.dictionary_folder!r}: give a path, or None")
        for name in ("exclude", "dictionary_exclude"):
            object.__setattr__(self, name, chosen_globs(name, getattr(self, name)))
        in_range("dictionary_memory", self.dictionary_memory, LEAST_MEMORY, MOST_MEMORY)

    @property
    def writes_dictionaries(self) -> bool:
        """Whether values are written with dictionaries."""
        return self.dictionary is not None and self.backend != CompressionBackend.NONE

    @property
    def trains(self) -> bool:
        """Whether clients train dictionaries."""
        return self.writes_dictionaries and self.dictionary == AUTO

    @property
    def chooses_by_key(self) -> bool:
        """Whether how a value is written depends on its key."""
        return bool(self.exclude) or self.writes_dictionaries or self.learns

    @property
    def learns(self) -> bool:
        """Whether clients look at what they write."""
        return self.trains or self.backend == CompressionBackend.AUTO


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


def chosen_dictionary(value: object) -> Dictionary | str | None:
    if value is None or isinstance(value, Dictionary) or value in (CATALOGUE, AUTO):
        return value
    if isinstance(value, str | os.PathLike):
        return Dictionary(value)
    raise ConfigurationError(
        f"dictionary is {value!r}: give None, {CATALOGUE!r}, {AUTO!r}, a Dictionary, or a path to one"
    )


def chosen_globs(name: str, value: object) -> tuple[bytes, ...]:
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        globs = tuple(each.encode() if isinstance(each, str) else each for each in value)
        if all(isinstance(each, bytes) for each in globs):
            return globs
    raise ConfigurationError(f"{name} is {value!r}: give some patterns of keys, such as ('session:*',)")


def one_of(kind: type[enum.StrEnum]) -> str:
    return ", ".join(repr(str(each)) for each in kind)


def in_range(name: str, value: object, lowest: int, highest: int, whose: str = "") -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise ConfigurationError(f"{name} is {value!r}: {whose}it is a number from {lowest} to {highest}")
