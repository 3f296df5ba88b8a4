"""MONITOR: every command that is run, as valkey-server shows it, to connections of any thread."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from resp import Argument, Connection, Failure, Simple, encode
from servers import Server
from tested import Start
from waiting import until

# `1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`
LINE = re.compile(rb'(\d+\.\d{6}) \[(\d+) (127\.0\.0\.1:\d+)\] (".*")')
END = "the end of what a test looks at"

COMMANDS: list[list[Argument]] = [
    ["SET", "key", b'\x00\xff\r\n\t\a\b "quoted" back\\slash'],
    ["get", "key"],
    ["GET"],
    ["NOSUCHCOMMAND", "x"],
    ["INCR", "key"],
    ["SELECT", 1],
    ["GET", ""],
    ["SELECT", 0],
    ["AUTH", "secret"],
    ["AUTH", "default", "secret"],
    ["HELLO", 3, "AUTH", "default", "secret", "SETNAME", "me"],
    ["HELLO", 2],
    ["CLIENT", "SETNAME", "me"],
    ["CLIENT", "LIST"],
    ["CONFIG", "SET", "requirepass", ""],
    ["CONFIG", "GET", "port"],
    ["SLOWLOG", "LEN"],
    ["DEBUG", "SLEEP", 0],
    ["COMMAND", "COUNT"],
    ["INFO", "server"],
    ["WAIT", 0, 0],
    ["ACL", "WHOAMI"],
    ["FUNCTION", "FLUSH"],
    ["MSET", *(f"key:{number}" for number in range(100))],
    ["RESET"],
]


def watch(server: Server) -> Connection:
    connection = server.connect()
    assert connection.command("MONITOR") == Simple(b"OK")
    return connection


def lines(connection: Connection) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Database, address and arguments of every command up to the one that ends a test."""
    while True:
        reply = connection.read()
        assert isinstance(reply, Simple)
        found = LINE.fullmatch(reply.text)
        assert found, reply.text
        if END.encode() in reply.text:
            return
        yield found[2], found[3], found[4]


def seen(server: Server, commands: list[list[Argument]]) -> list[tuple[bytes, bytes]]:
    """MONITOR's lines of commands that another connection runs."""
    with watch(server) as monitor, server.connect() as connection:
        port = connection.socket.getsockname()[1]
        for command in commands:
            connection.command(*command)
        connection.command("ECHO", END)
        shown = list(lines(monitor))
    assert {address for _, address, _ in shown} == {b"127.0.0.1:%d" % port}
    return [(database, arguments) for database, _, arguments in shown]


def test_commands_are_shown_as_valkey_shows_them(server: Server, peer: Server) -> None:
    assert seen(server, COMMANDS) == seen(peer, COMMANDS)


def test_every_monitor_sees_the_commands_of_every_connection(server: Server) -> None:
    with watch(server) as first, watch(server) as second:
        connections = [server.connect() for _ in range(8)]
        for number, connection in enumerate(connections):
            connection.command("SET", f"key:{number}", number)
        connections[0].command("ECHO", END)
        expected = {b'"SET" "key:%d" "%d"' % (number, number) for number in range(8)}
        for monitor in (first, second):
            assert {arguments for _, _, arguments in lines(monitor)} == expected
        for connection in connections:
            connection.close()


def test_a_monitor_may_not_touch_keys_and_sees_itself(server: Server) -> None:
    with watch(server) as monitor:
        assert monitor.command("GET", "key") == Failure(b"ERR Replica can't interact with the keyspace")
        assert monitor.command("SET", "key", "value") == Failure(b"ERR Replica can't interact with the keyspace")
        assert monitor.command("PING") == Simple(b"PONG")
        monitor.send(encode("ECHO", END))
        assert [arguments for _, _, arguments in lines_behind_replies(monitor)] == [b'"PING"']


def lines_behind_replies(monitor: Connection) -> Iterator[tuple[bytes, bytes, bytes]]:
    """As `lines`, without the reply to the command that ends a test."""
    while True:
        reply = monitor.read()
        if isinstance(reply, bytes):
            continue
        assert isinstance(reply, Simple)
        found = LINE.fullmatch(reply.text)
        assert found, reply.text
        if END.encode() in reply.text:
            return
        yield found[2], found[3], found[4]


def test_reset_ends_the_watch(server: Server) -> None:
    with watch(server) as monitor, server.connect() as other:
        assert b"flags=O" in clients(other)
        assert monitor.command("RESET") == Simple(b"RESET")
        assert b"flags=O" not in clients(other)
        other.command("SET", "key", "value")
        assert monitor.command("GET", "key") == b"value"


def clients(connection: Connection) -> bytes:
    reply = connection.command("CLIENT", "LIST")
    assert isinstance(reply, bytes)
    return reply


def test_a_second_monitor_command_is_not_answered(server: Server) -> None:
    with watch(server) as monitor:
        monitor.send(encode("MONITOR") + encode("PING"))
        assert monitor.read() == Simple(b"PONG")


def test_a_monitor_that_leaves_does_no_harm(server: Server) -> None:
    for _ in range(20):
        watch(server).close()
    with server.connect() as connection:
        assert connection.command("SET", "key", "value") == Simple(b"OK")


@pytest.mark.snugly_only
def test_a_monitor_that_does_not_read_is_disconnected(start: Start) -> None:
    """Valkey lets it take memory without bound."""
    server = start()
    value = b"x" * (1 << 20)
    with watch(server) as monitor, server.connect() as connection:
        for _ in range(200):
            connection.command("SET", "key", value)
        assert len(monitor.read_to_end()) < 64 << 20
        assert server.says("does not take its messages")
        until(lambda: b"flags=O" not in clients(connection))
        assert connection.command("GET", "key") == value
