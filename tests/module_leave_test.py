"""Valkey with the module, which is unloaded again: everything is as clients gave it, without the module, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import info
import servers
import valkey_module
from plays import request
from replicas import until_caught_up, until_up
from resp import Connection, Failure, Simple
from servers import Server
from valkey_module import EAGER, TEXT, VALUES, size_in_memory
from waiting import until

pytestmark = pytest.mark.snugly_only
OK = Simple(b"OK")
OPTIONS = (*EAGER, "--enable-module-command", "yes", "--databases", "3", "--snugly.background-cpu-percent", "100")


@pytest.fixture
def server() -> Iterator[Server]:
    with valkey_module.serving(*OPTIONS) as server:
        yield server


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    with server.connect() as connection:
        yield connection


def state(connection: Connection) -> str:
    return info.word(connection, "snugly", "snugly_state")


def restore(connection: Connection) -> None:
    assert connection.command("SNUGLY.RESTORE") == OK
    until(lambda: state(connection) == "restored")


def fill(connection: Connection) -> None:
    for database in range(3):
        connection.command("SELECT", database)
        for name, value in VALUES.items():
            assert connection.command("SET", name, value, "PX", 5_000_000) == OK
        connection.command("RPUSH", "list", TEXT)
    connection.command("SELECT", 0)


def test_everything_is_plain_when_the_module_is_gone(server: Server, connection: Connection) -> None:
    fill(connection)
    expiry = connection.command("PEXPIRETIME", "TEXT")
    restore(connection)
    assert connection.command("MODULE", "UNLOAD", "snugly") == OK
    for database in range(3):
        connection.command("SELECT", database)
        for name, value in VALUES.items():
            assert connection.command("GET", name) == value, name
        assert connection.command("LRANGE", "list", 0, -1) == [TEXT]
    connection.command("SELECT", 0)
    assert connection.command("PEXPIRETIME", "TEXT") == expiry
    connection.command("SET", "TEXT again", TEXT, "PX", 5_000_000)
    connection.command("SET", "TEXT other", TEXT, "PX", 5_000_000)
    assert size_in_memory(connection, "TEXT again") == size_in_memory(connection, "TEXT other") > len(TEXT)
    assert isinstance(connection.command("SNUGLY.RESTORE"), Failure)
    assert isinstance(connection.command("CONFIG", "SET", "snugly.codec", "zstd"), Failure)
    assert not [line for line in server.output().splitlines() if "snugly has failed" in line]


def test_values_take_as_much_memory_as_such_that_were_never_compressed(connection: Connection) -> None:
    connection.command("SET", "before", TEXT)
    restore(connection)
    connection.command("SET", "after!", TEXT)
    assert size_in_memory(connection, "before") == size_in_memory(connection, "after!") > len(TEXT)


def test_clients_read_and_write_meanwhile(connection: Connection) -> None:
    fill(connection)
    assert connection.command("CONFIG", "SET", "snugly.background-cpu-percent", 1) == OK
    assert connection.command("SNUGLY.RESTORE") == OK
    while state(connection) == "restoring":
        for name, value in VALUES.items():
            assert connection.command("GET", name) == value, name
            assert connection.command("SET", name, value, "KEEPTTL") == OK
        if state(connection) == "restoring":
            assert connection.command("CONFIG", "SET", "snugly.background-cpu-percent", 100) == OK
    for name, value in VALUES.items():
        assert connection.command("GET", name) == value, name


def test_it_can_be_loaded_again(connection: Connection) -> None:
    fill(connection)
    restore(connection)
    assert connection.command("MODULE", "UNLOAD", "snugly") == OK
    plain = size_in_memory(connection, "TEXT")
    assert connection.command("MODULE", "LOAD", str(valkey_module.library())) == OK
    assert connection.command("SET", "TEXT", TEXT) == OK
    assert size_in_memory(connection, "TEXT") < plain
    assert connection.command("GET", "TEXT") == TEXT
    restore(connection)
    assert connection.command("GET", "TEXT") == TEXT
    # There is nothing left to do: the server could not unload a module with a timer.
    assert connection.command("MODULE", "UNLOAD", "snugly") == OK


def test_it_is_not_unloaded_while_strings_are_compressed(server: Server, connection: Connection) -> None:
    connection.command("SET", "k", TEXT)
    refused = connection.command("MODULE", "UNLOAD", "snugly")
    assert isinstance(refused, Failure)
    assert b"operation not possible" in refused.text
    assert server.says("Run SNUGLY.RESTORE")
    assert connection.command("GET", "k") == TEXT


def test_it_is_not_unloaded_while_a_transaction_is_open(server: Server, connection: Connection) -> None:
    restore(connection)
    with server.connect() as other:
        other.command("MULTI")
        other.command(*request("GET k", VALUES)[1])
        assert isinstance(connection.command("MODULE", "UNLOAD", "snugly"), Failure)
        assert server.says("a client has a transaction open")
        assert other.command("EXEC") == [None]
    assert connection.command("MODULE", "UNLOAD", "snugly") == OK


def test_it_goes_on_to_compress_if_it_is_told_so(connection: Connection) -> None:
    connection.command("SET", "k", TEXT)
    small = size_in_memory(connection, "k")
    restore(connection)
    assert size_in_memory(connection, "k") > small
    assert connection.command("SNUGLY.RESTORE", "CANCEL") == OK
    assert state(connection) == "compressing"
    assert connection.command("SET", "k", TEXT) == OK
    assert size_in_memory(connection, "k") == small


@pytest.mark.parametrize("words", [["CANCEL", "NOW"], ["x"], [""]])
def test_a_word_that_there_is_not_is_an_error_and_changes_nothing(connection: Connection, words: list[str]) -> None:
    told = connection.command("SNUGLY.RESTORE", *words)
    assert isinstance(told, Failure)
    assert told.text.startswith(b"ERR syntax error")
    assert state(connection) == "compressing"


def test_only_administrators_may_do_it(server: Server, connection: Connection) -> None:
    connection.command("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all", "-@admin")
    with server.connect() as user:
        user.command("AUTH", "u", "")
        told = user.command("SNUGLY.RESTORE")
        assert isinstance(told, Failure)
        assert told.text.startswith(b"NOPERM")


def test_files_and_replicas_have_plain_strings_too_when_they_change_again(tmp_path: Path) -> None:
    appending = ("--appendonly", "yes", "--appendfsync", "always", "--dir", str(tmp_path))
    lines = ["APPEND TEXT x", "SETRANGE OTHER 3 yyy", "SETBIT EVEN 9 1", "APPEND ENVELOPE x"]
    with valkey_module.serving(*OPTIONS, *appending, "--repl-diskless-sync-delay", "0") as server:
        follow = ("--replicaof", f"127.0.0.1 {server.port}")
        with server.connect() as client, servers.valkey(*follow) as stock, stock.connect() as reader:
            until_up(reader)
            fill(client)
            restore(client)
            for line in lines:
                client.command(*request(line, VALUES)[1])
            expected = {name: client.command("GET", name) for name in VALUES}
            until_caught_up(client, reader)
            for name, value in expected.items():
                stored = reader.command("GET", name)
                assert isinstance(stored, bytes)
                assert stored == value or valkey_module.restored(stored) == value, name
            assert client.command("DEBUG", "LOADAOF") == OK
            assert {name: client.command("GET", name) for name in VALUES} == expected
            restore(client)
            assert client.command("MODULE", "UNLOAD", "snugly") == OK
            assert client.command("DEBUG", "LOADAOF") == OK
            assert {name: client.command("GET", name) for name in VALUES} == expected
