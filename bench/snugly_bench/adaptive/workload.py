"""The contents of a cache of several applications, and the requests for it, ready to be sent. Knows no server."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from snugly_bench.corpora import generated

JSON_BYTES, PAGE_BYTES = 900, 6_000
LEAST_IMAGE_BYTES, MOST_IMAGE_BYTES = 2_000, 20_000
MAGIC = (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", b"RIFF\x00\x20\x00\x00WEBPVP8 ")
"""The first bytes of a JPEG, a PNG and a WebP."""
PIPELINE = 8
"""Requests that are sent together."""
STORED = b"+OK\r\n"

Pair = tuple[bytes, bytes]
"""A key and its value."""


@dataclass(frozen=True)
class Kind:
    """Values that have a pattern of keys of their own."""

    name: str
    """Prefix of its keys."""
    eighths: int
    """Of all keys, and so of all requests."""
    make: Callable[[str, int], Sequence[bytes]]
    """Makes so many values, with the snugly program."""


@dataclass(frozen=True)
class Batch:
    """Requests that are sent together."""

    request: bytes
    reply: bytes
    """The answer if every value is as it was written."""
    requests: int


def users(program: str, count: int) -> list[bytes]:
    return generated(program, "json", JSON_BYTES, count)


def pages(program: str, count: int) -> list[bytes]:
    return generated(program, "html", PAGE_BYTES, count)


def images(_program: str, count: int) -> list[bytes]:
    source = random.Random(count)
    return [
        source.choice(MAGIC) + source.randbytes(source.randint(LEAST_IMAGE_BYTES, MOST_IMAGE_BYTES))
        for _ in range(count)
    ]


def counters(_program: str, count: int) -> list[bytes]:
    source = random.Random(count)
    return [b"%d" % source.randrange(1_000_000) for _ in range(count)]


IMAGES = "image"
KINDS = (Kind("user", 4, users), Kind(IMAGES, 2, images), Kind("counter", 1, counters), Kind("page", 1, pages))


def pairs(program: str, keys: int) -> dict[str, list[Pair]]:
    """About so many keys with their values, by kind."""
    found = {}
    for kind in KINDS:
        values = kind.make(program, max(1, keys * kind.eighths // 8))
        found[kind.name] = [(b"%s:%d" % (kind.name.encode(), number), value) for number, value in enumerate(values)]
    return found


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(map(bulk, words))


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(text), text)


def batches(requests: Iterator[tuple[bytes, bytes]]) -> list[Batch]:
    """Of requests with their replies."""
    found = []
    while part := list(islice(requests, PIPELINE)):
        found.append(Batch(b"".join(ask for ask, _ in part), b"".join(answer for _, answer in part), len(part)))
    return found


def writing(pairs: Sequence[Pair]) -> list[Batch]:
    """Writes everything once."""
    return batches((command(b"SET", key, value), STORED) for key, value in pairs)


def mixed(pairs: Sequence[Pair], write_percent: int, requests: int, seed: int) -> list[Batch]:
    """Writes and reads of any keys; what is read was written before, and a write changes nothing."""
    source = random.Random(seed)

    def made() -> Iterator[tuple[bytes, bytes]]:
        for key, value in source.choices(pairs, k=requests):
            if source.randrange(100) < write_percent:
                yield command(b"SET", key, value), STORED
            else:
                yield command(b"GET", key), bulk(value)

    return batches(made())
