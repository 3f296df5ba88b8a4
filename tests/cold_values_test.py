"""Values that nobody uses are compressed once more, at a high level, and nobody but INFO tells of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import waiting
from info import info
from pages import assert_pages, page, put_pages, recompressed_through_kills
from resp import Connection
from tested import Start

pytestmark = pytest.mark.snugly_only

PAGES = 2_000
FAST = ("--background-cpu-percent", "100", "--cold-after", "1")


def recompression(connection: Connection, field: str) -> int:
    return info(connection, "compression", field)


def test_what_nobody_uses_takes_less(start: Start) -> None:
    server = start("--background-cpu-percent", "100", "--cold-after", "0", "--dictionaries", "no")
    with server.connect() as connection:
        put_pages(connection, PAGES)
        before = info(connection, "memory", "used_memory_dataset")
        connection.command("CONFIG", "SET", "cold-after", "1")
        waiting.until(lambda: recompression(connection, "recompression_tries") == PAGES)
        assert recompression(connection, "recompressed_records") > PAGES / 2
        after = info(connection, "memory", "used_memory_dataset")
        assert before - after == recompression(connection, "recompression_saved_bytes") > 0
        assert_pages(connection, PAGES)


@pytest.mark.slow
def test_what_was_tried_once_is_not_tried_again(start: Start) -> None:
    with start(*FAST, "--dictionaries", "no").connect() as connection:
        put_pages(connection, PAGES)
        waiting.until(lambda: recompression(connection, "recompression_tries") >= PAGES)
        assert_pages(connection, PAGES)
        # Longer than a value takes to be cold again.
        time.sleep(2.5)
        assert recompression(connection, "recompression_tries") == PAGES, "a value is tried once"


def test_clients_are_not_told_of_it(start: Start) -> None:
    server = start("--background-cpu-percent", "100", "--cold-after", "0", "--dictionaries", "no")
    with server.connect() as connection, server.connect() as other:
        put_pages(connection, PAGES)
        connection.command("EXPIRE", "page:7", 1000)
        connection.command("HELLO", 3)
        connection.command("CLIENT", "TRACKING", "ON", "BCAST")
        connection.command("WATCH", "page:7", "page:8")
        idle = other.command("OBJECT", "IDLETIME", "page:8")
        other.command("CONFIG", "SET", "cold-after", "1")
        waiting.until(lambda: recompression(other, "recompression_tries") == PAGES)
        assert isinstance(idle, int)
        now_idle = other.command("OBJECT", "IDLETIME", "page:8")
        assert isinstance(now_idle, int)
        # Recompressing a value is no use of it, which would have begun a new second.
        assert now_idle >= max(idle, 1)
        connection.command("MULTI")
        connection.command("TTL", "page:7")
        connection.command("GET", "page:8")
        # A message about a change would have come before this answer, and one would have made it null.
        reply = connection.command("EXEC")
        assert isinstance(reply, list)
        left, value = reply
        assert isinstance(left, int)
        assert 900 < left <= 1000
        assert value == page(8)


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["fsync", "batched"])
def test_a_kill_leaves_every_value_whole(tmp_path: Path, durability: str) -> None:
    options = [*FAST, "--max-memory", "1mb"]
    assert recompressed_through_kills(tmp_path / "store", options, durability, PAGES, kills=8, seconds=(0.5, 3)) > 0
