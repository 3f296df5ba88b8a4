"""A dictionary for the nodes of lists: learned by itself, told of, and never missing, however the server ends."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import servers
import waiting
from alike import dictionaries, pipeline
from info import info
from resp import Connection, Simple, encode
from tested import Start

pytestmark = pytest.mark.snugly_only

LISTS = b"*lists*"
ZSTD = ("--list-compress-codec", "zstd", "--background-cpu-percent", "100")
ELEMENTS = 30_000
BATCH = 100
WORDS = ["".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=9)) for number in range(1_500)]


def event(number: int) -> bytes:
    """Some hundred bytes of which any node has seen few before."""
    words = random.Random(number).choices(WORDS, k=30)
    return b'{"event":%d,"words":"%s"}' % (number, " ".join(words).encode())


EVENTS = [event(number) for number in range(ELEMENTS)]


def push_all(connection: Connection, key: str) -> None:
    starts = range(0, ELEMENTS, BATCH)
    pipeline(connection, [encode("RPUSH", key, *EVENTS[start : start + BATCH]) for start in starts])


def as_dict(reply: Any) -> dict[str, Any]:
    return {name.decode(): value for name, value in zip(reply[::2], reply[1::2], strict=True)}


def explained(connection: Connection, key: str) -> dict[str, Any]:
    return as_dict(connection.command("COMPRESSION", "EXPLAIN", key))


def listed(connection: Connection) -> list[dict[str, Any]]:
    reply: Any = connection.command("DICTIONARY", "LIST")
    return [as_dict(each) for each in reply]


def encoded(connection: Connection, key: str) -> bool:
    """Whether all nodes that are compressed need a dictionary."""
    told = explained(connection, key)
    return bool(told["dictionary_nodes"] == told["compressed_nodes"])


def debugged(connection: Connection, key: str) -> str:
    told = connection.command("DEBUG", "OBJECT", key)
    assert isinstance(told, Simple)
    return told.text.decode()


def await_dictionary(connection: Connection) -> None:
    """Waits until nodes need one."""
    waiting.until(lambda: dictionaries(connection, "dictionary_records") > 0)


def test_lists_shrink_by_themselves_and_come_back_byte_for_byte(start: Start) -> None:
    with start(*ZSTD).connect() as connection:
        push_all(connection, "list")
        before = info(connection, "memory", "used_memory_dataset")
        waiting.until(lambda: encoded(connection, "list"))
        # One that is trained later may take its place.
        connection.command("CONFIG", "SET", "dictionaries", "fixed")
        waiting.until(lambda: encoded(connection, "list") and len(listed(connection)) == 1)
        after = info(connection, "memory", "used_memory_dataset") + dictionaries(connection, "dictionary_bytes")
        assert after < 0.9 * before
        assert connection.command("LRANGE", "list", 0, -1) == EVENTS
        assert connection.command("LINDEX", "list", 12_345) == EVENTS[12_345]

        (dictionary,) = listed(connection)
        assert dictionary["pattern"] == LISTS
        told = explained(connection, "list")
        assert told["stored_codec"] == b"zstd_dictionary"
        assert told["stored_dictionary"] == dictionary["number"]
        assert told["dictionary_nodes"] == dictionary["records"]
        assert f" ql_dictionary:{dictionary['number']}" in debugged(connection, "list")
        shown = connection.command("INFO", "dictionaries")
        assert isinstance(shown, bytes)
        assert b"pattern=*lists*" in shown

        copy = connection.command("DUMP", "list")
        assert isinstance(copy, bytes)
        assert WORDS[0].encode() in copy, "it is plain"
        connection.command("FLUSHALL")
        assert dictionaries(connection, "dictionaries_active") == 0
        connection.command("RESTORE", "copy", 0, copy)
        assert connection.command("LRANGE", "copy", 0, -1) == EVENTS
        waiting.until(lambda: not listed(connection))


def test_strings_and_lists_that_are_compressed_otherwise_have_nothing_to_do_with_it(start: Start) -> None:
    with start("--list-compress-codec", "lz4").connect() as connection:
        push_all(connection, "list")
        told = explained(connection, "list")
        assert (told["stored_codec"], told["stored_dictionary"], told["dictionary_nodes"]) == (b"lz4", None, 0)
        assert dictionaries(connection, "dictionary_samples") == 0
        assert "ql_dictionary" not in debugged(connection, "list")
    with start(*ZSTD, "--compression", "none").connect() as connection:
        push_all(connection, "list")
        waiting.until(lambda: dictionaries(connection, "dictionaries_active") == 1)
        connection.command("SET", LISTS, b"".join(EVENTS[:20]))
        stored = connection.command("OBJECT", "COMPRESSION", LISTS)
        assert isinstance(stored, list)
        assert stored[1] == b"none"


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["fsync", "batched"])
def test_a_kill_leaves_no_node_without_its_dictionary(tmp_path: Path, durability: str) -> None:
    folder, rng = tmp_path / "store", random.Random(durability)
    options = ["--storage", str(folder), "--durability", durability, *ZSTD]
    seen = 0
    for kill in range(6):
        with servers.snugly(*options) as server:
            with server.connect() as connection:
                seen = max(seen, dictionaries(connection, "dictionary_records"))
                for key in ("list:0", "list:1"):
                    found = connection.command("LRANGE", key, 0, -1)
                    assert isinstance(found, list)
                    assert found == EVENTS[: len(found)]
                    assert len(found) == ELEMENTS or durability == "batched" or kill == 0
                if kill % 3 == 2:
                    connection.command("FLUSHALL")
                for key in ("list:0", "list:1"):
                    connection.command("RENAME", key, f"before:{key}")
                    push_all(connection, key)
                if kill % 2 == 0:
                    await_dictionary(connection)
            # At any point of sampling, training, adoption, and encoding anew.
            time.sleep(rng.uniform(0, 1.5))
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
        servers.check(folder)
    assert seen > 0
