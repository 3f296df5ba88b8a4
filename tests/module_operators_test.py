"""Valkey with the module: what it tells operators of strings, and what would be saved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import valkey_module
from info import info
from plays import emptied, request
from replicas import until_caught_up, until_up
from resp import Argument, Connection, Failure, Reply, Simple
from servers import Server
from valkey_module import EAGER, LEAST, TEXT, VALUES, size_in_memory, text
from waiting import until

pytestmark = pytest.mark.snugly_only
OK = Simple(b"OK")


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    with valkey_module.serving("--snugly.background-cpu-percent", "100") as server:
        yield server


@pytest.fixture
def connection(shared: Server) -> Iterator[Connection]:
    with shared.connect() as connection:
        connection.command("CONFIG", "SET", "snugly.compression", "yes")
        emptied(shared)
        yield connection


# SNUGLY.EXPLAIN


def explained(connection: Connection, key: str) -> dict[str, Reply]:
    told = connection.command("SNUGLY.EXPLAIN", key)
    assert isinstance(told, list)
    names = [name.decode() for name in told[::2] if isinstance(name, bytes)]
    return dict(zip(names, told[1::2], strict=True))


WHY: dict[str, tuple[Argument, bytes]] = {
    "a text": (TEXT, b"compressed"),
    "a number": (12345, b"shorter than 128 bytes"),
    "a short text": (text(LEAST - 1), b"shorter than 128 bytes"),
    "a text below the threshold": (text(200), b"shorter than snugly.min-bytes"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2, b"in a compressed format, or looks random"),
}


@pytest.mark.parametrize("name", WHY)
def test_it_is_told_how_a_string_is_stored_and_why(connection: Connection, name: str) -> None:
    value, why = WHY[name]
    connection.command("SET", "k", value)
    told = explained(connection, "k")
    assert told["why"] == why
    assert told["length"] == connection.command("STRLEN", "k")
    assert isinstance(told["stored-length"], int)
    if why == b"compressed":
        assert told["codec"] == b"lz4"
        assert told["stored-length"] < len(TEXT)
    else:
        assert told["codec"] == b"none"
        assert told["stored-length"] == told["length"]
    assert isinstance(told["idle-seconds"], int)


def test_it_is_told_what_a_string_would_take(connection: Connection) -> None:
    connection.command("SET", "small", TEXT)
    stored = explained(connection, "small")["stored-length"]
    assert isinstance(stored, int)
    would = f"it would be {stored} bytes long".encode()
    connection.command("CONFIG", "SET", "snugly.compression", "no")
    connection.command("SET", "k", TEXT)
    assert explained(connection, "k")["why"] == b"compression is off: " + would
    connection.command("CONFIG", "SET", "snugly.compression", "yes", "snugly.background-cpu-percent", 0)
    assert explained(connection, "k")["why"] == b"not compressed yet: " + would
    connection.command("CONFIG", "SET", "snugly.background-cpu-percent", 100)


def test_a_damaged_string_is_explained_by_its_damage(connection: Connection) -> None:
    connection.command("SET", "k", VALUES["DAMAGED"])
    connection.command("SET", "l", "x")
    assert explained(connection, "k")["why"] == b"compressed"
    payload = connection.command("DUMP", "k")
    assert isinstance(payload, bytes)
    connection.command("RESTORE", "k", 0, payload, "REPLACE")
    why = explained(connection, "k")["why"]
    assert isinstance(why, bytes)
    assert why.startswith(b"SNUGLY cannot decode an envelope")


def test_keys_without_a_string_are_told_of_as_by_strlen(connection: Connection) -> None:
    connection.command("RPUSH", "list", "x")
    assert connection.command("SNUGLY.EXPLAIN", "none") is None
    told = connection.command("SNUGLY.EXPLAIN", "list")
    assert isinstance(told, Failure)
    assert told == connection.command("STRLEN", "list")
    for words in ([], ["a", "b"]):
        assert isinstance(connection.command("SNUGLY.EXPLAIN", *words), Failure)


def test_an_explanation_is_no_use_of_the_key_and_needs_the_right_to_read_it(
    shared: Server, connection: Connection
) -> None:
    connection.command(*request("SET k TEXT", VALUES)[1])
    payload = connection.command("DUMP", "k")
    assert isinstance(payload, bytes)
    connection.command("RESTORE", "old", 0, payload, "IDLETIME", 1000)
    explained(connection, "old")
    idle = explained(connection, "old")["idle-seconds"]
    assert isinstance(idle, int)
    assert idle >= 1000
    connection.command("ACL", "SETUSER", "u", "on", "nopass", "~other*", "+@read")
    with shared.connect() as user:
        user.command("AUTH", "u", "")
        assert isinstance(user.command("SNUGLY.EXPLAIN", "k"), Failure)
        assert user.command("SNUGLY.EXPLAIN", "other") is None


# SNUGLY.DIGEST


def digest(connection: Connection) -> bytes:
    told = connection.command("SNUGLY.DIGEST")
    assert isinstance(told, bytes)
    assert len(told) == 16
    return told


def test_nodes_with_the_same_strings_have_the_same_digest_however_they_are_stored() -> None:
    fast = ("--repl-diskless-sync-delay", "0")
    with valkey_module.serving(*EAGER, *fast) as primary, primary.connect() as client:
        for name, value in VALUES.items():
            client.command("SET", name, value)
        client.command("SET", "number", 12345)
        follow = ("--replicaof", f"127.0.0.1 {primary.port}", "--snugly.codec", "zstd")
        with valkey_module.serving(*follow) as replica, replica.connect() as reader:
            until_up(reader)
            until_caught_up(client, reader)
            assert digest(client) == digest(reader)
            client.command("APPEND", "TEXT", "x")
            until_caught_up(client, reader)
            assert digest(client) == digest(reader)


def test_the_digest_changes_with_every_string_key_and_database(connection: Connection) -> None:
    seen = [digest(connection)]
    for line in ("SET a TEXT", "SET a OTHER", "SET b OTHER", "RENAME b c", "MOVE c 1", "SET n 1", "SET n 2", "DEL a"):
        connection.command(*request(line, VALUES)[1])
        seen.append(digest(connection))
    assert len(set(seen)) == len(seen)
    connection.command("RPUSH", "list", "x")
    assert digest(connection) == seen[-1]


def test_numbers_stay_numbers_when_they_are_digested(connection: Connection) -> None:
    connection.command("SET", "number", 12345)
    digest(connection)
    assert connection.command("OBJECT", "ENCODING", "number") == b"int"


# Observation


def test_it_is_observed_what_would_be_saved_before_anything_is_compressed() -> None:
    with valkey_module.serving(*EAGER, "--snugly.compression", "observe") as server, server.connect() as connection:
        values = [TEXT, text(5000), b"short", b"12345"]
        for number, value in enumerate(values):
            connection.command("SET", number, value)
        connection.command("RPUSH", "list", TEXT)
        plain = size_in_memory(connection, "0")
        connection.command("CONFIG", "SET", "snugly.background-cpu-percent", 100)
        until(lambda: info(connection, "snugly", "snugly_observed_strings") == len(values))
        before, after = (info(connection, "snugly", f"snugly_observed_bytes_{when}") for when in ("before", "after"))
        assert before == sum(map(len, values))
        assert size_in_memory(connection, "0") == plain
        assert connection.command("CONFIG", "SET", "snugly.compression", "yes") == OK
        for number, value in enumerate(values):
            connection.command("SET", number, value)
        stored = [explained(connection, str(number))["stored-length"] for number in range(len(values))]
        assert sum(length for length in stored if isinstance(length, int)) == after < before


def test_what_is_observed_are_strings_and_not_their_envelopes() -> None:
    with valkey_module.serving(*EAGER) as server, server.connect() as connection:
        connection.command("SET", "k", TEXT)
        stored = explained(connection, "k")["stored-length"]
        connection.command("CONFIG", "SET", "snugly.compression", "observe", "snugly.background-cpu-percent", 100)
        until(lambda: info(connection, "snugly", "snugly_observed_strings") == 1)
        assert info(connection, "snugly", "snugly_observed_bytes_before") == len(TEXT)
        assert info(connection, "snugly", "snugly_observed_bytes_after") == stored
        assert connection.command("GET", "k") == TEXT


def test_statistics_are_what_info_tells() -> None:
    with valkey_module.serving() as server, server.connect() as connection:
        connection.command("SET", "k", TEXT)
        told = connection.command("INFO", "snugly")
        assert isinstance(told, bytes)
        lines = [line.split(":", 1) for line in told.decode().splitlines() if ":" in line]
        fields = connection.command("SNUGLY.STATS")
        assert isinstance(fields, list)
        words = [word.decode() if isinstance(word, bytes) else str(word) for word in fields]
        assert dict(zip(words[::2], words[1::2], strict=True)) == {
            name.removeprefix("snugly_"): value for name, value in lines
        }
        assert isinstance(connection.command("SNUGLY.STATS", "x"), Failure)
