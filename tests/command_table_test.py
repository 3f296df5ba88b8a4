"""The replies of COMMAND, byte for byte beside valkey-server's: clients route and complete by it."""

from __future__ import annotations

from typing import TypeAlias

import pytest

from resp import Connection, Items, Map, Reply, Simple
from servers import Server

# Commands that valkey-server does not have, and containers that list them.
OWN_CONTAINERS = {
    b"compression": [b"explain", b"help", b"list"],
    b"backup": [b"cancel", b"create", b"help", b"status"],
    b"dictionary": [b"classes", b"export", b"forget", b"help", b"import", b"list", b"train"],
}
OWN_SUBCOMMANDS = {container + b"|" + name for container, names in OWN_CONTAINERS.items() for name in names}
OWN = {b"config|reload", b"object|compression"} | OWN_CONTAINERS.keys() | OWN_SUBCOMMANDS
# Lines of HELP about subcommands that valkey-server does not have.
OWN_LINES = {b"config": 3, b"object": 2}
PARTIAL = {b"client", b"config", b"command", b"debug", b"function", b"latency", b"memory", b"object"}

Plain: TypeAlias = "dict[bytes, Plain] | list[Plain] | bytes | int | None"


def listed(connection: Connection, *filters: str) -> list[bytes]:
    reply = connection.command("COMMAND", "LIST", *filters)
    assert isinstance(reply, list)
    return sorted(name for name in reply if isinstance(name, bytes))


def row(connection: Connection, command: bytes) -> list[Reply]:
    """COMMAND INFO of one command, without its subcommands."""
    reply = connection.command("COMMAND", "INFO", command)
    assert isinstance(reply, list)
    (found,) = reply
    assert isinstance(found, list), f"{command.decode()} is unknown"
    assert len(found) == 10
    return found[:9]


def pairs(reply: Reply) -> list[tuple[Reply, Reply]]:
    if isinstance(reply, Map):
        return reply.pairs
    assert isinstance(reply, list)
    return list(zip(reply[::2], reply[1::2], strict=True))


def documentation(connection: Connection, command: bytes) -> list[tuple[Reply, Reply]]:
    """COMMAND DOCS of one command, without its subcommands."""
    ((name, told),) = pairs(connection.command("COMMAND", "DOCS", command))
    assert name == command
    return [(field, value) for field, value in pairs(told) if field != b"subcommands"]


def test_every_command_is_described_as_valkey_describes_it(connection: Connection, peer: Server) -> None:
    """Name, arity, flags, keys, categories, tips and key specifications."""
    commands = [command for command in listed(connection) if command not in OWN]
    assert len(commands) > 100
    with peer.connect(protocol=3 if is_resp3(connection) else 2) as valkey:
        for command in commands:
            assert row(connection, command) == row(valkey, command), command.decode()


def test_every_command_is_documented_as_valkey_documents_it(connection: Connection, peer: Server) -> None:
    with peer.connect(protocol=3 if is_resp3(connection) else 2) as valkey:
        for command in listed(connection):
            if command not in OWN:
                assert documentation(connection, command) == documentation(valkey, command), command.decode()


def is_resp3(connection: Connection) -> bool:
    return isinstance(connection.command("CONFIG", "GET", "port"), Map)


def test_every_subcommand_is_in_its_containers_row_and_documentation(connection: Connection) -> None:
    subcommands = [name for name in listed(connection) if b"|" in name]
    for container in {name.split(b"|")[0] for name in subcommands}:
        expected = {name for name in subcommands if name.startswith(container + b"|")}
        reply = connection.command("COMMAND", "INFO", container)
        assert isinstance(reply, list)
        assert isinstance(reply[0], list)
        rows = reply[0][9]
        assert isinstance(rows, list)
        assert {found[0] for found in rows if isinstance(found, list)} == expected
        ((_, told),) = pairs(connection.command("COMMAND", "DOCS", container))
        (documented,) = [value for field, value in pairs(told) if field == b"subcommands"]
        assert {name for name, _ in pairs(documented)} == expected


def test_commands_are_counted_and_listed(connection: Connection) -> None:
    commands = [name for name in listed(connection) if b"|" not in name]
    everything = connection.command("COMMAND")
    assert isinstance(everything, list)
    assert connection.command("COMMAND", "COUNT") == len(commands) == len(everything)
    assert listed(connection, "FILTERBY", "PATTERN", "CONFIG|*")[:2] == [b"config|get", b"config|help"]
    assert b"get" in listed(connection, "FILTERBY", "ACLCAT", "string")
    assert listed(connection, "FILTERBY", "ACLCAT", "nosuch") == []
    assert listed(connection, "FILTERBY", "MODULE", "nosuch") == []


