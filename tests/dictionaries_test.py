"""Dictionaries: small values that are alike shrink by themselves, and come back byte for byte meanwhile."""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import servers
import waiting
from alike import USERS, assert_users, batches, dictionaries, pipeline, put_users, user
from info import info
from memory import anonymous
from resp import Connection, encode
from tested import Start

MB = 1 << 20

pytestmark = pytest.mark.snugly_only


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_small_values_that_are_alike_shrink_by_themselves(start: Start, codec: str) -> None:
    with start("--dictionaries", "no", "--compression", codec).connect() as connection:
        put_users(connection)
        before = info(connection, "memory", "used_memory_dataset")
    with start("--background-cpu-percent", "100", "--compression", codec).connect() as connection:
        put_users(connection)
        waiting.until(lambda: dictionaries(connection, "dictionary_records") == USERS)
        after = info(connection, "memory", "used_memory_dataset") + dictionaries(connection, "dictionary_bytes")
        assert after < 0.8 * before
        assert_users(connection)
        stored = connection.command("OBJECT", "COMPRESSION", "user:7")
        assert isinstance(stored, list)
        assert stored[1] == f"{codec}_dictionary".encode()
        assert isinstance(stored[3], int)
        assert stored[3] < len(user(7)) / 2
        assert stored[5] == len(user(7))
        assert connection.command("STRLEN", "user:7") == len(user(7))
        copy = connection.command("DUMP", "user:7")
        assert isinstance(copy, bytes)
        connection.command("RESTORE", "copy", 0, copy)
        assert connection.command("GET", "copy") == user(7)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_learning_leaves_little_memory_behind(start: Start, codec: str) -> None:
    def beyond_what_is_used(learns: str) -> tuple[int, int]:
        """At rest, and at most."""
        options = ("--background-cpu-percent", "100", "--threads", "2", "--compression", codec)
        server = start(*options, "--dictionaries", learns)
        most, done = [0], threading.Event()

        def excess(connection: Connection) -> int:
            return anonymous(server) - info(connection, "memory", "used_memory")

        def watch() -> None:
            with server.connect() as connection:
                while not done.wait(0.01):
                    most[0] = max(most[0], excess(connection))

        watcher = threading.Thread(target=watch)
        with server.connect() as connection:
            idle = excess(connection)
            watcher.start()
            for copy in range(3):
                for numbers in batches():
                    pipeline(connection, [encode("SET", f"user:{copy}:{number}", user(number)) for number in numbers])
            if learns == "yes":
                waiting.until(lambda: dictionaries(connection, "dictionary_records") == 3 * USERS)
            # Empty pages are looked at every now and then.
            time.sleep(3)
            done.set()
            watcher.join()
            return excess(connection) - idle, most[0] - idle

    (at_rest, at_most), (without, _) = beyond_what_is_used("yes"), beyond_what_is_used("no")
    assert at_rest - without < 2 * MB
    assert at_most - without < 5 * MB


def test_deleting_everything_ends_them(start: Start) -> None:
    # Most of the threads have nothing to do, and hold nothing up.
    server = start("--background-cpu-percent", "100", "--threads", "4")
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
        assert [dictionaries(connection, field) for field in ("dictionaries_enabled", "dictionary_trainings")] == [0, 0]


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_what_was_encoded_with_a_dictionary_is_there_after_a_kill(tmp_path: Path, codec: str) -> None:
    stored = ["--storage", str(tmp_path), "--durability", "fsync"]
    options = [*stored, "--background-cpu-percent", "100", "--compression", codec]
    with servers.snugly(*options) as server:
        with server.connect() as connection:
            put_users(connection)
            waiting.until(lambda: dictionaries(connection, "dictionary_records") == USERS)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    servers.check(tmp_path)
    with servers.snugly(*options) as server, server.connect() as connection:
        assert_users(connection)


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["fsync", "batched"])
def test_a_kill_leaves_no_value_without_its_dictionary(tmp_path: Path, durability: str) -> None:
    folder, rng = tmp_path / "store", random.Random(durability)
    options = ["--storage", str(folder), "--durability", durability, "--background-cpu-percent", "100"]
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
