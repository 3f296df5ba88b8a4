"""Commands of the server's own: DEBUG, WAIT, ROLE, SHUTDOWN, and what clients send when they connect."""

from __future__ import annotations

import contextlib
import re
import time

import pytest

import waiting
from resp import Argument, Connection, Failure, Simple, encode
from servers import Server
from tested import Start

COMMANDS: list[list[Argument]] = [
    ["ROLE", "x"],
    ["WAIT", 0, 0],
    ["WAIT", 0, 1000],
    ["WAIT", -1, 0],
    ["WAIT", 1, 10],
    ["WAIT", "x", 0],
    ["WAIT", 0, "x"],
    ["WAIT", 0, -1],
    ["WAIT", 0, "9223372036854775808"],
    ["WAIT"],
    ["LASTSAVE", "x"],
    ["ACL"],
    ["ACL", "WHOAMI"],
    ["ACL", "WHOAMI", "x"],
    ["ACL", "NOSUCH"],
    ["FUNCTION"],
    ["FUNCTION", "FLUSH"],
    ["FUNCTION", "FLUSH", "ASYNC"],
    ["FUNCTION", "FLUSH", "sync"],
    ["FUNCTION", "FLUSH", "SYNC", "x"],
    ["FUNCTION", "FLUSH", "NOW"],
    ["FUNCTION", "LIST"],
    ["FUNCTION", "LIST", "LIBRARYNAME", "x", "WITHCODE"],
    ["FUNCTION", "LIST", "LIBRARYNAME"],
    ["FUNCTION", "LIST", "WITHCODE", "WITHCODE"],
    ["FUNCTION", "LIST", "x"],
    ["FUNCTION", "NOSUCH"],
    ["DEBUG"],
    ["DEBUG", "NOSUCH"],
    ["DEBUG", "SLEEP"],
    ["DEBUG", "SLEEP", 0],
    ["DEBUG", "SLEEP", -1],
    ["DEBUG", "SLEEP", "x"],
    ["DEBUG", "SLEEP", 0.001],
    ["DEBUG", "OBJECT"],
    ["DEBUG", "OBJECT", "nokey"],
    ["SHUTDOWN", "ABORT"],
    ["SHUTDOWN", "ABORT", "NOW"],
    ["SHUTDOWN", "SAVE", "NOSAVE"],
    ["SHUTDOWN", "NOW", "x"],
    ["CONFIG", "REWRITE"],
    ["CONFIG", "RESETSTAT", "x"],
    ["CONFIG", "SET", "maxmemory", "x", "nosuch", 1],
    ["CONFIG", "SET", "maxMemory", "x"],
    ["CONFIG", "SET", "timeout", 0, "TIMEOUT", 0],
    ["CONFIG", "SET", "timeout", 1, "databases", 3],
    ["CONFIG", "SET", "slowlog-log-slower-than", 7, "slowlog-max-len", 9],
    ["CONFIG", "GET", "slowlog*"],
    ["CONFIG", "SET", "slowlog-log-slower-than", 10_000, "slowlog-max-len", 128],
    ["CONFIG", "SET", "slowlog-max-len", 128, "commandlog-slow-execution-max-len", 128],
    ["MONITOR", "x"],
    ["MULTI"],
    ["MONITOR"],
    ["WAIT", 1, 0],
    ["DEBUG", "SLEEP", 0.001],
    ["EXEC"],
]


@pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])
def test_replies_are_those_of_valkey(server: Server, peer: Server, protocol: int) -> None:
    with server.connect(protocol) as ours, peer.connect(protocol) as theirs:
        for command in COMMANDS:
            assert ours.command_raw(*command) == theirs.command_raw(*command), command


def test_an_object_is_described_as_valkey_describes_it(server: Server, peer: Server) -> None:
    """The address and the serialized length of a value are each server's own."""
    own = re.compile(rb"at:0x[0-9a-f]+|serializedlength:\d+|lru:\d+")
    with server.connect() as ours, peer.connect() as theirs:
        for value in ("1", "text", "x" * 300):
            for arguments in ([], ["fast"]):
                replies = []
                for connection in (ours, theirs):
                    connection.command("SET", "key", value)
                    reply = connection.command_raw("DEBUG", "OBJECT", "key", *arguments)
                    replies.append(own.sub(b"", reply))
                assert replies[0] == replies[1]


def test_the_server_is_a_primary_without_replicas(connection: Connection) -> None:
    reply = connection.command("ROLE")
    assert isinstance(reply, list)
    assert reply[0] == b"master"
    assert isinstance(reply[1], int)
    assert reply[2:] == [[]]


def test_the_last_save_is_a_time(connection: Connection) -> None:
    saved = connection.command("LASTSAVE")
    assert isinstance(saved, int)
    assert 0 <= time.time() - saved < 3600


