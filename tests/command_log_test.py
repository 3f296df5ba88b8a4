"""SLOWLOG and COMMANDLOG, beside valkey-server's."""

from __future__ import annotations

import time

import pytest

from info import info
from resp import Argument, Connection, Failure, Reply, Simple, encode
from servers import Server
from tested import Start
from waiting import until

LOGS = ("slow", "large-request", "large-reply")
SETTINGS = ("commandlog-execution-slower-than", "commandlog-request-larger-than", "commandlog-reply-larger-than")

COMMANDS: list[list[Argument]] = [
    ["SET", "key", "value"],
    ["SET", "key", "x" * 128],
    ["SET", "key", "x" * 129],
    ["DEL", *(str(number) for number in range(31))],
    ["DEL", *(str(number) for number in range(32))],
    ["DEL", *("y" * length for length in range(120, 200))],
    ["GET", "key"],
    ["GET"],
    ["INCR", "key"],
    ["NOSUCHCOMMAND"],
    ["AUTH", "default", "secret"],
    ["HELLO", 3, "AUTH", "default", "secret"],
    ["CONFIG", "SET", "requirepass", "", "maxmemory", 0],
    ["CLIENT", "SETNAME", "tester"],
    ["PING"],
    ["FUNCTION", "LIST"],
]


@pytest.fixture
def everything_logged(start: Start) -> Server:
    server = start()
    with server.connect() as connection:
        log_everything(connection)
    return server


def log_everything(connection: Connection) -> None:
    assert connection.command("CONFIG", "SET", *(part for name in SETTINGS for part in (name, 0))) == Simple(b"OK")


def entries(connection: Connection, kind: str) -> list[list[Reply]]:
    reply = connection.command("COMMANDLOG", "GET", -1, kind)
    assert isinstance(reply, list)
    return [entry for entry in reply if isinstance(entry, list)]


def logged(server: Server, kind: str) -> list[list[Reply]]:
    """The entries for some commands, without what differs from run to run: numbers, times, ports."""
    with server.connect() as connection:
        connection.command("CONFIG", "SET", "commandlog-slow-execution-max-len", 1000)
        log_everything(connection)
        connection.command("COMMANDLOG", "RESET", kind)
        for command in COMMANDS:
            connection.command(*command)
        found = entries(connection, kind)
        connection.command("CONFIG", "SET", *(part for name in SETTINGS for part in (name, 1 << 20)))
    assert all(len(entry) == 6 for entry in found)
    newest = found[0][0]
    assert isinstance(newest, int)
    assert [entry[0] for entry in found] == list(range(newest, newest - len(found), -1))
    # The reply to HELLO names the server.
    sized = [
        kind == "large-request" or (kind == "large-reply" and b"HELLO" not in repr(entry).encode()) for entry in found
    ]
    return [[*entry[2:3][:size], entry[3], entry[5]] for entry, size in zip(found, sized, strict=True)]


@pytest.mark.parametrize("kind", LOGS)
def test_commands_are_logged_as_valkey_logs_them(everything_logged: Server, peer: Server, kind: str) -> None:
    assert logged(everything_logged, kind) == logged(peer, kind)


def test_an_entry_says_when_how_long_and_who(everything_logged: Server) -> None:
    with everything_logged.connect() as connection:
        connection.command("CLIENT", "SETNAME", "tester")
        connection.command("DEBUG", "SLEEP", 0.01)
        reply = connection.command("SLOWLOG", "GET", 1)
        assert isinstance(reply, list)
        (entry,) = reply
        assert isinstance(entry, list)
        number, at, microseconds, arguments, address, name = entry
        assert isinstance(number, int)
        assert isinstance(at, int)
        assert isinstance(microseconds, int)
        assert abs(at - time.time()) < 60
        assert microseconds >= 10_000
        assert arguments == [b"DEBUG", b"SLEEP", b"0.01"]
        assert address == b"127.0.0.1:%d" % connection.socket.getsockname()[1]
        assert name == b"tester"
        assert connection.command("SLOWLOG", "RESET") == Simple(b"OK")
        following = connection.command("SLOWLOG", "GET", 1)
        assert isinstance(following, list)
        assert isinstance(following[0], list)
        assert following[0][0] == number + 2


def test_only_what_reaches_the_threshold_is_logged(start: Start) -> None:
    with start().connect() as connection:
        # So much that nothing else takes as long on a busy machine.
        connection.command("CONFIG", "SET", "slowlog-log-slower-than", 1_000_000)
        connection.command("DEBUG", "SLEEP", 0.001)
        assert connection.command("SLOWLOG", "LEN") == 0
        connection.command("DEBUG", "SLEEP", 1.01)
        assert connection.command("SLOWLOG", "LEN") == 1
        connection.command("CONFIG", "SET", "commandlog-reply-larger-than", 1000, "commandlog-request-larger-than", 500)
        connection.command("SET", "key", "x" * 450)
        connection.command("GET", "key")
        assert [len(entries(connection, kind)) for kind in LOGS] == [1, 0, 0]
        connection.command("SET", "key", "x" * 990)
        connection.command("GET", "key")
        assert [len(entries(connection, kind)) for kind in LOGS] == [1, 1, 0]
        connection.command("SET", "key", "x" * 1000)
        connection.command("GET", "key")
        assert [len(entries(connection, kind)) for kind in LOGS] == [1, 2, 1]


