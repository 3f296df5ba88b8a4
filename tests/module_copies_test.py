"""Valkey with the module: what replicas and files get, and what is read where the module is, is not, or comes later."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

import envelope
import random_commands
import random_scripts
import servers
import valkey_module
from comparison import seeds
from plays import request
from replicas import Contents, contents, is_up, until_caught_up, until_equal, until_up
from resp import Argument, Connection, Simple
from servers import Server
from valkey_module import EAGER, ENVELOPE, LEAST, TEXT, VALUES, restored, restores_an_envelope, text
from waiting import until

pytestmark = pytest.mark.snugly_only
OK = Simple(b"OK")
PRIMARY = ("--repl-diskless-sync-delay", "0")
# Appending only, with all that is written kept at once.
APPENDING = ("--appendonly", "yes", "--appendfsync", "always")
WRITES = [
    *["SET k TEXT", "APPEND k x", "SETRANGE k 3 yyy", "SETBIT k 9 1", "BITFIELD k SET u8 16 65 INCRBY u8 0 1"],
    *["MSET a TEXT b OTHER c small", "BITOP AND d a b", "BITOP NOT e a", "COPY a f", "RENAME b g", "GETSET g TEXT"],
    *["SETEX h 1000 TEXT", "GETEX h EX 2000", "APPEND h x", "SET i NUMBER", "INCRBYFLOAT i 1", "SET j ENVELOPE"],
    *["APPEND l HEADER", "APPEND l REST", "SETNX m UNKNOWN", "MSETNX n ENVELOPE_LZ4"],
    *["SET q SHORT", "APPEND q xyz", "SET r TEXT", "SET r OTHER IFEQ TEXT", "SET s TEXT", "DELIFEQ s TEXT", "INCR t"],
    *["SET o TEXT", "GETDEL o", "SET p EVEN"],
    *["MULTI", "SET u TEXT", "APPEND u x", "APPEND u TEXT", "GETRANGE u 0 3", "SETRANGE u 0 z", "EXEC"],
    *["RPUSH y 2 1", "MSET w1 TEXT w2 OTHER", "SORT y GET w* STORE z", "SELECT 3", "SET k TEXT", "MOVE k 4"],
    "EVAL \"redis.call('SET', 'v', ARGV[1]) redis.call('APPEND', 'v', 'x')\" 0 TEXT",
]  # fmt: skip
# Ends or joins servers, or leaves nothing to compare.
NOT_HERE = {b"SHUTDOWN", b"REPLICAOF", b"SLAVEOF", b"FLUSHALL", b"FLUSHDB"}


def words(line: str) -> list[Argument]:
    return request(line, VALUES)[1]


def write(server: Server) -> None:
    with server.connect() as client:
        for line in WRITES:
            client.command(*words(line))


def contents_of(server: Server) -> Contents:
    """What is there, once the server has loaded it."""
    with server.connect() as connection:
        until(lambda: b"\r\nloading:0" in told(connection))
        return contents(connection)


def plain(stored: Contents) -> Contents:
    """What the module makes of what a server without it gives."""
    return {
        key: (kind, restored(value) if kind == b"string" and isinstance(value, bytes) else value, expiry)
        for key, (kind, value, expiry) in stored.items()
    }


@dataclass
class Family:
    """A primary with the module, a replica with it, and one without."""

    primary: Server
    alike: Server
    stock: Server

    def catch_up(self) -> None:
        with self.primary.connect() as primary, self.alike.connect() as alike, self.stock.connect() as stock:
            for replica in (alike, stock):
                until_caught_up(primary, replica)

    def stored(self, key: str) -> bytes | None:
        """The bytes at a key, which the replica without the module gives."""
        self.catch_up()
        with self.stock.connect() as stock:
            value = stock.command("GET", key)
            assert value is None or isinstance(value, bytes)
            return value


@pytest.fixture(scope="module", params=["lz4", pytest.param("zstd", marks=pytest.mark.slow)])
def family(request: pytest.FixtureRequest) -> Iterator[Family]:
    with ExitStack() as stack:
        codec = ("--snugly.codec", request.param)
        primary = stack.enter_context(valkey_module.serving(*EAGER, *codec, *PRIMARY))
        follow = ("--replicaof", f"127.0.0.1 {primary.port}")
        alike = stack.enter_context(valkey_module.serving(*follow))
        stock = stack.enter_context(servers.valkey(*follow))
        for replica in (alike, stock):
            with replica.connect() as connection:
                until_up(connection)
        yield Family(primary, alike, stock)


@pytest.fixture
def primary(family: Family) -> Iterator[Connection]:
    with family.primary.connect() as connection:
        connection.command("FLUSHALL")
        yield connection


def test_an_envelope_is_stored_that_every_reader_of_the_format_knows(family: Family, primary: Connection) -> None:
    assert primary.command("SET", "k", TEXT) == OK
    stored = family.stored("k")
    assert stored is not None
    assert LEAST <= len(stored) < len(TEXT)
    assert envelope.well_formed(stored)
    assert envelope.decode(stored) == TEXT
    with family.alike.connect() as replica:
        assert replica.command("GET", "k") == TEXT
        assert replica.command("GETRANGE", "k", 0, 9) == TEXT[:10]
        assert replica.command("STRLEN", "k") == len(TEXT)


@pytest.mark.parametrize("size", [1, 44, 45, 126, 127])
def test_strings_below_the_least_length_are_stored_as_they_are(family: Family, primary: Connection, size: int) -> None:
    for value in (b"x" * size, text(size), (ENVELOPE + bytes(LEAST))[:size]):
        primary.command("SET", "k", value)
        assert family.stored("k") == value


def test_what_does_not_get_smaller_is_stored_as_it_is(family: Family, primary: Connection) -> None:
    value = random.Random(1).randbytes(1000)
    primary.command("SET", "k", value)
    assert family.stored("k") == value


@pytest.mark.parametrize(
    "value", [valkey_module.text(n, n) for n in (128, 140, 200, 300)] + [b"x" * 200, b"x" * 50_000]
)
def test_no_envelope_is_shorter_than_the_least_length(family: Family, primary: Connection, value: bytes) -> None:
    primary.command("SET", "k", value)
    stored = family.stored("k")
    assert stored is not None
    assert stored == value or (LEAST <= len(stored) < len(value) and restored(stored) == value)


@pytest.mark.parametrize("name", ["ENVELOPE", "ENVELOPE_LZ4", "UNKNOWN", "DAMAGED"])
def test_a_value_that_counts_as_an_envelope_is_put_into_one(family: Family, primary: Connection, name: str) -> None:
    primary.command("SET", "k", VALUES[name])
    stored = family.stored("k")
    assert stored is not None
    assert stored != VALUES[name]
    assert restored(stored) == VALUES[name]
    assert primary.command("GET", "k") == VALUES[name]


def test_what_a_primary_restores_is_not_put_into_an_envelope_again(family: Family, primary: Connection) -> None:
    with servers.valkey() as other, other.connect() as client:
        client.command("SET", "k", ENVELOPE)
        payload = client.command("DUMP", "k")
        assert isinstance(payload, bytes)
    assert primary.command("RESTORE", "k", 0, payload) == OK
    assert family.stored("k") == ENVELOPE
    assert primary.command("GET", "k") == text(600, 3)


@pytest.mark.parametrize("line", ["PFADD k a b c", "PFMERGE k other", "PFADD k " + " ".join(map(str, range(3000)))])
def test_hyperloglogs_are_stored_as_they_are(family: Family, primary: Connection, line: str) -> None:
    primary.command("PFADD", "other", *range(100))
    primary.command(*words(line))
    copy = primary.command("GET", "k")
    assert isinstance(copy, bytes)
    assert family.stored("k") == copy
    primary.command("SET", "copy", copy)
    assert family.stored("copy") == copy
    assert primary.command("PFCOUNT", "copy") == primary.command("PFCOUNT", "k")


def test_replicas_have_what_the_primary_has_after_every_kind_of_write(family: Family, primary: Connection) -> None:
    for line in WRITES:
        primary.command(*words(line))
    until_equal(family.primary, family.alike)
    assert plain(contents_of(family.stock)) == contents_of(family.primary)


@pytest.mark.parametrize("seed", seeds(6_000, part=5))
def test_replicas_have_what_the_primary_has_after_random_commands(family: Family, seed: int) -> None:
    rng = random.Random(seed)
    sequences = (random_commands.sequence, random_scripts.sequence)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_commands, "TEXTS", [*VALUES.values(), *map(text, range(120, 300, 20))])
        commands = [command for sequence in sequences for command in sequence(rng, 150)]
    with family.primary.connect() as primary:
        primary.command("FLUSHALL")
        for command in commands:
            if command[0].upper() not in NOT_HERE and not restores_an_envelope(command):
                primary.command(*command)
    until_equal(family.primary, family.alike)
    assert plain(contents_of(family.stock)) == contents_of(family.primary)


def test_a_primary_without_the_module_has_a_replica_with_it() -> None:
    """What a primary sends is not changed: the replica restores what a compressing client has written."""
    with servers.valkey(*PRIMARY) as primary, primary.connect() as client:
        client.command("SET", "before", TEXT)
        with valkey_module.serving(*EAGER, "--replicaof", f"127.0.0.1 {primary.port}") as replica:
            with replica.connect() as reader:
                until_up(reader)
            write(primary)
            client.command("SET", "long", text(100_000))
            with replica.connect() as reader:
                until_caught_up(client, reader)
                sizes = [valkey_module.size_in_memory(each, "long") for each in (client, reader)]
                assert sizes[0] == sizes[1]
            assert plain(contents_of(primary)) == contents_of(replica)


@pytest.mark.slow
def test_a_replica_becomes_a_primary_and_compresses() -> None:
    with servers.valkey(*PRIMARY) as primary, primary.connect() as client:
        client.command("SET", "k", TEXT)
        follow = ("--replicaof", f"127.0.0.1 {primary.port}")
        with valkey_module.serving(*EAGER, *follow) as replica, replica.connect() as connection:
            until_up(connection)
            assert connection.command("GET", "k") == TEXT
            before = valkey_module.size_in_memory(connection, "k")
            assert connection.command("REPLICAOF", "NO", "ONE") == OK
            assert connection.command("SET", "k", TEXT) == OK
            assert connection.command("GET", "k") == TEXT
            assert valkey_module.size_in_memory(connection, "k") < before


def test_a_value_moves_between_servers_with_the_module() -> None:
    with valkey_module.serving(*EAGER) as source, valkey_module.serving(*EAGER) as target:
        with source.connect() as client:
            for key, value in (("text", TEXT), ("envelope", ENVELOPE), ("small", b"small")):
                client.command("SET", key, value)
                assert client.command("MIGRATE", "127.0.0.1", target.port, key, 0, 60_000) == OK
        with target.connect() as client:
            assert client.command("MGET", "text", "envelope", "small") == [TEXT, ENVELOPE, b"small"]


REQUESTS_OF_READERS = """
GET e | STRLEN e | GETRANGE e 0 4 | MGET e k | GETBIT e 1 | BITCOUNT e | DUMP e | LCS e k LEN | EXISTS e | DBSIZE
GET k | GETRANGE k 0 4 | STRLEN k | DUMP k | SORT_RO l GET w* | BITFIELD_RO k GET u8 0 | BITCOUNT k | LCS k k LEN
APPEND k x | SETRANGE k 0 '' | SET k x GET | SET k TEXT | SETBIT k 1 1 | BITFIELD k GET u8 0 | BITFIELD k SET u8 0 1
GETDEL k | GETEX k | GETEX k PERSIST | GETSET k x | SORT l GET w* | SORT l GET w* STORE d | BITOP NOT d k | DELIFEQ k x
INCRBYFLOAT k 1 | SET k x IFEQ y | MULTI | GET k | GETRANGE k 0 3 | EXEC | MULTI | APPEND k x | EXEC
EVAL "return redis.call('GET', 'k')" 0 | EVAL "return redis.call('APPEND', 'k', 'x')" 0 | FCALL_RO none 0
"""


WRITES_TO_REPLICA = ["SET m TEXT", "APPEND m x", "GET m", "GET k", "APPEND k x", "GET k"]


def test_replicas_answer_as_those_of_valkey() -> None:
    """Also about a key whose time has come, and that the primary has not removed; and when the primary is gone."""
    lines = REQUESTS_OF_READERS.strip().replace("\n", " | ").split(" | ")
    ours, theirs = (answers(begin, lines) for begin in (valkey_module.serving, servers.valkey))
    for line, our_reply, their_reply in zip([*lines, *WRITES_TO_REPLICA, *lines], ours, theirs, strict=True):
        assert our_reply == their_reply, line


def answers(begin: Callable[..., AbstractContextManager[Server]], lines: list[str]) -> list[bytes]:
    """What a replica answers, what it does when it may write, and what it answers when its primary is gone."""
    with (
        begin(*PRIMARY) as primary,
        begin("--replicaof", f"127.0.0.1 {primary.port}") as replica,
        primary.connect() as client,
        replica.connect() as reader,
    ):
        until_up(reader)
        client.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        for line in ("SET k TEXT", "SET e TEXT PX 20", "SET w1 OTHER", "RPUSH l 1"):
            client.command(*words(line))
        until_caught_up(client, reader)
        until(lambda: reader.command("EXISTS", "e") == 0)
        replies = [reader.command_raw(*words(line)) for line in lines]
        reader.command("CONFIG", "SET", "replica-read-only", "no")
        replies += [reader.command_raw(*words(line)) for line in WRITES_TO_REPLICA]
        reader.command("CONFIG", "SET", "replica-serve-stale-data", "no")
        primary.process.kill()
        until(lambda: not is_up(reader))
        return [*replies, *(reader.command_raw(*words(line)) for line in lines)]


# Files.


@pytest.mark.parametrize("reload", ["RELOAD", "LOADAOF"])
@pytest.mark.parametrize("seed", seeds(8_000, part=10))
def test_what_is_loaded_again_is_what_there_was(tmp_path: Path, reload: str, seed: int) -> None:
    with valkey_module.serving(*EAGER, *APPENDING, "--dir", str(tmp_path)) as server:
        write(server)
        with pytest.MonkeyPatch.context() as patch, server.connect() as client:
            patch.setattr(random_commands, "TEXTS", list(VALUES.values()))
            for command in random_commands.sequence(random.Random(seed), 150):
                if command[0].upper() not in NOT_HERE and not restores_an_envelope(command):
                    client.command(*command)
        before = contents_of(server)
        with server.connect() as client:
            assert client.command("DEBUG", reload) == OK
        assert contents_of(server) == before
        assert len(before) > 10


@pytest.mark.parametrize("file", ["AOF", "AOF rewritten", "RDB"])
def test_a_restart_gives_plain_values_with_the_module_and_envelopes_without_it(tmp_path: Path, file: str) -> None:
    options = ["--dir", str(tmp_path), *(() if file == "RDB" else APPENDING)]
    with valkey_module.serving(*EAGER, *options) as server:
        write(server)
        with server.connect() as client:
            if file == "RDB":
                assert client.command("SAVE") == OK
            if file == "AOF rewritten":
                client.command("BGREWRITEAOF")
                until(lambda: b"aof_rewrite_in_progress:0" in told(client) and b"aof_base_size:0" not in told(client))
        before = contents_of(server)
    with valkey_module.serving(*options) as server:
        assert contents_of(server) == before
    with servers.valkey(*options) as server:
        stored = contents_of(server)
        assert stored != before
        assert plain(stored) == before


def told(client: Connection) -> bytes:
    text = client.command("INFO", "persistence")
    assert isinstance(text, bytes)
    return text


def test_files_of_a_server_without_the_module_are_read_as_they_are(tmp_path: Path) -> None:
    options = ("--dir", str(tmp_path), *APPENDING)
    with servers.valkey(*options) as server:
        write(server)
        before = contents_of(server)
    with valkey_module.serving(*EAGER, *options) as server:
        assert contents_of(server) == plain(before)
        with server.connect() as client:
            assert client.command("GET", "j") == text(600, 3)


@pytest.mark.slow
def test_a_file_with_envelopes_from_the_module_is_loaded_with_compression_off(tmp_path: Path) -> None:
    options = ("--dir", str(tmp_path), *APPENDING)
    with valkey_module.serving(*EAGER, *options) as server:
        write(server)
        before = contents_of(server)
    with valkey_module.serving("--snugly.compression", "no", *options) as server:
        assert contents_of(server) == before
