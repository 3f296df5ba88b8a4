"""Valkey with the module and another one, whose commands it does not know: they find strings as clients gave them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import valkey_module
from plays import assert_alike, each, each_protocol, rows
from resp import Connection, Simple
from servers import Server
from valkey_module import EAGER, TEXT, VALUES, size_in_memory

pytestmark = pytest.mark.snugly_only
OK = Simple(b"OK")
HERE = Path(__file__).parent
PLAYS = rows("""
reads:
  SET k TEXT | other.read k | GET k | OTHER.READ k | other.read none | SET k ENVELOPE | other.read k | GET k
  other.read k | STRLEN k | SET k SHORT | other.read k | SET k BIG | Other.Read k | GETRANGE k 0 9
writes:
  other.write k TEXT | GET k | APPEND k x | other.read k | other.write k small | GET k | SET k TEXT
  other.write k OTHER | GET k | STRLEN k
databases:
  SET k TEXT | SELECT 1 | SET k OTHER | other.read k | SELECT 0 | other.read k | SWAPDB 0 1 | other.read k | GET k
transactions:
  SET k TEXT | SET e ENVELOPE | MULTI | GET k | other.read k | other.read e | GET k | EXEC | GET e | GET k
  MULTI | other.read k | DISCARD | GET k | MULTI | SELECT 1 | EXEC | SET k OTHER | other.read k
scripts:
  SET k TEXT | EVAL "return {redis.call('other.read', KEYS[1]), redis.call('GET', KEYS[1])}" 1 k | GET k
  SELECT 1 | SET k ENVELOPE | EVAL "return {redis.call('other.read', KEYS[1]), redis.call('GET', KEYS[1])}" 1 k | GET k
damage:
  SET k DAMAGED | other.read k | GET k | SET k UNKNOWN | other.read k | GET k
""")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    assert compiler is not None, "the module itself is not built without a C compiler"
    library = tmp_path_factory.mktemp("module") / "other.so"
    command = [compiler, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", str(library)]
    subprocess.run([*command, str(HERE / "foreign_module.c")], check=True)
    return library


@pytest.fixture(scope="module")
def pair(other: Path) -> Iterator[tuple[Server, Server]]:
    with valkey_module.pair("--loadmodule", str(other), "--enable-module-command", "yes") as servers:
        yield servers


@each(PLAYS)
@each_protocol
def test_unknown_commands_answer_as_in_valkey(pair: tuple[Server, Server], protocol: int, row: list[str]) -> None:
    assert_alike(*pair, protocol, row, VALUES)


def test_a_string_that_an_unknown_command_has_read_is_compressed_as_before(pair: tuple[Server, Server]) -> None:
    with pair[0].connect() as connection:
        connection.command("SET", "k", TEXT)
        small = size_in_memory(connection, "k")
        assert connection.command("other.read", "k") == TEXT
        assert size_in_memory(connection, "k") == small


def test_files_have_what_unknown_commands_have_written(other: Path, tmp_path: Path) -> None:
    appending = ("--appendonly", "yes", "--appendfsync", "always", "--dir", str(tmp_path))
    options = (*EAGER, "--loadmodule", str(other), *appending)
    with valkey_module.serving(*options) as server, server.connect() as connection:
        for key, value in VALUES.items():
            connection.command("SET", key, value)
        connection.command("other.write", "TEXT", VALUES["OTHER"])
        connection.command("other.write", "BIG", VALUES["ENVELOPE"])
        connection.command("other.read", "ENVELOPE")
        connection.command("APPEND", "TEXT", "x")
        before = [connection.command("GET", key) for key in VALUES]
        assert connection.command("DEBUG", "LOADAOF") == OK
        assert [connection.command("GET", key) for key in VALUES] == before


def test_commands_are_known_as_soon_as_their_module_is_loaded(other: Path) -> None:
    with valkey_module.serving(*EAGER, "--enable-module-command", "yes") as server, server.connect() as connection:
        connection.command("SET", "k", TEXT)
        assert connection.command("MODULE", "LOAD", str(other)) == OK
        assert reads(connection) == TEXT
        assert connection.command("MODULE", "UNLOAD", "other") == OK
        assert connection.command("GET", "k") == TEXT


def reads(connection: Connection) -> object:
    return connection.command("other.read", "k")
