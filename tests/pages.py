"""Texts that have words in common: written, read back, and kept through kills."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import servers
from info import info
from resp import Connection, encode

WORDS = ["".join(random.Random(number).choices("abcdefghijklmnop", k=3 + number % 6)) for number in range(200)]


def page(number: int) -> bytes:
    """A text of words that others have, too, in an order of its own."""
    return f"<p>{' '.join(random.Random(number).choices(WORDS, k=150))}</p>".encode()


def put_pages(connection: Connection, count: int) -> None:
    connection.send(b"".join(encode("SET", f"page:{number}", page(number)) for number in range(count)))
    for _ in range(count):
        connection.read()


def assert_pages(connection: Connection, count: int, may_be_missing: bool = False) -> None:
    connection.send(b"".join(encode("GET", f"page:{number}") for number in range(count)))
    for number in range(count):
        reply = connection.read()
        assert reply == page(number) or (may_be_missing and reply is None)


def recompressed_through_kills(
    folder: Path, options: Sequence[str], durability: str, count: int, kills: int, seconds: tuple[float, float]
) -> int:
    """Kills a server at any point of a pass, so many times, after a time between these bounds each; every page must be
    whole afterwards. Returns how many values were encoded again.
    """
    rng, seen = random.Random(durability), 0
    for kill in range(kills):
        with servers.snugly(*options, "--storage", str(folder), "--durability", durability) as server:
            with server.connect() as connection:
                assert_pages(connection, count, may_be_missing=durability == "batched" or kill == 0)
                if kill % 2 == 0:
                    put_pages(connection, count)
                time.sleep(rng.uniform(*seconds))
                seen += info(connection, "compression", "recompression_tries")
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
        servers.check(folder)
    return seen
