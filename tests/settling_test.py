"""Values that stay are encoded anew with what suits how often they are read, and nobody but INFO tells of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import waiting
from info import info
from pages import page, put_pages, recompressed_through_kills
from resp import Connection, Map
from tested import Start

pytestmark = pytest.mark.snugly_only

PAGES = 400
FAST = ("--compression", "auto", "--background-cpu-percent", "100")
OFTEN = 150
"""Reads between two passes of a value that certainly counts as read often."""


def explained(connection: Connection, number: int) -> dict[bytes, Any]:
    reply: Any = connection.command("COMPRESSION", "EXPLAIN", f"page:{number}")
    return dict(reply.pairs if isinstance(reply, Map) else zip(reply[::2], reply[1::2], strict=True))


def test_a_value_that_was_just_written_says_so(start: Start) -> None:
    with start(*FAST).connect() as connection:
        put_pages(connection, PAGES)
        assert explained(connection, 1)[b"stage"] == b"written"
        assert explained(connection, 1)[b"stored_codec"] in (b"lz4", b"lz4_dictionary")


@pytest.mark.slow
def test_what_stays_takes_less_and_clients_are_not_told(start: Start) -> None:
    server = start(*FAST)
    with server.connect() as connection, server.connect() as other:
        put_pages(connection, PAGES)
        connection.command("EXPIRE", "page:7", 1000)
        connection.command("HELLO", 3)
        connection.command("CLIENT", "TRACKING", "ON", "BCAST")
        connection.command("WATCH", "page:7", "page:8")
        before = info(other, "memory", "used_memory_dataset")
        waiting.until(lambda: explained(other, 7)[b"stage"] == explained(other, 8)[b"stage"] == b"settled")
        waiting.until(lambda: info(other, "compression", "recompressed_records") > PAGES / 2)
        assert info(other, "memory", "used_memory_dataset") < before
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
def test_what_is_read_often_again_comes_back(start: Start) -> None:
    with start(*FAST).connect() as connection:
        put_pages(connection, PAGES)
        waiting.until(lambda: explained(connection, 7)[b"stage"] == b"settled")
        assert explained(connection, 7)[b"stored_codec"].startswith(b"zstd")

        def read() -> bool:
            for _ in range(OFTEN):
                assert connection.command("GET", "page:7") == page(7)
            return not explained(connection, 7)[b"stored_codec"].startswith(b"zstd")

        waiting.until(read, 90)
        assert info(connection, "compression", "promoted_records") >= 1
        assert explained(connection, 8)[b"stored_codec"].startswith(b"zstd")


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["fsync", "batched"])
def test_a_kill_leaves_every_value_whole(tmp_path: Path, durability: str) -> None:
    options = [*FAST, "--max-memory", "4mb"]
    assert recompressed_through_kills(tmp_path / "store", options, durability, PAGES, kills=3, seconds=(14, 22)) > 0
