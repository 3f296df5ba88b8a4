"""Values that are changed or read in parts: replies as Valkey's, nothing encoded in between, compressed afterwards."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import servers
import waiting
from info import info
from resp import Argument, Connection, encode
from tested import Start

BITS = 1 << 27
CHANGES = 2_000

pytestmark = pytest.mark.snugly_only


def encoded(connection: Connection) -> int:
    """Number of values stored, compressed or not."""
    return sum(info(connection, "compression", f"encoded_values_{codec}") for codec in ("none", "zstd"))


def run(connection: Connection, commands: list[tuple[Argument, ...]]) -> list[object]:
    connection.send(b"".join(encode(*command) for command in commands))
    return [connection.read() for _ in commands]


@pytest.mark.slow
def test_a_large_bitmap_is_compressed_when_it_is_left_alone_and_not_before(start: Start) -> None:
    with start().connect() as connection:
        assert connection.command("SETBIT", "bits", BITS - 1, 1) == 0
        before = encoded(connection)
        offsets = random.Random(1).sample(range(BITS - 1), CHANGES)
        assert run(connection, [("SETBIT", "bits", offset, 1) for offset in offsets]) == [0] * CHANGES
        assert run(connection, [("GETBIT", "bits", offset) for offset in offsets]) == [1] * CHANGES
        assert connection.command("BITCOUNT", "bits") == CHANGES + 1
        assert encoded(connection) == before
        assert info(connection, "compression", "draft_values") == 1
        assert info(connection, "memory", "used_memory_dataset") > BITS / 8
        waiting.until(lambda: info(connection, "compression", "draft_values") == 0, seconds=30)
        assert info(connection, "memory", "used_memory_dataset") < BITS / 80
        assert connection.command("BITCOUNT", "bits") == CHANGES + 1


def test_a_draft_that_is_being_sent_is_sent_as_it_was(start: Start) -> None:
    with (server := start()).connect() as reader, server.connect() as writer:
        value = b"a" * (32 << 20)
        writer.command("SET", "key", value)
        writer.command("SETRANGE", "key", 0, "a")
        reader.send(encode("GET", "key"))
        waiting.until(lambda: info(writer, "stats", "keyspace_hits") >= 1)
        for offset in range(0, len(value), 1 << 20):
            writer.command("SETRANGE", "key", offset, "b" * 100)
        assert reader.read() == value


def test_a_draft_that_was_answered_survives_a_kill(tmp_path: Path) -> None:
    options = ("--storage", str(tmp_path), "--durability", "fsync")
    random_, expected = random.Random(2), bytearray(1 << 20)
    with servers.snugly(*options) as server, server.connect() as connection:
        connection.command("SET", "key", bytes(expected))
        for number in range(200):
            offset, text = random_.randrange(len(expected)), b"change %d" % number
            connection.command("SETRANGE", "key", offset, text)
            expected[offset : offset + len(text)] = text
            connection.command("APPEND", "key", text)
            expected += text
        assert info(connection, "compression", "draft_values") == 1
        server.process.kill()
    with servers.snugly(*options) as server, server.connect() as connection:
        assert connection.command("GET", "key") == bytes(expected)


@pytest.mark.parametrize("options", [(), ("--storage",), ("--storage", "--durability", "fsync")], ids=" ".join)
def test_replies_to_changes_in_parts_are_those_of_valkey(
    start: Start, peer: servers.Server, options: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = str(tmp_path_factory.mktemp("store"))
    options = tuple(part for option in options for part in ([option, folder] if option == "--storage" else [option]))
    rng = random.Random(7)
    commands = [command(rng) for _ in range(600)]
    with start(*options).connect() as ours, peer.connect() as theirs:
        theirs.command("FLUSHALL")
        for position, request in enumerate(commands):
            replies = ours.command(*request), theirs.command(*request)
            assert replies[0] == replies[1], f"{position}: {request[:3]}"


def command(rng: random.Random) -> tuple[Argument, ...]:
    key = f"part:{rng.randrange(4)}"
    place, text = rng.randrange(200_000), rng.randbytes(rng.choice([1, 10, 5_000]))
    change: list[tuple[Argument, ...]] = [
        ("APPEND", key, text),
        ("SETRANGE", key, place, text),
        ("SETBIT", key, place * 8 + rng.randrange(8), rng.randrange(2)),
        ("BITFIELD", key, "SET", "i33", place * 8, -5, "INCRBY", "u20", place * 4, 77, "GET", "u8", place * 2),
    ]
    look: list[tuple[Argument, ...]] = [
        ("GETRANGE", key, place, place + 100),
        ("GETBIT", key, place * 8 + 3),
        ("BITCOUNT", key, place, place + 50_000),
        ("BITPOS", key, rng.randrange(2), place),
        ("BITFIELD_RO", key, "GET", "i60", place * 8 + 5),
        ("GET", key),
        ("STRLEN", key),
    ]
    rare: list[tuple[Argument, ...]] = [
        ("SET", key, bytes(rng.randrange(150_000))),
        ("DEL", key),
        ("COPY", key, "part:0", "REPLACE"),
        ("RENAMENX", key, "part:1"),
        ("EXPIRE", key, 1_000),
        ("GETDEL", key),
    ]
    return rng.choice(rng.choices([change, look, rare], [6, 5, 1])[0])
