"""The requests whose processor time is measured, with what prepares them and what is compared after them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from snugly_bench.module.batches import OK, Exchange, bulk, getting, integer, request, setting

JSON = "JSON"
PIPELINE = 16
DEPTHS = {1: "one at a time", PIPELINE: f"pipelined by {PIPELINE}"}
SMALL_BYTES = (20, 100)
"""Sizes of values that are too short to be compressed."""
MEMBERS = 100
"""Of a hash and of a sorted set: as many as are kept in one piece of memory."""
COUNTER = 10**9
"""Counters begin there, so that all replies have the same length."""


@dataclass(frozen=True)
class Load:
    """Requests that are repeated in their order."""

    name: str
    exchanges: tuple[Exchange, ...]
    """With replies as they are the first time; later ones have the same length."""
    before: tuple[Exchange, ...] = ()
    after: tuple[Exchange, ...] = ()

    def workload(self, depth: int) -> str:
        return f"{self.name}, {DEPTHS[depth]}"


def small_values(size: int, count: int) -> list[bytes]:
    source = random.Random(size)
    return [source.randbytes(size // 2).hex().encode() for _ in range(count)]


def strings(name: str, prefix: str, values: Sequence[bytes]) -> tuple[Load, Load]:
    """Values that are read, and the same replaced by one another."""
    keys = [f"{prefix}:{number}" for number in range(len(values))]
    written = tuple(map(setting, keys, values))
    replaced = [*values[1:], values[0]]
    return (
        Load(f"GET of {name}", tuple(map(getting, keys, values)), before=written),
        Load(f"SET of {name}", tuple(map(setting, keys, replaced)), written, tuple(map(getting, keys, replaced))),
    )


def others(count: int) -> tuple[Load, ...]:
    """Commands that have nothing to do with strings that are compressed."""
    fields = [(f"field:{number:03}", b"%020d" % number) for number in range(MEMBERS)]
    scores = [(f"member:{number % MEMBERS}", number) for number in range(count)]
    return (
        Load("PING", (Exchange(request("PING"), b"+PONG\r\n"),) * count),
        Load(
            "HGET",
            tuple(
                Exchange(request("HGET", "hash", field), bulk(value))
                for field, value in (fields[number % MEMBERS] for number in range(count))
            ),
            before=(Exchange(request("HSET", "hash", *(word for pair in fields for word in pair)), integer(MEMBERS)),),
        ),
        Load(
            "ZADD",
            tuple(
                Exchange(request("ZADD", "scores", score, member), integer(int(score < MEMBERS)))
                for member, score in scores
            ),
        ),
        Load(
            "INCR",
            tuple(Exchange(request("INCR", "counter"), integer(COUNTER + number + 1)) for number in range(count)),
            before=(Exchange(request("SET", "counter", COUNTER), OK),),
        ),
    )


def all_loads(json: Sequence[bytes]) -> tuple[Load, ...]:
    """As many requests of each kind as there are values, but that all batches are full."""
    json = json[: len(json) // PIPELINE * PIPELINE]
    small = [
        load for size in SMALL_BYTES for load in strings(f"{size} bytes", f"of-{size}", small_values(size, len(json)))
    ]
    return (*strings(JSON, "json", json), *others(len(json)), *small)
