"""Dictionaries: what many small values have in common, known to those who write and to those who read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from snugly import _native
from snugly.errors import DictionaryError

Raw = bytes
Bytes = bytes | bytearray | memoryview
DEFAULT_MAX_BYTES = 16 << 10


class Dictionary:
    """A full zstd dictionary, whose ID is that of its content: dictionaries that are equal have one ID, others do not.

    `source` is the dictionary itself, or a path to it. Raises DictionaryError for what is no dictionary, was not
    trained by snugly, is longer than 1 MiB, or cannot be read.
    """

    __slots__ = ("native",)

    def __init__(self, source: Bytes | str | os.PathLike[str]) -> None:
        if isinstance(source, bytes | bytearray | memoryview):
            content, name = bytes(source), "these bytes"
        else:
            path = Path(source)
            name = str(path)
            try:
                content = path.read_bytes()
            except OSError as error:
                raise DictionaryError(f"the dictionary {name} cannot be read: {error.strerror or error}") from error
        try:
            self.native = _native.Dictionary(content)
        except ValueError as error:
            raise DictionaryError(f"{name} cannot be used as a dictionary: {error}") from None

    @classmethod
    def train(cls, samples: Iterable[Bytes], max_bytes: int = DEFAULT_MAX_BYTES) -> Self:
        """Makes a dictionary of at most `max_bytes` bytes (256 to 1 MiB, default 16 KiB) from sample values.

        There should be hundreds of samples that are like the values to come, together some hundred times its size. It
        holds fragments of them. Raises DictionaryError if none can be made of these.
        """
        dictionary = cls.__new__(cls)
        try:
            dictionary.native = _native.Dictionary.train([bytes(sample) for sample in samples], max_bytes)
        except (ValueError, OverflowError) as error:
            raise DictionaryError(str(error)) from None
        return dictionary

    @property
    def id(self) -> int:
        """The ID, computed from the content."""
        return self.native.id

    @property
    def bytes(self) -> Raw:
        """The whole dictionary, to be kept in a file or published."""
        return self.native.bytes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dictionary) and self.native.bytes == other.native.bytes

    def __hash__(self) -> int:
        return self.native.id

    def __repr__(self) -> str:
        return f"<Dictionary {self.id} of {len(self.bytes)} bytes>"