def test_a_log_is_bounded_and_can_be_switched_off(everything_logged: Server) -> None:
    with everything_logged.connect() as connection:
        connection.command("CONFIG", "SET", "slowlog-max-len", 5)
        for _ in range(20):
            connection.command("PING")
        assert connection.command("SLOWLOG", "LEN") == 5
        connection.command("CONFIG", "SET", "slowlog-log-slower-than", -1)
        connection.command("SLOWLOG", "RESET")
        connection.command("PING")
        assert connection.command("SLOWLOG", "GET") == []


def test_the_newest_ten_are_shown_unless_more_are_asked_for(everything_logged: Server) -> None:
    with everything_logged.connect() as connection:
        for _ in range(30):
            connection.command("PING")
        for arguments, count in [((), 10), ((3,), 3), ((0,), 0), ((20,), 20)]:
            reply = connection.command("SLOWLOG", "GET", *arguments)
            assert isinstance(reply, list)
            assert len(reply) == count
        everything = connection.command("SLOWLOG", "GET", -1)
        assert isinstance(everything, list)
        assert len(everything) > 30


@pytest.mark.parametrize("name", ["slowlog-log-slower-than", "slowlog-max-len"])
def test_the_settings_have_their_older_names_too(connection: Connection, name: str) -> None:
    assert connection.command("CONFIG", "SET", name, 12345) == Simple(b"OK")
    newer = {
        "slowlog-log-slower-than": "commandlog-execution-slower-than",
        "slowlog-max-len": "commandlog-slow-execution-max-len",
    }[name]
    assert b"12345" in connection.command_raw("CONFIG", "GET", newer)
    assert b"12345" in connection.command_raw("CONFIG", "GET", name)
    assert connection.command("CONFIG", "SET", newer, 10_000 if "slower" in newer else 128) == Simple(b"OK")


@pytest.mark.parametrize(
    "command",
    [
        ["SLOWLOG"],
        ["SLOWLOG", "GET", "-2"],
        ["SLOWLOG", "GET", "x"],
        ["SLOWLOG", "GET", "1", "2"],
        ["SLOWLOG", "LEN", "1"],
        ["SLOWLOG", "NOSUCH"],
        ["SLOWLOG", "HELP"],
        ["COMMANDLOG", "GET", "1"],
        ["COMMANDLOG", "GET", "1", "fast"],
        ["COMMANDLOG", "GET", "-2", "slow"],
        ["COMMANDLOG", "GET", "x", "fast"],
        ["COMMANDLOG", "LEN"],
        ["COMMANDLOG", "LEN", "fast"],
        ["COMMANDLOG", "RESET", "fast"],
        ["COMMANDLOG", "HELP"],
        ["CONFIG", "SET", "slowlog-log-slower-than", "-2"],
        ["CONFIG", "SET", "slowlog-log-slower-than", "x"],
        ["CONFIG", "SET", "slowlog-max-len", "-1"],
        ["CONFIG", "SET", "commandlog-request-larger-than", "-2"],
        ["CONFIG", "SET", "commandlog-large-reply-max-len", "x"],
    ],
    ids=" ".join,
)
def test_mistakes_are_answered_as_valkey_answers_them(server: Server, peer: Server, command: list[str]) -> None:
    with server.connect() as ours, peer.connect() as theirs:
        assert ours.command(*command) == theirs.command(*command)


def test_a_failure_is_logged_too(everything_logged: Server) -> None:
    with everything_logged.connect() as connection:
        connection.command("SET", "key", "text")
        assert isinstance(connection.command("INCR", "key"), Failure)
        assert entries(connection, "slow")[0][3] == [b"INCR", b"key"]


def until_blocked(connection: Connection) -> None:
    until(lambda: info(connection, "clients", "blocked_clients") == 1)


def waits(connection: Connection, kind: str) -> list[Reply]:
    """The requests in a log that may wait."""
    requests = [entry[3] for entry in entries(connection, kind)]
    return [request for request in requests if isinstance(request, list) and request[0] == b"BLPOP"]


@pytest.mark.parametrize("kind", LOGS)
def test_a_command_that_waits_is_logged_once_it_is_answered(everything_logged: Server, peer: Server, kind: str) -> None:
    seen = []
    for each in (everything_logged, peer):
        with each.connect() as waiter, each.connect() as other:
            log_everything(other)
            other.command("COMMANDLOG", "RESET", kind)

            waiter.send(encode("BLPOP", "list", 0))
            until_blocked(other)
            before = waits(other, kind)
            other.command("RPUSH", "list", "element")
            waiter.read()
            served = waits(other, kind)
            waiter.send(encode("BLPOP", "list", "0.01"))
            waiter.read()
            seen.append((before, served, waits(other, kind)))
    assert seen[0] == seen[1]
    assert [len(part) for part in seen[0]][:2] == [0, 1]
