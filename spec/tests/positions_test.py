"""The key positions against a real valkey-server: the file is what it tells, and finds the keys that it finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import key_positions
import positions
import servers
from resp import Failure
from table import Table


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.valkey() as running:
        yield running


def test_file_is_what_the_server_tells(server: servers.Server) -> None:
    with server.connect(protocol=3) as connection:
        assert positions.FILE.read_text() == key_positions.document(connection), "run `make key-positions`"


def test_every_command_of_the_table_has_positions_unless_it_is_newer() -> None:
    table = Table()
    assert set(table.classified()) - set(positions.COMMANDS) == set(table.data["newer"])


@pytest.mark.parametrize(
    "command",
    [
        "DEL a b c",
        "COPY a b REPLACE",
        "BITOP AND d a b",
        "OBJECT ENCODING a",
        "object freq a",
        "XGROUP CREATE a g 0",
        "MEMORY USAGE a SAMPLES 5",
        "EVAL script 2 a b c",
        "ZUNIONSTORE d 2 a b WEIGHTS 1 2",
        "ZINTER 2 a b",
        "BZMPOP 1 2 a b MIN",
        "SINTERCARD 2 a b LIMIT 1",
        "XREAD COUNT 5 STREAMS a b 0 0",
        "XREADGROUP GROUP STREAMS me STREAMS a >",
        "GEORADIUS a 1 2 3 km ASC STORE d",
        "GEORADIUSBYMEMBER a m 3 km STOREDIST d",
        "GEOSEARCHSTORE d a FROMMEMBER m BYRADIUS 1 km",
        "MIGRATE host 6379 a 0 1000",
        "MIGRATE host 6379  0 1000 COPY KEYS a b",
        "BLPOP a b 1",
        "PFMERGE d a b",
        "MSETEX 2 a 1 b 2 EX 5",
        "GETRANGE a 0 1",
        "SET a b",
    ],
)
def test_keys_are_those_that_the_server_finds(server: servers.Server, command: str) -> None:
    args = command.encode().split(b" ")
    found = positions.keys(args)
    assert found is not None
    with server.connect() as connection:
        assert [args[place] for place in found] == connection.command("COMMAND", "GETKEYS", *args)


@pytest.mark.parametrize("command", ["EVAL s 3 a b", "ZUNION x a", "ZUNION -1 a", "MGET", "ZUNION 999999999 a"])
def test_keys_that_cannot_be_there_are_not_known(server: servers.Server, command: str) -> None:
    args = command.encode().split()
    assert positions.keys(args) is None
    with server.connect() as connection:
        told = connection.command("COMMAND", "GETKEYS", *args)
    assert told == [] or isinstance(told, Failure)


def test_a_command_that_the_server_does_not_know_has_no_positions() -> None:
    assert positions.keys([b"FT.SEARCH", b"index"]) is None
    assert positions.keys([b"PING"]) == []
    assert positions.keys([b"EVAL", b"script", b"0"]) == []
