"""Values that are made from the name of their key and a version, and what a key with them is read as.

It knows nothing of servers. A value names its key and its version, so that one that comes back under another key, or
an older one, is seen for what it is.
"""

from __future__ import annotations

import json
import random
import zlib
from typing import TypeAlias

from resp import Argument, Reply

# Versions: one of a string, those of all elements or pieces, the number of a counter, or None for no key; of a key that
# expires its version and its deadline in Unix milliseconds.
State: TypeAlias = "int | tuple[int, ...] | None"

# Shortest and longest value of a kind of keys, in bytes. The kind is what a key's name begins with.
SIZES = {
    "string": (40, 3_000),
    "big": (100_000, 500_000),
    "list": (10, 300),
    "draft": (20, 400),
    "pair": (40, 600),
    "expiring": (40, 1_000),
    "queue": (10, 100),
    "item": (40, 3_000),
}
# Kinds whose keys hold lists, those that are put together from pieces, and those that count.
LISTS = ("list", "queue")
PIECES = ("draft",)
COUNTERS = ("counter", "tally")


def _records() -> bytes:
    """Documents that are alike, as a cache has them."""
    rng = random.Random("records")
    records = []
    for number in range(6_000):
        name = "".join(rng.choices("abcdefghijklmnop", k=8))
        records.append({"id": number, "name": name, "email": f"{name}@example.com", "tags": rng.choices(TAGS, k=4)})
    return json.dumps(records).encode()


TAGS = ("red", "green", "blue", "large", "small", "new", "sold out", "on its way")
LONGEST = max(longest for _, longest in SIZES.values())
TEXT = (_records() * 4)[: 2 * LONGEST]
NOISE = random.Random("noise").randbytes(2 * LONGEST)
# One value of so many is noise, which nothing compresses.
NOISE_EVERY = 8


def kind(key: str) -> str:
    return key.split(":")[0]


def value(key: str, version: int) -> bytes:
    """The value of this version of a key: of a size of its kind, text that compresses or, now and then, noise."""
    shortest, longest = SIZES[kind(key)]
    head = b"%b %d " % (key.encode(), version)
    drawn = zlib.crc32(head)
    body = NOISE if drawn % NOISE_EVERY == 0 else TEXT
    start, size = drawn % LONGEST, shortest + drawn % (longest - shortest)
    return head + body[start : start + size]


def is_made(key: str, text: bytes) -> bool:
    """Whether some version of the key has this value."""
    name, version, _ = text.split(b" ", 2)
    return name == key.encode() and version.isdigit() and value(key, int(version)) == text


def reading(key: str, state: State) -> tuple[tuple[Argument, ...], Reply]:
    """The command that reads a key whole, and its reply in a state."""
    if kind(key) in LISTS:
        versions = state if isinstance(state, tuple) else ()
        return ("LRANGE", key, 0, -1), [value(key, version) for version in versions]
    return ("GET", key), _text(key, state)


def _text(key: str, state: State) -> bytes | None:
    if state is None:
        return None
    if isinstance(state, int):
        return b"%d" % state if kind(key) in COUNTERS else value(key, state)
    versions = state if kind(key) in PIECES else state[:1]
    return b"".join(value(key, version) for version in versions)
