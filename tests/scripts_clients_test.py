"""Scripts and those around them: users, blocked and caching clients, listeners, MONITOR, statistics, a full memory."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from info import info
from plays import Line, assert_alike, each, each_protocol_at_length, emptied, script
from resp import Connection, Failure, Items, Simple, encode
from servers import Server
from tested import Start
from waiting import until

OK = Simple(b"OK")

# Users. The last line of each play takes the user away again.

USERS: dict[str, tuple[str, list[Line]]] = {
    "no scripts": (
        "+@all -@scripting allkeys",
        ["u: EVAL 'return 1' 0", "u: EVALSHA x 0", "u: SCRIPT LOAD x", "u: EVAL_RO x 0", "u: FCALL f 0", "u: PING"],
    ),
    "no EVAL": (
        "+@all -eval allkeys",
        ["u: EVAL 'return 1' 0", "u: EVAL_RO 'return 1' 0", "u: SCRIPT LOAD 'return 1'"],
    ),
    "only EVAL": ("+eval allkeys", ["u: EVAL 'return 1' 0", "u: EVAL \"return redis.call('get', 'k')\" 0"]),
    "some subcommands": (
        "+script|load +evalsha +get allkeys",
        ["u: SCRIPT LOAD 'return 1'", "u: SCRIPT FLUSH", "u: SCRIPT EXISTS x", "u: SCRIPT NOTHING", "u: EVALSHA x 0"],
    ),
    "some keys": (
        "+@all ~a:*",
        [
            *["SET b:1 kept", "EVAL 'return 1' 1 b:1"],
            *["u: EVAL 'return 1' 1 a:1", "u: EVAL 'return 1' 1 b:1", "u: EVAL 'return 1' 2 a:1 b:1"],
            *["u: EVAL 'return 1' 0 b:1", "u: EVAL \"return redis.call('get', 'b:1')\" 0"],
            *["u: EVAL \"return redis.pcall('get', 'b:1')\" 0", "u: EVAL \"return redis.call('set', 'a:1', 1)\" 0"],
            *["u: EVAL \"return redis.call('mget', 'a:1', 'b:1')\" 0", "u: EVALSHA x 1 b:1", "GET b:1", "GET a:1"],
            "u: EVAL \"return {pcall(redis.call, 'get', 'b:1')}\" 0",
        ],
    ),
    "keys that may be read": (
        "+@all %R~r:* %W~w:*",
        [
            *["u: EVAL 'return 1' 1 r:1", "u: EVAL_RO 'return 1' 1 r:1", "u: EVAL_RO 'return 1' 1 w:1"],
            *["u: EVAL \"return redis.call('get', 'r:1')\" 0", "u: EVAL \"return redis.call('set', 'r:1', 1)\" 0"],
            *["u: EVAL \"return redis.call('get', 'w:1')\" 0", "u: EVAL \"return redis.call('set', 'w:1', 1)\" 0"],
            *["u: EVAL \"return redis.call('set', 'w:1', 1, 'get')\" 0"],
        ],
    ),
    "some commands": (
        "+@all -set -@dangerous allkeys",
        [
            *["u: EVAL \"return redis.call('set', 'k', 1)\" 0", "u: EVAL \"return redis.pcall('set', 'k', 1)\" 0"],
            *["u: EVAL \"return redis.call('get', 'k')\" 0", "u: EVAL \"return redis.call('flushall')\" 0"],
            *["u: EVAL \"return redis.call('keys', '*')\" 0", "u: EVAL \"return redis.call('nothing')\" 0"],
            "u: EVAL \"return redis.call('set')\" 0",
        ],
    ),
    "some subcommands of others": (
        "+eval +object|encoding allkeys",
        [
            *["SET k 1", "u: EVAL \"return redis.call('object', 'encoding', 'k')\" 0"],
            "u: EVAL \"return redis.call('object', 'refcount', 'k')\" 0",
        ],
    ),
    "some channels": (
        "+@all allkeys resetchannels &a:*",
        [
            *["u: EVAL \"return redis.call('publish', 'a:1', 'x')\" 0"],
            *["u: EVAL \"return redis.call('publish', 'b', 'x')\" 0"],
            "u: EVAL \"return redis.pcall('spublish', 'b', 'x')\" 0",
        ],
    ),
    "some databases": (
        "+@all allkeys resetdbs db=0",
        ["u: EVAL \"return redis.call('select', 1)\" 0", "u: EVAL \"return redis.call('get', 'k')\" 0"],
    ),
    "selectors": (
        "+@all ~a:* (+get ~b:*)",
        [
            *["SET b:1 kept", "u: EVAL \"return redis.call('get', 'b:1')\" 0"],
            "u: EVAL \"return redis.call('set', 'b:1', 1)\" 0",
        ],
    ),
    "what acl_check_cmd says": (
        "+@all -set ~a:*",
        [
            "u: EVAL \"return {redis.acl_check_cmd('get', 'a:1'), redis.acl_check_cmd('get', 'b:1'), "
            "redis.acl_check_cmd('set', 'a:1', 1), redis.acl_check_cmd('ping')}\" 0",
            "u: EVAL \"return redis.acl_check_cmd('nothing')\" 0",
            "EVAL \"return {redis.acl_check_cmd('set', 'a:1', 1)}\" 0",
        ],
    ),
    "a user that is off": ("off +@all allkeys", ["u: EVAL 'return 1' 0", "ACL DRYRUN user EVAL 'return 1' 1 k"]),
    "dry runs": (
        "+@all -evalsha ~a:*",
        [
            *["ACL DRYRUN user EVAL x 1 a:1", "ACL DRYRUN user EVAL x 1 b:1", "ACL DRYRUN user EVALSHA x 0"],
            *["ACL DRYRUN user SCRIPT LOAD x", "ACL DRYRUN user FCALL f 1 b:1", "ACL DRYRUN user EVAL x"],
        ],
    ),
}


@each_protocol_at_length
@each(USERS)
def test_users_may_do_in_scripts_what_they_may_do_in_valkey(
    server: Server, peer: Server, protocol: int, row: tuple[str, list[Line]]
) -> None:
    rules, lines = row
    before: list[Line] = ["ACL DELUSER user", f"ACL SETUSER user reset on nopass {rules}"]
    if "off" in rules:
        before[1] = f"ACL SETUSER user reset {rules}"
    assert_alike(server, peer, protocol, [*before, "u: AUTH user x", *lines, "ACL DELUSER user"])


def test_the_log_of_denials_names_scripts(server: Server, peer: Server) -> None:
    seen = []
    for tested in (server, peer):
        with tested.connect() as connection, tested.connect() as user:
            connection.command("ACL", "SETUSER", "user", "reset", "on", "nopass", "+@all", "-set", "~a")
            connection.command("ACL", "LOG", "RESET")
            user.command("AUTH", "user", "x")
            for text in ("redis.pcall('set', 'a', 1)", "redis.pcall('get', 'b')", "redis.acl_check_cmd('get', 'b')"):
                user.command(*script(text))
            log = connection.command("ACL", "LOG")
            assert isinstance(log, list)
            entries = [dict(zip(entry[::2], entry[1::2], strict=True)) for entry in log if isinstance(entry, list)]
            names = (b"count", b"reason", b"context", b"object", b"username")
            seen.append([[entry[name] for name in names] for entry in entries])
            connection.command("ACL", "DELUSER", "user")
    assert seen[0] == seen[1]


# Clients that wait, cache and listen.


def blocked(connection: Connection, count: int) -> None:
    until(lambda: info(connection, "clients", "blocked_clients") == count)


WAKERS = {
    "RPUSH": "redis.call('rpush', 'list', 'a')",
    "RPUSH of several": "redis.call('rpush', 'list', 'a', 'b', 'c')",
    "RPUSH and LPOP": "redis.call('rpush', 'list', 'a', 'b') redis.call('lpop', 'list')",
    "RPUSH and DEL": "redis.call('rpush', 'list', 'a') redis.call('del', 'list') redis.call('rpush', 'list', 'b')",
    "RPUSH and SET": "redis.call('rpush', 'list', 'a') redis.call('del', 'list') redis.call('set', 'k', 1) "
    "redis.call('rpush', 'list', 'c')",
    "RENAME": "redis.call('rpush', 'other', 'a') redis.call('rename', 'other', 'list')",
    "a script that fails": "redis.call('rpush', 'list', 'a') error('x')",
    "both lists": "redis.call('rpush', 'second', 'a') redis.call('rpush', 'list', 'b')",
    "what is seen in between": "redis.call('rpush', 'list', 'a') redis.call('set', 'seen', redis.call('llen', 'list'))",
}


@each_protocol_at_length
@each(WAKERS)
def test_a_blocked_client_is_served_after_the_script(server: Server, peer: Server, protocol: int, row: str) -> None:
    seen = []
    for tested in (server, peer):
        emptied(tested)
        with tested.connect(protocol) as waiting, tested.connect() as other:
            waiting.send(encode("BLPOP", "list", "second", 0))
            blocked(other, 1)
            replies = [other.command_raw(*script(row)), waiting.read_raw()]
            seen.append(replies + [other.command_raw(*line.split()) for line in ("LRANGE list 0 -1", "GET seen")])
    assert seen[0] == seen[1]


def test_clients_that_wait_are_served_in_order(server: Server, peer: Server) -> None:
    seen = []
    for tested in (server, peer):
        emptied(tested)
        with tested.connect() as other:
            waiting = [tested.connect() for _ in range(3)]
            for number, client in enumerate(waiting, 1):
                client.send(encode("BLPOP", "list", 0))
                blocked(other, number)
            other.command(*script("for n = 1, 5 do redis.call('rpush', 'list', n) end"))
            seen.append([client.read() for client in waiting] + [other.command("LRANGE", "list", 0, -1)])
            for client in waiting:
                client.close()
    assert seen[0] == seen[1]


def pushes(connection: Connection) -> list[bytes]:
    """What was sent before the answer to a request, and the answer."""
    connection.send(encode("ECHO", "end"))
    seen = [connection.read_raw()]
    while seen[-1] != b"$3\r\nend\r\n":
        seen.append(connection.read_raw())
    return seen


CACHING: dict[str, tuple[list[str], str, list[str]]] = {
    "a write": ([], "redis.call('set', 'k', 1)", ["k"]),
    "two writes": ([], "redis.call('set', 'k', 1) redis.call('set', 'l', 1)", ["k", "l"]),
    "a write twice": ([], "redis.call('set', 'k', 1) redis.call('set', 'k', 2)", ["k"]),
    "a write of a script that fails": ([], "redis.call('set', 'k', 1) error('x')", ["k"]),
    "a read": ([], "redis.call('get', 'k')", ["k"]),
    "broadcasts": (["BCAST"], "redis.call('set', 'k', 1) redis.call('set', 'l', 1)", []),
    "a deletion": ([], "redis.call('del', 'k')", ["k"]),
    "everything": ([], "redis.call('flushall')", ["k"]),
}


@each(CACHING)
def test_a_caching_client_is_told_of_the_writes_of_scripts(
    server: Server, peer: Server, row: tuple[list[str], str, list[str]]
) -> None:
    mode, text, cached = row
    seen = []
    for tested in (server, peer):
        emptied(tested)
        with tested.connect(3) as client, tested.connect() as other:
            other.command("MSET", "k", 0, "l", 0)
            assert client.command("CLIENT", "TRACKING", "ON", *mode) == OK
            for key in cached:
                client.command("GET", key)
            other.command(*script(text))
            seen.append(sorted(pushes(client)))
    assert seen[0] == seen[1]


READERS = {
    "keys that are named": ("return redis.call('get', KEYS[1])", 1),
    "keys that are computed": ("return redis.call('get', 'k')", 0),
    "keys that are named and not read": ("return 1", 1),
    "both": ("redis.call('get', 'l') return redis.call('get', KEYS[1])", 1),
    "a reader that writes": ("redis.call('get', KEYS[1]) return redis.call('set', KEYS[1], 'x')", 1),
    "a reader that writes elsewhere": ("redis.call('get', KEYS[1]) return redis.call('set', 'l', 'x')", 1),
}


@each(READERS)
@pytest.mark.parametrize("mode", [[], ["NOLOOP"], ["OPTIN"], ["OPTOUT"]], ids=str)
@pytest.mark.parametrize("name", ["EVAL", "EVAL_RO"])
def test_a_client_caches_what_its_scripts_read_as_in_valkey(
    server: Server, peer: Server, row: tuple[str, int], mode: list[str], name: str
) -> None:
    text, keys = row
    seen = []
    for tested in (server, peer):
        emptied(tested)
        with tested.connect(3) as client, tested.connect() as other:
            other.command("MSET", "k", 0, "l", 0)
            assert client.command("CLIENT", "TRACKING", "ON", *mode) == OK
            if mode == ["OPTIN"]:
                client.command("CLIENT", "CACHING", "YES")
            client.send(encode(name, text, keys, "k"))
            own = pushes(client)
            for key in ("k", "l"):
                other.command("SET", key, "y")
            seen.append((own, pushes(client)))
    assert seen[0] == seen[1]


@each_protocol_at_length
def test_a_listener_hears_what_a_script_publishes_in_order(server: Server, peer: Server, protocol: int) -> None:
    seen = []
    for tested in (server, peer):
        with tested.connect(protocol) as listener, tested.connect() as other:
            listener.command("SUBSCRIBE", "c")
            other.command(*script("for n = 1, 3 do redis.call('publish', 'c', n) end error('x')"))
            seen.append([listener.read_raw() for _ in range(3)])
    assert seen[0] == seen[1]


def test_a_client_hears_its_own_script(server: Server, peer: Server) -> None:
    seen = []
    for tested in (server, peer):
        with tested.connect(3) as client:
            client.command("SUBSCRIBE", "c")
            client.send(encode(*script("return redis.call('publish', 'c', 'x')")))
            seen.append([client.read(), client.read()])
    assert seen[0] == seen[1]
    assert Items(b">", [b"message", b"c", b"x"]) in seen[0]


# What is seen from outside.

MONITORED: dict[str, list[Line]] = {
    "a call": [script("redis.call('set', 'k', 'v')")],
    "calls": [script("redis.call('set', KEYS[1], ARGV[1]) redis.pcall('get', KEYS[1])", "k", "v", keys=1)],
    "a call that fails": [script("redis.pcall('incr', 'x', 'y') redis.pcall('nothing') redis.call('lpush', 'k', 1)")],
    "a refused call": [script("redis.pcall('multi') redis.pcall('get')")],
    "another database": [script("redis.call('select', 3) redis.call('get', 'k')"), "GET k"],
    "a transaction": ["MULTI", script("redis.call('incr', 'n')"), "EXEC"],
    "a script that is not there": ["EVALSHA x 0"],
    "a script that is wrong": ["EVAL 'return return' 0"],
    "loading": ["SCRIPT LOAD 'return 1'", "SCRIPT EXISTS x", "SCRIPT FLUSH"],
    "reading": [["EVAL_RO", "return redis.call('get', 'k')", 0]],
    "numbers": [script("redis.call('set', 'k', 1.5)")],
}


@each(MONITORED)
def test_monitor_shows_the_calls_of_scripts_as_in_valkey(server: Server, peer: Server, row: list[Line]) -> None:
    seen = []
    for tested in (server, peer):
        emptied(tested)
        with tested.connect() as monitor, tested.connect() as client:
            assert monitor.command("MONITOR") == OK
            for line in row:
                client.command(*(line if not isinstance(line, str) else re.findall(r"'[^']*'|\S+", line)))
            client.command("ECHO", "end")
            shown = [monitor.read_raw()]
            while b'"ECHO"' not in shown[-1]:
                shown.append(monitor.read_raw())
            seen.append([re.sub(rb"\d+\.\d+ \[(\d+) 127\.0\.0\.1:\d+\]", rb"[\1 client]", text) for text in shown])
            seen[-1] = [re.sub(rb"\d+\.\d+ ", b"", text) for text in seen[-1]]
    assert seen[0] == seen[1]


COUNTED = {
    "calls": "redis.call('set', 'k', 1) redis.call('get', 'k') redis.call('get', 'k')",
    "calls that fail": "redis.pcall('incr', 'x', 'y') redis.pcall('lpush', 'k') redis.call('lpush', 'k', 1)",
    "a call that is rejected": "redis.pcall('get') redis.pcall('multi') redis.pcall('nothing')",
    "a call that throws": "redis.call('set', 'k', 'x') redis.call('incr', 'k')",
    "a script that throws": "error('x')",
    "a script that answers an error": "return redis.error_reply('MINE x')",
    "a script that answers a table": "return {err = 'MINE x'}",
    "an error that is passed on": "return redis.pcall('get')",
}


def statistics(connection: Connection) -> list[str]:
    """What INFO counts of commands and errors, without times."""
    counted: list[str] = []
    for section in ("commandstats", "errorstats"):
        text = connection.command("INFO", section)
        assert isinstance(text, bytes)
        counted += [re.sub(r"usec\w*=[\d.]+,?", "", line) for line in text.decode().splitlines()]
    return sorted(line for line in counted if ":" in line and "cmdstat_info" not in line)


@each(COUNTED)
@pytest.mark.parametrize("name", ["EVAL", "EVAL_RO"])
def test_commands_and_errors_of_scripts_are_counted_as_in_valkey(
    server: Server, peer: Server, row: str, name: str
) -> None:
    seen = []
    for tested in (server, peer):
        emptied(tested)
        with tested.connect() as connection:
            connection.command("CONFIG", "RESETSTAT")
            connection.command(name, row, 0)
            seen.append((statistics(connection), info(connection, "stats", "total_error_replies")))
    assert seen[0] == seen[1]


def test_scripts_that_are_kept_are_counted(server: Server, peer: Server) -> None:
    for tested in (server, peer):
        emptied(tested)
        with tested.connect() as connection:
            assert info(connection, "memory", "number_of_cached_scripts") == 0
            connection.command("EVAL", "return 1", 0)
            connection.command("SCRIPT", "LOAD", "return 2")
            assert info(connection, "memory", "number_of_cached_scripts") == 2
            connection.command("SCRIPT", "FLUSH")
            assert info(connection, "memory", "number_of_cached_scripts") == 0


def test_the_slow_log_has_scripts_and_their_calls_as_in_valkey(server: Server, peer: Server) -> None:
    seen = []
    for tested in (server, peer):
        emptied(tested)
        with tested.connect() as connection:
            connection.command("CONFIG", "SET", "slowlog-log-slower-than", 0)
            connection.command("SLOWLOG", "RESET")
            connection.command(*script("redis.call('set', KEYS[1], ARGV[1])", "k", "v", keys=1))
            log = connection.command("SLOWLOG", "GET")
            connection.command("CONFIG", "SET", "slowlog-log-slower-than", 10_000)
            assert isinstance(log, list)
            seen.append([entry[3] for entry in log if isinstance(entry, list)])
    assert seen[0] == seen[1]


# A full memory.

FULL: dict[str, str] = {
    "a write": "return redis.call('set', 'k', 1)",
    "a write that is caught": "return redis.pcall('set', 'k', 1)",
    "a read": "return redis.call('get', 'text')",
    "a deletion": "return redis.call('del', 'text')",
    "a deletion and a write": "redis.call('del', 'text') return redis.call('set', 'k', 1)",
    "no call": "return 1",
    "a header and no call": "#!lua\nreturn 1",
    "a header and a write": "#!lua\nreturn redis.call('set', 'k', 1)",
    "a header and a read": "#!lua\nreturn redis.call('get', 'text')",
    "no writes": "#!lua flags=no-writes\nreturn redis.call('get', 'text')",
    "allowed": "#!lua flags=allow-oom\nreturn redis.call('set', 'k', 1)",
    "allowed and no writes": "#!lua flags=no-writes,allow-oom\nreturn redis.call('get', 'text')",
    "an expiry": "return redis.call('expire', 'text', 100)",
    "a script that fails": "redis.call('del', 'text') redis.call('incr', 'list')",
}


@each_protocol_at_length
@each(FULL)
def test_scripts_in_a_full_memory_do_what_they_do_in_valkey(
    server: Server, peer: Server, protocol: int, row: str
) -> None:
    lines: list[Line] = [
        *["SET text hello", "RPUSH list a", "CONFIG SET maxmemory-policy noeviction", "CONFIG SET maxmemory 1"],
        script(row),
        ["EVAL_RO", row, 0],
        ["SCRIPT", "LOAD", row],
        *["CONFIG SET maxmemory 0", "EXISTS k text list"],
    ]
    try:
        assert_alike(server, peer, protocol, lines)
    finally:
        for tested in (server, peer):
            with tested.connect() as connection:
                connection.command("CONFIG", "SET", "maxmemory", 0)


def test_a_script_that_began_while_there_was_memory_is_not_stopped_half_way(start: Start) -> None:
    server = start(memory="20mb", policy="noeviction")
    text = "for n = 1, 40 do redis.call('set', 'k' .. n, ARGV[1]) end return redis.call('dbsize')"
    with server.connect() as connection:
        large = random.Random(1).randbytes(1_000_000)
        assert connection.command(*script(text, large)) == 40
        refused = connection.command(*script(text, large))
        assert isinstance(refused, Failure)
        assert refused.text.startswith(b"OOM ")
        assert connection.command("DBSIZE") == 40


def frequency(connection: Connection) -> int:
    reply = connection.command("OBJECT", "FREQ", "k")
    assert isinstance(reply, int), reply
    return reply


TOUCHES: list[tuple[str, Callable[[int, int], bool]]] = [
    ("return redis.call('get', 'k')", lambda before, after: after > before),
    ("return 1", lambda before, after: after == before),
]


@pytest.mark.parametrize(("text", "holds"), TOUCHES, ids=["a read", "none"])
def test_a_script_touches_what_it_reads(server: Server, text: str, holds: Callable[[int, int], bool]) -> None:
    with server.connect() as connection:
        connection.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
        try:
            connection.command("SET", "k", 1)
            before = frequency(connection)
            for _ in range(300):
                connection.command(*script(text))
            assert holds(before, frequency(connection))
        finally:
            connection.command("CONFIG", "SET", "maxmemory-policy", "noeviction")


def test_a_script_of_a_client_that_does_not_touch_does_not_either(server: Server) -> None:
    with server.connect() as connection:
        connection.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
        try:
            connection.command("SET", "k", 1)
            connection.command("CLIENT", "NO-TOUCH", "ON")
            before = frequency(connection)
            for _ in range(300):
                connection.command(*script("return redis.call('get', 'k')"))
            assert frequency(connection) == before
        finally:
            connection.command("CONFIG", "SET", "maxmemory-policy", "noeviction")


def test_a_script_of_a_client_that_wants_no_replies_runs(server: Server) -> None:
    with server.connect() as connection:
        connection.send(encode("CLIENT", "REPLY", "OFF") + encode(*script("redis.call('set', 'k', 'v')")))
        connection.send(encode("CLIENT", "REPLY", "ON"))
        assert connection.read() == OK
        assert connection.command("GET", "k") == b"v"


def test_scripts_wait_while_writes_are_paused(server: Server) -> None:
    with server.connect() as writer, server.connect() as reader, server.connect() as other:
        assert other.command("CLIENT", "PAUSE", 600_000, "WRITE") == OK
        writer.send(encode(*script("return redis.call('set', 'k', 'v')")))
        blocked(other, 1)
        assert reader.command("EVAL_RO", "return redis.call('get', 'k')", 0) is None
        assert reader.command(*script("#!lua flags=no-writes\nreturn redis.call('get', 'k')")) is None
        assert other.command("CLIENT", "UNPAUSE") == OK
        assert writer.read() == OK


def test_what_many_clients_add_by_scripts_is_not_lost(server: Server) -> None:
    add = "local n = tonumber(redis.call('get', KEYS[1]) or 0) redis.call('set', KEYS[1], n + 1) return n + 1"
    clients = [server.connect() for _ in range(8)]
    for client in clients:
        client.send(encode(*script(add, "n", keys=1)) * 100)
    replies = [client.read() for client in clients for _ in range(100)]
    for client in clients:
        client.close()
    assert not any(isinstance(reply, Failure) for reply in replies)
    assert sorted(reply for reply in replies if isinstance(reply, int)) == list(range(1, 801))
