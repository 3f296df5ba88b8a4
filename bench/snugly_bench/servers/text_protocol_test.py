"""Replies of memcached's text protocol that are taken, and those that end a measurement."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from snugly_bench.servers.text_protocol import BATCH_BYTES, BATCH_KEYS, TextConnection, batches

RECORDS = [(b"a", b"1"), (b"b", b"22\r\nEND\r\n"), (b"c", b"")]


@contextmanager
def answering(*replies: bytes) -> Iterator[TextConnection]:
    """A connection to a server that has answered before it is asked."""
    with socket.create_server(("127.0.0.1", 0)) as listener, TextConnection(listener.getsockname()[1]) as connection:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(b"".join(replies))
            peer.shutdown(socket.SHUT_WR)
            yield connection


def test_a_batch_has_some_keys_and_not_too_many_bytes() -> None:
    assert [len(batch) for batch in batches([(b"k", b"")] * (BATCH_KEYS + 1))] == [BATCH_KEYS, 1]
    half = bytes(BATCH_BYTES // 2)
    assert [len(batch) for batch in batches([(b"k", half), (b"k", half), (b"k", half)])] == [2, 1]
    assert [len(batch) for batch in batches([(b"k", bytes(BATCH_BYTES + 1)), (b"k", b"")])] == [1, 1]


def test_values_that_are_missing_are_counted() -> None:
    with answering(b"VALUE b 0 9\r\n22\r\nEND\r\n\r\n", b"END\r\n") as connection:
        assert connection.get_all(RECORDS) == 1


@pytest.mark.parametrize("reply", [b"VALUE a 0 1\r\n2\r\n", b"VALUE x 0 1\r\n1\r\n", b"VALUE a 0 2\r\n11\r\n"])
def test_a_value_that_differs_ends_it(reply: bytes) -> None:
    with answering(reply, b"END\r\n") as connection, pytest.raises(SystemExit, match="came back different"):
        connection.get_all(RECORDS)


def test_a_value_that_is_refused_is_not_counted_and_any_other_answer_ends_it() -> None:
    with answering(b"STORED\r\nSERVER_ERROR out of memory storing object\r\nSTORED\r\n") as connection:
        assert connection.set_all(RECORDS) == 2
    with answering(b"ERROR\r\n") as connection, pytest.raises(SystemExit, match="a set was answered b'ERROR"):
        connection.set_all(RECORDS)


def test_values_are_sent_no_faster_than_asked_for() -> None:
    with answering(b"STORED\r\n" * 3 * BATCH_KEYS) as connection:
        begun = time.monotonic()
        assert connection.set_all([(b"k", b"v")] * 3 * BATCH_KEYS, pace=BATCH_KEYS * 20) == 3 * BATCH_KEYS
        assert time.monotonic() - begun >= 0.1


def test_numbers_of_the_server_are_read_by_name() -> None:
    with answering(b"STAT curr_items 7\r\nSTAT empty \r\nEND\r\n") as connection:
        assert connection.stats() == {"curr_items": "7", "empty": ""}