def test_a_sleeping_connection_keeps_its_replies_in_order(server: Server) -> None:
    with server.connect() as connection:
        connection.send(
            encode("SET", "key", "1")
            + encode("DEBUG", "SLEEP", 0.2)
            + encode("INCR", "key")
            + encode("DEBUG", "SLEEP", 0.1)
            + encode("GET", "key")
        )
        assert [connection.read() for _ in range(5)] == [Simple(b"OK"), Simple(b"OK"), 2, Simple(b"OK"), b"2"]


@pytest.mark.snugly_only
def test_sleeps_of_any_length_are_counted(start: Start) -> None:
    """In valkey-server nobody could ask."""
    server = start()
    with server.connect() as observer, contextlib.ExitStack() as stack:
        for seconds in ("1e300", "inf", "1e18"):
            sleeper = stack.enter_context(server.connect())
            transaction = [["MULTI"], ["DEBUG", "SLEEP", seconds], ["DEBUG", "SLEEP", seconds], ["EXEC"]]
            sleeper.send(b"".join(encode(*command) for command in transaction))

        def microseconds(command: str) -> int:
            text = observer.command("INFO", "commandstats")
            assert isinstance(text, bytes)
            counted = re.search(rb"cmdstat_%b:calls=3,usec=(\d+)," % command.encode(), text)
            return int(counted[1]) if counted else 0

        waiting.until(lambda: microseconds("exec") > 0)
        assert microseconds("exec") >= 3 * 365 * 86_400 * 1_000_000
        assert observer.command("PING") == Simple(b"PONG")


@pytest.mark.snugly_only
def test_a_sleeping_connection_holds_up_no_other(start: Start) -> None:
    """In valkey-server everybody waits. One thread serves all connections here, and nobody does."""
    server = start("--threads", "1")
    with server.connect() as sleeper, server.connect() as waiter, server.connect() as other:
        sleeper.send(encode("DEBUG", "SLEEP", 3600) + encode("PING"))
        waiter.send(encode("WAIT", 1, 0) + encode("PING"))
        for number in range(100):
            assert other.command("SET", "key", number) == Simple(b"OK")
        deadline = time.monotonic() + 60
        while b"blocked_clients:1\r\n" not in other.command_raw("INFO", "clients"):
            assert time.monotonic() < deadline, "the waiting client is not counted"
        assert other.command("CLIENT", "KILL", "SKIPME", "yes") == 2
        assert sleeper.read_to_end() == b""
        assert waiter.read_to_end() == b""


@pytest.mark.snugly_only
def test_a_client_that_leaves_while_it_waits_is_forgotten(start: Start) -> None:
    server = start()
    with server.connect() as other:
        with server.connect() as waiter:
            waiter.send(encode("WAIT", 1, 0))
        deadline = time.monotonic() + 60
        gone = (b"connected_clients:1\r\n", b"blocked_clients:0\r\n")
        while not all(line in other.command_raw("INFO", "clients") for line in gone):
            assert time.monotonic() < deadline, "the client is still there"


def test_waiting_for_replicas_ends_in_time_and_the_rest_is_answered(server: Server) -> None:
    with server.connect() as connection:
        connection.send(encode("WAIT", 1, 100) + encode("ECHO", "x" * 100_000))
        connection.send(encode("PING"))
        assert connection.read() == 0
        assert connection.read() == b"x" * 100_000
        assert connection.read() == Simple(b"PONG")


@pytest.mark.parametrize(
    "modes", [[], ["NOSAVE"], ["SAVE"], ["NOW", "FORCE"], ["nosave", "safe"]], ids=lambda modes: " ".join(modes) or "-"
)
def test_shutdown_ends_the_server_in_every_mode(start: Start, modes: list[str]) -> None:
    server = start()
    with server.connect() as connection:
        connection.send(encode("SHUTDOWN", *modes))
        assert connection.read_to_end() == b""
    assert server.process.wait(60) == 0


@pytest.mark.slow
@pytest.mark.snugly_only
def test_shutdown_does_not_wait_for_a_sleeping_connection_for_long(start: Start) -> None:
    server = start()
    with server.connect() as sleeper, server.connect() as connection:
        sleeper.send(encode("DEBUG", "SLEEP", 3600))
        connection.send(encode("SHUTDOWN", "NOSAVE"))
        assert server.process.wait(60) == 0


def test_an_unknown_subcommand_of_a_stand_in_is_an_error(connection: Connection) -> None:
    assert isinstance(connection.command("ACL", "SETUSER", "bob"), Failure | Simple)
    assert isinstance(connection.command("FUNCTION", "NOSUCH"), Failure)
