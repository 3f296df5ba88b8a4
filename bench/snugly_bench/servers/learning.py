"""A server that learns dictionaries from some values, and keeps them for others: how it is taught, and when it is done.

Whoever is taught and whoever learns nothing get the same writes, so that what these leave behind in memory is the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import valkey

from snugly_bench.servers.info import info, setting
from snugly_bench.servers.peers import Server
from snugly_bench.servers.process import thread_seconds

THREAD = "dictionaries"
"""The server's thread that learns, as the system calls it."""
SHARE = "background-cpu-percent"
"""The setting for how much of a processor that takes."""
BATCH = 100
PASSES = 6
"""Times that values are written before a wait: the server goes on sampling until keys come again and again."""
LEAST_WRITES = 3_000
"""At least so many writes, where there are few values."""
MOST_REPETITIONS = 5
"""Most repetitions of this, as long as something is learned by it."""
STEADY_SECONDS = 1.0
"""Nothing more is learned once nothing has changed for so long, with the thread that learns at rest."""
REST_SHARE = 0.1
"""Of a processor, what a thread at rest may take."""
LEARNING_SECONDS = 120.0
"""Longest time for learning."""
STAND_IN = b"-"
STAND_IN_CODEC = "zstd"
T = TypeVar("T")
FIRST_STAND_IN = 1_000_000_000
"""From which number on keys are those of stand-ins."""


@dataclass(frozen=True)
class Lesson:
    """The result of teaching."""

    is_fixed: bool
    """Whether the server learns nothing more. Where it does not know that mode, it may go on with other values."""
    trainings: int
    """Number of trainings by then."""
    dictionaries: int
    """Number of dictionaries in use."""


def key_prefix(data: str) -> str:
    """The prefix of the keys of a corpus: one pattern for all of them."""
    return f"{data.partition(':')[0]}:"


def batches(all_of_them: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(all_of_them)
    while batch := list(islice(rest, BATCH)):
        yield batch


def write(client: valkey.Valkey, pairs: Iterable[tuple[str, bytes]]) -> None:
    """In pipelines."""
    for batch in batches(pairs):
        pipeline = client.pipeline(transaction=False)
        for key, value in batch:
            pipeline.set(key, value)
        pipeline.execute()  # type: ignore[no-untyped-call]


def check(client: valkey.Valkey, pairs: Iterable[tuple[str, bytes]]) -> None:
    """Reads everything, and exits if a value came back other than it was written."""
    for batch in batches(pairs):
        pipeline = client.pipeline(transaction=False)
        for key, _ in batch:
            pipeline.get(key)
        replies = pipeline.execute()  # type: ignore[no-untyped-call]
        for (key, value), reply in zip(batch, replies, strict=True):
            if reply != value:
                raise SystemExit(f"{key} came back different")


def teach(server: Server, prefix: str, values: Sequence[bytes], population: int) -> Lesson:
    """Has a snugly learn from `values` alone as if there were `population` of them, and leaves it without keys.

    A dictionary is only used where it is worth its own memory, so there must be as many keys as there will be when it
    is measured. They have stand-ins of the values' lengths, written while nothing is learned, that say nothing.
    """
    numbered = [(f"{prefix}{number}", value) for number, value in enumerate(values)]
    with valkey.Valkey(port=server.port) as client:
        learns = setting(client, "dictionaries") != "no"
        if learns:
            # With `auto` it would learn from stand-ins even without dictionaries.
            codec = setting(client, "compression")
            client.config_set("compression", STAND_IN_CODEC, "dictionaries", "no")
        write(client, stand_ins(prefix, values, population))
        if learns:
            client.config_set("compression", codec, "dictionaries", "yes")
        with hurrying(client):
            before = None
            for _ in range(MOST_REPETITIONS):
                for _ in range(max(PASSES, LEAST_WRITES // len(numbered))):
                    write(client, numbered)
                state = learned(server, client) if learns else None
                if state == before:
                    break
                before = state
        is_fixed = fix(client) if learns else True
        found = info(client, "dictionaries")
        keys = [key for key, _ in numbered] + [key for key, _ in stand_ins(prefix, values, population)]
        for batch in batches(keys):
            client.delete(*batch)
    return Lesson(is_fixed, found["dictionary_trainings"], found["dictionaries_active"])


@contextmanager
def hurrying(client: valkey.Valkey) -> Iterator[None]:
    """Learning may take all of a processor meanwhile, and afterwards what it might before."""
    usual = setting(client, SHARE)
    client.config_set(SHARE, 100)
    try:
        yield
    finally:
        client.config_set(SHARE, usual)


def stand_ins(prefix: str, values: Sequence[bytes], population: int) -> Iterator[tuple[str, bytes]]:
    for number in range(population - len(values)):
        yield f"{prefix}{FIRST_STAND_IN + number}", STAND_IN * len(values[number % len(values)])


def fix(client: valkey.Valkey) -> bool:
    """Has the server use what it has learned, and learn nothing more; says whether it knows how."""
    try:
        client.config_set("dictionaries", "fixed")
    except valkey.ResponseError:
        return False
    return True


def learned(server: Server, client: valkey.Valkey) -> dict[str, Any]:
    """Waits until the server has learned what it can from what was written; says what it has done so far.

    Exits if that takes too long.
    """
    deadline = time.monotonic() + LEARNING_SECONDS
    before: object = None
    while True:
        worked = thread_seconds(server.pid, THREAD)
        found = info(client, "dictionaries")
        state = {field: found[field] for field in ("dictionary_trainings", "dictionary_records")}
        time.sleep(STEADY_SECONDS)
        worked = thread_seconds(server.pid, THREAD) - worked
        if state == before and worked < REST_SHARE * STEADY_SECONDS:
            return state
        if time.monotonic() > deadline:
            raise SystemExit(f"{server.peer.name} still learns after {LEARNING_SECONDS:.0f} seconds")
        before = state
