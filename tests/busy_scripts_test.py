"""Scripts that take too long: what others are answered meanwhile, who may end them, and what cannot be ended.

Everything is compared with valkey-server; the pair of servers is for this file alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from plays import each, each_protocol_at_length, is_busy
from resp import Connection, Failure, Simple, encode
from servers import Server
from tested import Start, started, target_name
from waiting import until

OK = Simple(b"OK")
FOREVER = "while true do end"
WRITES_FOREVER = "redis.call('set', KEYS[1], 'x') while true do end"


def impatient(server: Server) -> None:
    with server.connect() as connection:
        assert connection.command("CONFIG", "SET", "busy-reply-threshold", 100) == OK


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Server, Server]]:
    """The server under test and a valkey-server, which call a script long after a tenth of a second."""
    with started(target_name()) as ours, started("valkey") as theirs:
        impatient(ours)
        impatient(theirs)
        yield ours, theirs


@contextlib.contextmanager
def busy(server: Server, *requests: list[str | int], protocol: int = 2) -> Iterator[Connection]:
    """A client whose requests keep the server busy, and that is answered when somebody has ended them."""
    with server.connect(protocol) as client:
        client.send(b"".join(encode(*request) for request in requests))
        until(lambda: is_busy(server))
        try:
            yield client
        finally:
            with contextlib.suppress(OSError, EOFError):
                end(server)


def end(server: Server) -> bytes:
    """The answer to SCRIPT KILL; the server is there for others when this returns, if that is possible."""
    with server.connect() as connection:
        reply = connection.command_raw("SCRIPT", "KILL")
    if reply == b"+OK\r\n":
        until(lambda: not is_busy(server))
    return reply


REFUSED = [
    *[
        "PING",
        "GET x",
        "SET x 1",
        "INFO server",
        "CONFIG GET port",
        "DBSIZE",
        "FLUSHALL",
        "CLIENT LIST",
        "COMMAND COUNT",
    ],
    *["SCRIPT LOAD x", "SCRIPT EXISTS x", "SCRIPT FLUSH", "SCRIPT HELP", "EVAL x 0", "EVALSHA x 0", "EVAL_RO x 0"],
    *["SUBSCRIBE x", "PUBLISH x y", "BLPOP x 0", "ACL WHOAMI", "DEBUG SLEEP 0", "KEYS *", "TIME", "ECHO x"],
    *["FUNCTION LIST", "FCALL f 0", "SLOWLOG GET", "LATENCY LATEST", "OBJECT HELP", "BGSAVE", "REPLICAOF NO ONE"],
    "SHUTDOWN",
]
ANSWERED = [
    *["SELECT 1", "SELECT 99", "WATCH x", "UNWATCH", "AUTH x", "AUTH x y", "HELLO 9", "RESET", "NOSUCH", "GET", "EVAL"],
    *["DISCARD", "EXEC", "SCRIPT NOSUCH", "SCRIPT KILL x", "CLIENT SETNAME x", "CLIENT GETNAME", "CLIENT REPLY ON"],
    *["CLIENT NO-EVICT OFF", "QUIT"],
]
QUEUED = [
    ["MULTI", "GET x", "EXEC"],
    ["MULTI", "EXEC"],
    ["MULTI", "NOSUCH", "DISCARD"],
    ["WATCH x", "MULTI", "SET x 1", "DISCARD", "UNWATCH"],
    ["MULTI", "MULTI", "EXEC"],
]


def answers(server: Server, protocol: int, lines: list[str]) -> list[bytes]:
    with server.connect(protocol) as connection:
        return [connection.command_raw(*line.split()) for line in lines]


@each_protocol_at_length
def test_others_are_told_that_the_server_is_busy(pair: tuple[Server, Server], protocol: int) -> None:
    seen = []
    for tested in pair:
        with busy(tested, ["EVAL", FOREVER, 0]):
            seen.append([(lines, answers(tested, protocol, lines)) for lines in ([line] for line in REFUSED)])
    assert seen[0] == seen[1]
    assert all(reply.startswith(b"-BUSY ") for _, replies in seen[0] for reply in replies)


@each_protocol_at_length
def test_what_touches_no_data_is_answered(pair: tuple[Server, Server], protocol: int) -> None:
    plays = [*([line] for line in ANSWERED), *QUEUED]
    seen = []
    for tested in pair:
        with busy(tested, ["EVAL", FOREVER, 0]):
            seen.append([(lines, answers(tested, protocol, lines)) for lines in plays])
    for ours, theirs in zip(*seen, strict=True):
        assert ours == theirs


ENDLESS = {
    "a loop": FOREVER,
    "a loop of calls": "while true do redis.call('get', KEYS[1]) end",
    "a loop of failed calls": "while true do redis.pcall('incr', KEYS[1], 'x') end",
    "a loop that catches": "while true do pcall(function() while true do end end) end",
    "a loop that catches errors": "while true do pcall(error, 'x') end",
    "catching that recurses": "local function f() pcall(f) return f() end f()",
    "a handler of what ends it": "while true do xpcall(function() while true do end end, function() return 1 end) end",
    "a coroutine": "coroutine.wrap(function() while true do end end)()",
    "loaded text": "loadstring('while true do end')()",
    "a metamethod": "return setmetatable({}, {__index = function() while true do end end}).x",
    "a sort": "table.sort({1, 2, 3}, function() while true do end end)",
    "a substitution": "return string.gsub('x', 'x', function() while true do end end)",
    "an iterator": "for _ in function() return 1 end do end",
    "recursion": "local function f(n) return f(n + 1) end return f(0)",
    "text": "local s = ('x'):rep(1000) while true do s = s:upper():lower() end",
    "json": "while true do cjson.decode(cjson.encode({1, 2, {a = 'b'}})) end",
}
# What valkey-server cannot end.
ENDLESS_THERE = {
    "a handler": "xpcall(function() error('x') end, function() while true do end end)",
    "a coroutine that is resumed again": "while true do coroutine.resume(coroutine.create(function() "
    "while true do end end)) end",
}


@each_protocol_at_length
@each(ENDLESS)
def test_a_script_that_has_not_written_can_be_ended(pair: tuple[Server, Server], protocol: int, row: str) -> None:
    seen = []
    for tested in pair:
        with busy(tested, ["EVAL", row, 1, "key"], protocol=protocol) as client:
            seen.append([end(tested), client.read_raw(), *answers(tested, protocol, ["SCRIPT KILL", "PING"])])
    assert seen[0] == seen[1]
    assert seen[0][1].startswith(b"-ERR Script killed by user with SCRIPT KILL")


@pytest.mark.snugly_only
@each(ENDLESS_THERE)
def test_even_a_script_that_would_go_on_can_be_ended(start: Start, row: str) -> None:
    server = start()
    impatient(server)
    with busy(server, ["EVAL", row, 0]) as client:
        assert end(server) == b"+OK\r\n"
        reply = client.read()
        assert isinstance(reply, Failure)
        assert reply.text.startswith(b"ERR Script killed by user with SCRIPT KILL")


REQUESTS: dict[str, list[list[str | int]]] = {
    "EVAL_RO": [["EVAL_RO", FOREVER, 0]],
    "a header": [["EVAL", f"#!lua\n{FOREVER}", 0]],
    "no writes": [["EVAL", f"#!lua flags=no-writes\n\n{FOREVER}", 0]],
    "EVALSHA": [["SCRIPT", "LOAD", FOREVER], ["EVALSHA", "694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7", 0]],
    "a transaction": [["MULTI"], ["SET", "k", "v"], ["EVAL", FOREVER, 0], ["GET", "k"], ["EXEC"]],
    "requests behind it": [["EVAL", FOREVER, 0], ["PING"], ["EVAL", "return 2", 0]],
}


@each_protocol_at_length
@each(REQUESTS)
def test_whatever_has_begun_a_script_is_told_that_it_was_ended(
    pair: tuple[Server, Server], protocol: int, row: list[list[str | int]]
) -> None:
    seen = []
    for tested in pair:
        with busy(tested, *row, protocol=protocol) as client:
            seen.append([end(tested), *[client.read_raw() for _ in row]])
    assert seen[0] == seen[1]
    assert any(b"Script killed by user with SCRIPT KILL" in reply for reply in seen[0])


def test_clients_that_have_waited_are_served_afterwards(pair: tuple[Server, Server]) -> None:
    for tested in pair:
        with tested.connect() as patient, busy(tested, ["EVAL", FOREVER, 0]):
            end(tested)
            assert patient.command("PING") == Simple(b"PONG")
            assert patient.command("EVAL", "return 1", 0) == 1


def test_a_script_whose_client_has_gone_can_be_ended(pair: tuple[Server, Server]) -> None:
    for tested in pair:
        with busy(tested, ["EVAL", FOREVER, 0]) as client:
            client.close()
            assert is_busy(tested)
            assert end(tested) == b"+OK\r\n"


def test_without_a_script_there_is_nothing_to_end(pair: tuple[Server, Server]) -> None:
    seen = [answers(tested, 2, ["SCRIPT KILL", "FUNCTION KILL", "SHUTDOWN ABORT"]) for tested in pair]
    assert seen[0] == seen[1]
    assert seen[0][0].startswith(b"-NOTBUSY ")


def test_a_script_that_ends_in_time_keeps_nobody_busy(pair: tuple[Server, Server]) -> None:
    for tested in pair:
        with tested.connect() as client, tested.connect() as other:
            client.send(encode("EVAL", "for n = 1, 1000 do redis.call('set', 'k' .. n, n) end return 1", 0))
            assert other.command("PING") == Simple(b"PONG")
            assert client.read() == 1


def test_the_threshold_has_two_names(pair: tuple[Server, Server]) -> None:
    lines = ["CONFIG SET lua-time-limit 100", "CONFIG GET busy-reply-threshold", "CONFIG GET lua-time-limit"]
    lines += ["CONFIG SET busy-reply-threshold x", "CONFIG SET busy-reply-threshold -1"]
    seen = [answers(tested, 2, lines) for tested in pair]
    assert seen[0] == seen[1]


# What has written cannot be ended without losing that it was one step; the server can.

WRITERS = {
    "a write": WRITES_FOREVER,
    "a write that is caught": "redis.pcall('set', KEYS[1], 'x') while true do pcall(error) end",
    "a header and a write": f"#!lua\n{WRITES_FOREVER}",
}


@each(WRITERS)
@pytest.mark.parametrize("ending", ["SHUTDOWN NOSAVE", "SHUTDOWN NOSAVE NOW", "SHUTDOWN NOSAVE FORCE"])
def test_a_script_that_has_written_ends_with_the_server(start: Start, row: str, ending: str) -> None:
    server = start()
    impatient(server)
    with busy(server, ["EVAL", row, 1, "key"]), server.connect() as other:
        reply = other.command("SCRIPT", "KILL")
        assert isinstance(reply, Failure)
        assert reply.text == (
            b"UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the "
            b"script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
        )
        refused = other.command("SHUTDOWN")
        assert isinstance(refused, Failure)
        assert refused.text.startswith(b"BUSY ")
        other.send(encode(*ending.split()))
        assert other.read_to_end() == b""
        assert server.process.wait(60) == 0


HARMLESS = {
    "a call that is refused": "redis.pcall('set', KEYS[1]) while true do end",
    "a call of nothing": "redis.pcall('nothing') while true do end",
    "a read": "redis.call('get', KEYS[1]) while true do end",
    "a call that is not allowed": "redis.pcall('multi') while true do end",
}


@each(HARMLESS)
def test_a_script_that_could_not_write_can_be_ended(pair: tuple[Server, Server], row: str) -> None:
    seen = []
    for tested in pair:
        with busy(tested, ["EVAL", row, 1, "key"]) as client:
            seen.append((end(tested), client.read_raw()))
    assert seen[0] == seen[1]
    assert seen[0][0] == b"+OK\r\n"


UNCHANGING = {
    "a write of another type": "redis.pcall('lpush', KEYS[1], 'x') while true do end",
    "a deletion of nothing": "redis.call('del', 'nothing') while true do end",
}


@each(UNCHANGING)
def test_a_call_that_may_write_counts_even_if_it_changes_nothing(start: Start, row: str) -> None:
    server = start()
    impatient(server)
    with server.connect() as connection:
        connection.command("SET", "key", "x")
    with busy(server, ["EVAL", row, 1, "key"]), server.connect() as other:
        reply = other.command("SCRIPT", "KILL")
        assert isinstance(reply, Failure)
        assert reply.text.startswith(b"UNKILLABLE ")
        other.send(encode("SHUTDOWN", "NOSAVE"))
        assert other.read_to_end() == b""
