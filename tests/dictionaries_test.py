"""Dictionaries: small values that are alike shrink by themselves, and come back byte for byte meanwhile."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

import servers
import waiting
from alike import USERS, assert_users, batches, dictionaries, pipeline, put_users, user
from info import info
from resp import encode
from tested import Start

pytestmark = pytest.mark.snugly_only


def test_small_values_that_are_alike_shrink_by_themselves(start: Start) -> None:
    server = start("--dictionary-cpu-percent", "100")
    with server.connect() as connection:
        put_users(connection)
        before = info(connection, "memory", "used_memory_dataset")
        waiting.until(lambda: dictionaries(connection, "dictionary_records") == USERS)
        after = info(connection, "memory", "used_memory_dataset") + dictionaries(connection, "dictionary_bytes")
        assert after < 0.8 * before
        assert_users(connection)
        stored = connection.command("OBJECT", "COMPRESSION", "user:7")
        assert isinstance(stored, list)
        assert stored[1] == b"zstd_dictionary"
        assert isinstance(stored[3], int)
        assert stored[3] < len(user(7)) / 2
        assert stored[5] == len(user(7))
        assert connection.command("STRLEN", "user:7") == len(user(7))
        copy = connection.command("DUMP", "user:7")
        assert isinstance(copy, bytes)
        connection.command("RESTORE", "copy", 0, copy)
        assert connection.command("GET", "copy") == user(7)


def test_deleting_everything_ends_them(start: Start) -> None:
    # Most of the threads have nothing to do, and hold nothing up.
    server = start("--dictionary-cpu-percent", "100", "--threads", "4")
    with server.connect() as connection:
        put_users(connection)
        waiting.until(lambda: dictionaries(connection, "dictionaries_active") == 1)
        connection.command("FLUSHALL")
        assert dictionaries(connection, "dictionaries_active") == 0
        assert connection.command("GET", "user:7") is None
        waiting.until(lambda: dictionaries(connection, "dictionaries") == 0)


def test_switched_off_nothing_is_learned(start: Start) -> None:
    server = start("--dictionaries", "no")
    with server.connect() as connection:
        put_users(connection)
        assert [dictionaries(connection, field) for field in ("dictionaries_enabled", "dictionary_samples")] == [0, 0]


@pytest.mark.parametrize("durability", ["fsync", "batched"])
def test_a_kill_leaves_no_value_without_its_dictionary(tmp_path: Path, durability: str) -> None:
    folder, rng = tmp_path / "store", random.Random(durability)
    options = ["--storage", str(folder), "--durability", durability, "--dictionary-cpu-percent", "100"]
    options += ["--max-memory", "1mb"]
    seen = 0
    for kill in range(8):
        with servers.snugly(*options) as server:
            with server.connect() as connection:
                seen = max(seen, dictionaries(connection, "dictionary_records"))
                for numbers in batches():
                    replies = pipeline(connection, [encode("GET", f"user:{number}") for number in numbers])
                    for number, reply in zip(numbers, replies, strict=True):
                        assert reply in (None, user(number))
                        assert reply is not None or durability == "batched" or kill == 0
                if kill % 3 == 2:
                    connection.command("FLUSHALL")
                put_users(connection)
            # At any point of sampling, training, adoption, and encoding anew.
            time.sleep(rng.uniform(0, 1.5))
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
        servers.check(folder)
    assert seen > 0
