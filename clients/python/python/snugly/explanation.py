"""Explanation of a client's encoding of a key's values, for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from snugly import _native
from snugly.clients import Compressed, compressor_of
from snugly.compressor import Compressor
from snugly.configuration import CompressionBackend, Goal
from snugly.errors import ConfigurationError


@dataclass(frozen=True)
class Measured:
    """Result of one encoding for sampled values."""

    codec: str
    """`none`, `lz4` or `zstd`."""
    level: int
    dictionary: int | None
    """The ID of the dictionary."""
    values: int
    """Number of measured values."""
    ratio: float
    """Bytes after compression for each byte before."""
    saved: float
    """Bytes that a value takes less, on average."""
    encode: float
    """Processor time to encode a value, in seconds on average; 0.0 for `none`."""
    decode: float
    """The same to decode one."""
    worth: float
    """Worth of it for a value, in nanoseconds: the saved bytes at the goal's price, less the time for writing a
    value and reading it as often as values are read. The highest is chosen; what is in use stays unless another way is
    clearly better.
    """


@dataclass(frozen=True)
class Explanation:
    """Encoding of a key's values, and its reason."""

    pattern: str | None
    """The keys that this is decided for, a glob of KEYS; None while nothing is decided."""
    codec: str
    """`none`, `lz4` or `zstd`."""
    level: int | None
    dictionary: int | None
    """The ID of the dictionary that is used now."""
    goal: Goal | None
    """Goal of the choice; None if the client does not choose."""
    measured: tuple[Measured, ...]
    """Measured encodings; the first is the one used before."""
    decided_at: datetime | None
    why: str
    """The same in words."""


def explain(client: object, key: str | bytes, value: str | bytes | None = None) -> Explanation:
    """Explains the encoding that `client` uses for values of `key` at the moment, or for this one.

    Raises ConfigurationError if the client is not compressed.
    """
    if not isinstance(client, Compressed):
        raise ConfigurationError("the client is not compressed, so there is nothing to explain")
    compressor = compressor_of(client)
    name = key.encode() if isinstance(key, str) else key
    content = value.encode() if isinstance(value, str) else value
    configuration = compressor.configuration
    if content is not None and len(content) < configuration.min_compression_size:
        return plainly(
            "none", None, None, f"values shorter than {configuration.min_compression_size} bytes are left alone"
        )
    if compressor.codec.native.excludes(name):
        return plainly("none", None, None, "the configuration excludes such keys")
    learner = compressor.codec.learner
    if configuration.backend != CompressionBackend.AUTO or learner is None:
        dictionary = dictionary_for(compressor, name)
        level = configuration.compression_level
        return plainly(str(configuration.backend), level, dictionary, "the configuration says so")
    if compressor.codec.dictionaries.excludes(name):
        return plainly("zstd", None, None, "the configuration excludes such keys, so their values are not looked at")
    explained = learner.explain(name, len(content) if content is not None else None)
    if explained is None:
        why = "nothing is decided for such keys yet, or for values of this size"
        return plainly("zstd", None, dictionary_for(compressor, name), why)
    return chosen(explained, dictionary_for(compressor, name))


def plainly(codec: str, level: int | None, dictionary: int | None, why: str) -> Explanation:
    """For what is not chosen. Without a level, it is the codec's own; what is not compressed has none."""
    if codec == CompressionBackend.NONE:
        level = None
    elif level is None:
        _, _, level = _native.levels(codec)
    return Explanation(None, codec, level, dictionary, None, (), None, f"{codec}: {why}")


def chosen(explained: _native.Explained, dictionary: int | None) -> Explanation:
    """For what was chosen, where this dictionary is used for the key."""
    measured = tuple(measured_from(row) for row in explained.measured)
    best = measured[explained.best]
    return Explanation(
        pattern=explained.pattern,
        codec=best.codec,
        level=best.level if best.codec != CompressionBackend.NONE else None,
        dictionary=dictionary if best.dictionary is not None else None,
        goal=Goal(explained.goal),
        measured=measured,
        decided_at=datetime.fromtimestamp(explained.decided_at, UTC),
        why=in_words(explained, best),
    )


def in_words(explained: _native.Explained, best: Measured) -> str:
    goal = f"the goal {explained.goal!r} gives {explained.price:.0f} ns for a saved byte"
    about = f"of {best.values} values of {explained.pattern!r}"
    if best.codec == CompressionBackend.NONE:
        return f"left alone: {about}, none saves enough by any codec for its time; {goal}"
    using = f" with the dictionary {best.dictionary}" if best.dictionary is not None else ""
    size = f"each takes {best.ratio:.0%} of its size and saves {best.saved:.0f} bytes"
    taken = f"in {best.encode * 1e6:.1f} µs to write it and {best.decode * 1e6:.1f} µs to read it"
    text = (
        f"{best.codec} at level {best.level}{using}: {about}, {size}, {taken}, {explained.reads:.1f} times for each "
        f"writing; {goal}, and no other way is worth clearly more"
    )
    if explained.latest_ratio is not None:
        text += f"; lately values take {explained.latest_ratio:.0%}"
    return text


def measured_from(row: Any) -> Measured:
    return Measured(
        codec=row.codec,
        level=row.level,
        dictionary=row.dictionary,
        values=row.values,
        ratio=row.ratio,
        saved=row.saved,
        encode=row.encode,
        decode=row.decode,
        worth=row.worth,
    )


def dictionary_for(compressor: Compressor, key: bytes) -> int | None:
    """The ID of the dictionary that values of a key may be written with now."""
    return compressor.codec.dictionaries.chosen_for(key)
