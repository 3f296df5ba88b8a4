"""`--compression auto`: what the server chooses for each kind of values, and how it explains that."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

import waiting
from alike import dictionaries, learn_users
from alike import user as record
from resp import Connection, Map
from tested import Start

pytestmark = pytest.mark.snugly_only


def user(number: int) -> str:
    """One whose devices resemble each other, so that compression is worth its time on a slow machine as well."""
    numbers = random.Random(number)
    devices = [{"device": numbers.randbytes(4).hex(), "country": "Iceland", "theme": "dark"} for _ in range(12)]
    return json.dumps({"id": number, "devices": devices})


def image(number: int) -> bytes:
    return random.Random(number).randbytes(3_000)


def write(connection: Connection, count: int) -> None:
    for number in range(count):
        connection.command("SET", f"user:{number}", user(number))
        connection.command("SET", f"image:{number}", image(number))


def as_dict(reply: Any) -> dict[str, Any]:
    pairs: list[Any] = reply.pairs if isinstance(reply, Map) else list(zip(reply[::2], reply[1::2], strict=True))
    return {name.decode(): value for name, value in pairs}


def decisions(connection: Connection) -> dict[bytes, dict[str, Any]]:
    reply: Any = connection.command("COMPRESSION", "LIST")
    return {each["pattern"]: each for each in map(as_dict, reply)}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [2, 3])
def test_each_kind_of_values_gets_what_suits_it_and_the_server_says_why(start: Start, protocol: int) -> None:
    server = start("--compression", "auto", "--background-cpu-percent", "100")
    with server.connect(protocol) as connection:
        write(connection, 400)
        waiting.until(lambda: {b"user:*", b"image:*"} <= decisions(connection).keys())
        found = decisions(connection)
        chosen = found[b"user:*"]["codec"]
        assert chosen == b"lz4"
        assert re.fullmatch(rb"(lz4|zstd):\d+", found[b"user:*"]["unread"])
        assert found[b"image:*"]["codec"] == b"none"
        explained = as_dict(connection.command("COMPRESSION", "EXPLAIN", "user:1"))
        assert b"for balanced, a saved byte may cost 20 ns: " + chosen in explained["reason"]
        methods = [as_dict(method) for method in explained["methods"]]
        assert sum(method["chosen"] for method in methods) == 1
        kept = b" ".join(method["kept"] for method in methods).split()
        assert sorted(kept) == [b"constantly", b"often", b"seldom", b"unread"]
        assert {(bytes(method["codec"]), method["level"]) for method in methods} >= {
            (b"none", 0),
            (b"lz4", 0),
            (b"zstd", 1),
        }
        assert b"nothing that was tried" in as_dict(connection.command("COMPRESSION", "EXPLAIN", "image:1"))["reason"]
        assert connection.command("COMPRESSION", "EXPLAIN", "nobody") is None
        for number in range(400):
            assert connection.command("GET", f"user:{number}") == user(number).encode()
            assert connection.command("GET", f"image:{number}") == image(number)


def test_another_goal_is_decided_anew_and_without_auto_nothing_is(start: Start) -> None:
    server = start("--compression", "auto", "--compression-goal", "memory", "--background-cpu-percent", "100")
    with server.connect() as connection:
        write(connection, 300)
        waiting.until(lambda: b"user:*" in decisions(connection))
        assert decisions(connection)[b"user:*"]["goal"] == b"memory"
        connection.command("CONFIG", "SET", "compression-goal", "speed")
        assert decisions(connection) == {}
        write(connection, 300)
        waiting.until(lambda: b"user:*" in decisions(connection))
        assert decisions(connection)[b"user:*"]["goal"] == b"speed"
        connection.command("CONFIG", "SET", "compression", "lz4")
        connection.command("SET", "user:1", user(1) * 4)
        explained = as_dict(connection.command("COMPRESSION", "EXPLAIN", "user:1"))
        assert explained["reason"] == b"all values are encoded with lz4: compression is not auto"
        assert explained["stored_codec"] == b"lz4"


@pytest.mark.parametrize(("goal", "codec"), [("memory", b"zstd"), ("balanced", b"lz4"), ("speed", b"lz4")])
def test_a_kind_of_which_little_is_known_is_encoded_with_what_suits_the_goal(
    start: Start, goal: str, codec: bytes
) -> None:
    with start(
        "--compression", "auto", "--compression-goal", goal, "--compression-level", "20"
    ).connect() as connection:
        connection.command("SET", "user:1", user(1) * 4)
        explained = as_dict(connection.command("COMPRESSION", "EXPLAIN", "user:1"))
        assert b"until enough of this kind were written" in explained["reason"]
        assert explained["stored_codec"] == codec


def test_what_is_no_goal_is_refused(start: Start) -> None:
    with start().connect() as connection:
        assert "memory, balanced or speed" in str(connection.command("CONFIG", "SET", "compression-goal", "small"))


def test_dictionaries_that_are_fixed_are_used_and_none_is_learned(start: Start) -> None:
    server = start("--compression", "lz4", "--background-cpu-percent", "100")
    with server.connect() as connection:
        learn_users(connection)
        assert dictionaries(connection, "dictionaries_active") == 1
        connection.command("CONFIG", "SET", "dictionaries", "fixed")
        assert "dictionaries are fixed" in str(connection.command("DICTIONARY", "TRAIN"))
        trainings = dictionaries(connection, "dictionary_trainings")
        for number in range(1_000):
            connection.command("SET", f"other:{number}", record(number))
        connection.command("SET", "user:new", record(7))
        assert as_dict(connection.command("OBJECT", "COMPRESSION", "user:new"))["codec"] == b"lz4_dictionary"
        assert dictionaries(connection, "dictionary_trainings") == trainings
        assert dictionaries(connection, "dictionary_samples") == 0
