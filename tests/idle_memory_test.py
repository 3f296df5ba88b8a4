"""Memory that threads keep for what may come next: given back when nothing does, and by MEMORY PURGE."""

from __future__ import annotations

import random

import pytest

from info import info, number
from resp import Argument, Connection, encode
from tested import Start
from waiting import until

pytestmark = pytest.mark.snugly_only

MB = 1 << 20


def run(connection: Connection, *commands: list[Argument]) -> list[object]:
    """Replies to commands that run together, so that the thread does not rest in between."""
    connection.send(b"".join(encode(*command) for command in commands))
    return [connection.read() for _ in commands]


def large() -> bytes:
    """Half of it random, so that what it is compressed to is large, too."""
    return random.Random(1).randbytes(4 * MB) + bytes(4 * MB)


def test_a_thread_gives_the_buffers_of_large_values_back_when_it_is_idle(start: Start) -> None:
    with start("--threads", "1").connect() as connection:
        writes: list[list[Argument]] = [["SET", "key", large()], ["APPEND", "key", "x"], ["SETRANGE", "key", 5, "x"]]
        for write in writes:
            _, found = run(connection, write, ["INFO", "memory"])
            assert number(found, "thread_buffer_bytes") > 0
            until(lambda: info(connection, "memory", "thread_buffer_bytes") == 0)


def test_memory_purge_gives_buffers_and_decoded_nodes_back_at_once(start: Start) -> None:
    with start("--threads", "1").connect() as connection:
        elements = [f"element {place} of the list" for place in range(10_000)]
        replies = run(
            connection,
            ["RPUSH", "list", *elements],
            ["LINDEX", "list", 5_000],
            ["SET", "key", large()],
            ["INFO", "everything"],
            ["MEMORY", "PURGE"],
            ["INFO", "everything"],
        )
        for field in ("thread_buffer_bytes", "list_cache_bytes"):
            assert number(replies[3], field) > 0, field
            assert number(replies[5], field) == 0, field
        assert connection.command("LINDEX", "list", 5_000) == b"element 5000 of the list"


def test_memory_purge_reaches_all_threads(start: Start) -> None:
    server = start("--threads", "2")
    with server.connect() as one, server.connect() as other:
        for connection in (one, other):
            connection.command("SET", "key", large())
        one.command("MEMORY", "PURGE")
        until(lambda: info(one, "memory", "thread_buffer_bytes") == 0)


def test_decoded_nodes_go_with_their_lists(start: Start) -> None:
    with start().connect() as connection:
        for key in ("gone", "kept"):
            connection.command("RPUSH", key, *[f"element {place} of {key}" for place in range(10_000)])
            connection.command("LINDEX", key, 5_000)
        both = info(connection, "lists", "list_cache_bytes")
        connection.command("DEL", "gone")
        until(lambda: 0 < info(connection, "lists", "list_cache_bytes") < both)
        connection.command("FLUSHALL")
        until(lambda: info(connection, "lists", "list_cache_bytes") == 0)
