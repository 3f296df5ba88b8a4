"""Values that have much in common, dictionaries for them, and what a valkey-server with the module has of these.

It knows the module's commands and settings about dictionaries, and envelopes with them. It knows nothing of what is
tested.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import lz4.block
import xxhash
import zstandard

import envelope
from info import info
from resp import Connection, Simple
from waiting import until

OK = Simple(b"OK")
# Compresses in the background as fast as it can.
BUSY = ("--snugly.background-cpu-percent", "100")
# A window of LZ4 is all that it takes of a dictionary.
WINDOW = 64 << 10


def user(number: int) -> bytes:
    """A value of some 300 bytes, which has hardly anything of its own."""
    rng = random.Random(number)

    def word(size: int) -> str:
        return "".join(rng.choices("abcdefghij", k=size))

    address = {"street": f"{word(12)} street", "city": word(6), "country": "Iceland"}
    preferences = {"language": "is", "newsletter": True, "theme": "dark", "currency": "ISK"}
    mail = f"{word(9)}@example.com"
    return json.dumps(
        {"id": number, "name": word(8), "email": mail, "address": address, "preferences": preferences}
    ).encode()


@cache
def trained(seed: int = 0) -> bytes:
    """A dictionary for such values, with the ID of its content."""
    samples: list[bytes | bytearray | memoryview[int]] = [user(seed * 10_000 + number) for number in range(2_000)]
    made = zstandard.train_dictionary(4096, samples).as_bytes()
    return made[:4] + envelope.dictionary_id(made).to_bytes(4, "little") + made[8:]


def enveloped(value: bytes, dictionary: bytes, backend: int) -> bytes:
    """The envelope of a value, as a client that has this dictionary sends it."""
    if backend == envelope.DICTIONARY:
        shared = zstandard.ZstdCompressionDict(dictionary)
        payload = zstandard.ZstdCompressor(dict_data=shared).compress(value)
    else:
        head = (envelope.dictionary_id(dictionary), len(value), xxhash.xxh32_intdigest(value))
        block = lz4.block.compress(value, store_size=False, dict=dictionary[-WINDOW:])
        payload = b"".join(number.to_bytes(4, "little") for number in head) + block
    return b"\x00\x01\x02\x00" + bytes([backend]) + payload


def until_loaded(connection: Connection) -> None:
    until(lambda: info(connection, "persistence", "loading") == 0)


def give(connection: Connection, pattern: str = "user:*", dictionary: bytes | None = None) -> int:
    """Lets new values of a pattern be compressed with a dictionary; returns its ID."""
    dictionary = trained() if dictionary is None else dictionary
    # A server that has just started may still read its files.
    until_loaded(connection)
    assert connection.command("SNUGLY.DICTIONARY", "IMPORT", pattern, dictionary) == OK
    return envelope.dictionary_id(dictionary)


def fields(row: object) -> dict[bytes, Any]:
    """A map in a reply of RESP2."""
    assert isinstance(row, list)
    return dict(zip(row[::2], row[1::2], strict=True))


def listed(connection: Connection) -> dict[int, bytes | None]:
    """Patterns of all dictionaries of a node, by their IDs."""
    rows = connection.command("SNUGLY.DICTIONARY", "LIST")
    assert isinstance(rows, list)
    return {row[b"id"]: row[b"pattern"] for row in map(fields, rows)}


def backend(connection: Connection, key: str) -> int | None:
    """The backend of the envelope that is stored at a key, as the module tells it; None for a plain string."""
    names = {b"zstd_dictionary": 0x81, b"lz4_dictionary": 0x82, b"zstd": 0x01, b"lz4": 0x02, b"none": None}
    return names[fields(connection.command("SNUGLY.EXPLAIN", key))[b"codec"]]


def learned(connection: Connection) -> int:
    return info(connection, "snugly", "snugly_dictionaries_learned")


def fill(connection: Connection, count: int = 200) -> None:
    for number in range(count):
        assert connection.command("SET", f"user:{number}", user(number)) == OK


def assert_filled(connection: Connection, count: int = 200) -> None:
    for number in range(count):
        assert connection.command("GET", f"user:{number}") == user(number), number


def until_learned(connection: Connection, count: int = 20_000) -> None:
    """Writes values until a dictionary was learned from them."""
    numbers = iter(range(10**9))

    def is_learned() -> bool:
        for _ in range(500):
            number = next(numbers)
            assert connection.command("SET", f"user:{number % count}", user(number % count)) == OK
        return learned(connection) > 0

    until(is_learned)


def libraries(connection: Connection) -> list[bytes]:
    """Names of the libraries of functions that a server has."""
    rows = connection.command("FUNCTION", "LIST")
    assert isinstance(rows, list)
    return sorted(row[b"library_name"] for row in map(fields, rows))


def after_a_round(connection: Connection) -> None:
    """Lets a round in the background begin at once, and end."""
    before = info(connection, "snugly", "snugly_background_rounds")
    # A setting that changes lets a round begin.
    for seconds in (599, 600):
        assert connection.command("CONFIG", "SET", "snugly.cold-after", seconds) == OK
    until(lambda: info(connection, "snugly", "snugly_background_rounds") > before)


def until_after_rounds(connection: Connection, condition: Callable[[], bool]) -> None:
    """Waits until the condition holds, while rounds follow each other."""

    def holds() -> bool:
        after_a_round(connection)
        return condition()

    until(holds)
