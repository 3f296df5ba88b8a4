"""Dictionaries: small values that are alike shrink by themselves, and come back byte for byte meanwhile."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

import servers
import waiting
from info import info
from resp import Connection, encode
from tested import Start

pytestmark = pytest.mark.snugly_only
USERS = 10_000


def user(number: int) -> bytes:
    rng = random.Random(number)
    name = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=8))
    record = {
        "id": number,
        "name": name,
        "email": f"{name}@example.com",
        "address": {"city": name[::-1], "country": "Iceland", "postal_code": rng.randrange(100_000)},
        "preferences": {"language": "is", "newsletter": rng.random() < 0.5, "theme": "dark"},
    }
    return json.dumps(record).encode()


def pipeline(connection: Connection, commands: list[bytes]) -> list[object]:
    connection.send(b"".join(commands))
    return [connection.read() for _ in commands]


def batches() -> list[range]:
    return [range(start, start + 500) for start in range(0, USERS, 500)]


def put_users(connection: Connection) -> None:
    for numbers in batches():
        pipeline(connection, [encode("SET", f"user:{number}", user(number)) for number in numbers])


def assert_users(connection: Connection) -> None:
    for numbers in batches():
        replies = pipeline(connection, [encode("GET", f"user:{number}") for number in numbers])
        assert replies == [user(number) for number in numbers]


def dictionaries(connection: Connection, field: str) -> int:
    return info(connection, "dictionaries", field)


def test_small_values_that_are_alike_shrink_by_themselves(start: Start) -> None:
    server = start("--dictionary-cpu-percent", "100")
    with server.connect() as connection:
        put_users(connection)
        before = info(connection, "memory", "used_memory_dataset")
        waiting.until(lambda: dictionaries(connection, "dictionary_records") == USERS, seconds=60)
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
        waiting.until(lambda: dictionaries(connection, "dictionaries_active") == 1, seconds=60)
        connection.command("FLUSHALL")
        assert dictionaries(connection, "dictionaries_active") == 0
        assert connection.command("GET", "user:7") is None
        waiting.until(lambda: dictionaries(connection, "dictionaries") == 0, seconds=60)


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


def tool(server: servers.Server, *arguments: str) -> str:
    command = [str(servers.snugly_binary()), "dictionaries", "--url", f"snugly://127.0.0.1:{server.port}", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_tool_lists_exports_imports_and_forgets(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "users.dict"
    first, second = start("--dictionary-cpu-percent", "100"), start("--threads", "4")
    with first.connect() as connection:
        assert "no dictionaries yet" in tool(first, "list")
        put_users(connection)
        waiting.until(lambda: dictionaries(connection, "dictionary_records") == USERS, seconds=60)
        assert tool(first, "train", "user:*").endswith(": 1\n")
        assert tool(first, "list").splitlines()[1].endswith("user:*")
        assert f"records: {USERS}" in tool(first, "show", "1")
        tool(first, "export", "1", str(file))
    with second.connect() as connection:
        tool(second, "import", str(file), "--pattern", "user:*", "--length", str(len(user(1))))
        connection.command("SET", "user:7", user(7))
        assert dictionaries(connection, "dictionary_records") == 1
        tool(second, "forget", "1")
        assert connection.command("GET", "user:7") == user(7)
        waiting.until(lambda: dictionaries(connection, "dictionaries") == 0, seconds=60)
        assert connection.command("GET", "user:7") == user(7)
        refused = connection.command("DICTIONARY", "IMPORT", "user:*", "300", "no dictionary")
        assert "not a zstd dictionary" in str(refused)
