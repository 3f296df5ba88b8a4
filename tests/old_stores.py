"""Stores on disk as programs of the formats before this one have written them, and what is in them.

`python old_stores.py PROGRAM ARCHIVE` lets a program of such a format write one: it is then killed, so that its last
changes are in the journal alone. A new format gets the archive of the one before.
"""

from __future__ import annotations

import random
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

import xxhash

import memcached
import servers
from resp import Argument, Connection, Reply, Simple
from servers import Server
from trained import dictionary

FOLDER = Path(__file__).resolve().parent / "stores"
# The year 2100, in Unix milliseconds.
FAR = 4_102_444_800_000
# Length of the identity, of which the last eight bytes are the checksum of the others (FORMAT.md).
IDENTITY_BYTES = 12 + 4 + 16 + 8
CODECS = ["none", "lzf", "lz4", "zstd"]


class Part(NamedTuple):
    """Requests that write, and a request that reads what they have written."""

    writes: list[list[Argument]]
    read: list[Argument]
    expected: Reply


def text(length: int) -> bytes:
    """Text that every codec makes smaller."""
    words = ["user", "name", "session", "theme", "dark", "language", '{"id": 7}', "true", "false", "null"]
    rng = random.Random(length)
    return " ".join(rng.choices(words, k=length // 4)).encode()[:length]


def strings() -> list[Part]:
    """Strings of every codec and of lengths around the limits of rows and chunks, and long keys."""
    parts = []
    for codec in CODECS:
        for length in [0, 1, 300, 2_000, 4_100, 30_000]:
            key = f"{codec}:{length}"
            writes: list[list[Argument]] = [["CONFIG", "SET", "compression", codec], ["SET", key, text(length)]]
            parts.append(Part(writes, ["GET", key], text(length)))
    for length in [600, 5_000]:
        key = "long" * (length // 4)
        parts.append(Part([["SET", key, "value"]], ["GET", key], b"value"))
    parts.append(Part([["SET", "counter", 41], ["INCR", "counter"]], ["GET", "counter"], b"42"))
    return parts


def others() -> list[Part]:
    """Expiries, lists, databases, and a value that needs a dictionary."""
    elements = [f"element {number} of a list, {number * 7}" for number in range(2_000)]
    document = b'{"id": 5, "name": "0.5", "theme": "dark", "language": "Icelandic"}'
    documents: list[list[Argument]] = [["SET", f"documents:{number}", document] for number in range(20)]
    return [
        Part([["SET", "expires", "value", "PXAT", FAR]], ["PEXPIRETIME", "expires"], FAR),
        Part([["RPUSH", "list", *elements]], ["LRANGE", "list", 0, -1], [element.encode() for element in elements]),
        Part([["RPUSH", "numbers", *range(300)]], ["LINDEX", "numbers", 299], b"299"),
        Part([["SELECT", 1], ["SET", "swapped", "value"], ["SWAPDB", 1, 2], ["SELECT", 0]], ["DBSIZE"], None),
        Part([["SELECT", 3], ["SET", "flushed", "value"], ["FLUSHDB"], ["SELECT", 0]], ["EXISTS", "flushed"], 0),
        Part(
            [
                ["CONFIG", "SET", "compression", "zstd"],
                ["DICTIONARY", "IMPORT", "documents:*", len(document), dictionary()],
                *documents,
            ],
            ["GET", "documents:19"],
            document,
        ),
    ]


JOURNALED = Part([["SET", "journaled", "value"], ["RPUSH", "list", "last"]], ["GET", "journaled"], b"value")


def options(store: Path) -> list[str]:
    """Options that writer and reader share: the writer's last changes stay in the journal."""
    return ["--storage", str(store), "--durability", "fsync", "--max-disk", "16mb", "--commit-interval", "60000"]


def fill(connection: Connection, client: memcached.Client) -> None:
    for part in [*strings(), *others()]:
        for write in part.writes:
            connection.command(*write)
    assert client.ask(b"set flags 7 0 5\r\nvalue\r\n") == b"STORED\r\n"


def assert_filled(connection: Connection, client: memcached.Client) -> None:
    for part in [*strings(), *others()]:
        found = connection.command(*part.read)
        if part.read[0] == "LRANGE":
            assert isinstance(part.expected, list)
            assert found == [*part.expected, b"last"]
        elif part.expected is not None:
            assert found == part.expected, part.read
    assert connection.command(*JOURNALED.read) == JOURNALED.expected
    assert client.ask(b"get flags\r\n") == b"VALUE flags 7 5\r\nvalue\r\nEND\r\n"
    connection.command("SELECT", 2)
    assert connection.command("GET", "swapped") == b"value"


def serving(program: str, store: Path, memcached_port: int) -> list[str]:
    return [program, "serve", *options(store), "--memcached-port", str(memcached_port)]


def unpack(archive: Path, folder: Path) -> Path:
    """The store of an archive, in this folder."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / "store"


def make(program: str, archive: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, servers.reserved_port() as port:
        store = Path(folder) / "store"
        with servers.serving("snugly", serving(program, store, port)) as server:
            with server.connect() as connection:
                fill(connection, memcached.Client(port))
                settle(server)
                for write in JOURNALED.writes:
                    connection.command(*write)
            server.process.kill()
            server.process.wait()
        with tarfile.open(archive, "w:xz") as packed:
            for name in ["data.mdb", "journal.0", "journal.1"]:
                packed.add(store / name, f"store/{name}")


def settle(server: Server) -> None:
    """Lets the server take over what its journal has, which so many changes make it do."""
    with server.connect() as connection:
        connection.command("CONFIG", "SET", "compression", "none")
        for number in range(100):
            assert connection.command("SET", f"filler:{number}", b"x" * 20_000) == Simple(b"OK")
        connection.command("DEL", *[f"filler:{number}" for number in range(100)])


def version_of(store: Path) -> int:
    """The version of a store's format, which its identity has."""
    content = (store / "data.mdb").read_bytes()
    place = content.index(b"snugly-store") + len(b"snugly-store")
    return int.from_bytes(content[place : place + 4], "little")


def with_version(content: bytes, version: int) -> bytes:
    """A data file whose identities, of which pages before have others, have this version."""
    magic = b"snugly-store"
    changed, place = bytearray(content), content.find(magic)
    while place >= 0:
        body = bytearray(content[place : place + IDENTITY_BYTES - 8])
        body[len(magic) : len(magic) + 4] = version.to_bytes(4, "little")
        changed[place : place + IDENTITY_BYTES] = bytes(body) + xxhash.xxh3_64_intdigest(body).to_bytes(8, "little")
        place = content.find(magic, place + 1)
    return bytes(changed)


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2]))