def test_a_command_that_nobody_knows_has_no_description(connection: Connection) -> None:
    reply = connection.command("COMMAND", "INFO", "get", "nosuch", "config|nosuch")
    assert isinstance(reply, list)
    assert reply[1:] == [None, None]
    assert pairs(connection.command("COMMAND", "DOCS", "nosuch")) == []


@pytest.mark.parametrize("container", sorted(PARTIAL | {b"acl", b"commandlog", b"slowlog"}))
def test_help_has_no_lines_that_valkey_does_not_have(server: Server, peer: Server, container: bytes) -> None:
    """It has fewer where there are fewer subcommands."""
    with server.connect() as ours, peer.connect() as theirs:
        help_here, help_there = ours.command(container, "HELP"), theirs.command(container, "HELP")
        assert isinstance(help_here, list)
        assert isinstance(help_there, list)
        lines = [line for line in help_here if b"COMPRESSION" not in repr(line).encode()]
        assert [line for line in help_there if line in lines] == [line for line in lines if line in help_there]
        if container not in PARTIAL:
            assert help_here == help_there
        extra = [line for line in help_here if line not in help_there]
        assert len(extra) == (OWN_LINES.get(container, 0) if help_here != help_there else 0), extra


KEYS = [
    ["GET", "a"],
    ["SET", "a", "1"],
    ["SET", "a", "1", "EX", "10", "get"],
    ["SET", "a", "1", "IFEQ", "2"],
    ["MSET", "a", "1", "b", "2"],
    ["MSET", "a", "1", "b"],
    ["DEL", "a", "b", "c"],
    ["EXISTS", "a"],
    ["GETEX", "a", "PERSIST"],
    ["MEMORY", "USAGE", "a"],
    ["OBJECT", "ENCODING", "a"],
    ["EXPIRE", "a", "1"],
    ["APPEND", "a", "1"],
    ["INCRBYFLOAT", "a", "1"],
    ["RANDOMKEY"],
    ["PING"],
    ["CONFIG", "GET", "a"],
    ["CONFIG"],
    ["CONFIG", "NOSUCH"],
    ["OBJECT"],
    ["OBJECT", "ENCODING"],
    ["DEBUG", "OBJECT", "a"],
    ["GET"],
    ["GET", "a", "b"],
    ["MSET", "a"],
    ["BITFIELD", "a"],
    ["BITFIELD", "a", "OVERFLOW", "FAIL", "GET", "u8", "0"],
    ["BITFIELD", "a", "GET", "u8", "0", "SET", "u8", "0", "1"],
    ["BITFIELD", "a", "GET", "u8"],
    ["NOSUCH", "a"],
]


@pytest.mark.parametrize("request_", KEYS, ids=" ".join)
@pytest.mark.parametrize("subcommand", ["GETKEYS", "GETKEYSANDFLAGS"])
@pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])
def test_the_keys_of_a_request_are_found_as_valkey_finds_them(
    server: Server, peer: Server, subcommand: str, request_: list[str], protocol: int
) -> None:
    with server.connect(protocol) as ours, peer.connect(protocol) as theirs:
        command = ["COMMAND", subcommand, *request_]
        assert ours.command_raw(*command) == theirs.command_raw(*command)


@pytest.mark.parametrize(
    "command",
    [
        ["COMMAND", "NOSUCH"],
        ["COMMAND", "COUNT", "x"],
        ["COMMAND", "GETKEYS"],
        ["COMMAND", "GETKEYSANDFLAGS"],
        ["COMMAND", "LIST", "FILTERBY"],
        ["COMMAND", "LIST", "FILTERBY", "PATTERN"],
        ["COMMAND", "LIST", "FILTERBY", "NOSUCH", "x"],
        ["COMMAND", "LIST", "NOSUCH"],
    ],
    ids=" ".join,
)
def test_mistakes_are_answered_as_valkey_answers_them(server: Server, peer: Server, command: list[str]) -> None:
    with server.connect() as ours, peer.connect() as theirs:
        assert ours.command_raw(*command) == theirs.command_raw(*command)


def test_flags_and_categories_are_sets_of_statuses(server: Server) -> None:
    with server.connect(protocol=3) as connection:
        described = row(connection, b"get")
        assert described[2] == Items(b"~", [Simple(b"readonly"), Simple(b"fast")])
