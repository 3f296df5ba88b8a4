"""A dictionary as one is trained for values that are alike."""

from __future__ import annotations

import random

import xxhash
import zstandard


def dictionary() -> bytes:
    """A zstd dictionary with the ID of its content, as spec/envelope.md has it."""
    rng = random.Random(7)
    samples: list[bytes | bytearray | memoryview[int]] = [
        f'{{"id": {number}, "name": "{rng.random()}", "theme": "dark", "language": "Icelandic"}}'.encode()
        for number in range(2000)
    ]
    trained = zstandard.train_dictionary(4096, samples).as_bytes()
    identity = 32_768 + xxhash.xxh64_intdigest(trained[8:]) % (2**31 - 32_768)
    return trained[:4] + identity.to_bytes(4, "little") + trained[8:]
