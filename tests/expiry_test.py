"""Keys that go by the clock: exactly when they should, read or not."""

from __future__ import annotations

import time

import pytest

from resp import Argument, Connection, Reply, Simple, encode
from servers import Server
from waiting import until

FAR = 4_102_444_800


def until_empty(connection: Connection) -> None:
    until(lambda: connection.command("DBSIZE") == 0)


def test_keys_whose_time_comes_in_a_pause_of_writes_stay_until_it_ends(server: Server, peer: Server) -> None:
    seen = []
    for each in (server, peer):
        with each.connect() as connection:
            connection.command("FLUSHALL")
            at_once(connection, ("SET", "key", "value", "PX", 50), ("CLIENT", "PAUSE", 60_000, "WRITE"))
            time.sleep(0.4)
            seen.append([connection.command(*command) for command in (["GET", "key"], ["TTL", "key"], ["DBSIZE"])])
            connection.command("CLIENT", "UNPAUSE")
            until_empty(connection)
    assert seen == [[None, -2, 1]] * 2


def at_once(connection: Connection, *commands: tuple[Argument, ...]) -> list[Reply]:
    """The replies to commands that the server finds together: none of them comes later because a machine is busy."""
    connection.send(b"".join(encode(*command) for command in commands))
    return [connection.read() for _ in commands]


def test_a_key_is_there_until_its_time_and_not_after(connection: Connection) -> None:
    assert at_once(connection, ("SET", "key", "value", "PX", 300), ("GET", "key")) == [Simple(b"OK"), b"value"]
    time.sleep(0.35)
    assert connection.command("GET", "key") is None
    assert connection.command("EXISTS", "key") == 0
    assert connection.command("TTL", "key") == -2


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("SET", "key", "value", "EX", "1"),
        ("SETEX", "key", "1", "value"),
        ("PSETEX", "key", "1000", "value"),
        ("SET", "key", "value", "PX", "1000"),
        ("MSETEX", "1", "key", "value", "PX", "1000"),
    ],
    ids=lambda command: " ".join(command),
)
def test_every_way_to_write_with_a_lifetime(server: Server, command: tuple[str, ...]) -> None:
    with server.connect() as connection:
        reply, remaining = at_once(connection, command, ("PTTL", "key"))
        if command[0] == "MSETEX" and "unknown command" in repr(reply):
            pytest.skip("this server has no MSETEX")
        assert isinstance(remaining, int)
        assert 900 < remaining <= 1000
        time.sleep(1.05)
        assert connection.command("GET", "key") is None


def test_keys_that_nobody_reads_go_too(server: Server) -> None:
    """Active expiry: DBSIZE counts what is stored, so it must fall without a single read."""
    with server.connect() as connection:
        for number in range(2000):
            connection.send(b"SET key:%d %s PX 200\r\n" % (number, b"x" * 100))
        assert [connection.read() for _ in range(2000)] == [Simple(b"OK")] * 2000
        connection.command("SET", "stays", "value")
        until(lambda: connection.command("DBSIZE") == 1)
        assert connection.command("KEYS", "*") == [b"stays"]


def test_an_expired_key_is_in_no_listing(server: Server) -> None:
    with server.connect() as connection:
        connection.command("MSET", "a", "1", "b", "2")
        connection.command("PEXPIRE", "a", 50)
        time.sleep(0.06)
        assert connection.command("KEYS", "*") == [b"b"]
        assert connection.command("SCAN", 0, "COUNT", 100) == [b"0", [b"b"]]
        assert connection.command("RANDOMKEY") == b"b"


def test_an_expired_key_counts_as_absent_for_conditions(server: Server) -> None:
    with server.connect() as connection:
        for key in ("a", "b", "c", "d"):
            connection.command("SET", key, "1", "PX", 30)
        time.sleep(0.05)
        assert connection.command("SET", "a", "new", "XX") is None
        assert connection.command("SET", "a", "new", "NX") == Simple(b"OK")
        assert connection.command("SETNX", "b", "new") == 1
        assert connection.command("INCR", "c") == 1
        assert connection.command("TTL", "c") == -1
        assert connection.command("APPEND", "d", "x") == 1


def test_writing_keeps_or_drops_the_lifetime(server: Server) -> None:
    with server.connect() as connection:

        def lifetime_after(*command: str) -> bool:
            connection.command("SET", "key", "1", "EXAT", FAR)
            connection.command(*command)
            return connection.command("EXPIRETIME", "key") == FAR

        for keeps in (("INCR", "key"), ("APPEND", "key", "0"), ("SET", "key", "2", "KEEPTTL"), ("GETEX", "key")):
            assert lifetime_after(*keeps), keeps
        drops = (("SET", "key", "2"), ("GETSET", "key", "2"), ("GETEX", "key", "PERSIST"), ("MSET", "key", "2"))
        for command in drops:
            assert not lifetime_after(*command), command


def test_expired_keys_are_counted(server: Server) -> None:
    with server.connect() as connection:
        before = expired(connection)
        connection.command("SET", "key", "value", "PX", 20)
        time.sleep(0.05)
        connection.command("GET", "key")
        # The thread that removes it, which may be another one, counts it next.
        until(lambda: expired(connection) > before)
        assert expired(connection) == before + 1


def expired(connection: Connection) -> int:
    info = connection.command("INFO", "stats")
    assert isinstance(info, bytes)
    return int(info.split(b"expired_keys:")[1].split(b"\r\n")[0])
