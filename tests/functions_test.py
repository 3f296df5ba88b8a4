"""Functions: libraries that are loaded, listed, called, deleted, dumped and restored.

Every row is played on this server and on valkey-server; scripts_*_test.py have what is inside of a script.
"""

from __future__ import annotations

import pytest

from plays import Line, assert_alike, each, each_protocol, emptied, is_busy
from resp import Connection, Failure, Simple, encode
from servers import Server
from waiting import until

OK = Simple(b"OK")


def library(code: str, name: str = "lib") -> str:
    return f"#!lua name={name}\n{code}"


def load(text: str, *how: str) -> Line:
    return ["FUNCTION", "LOAD", *how, text]


def restore(dump: bytes, *how: str) -> Line:
    return ["FUNCTION", "RESTORE", dump, *how]


def function(body: str, name: str = "f", options: str = "") -> str:
    """A library of one function."""
    return library(
        f"redis.register_function{{function_name='{name}', callback=function(keys, args) {body} end{options}}}"
    )


ECHO = library("redis.register_function('f', function(keys, args) return {keys, args} end)")
READER = function("return redis.call('get', keys[1])", options=", flags={'no-writes'}, description='reads a key'")

# While a library is loaded, valkey-server 9.1 has next to no globals, not even `pairs`; these need none.
LOADED: dict[str, str] = {
    "a function": ECHO,
    "a function with options": READER,
    "two functions": library(
        "redis.register_function('f', function() return 1 end)\nredis.register_function('g', function() return 2 end)"
    ),
    "the same function twice": library(
        "redis.register_function('f', function() return 1 end) redis.register_function('f', function() return 2 end)"
    ),
    "no function": library("local x = 1"),
    "no metadata": "redis.register_function('f', function() end)",
    "no name": "#!lua\nredis.register_function('f', function() end)",
    "an empty name": "#!lua name=\nredis.register_function('f', function() end)",
    "a name with a dash": library("redis.register_function('f', function() end)", "a-b"),
    "a name with underscores": library("redis.register_function('f', function() end)", "A_b_9"),
    "a long name": library("redis.register_function('f', function() end)", "x" * 1000),
    "a name twice": "#!lua name=a name=b\nredis.register_function('f', function() end)",
    "an unknown option": "#!lua name=a other=b\nredis.register_function('f', function() end)",
    "an option without a value": "#!lua name=a other\nredis.register_function('f', function() end)",
    "an unknown engine": "#!python name=a\ndef f(): pass",
    "the engine in capitals": "#!LUA name=a\nredis.register_function('f', function() end)",
    "blanks": "#!lua   name=a  \nredis.register_function('f', function() end)",
    "nothing": "",
    "only a header": "#!lua name=a",
    "an error of syntax": library("return return"),
    "an error of a line": library("local a\n\nlocal b = a + 1"),
    "a call while it is loaded": library("redis.call('get', 'x')"),
    "a global": library("x = 1"),
    "a global that is read": library("return x"),
    "bytecode": "#!lua name=a\n\x1bLua",
    "a function without a name": library("redis.register_function(function() end)"),
    "a function of a number": library("redis.register_function('f', 1)"),
    "a name of a number": library("redis.register_function(1, function() end)"),
    "a name of a table": library("redis.register_function({}, function() end)"),
    "a name that is empty": library("redis.register_function('', function() end)"),
    "a name with a blank": library("redis.register_function('a b', function() end)"),
    "a name with a dot": library("redis.register_function('a.b', function() end)"),
    "no arguments": library("redis.register_function()"),
    "three arguments": library("redis.register_function('f', function() end, 1)"),
    "no callback": library("redis.register_function{function_name='f'}"),
    "no function's name": library("redis.register_function{callback=function() end}"),
    "a callback that is none": library("redis.register_function{function_name='f', callback=1}"),
    "a description that is none": library(
        "redis.register_function{function_name='f', callback=function() end, description=1}"
    ),
    "an unknown field": library("redis.register_function{function_name='f', callback=function() end, other=1}"),
    "every flag": function(
        "", options=", flags={'no-writes', 'allow-oom', 'allow-stale', 'no-cluster', 'allow-cross-slot-keys'}"
    ),
    "an unknown flag": function("", options=", flags={'nothing'}"),
    "flags that are none": function("", options=", flags='no-writes'"),
    "flags of numbers": function("", options=", flags={1}"),
    "no flags": function("", options=", flags={}"),
    "server's name for it": library("server.register_function('f', function() return 1 end)"),
}

CALLED: dict[str, str] = {
    "keys and arguments": ECHO,
    "a call": function("return redis.call('set', keys[1], args[1])"),
    "a reader": READER,
    "a reader that writes": function("return redis.call('set', 'k', 1)", options=", flags={'no-writes'}"),
    "an error": function("error('wrong')"),
    "an error of a line": function("\n\nerror('wrong')"),
    "an error of a table": function("error({err = 'CODE wrong'})"),
    "an error of a call": function("return redis.call('incr', 'text')"),
    "an error of a pcall": function("return redis.pcall('incr', 'text')"),
    "an unknown command": function("return redis.call('nothing')"),
    "nothing": function(""),
    "a double": function("return {double = 1.5}"),
    "setresp": function("redis.setresp(3) return redis.call('get', 'nothing')"),
    "a global": function("x = 1"),
    "a global that is read": function("return x"),
    "the globals of scripts": function("return KEYS"),
    "registering": function("redis.register_function('g', function() end)"),
    "state": library("local n = 0 redis.register_function('f', function() n = n + 1 return n end)"),
    "an upvalue": library("local t = {1} redis.register_function('f', function() t[#t + 1] = #t return t end)"),
    "a helper": library(
        "local function g(x) return x .. x end redis.register_function('f', function(k) return g(k[1]) end)"
    ),
    "a command that is not allowed": function("return redis.call('multi')"),
    "another function": function("return redis.call('fcall', 'f', 0)"),
    "a database": function("redis.call('select', 3) return redis.call('set', 'k', 1)"),
    "what there is": function("local t = {} for n in pairs(redis) do t[#t + 1] = n end table.sort(t) return t"),
    "the version": function("return {type(redis.REDIS_VERSION), redis.REPL_ALL, redis.LOG_WARNING}"),
    "keys that are changed": function("keys[1] = 'x' args[9] = 'y' return {keys, args}"),
    "oom and stale": function("return 1", options=", flags={'allow-oom', 'allow-stale'}"),
}

COMMANDS: dict[str, list[Line]] = {
    "no arguments": ["FUNCTION", "FCALL", "FCALL f", "FCALL_RO", "FCALL_RO f", "FUNCTION NOTHING", "FUNCTION LOAD"],
    "a function that is not there": ["FCALL f 0", "FCALL_RO f 0", "FCALL f 1 a", "FCALL f x", "FCALL f 9 a"],
    "numbers of keys": [
        *[load(ECHO), "FCALL f -1", "FCALL f x", "FCALL f 3 a", "FCALL f 1 a", "FCALL f 0 a"],
        *["FCALL f 1.0 a", "FCALL f 99999999999999999999", "FCALL f 9223372036854775807"],
    ],
    "case": [load(ECHO), "fcall f 0", "FCALL F 0", "function list", "FUNCTION DELETE LIB"],
    "load": [
        *[load(ECHO), load(ECHO), load(ECHO, "REPLACE")],
        *[load(READER, "replace"), "FCALL f 0", ["FUNCTION", "LOAD", "x", ECHO]],
        ["FUNCTION", "LOAD", "REPLACE", "REPLACE", ECHO],
        "FUNCTION LOAD REPLACE",
    ],
    "a function of two libraries": [
        ["FUNCTION", "LOAD", library("redis.register_function('f', function() return 1 end)", "a")],
        ["FUNCTION", "LOAD", library("redis.register_function('f', function() return 2 end)", "b")],
        ["FUNCTION", "LOAD", "REPLACE", library("redis.register_function('f', function() return 2 end)", "b")],
        *["FCALL f 0", "FUNCTION LIST"],
    ],
    "a replacement that fails": [
        *[
            load(ECHO),
            load(library("local a = nil + 1"), "REPLACE"),
            "FCALL f 0",
            "FUNCTION LIST",
        ],
    ],
    "delete": [load(ECHO), "FUNCTION DELETE lib", "FUNCTION DELETE lib", "FCALL f 0", "FUNCTION LIST"],
    "delete with mistakes": ["FUNCTION DELETE", "FUNCTION DELETE a b", "FUNCTION DELETE ''"],
    "list": [
        *["FUNCTION LIST", load(READER), "FUNCTION LIST", "FUNCTION LIST WITHCODE"],
        *["FUNCTION LIST LIBRARYNAME lib", "FUNCTION LIST LIBRARYNAME l*", "FUNCTION LIST LIBRARYNAME x*"],
        *["FUNCTION LIST libraryname lib withcode", "FUNCTION LIST WITHCODE LIBRARYNAME LIB"],
    ],
    "list with mistakes": [
        *["FUNCTION LIST x", "FUNCTION LIST LIBRARYNAME", "FUNCTION LIST WITHCODE WITHCODE"],
        *["FUNCTION LIST LIBRARYNAME a LIBRARYNAME b", "FUNCTION LIST WITHCODE x"],
    ],
    "flush": [
        *[load(ECHO), "FUNCTION FLUSH", "FUNCTION LIST", "FCALL f 0", "FUNCTION FLUSH SYNC"],
        *["FUNCTION FLUSH ASYNC", "FUNCTION FLUSH x", "FUNCTION FLUSH SYNC ASYNC"],
    ],
    "flush of keys": [load(ECHO), "FLUSHALL", "FCALL f 0", "SCRIPT FLUSH", "FCALL f 0"],
    "stats": ["FUNCTION STATS", load(ECHO), "FUNCTION STATS", "FUNCTION STATS x"],
    "kill": ["FUNCTION KILL", "FUNCTION KILL x"],
    "help": ["FUNCTION HELP", "FUNCTION HELP x"],
    "dump with mistakes": [
        "FUNCTION DUMP x",
        "FUNCTION RESTORE",
        "FUNCTION RESTORE x",
        "FUNCTION RESTORE x NOTHING",
        "FUNCTION RESTORE x FLUSH APPEND",
        "FUNCTION RESTORE ''",
    ],
    "databases": [load(ECHO), "SELECT 1", "FCALL f 1 a", "FLUSHDB", "SWAPDB 0 1", "FCALL f 0"],
    "a transaction": ["MULTI", load(ECHO), "FCALL f 1 a b", "FUNCTION DELETE lib", "FCALL f 0", "EXEC"],
    "clients": [load(ECHO), "b: FCALL f 1 a b", "b: FUNCTION FLUSH", "FCALL f 0"],
    "within a script": [
        *[load(ECHO), "EVAL \"return redis.call('fcall', 'f', 0)\" 0"],
        "EVAL \"return redis.call('function', 'list')\" 0",
    ],
    "users": [
        *["ACL DELUSER u", "ACL SETUSER u on nopass +@all -function ~a:*", load(ECHO), "u: AUTH u x"],
        *["u: FCALL f 1 a:1", "u: FCALL f 1 b:1", "u: FUNCTION LIST", "u: FUNCTION FLUSH", "ACL DELUSER u"],
    ],
    "what is told of them": [
        *["COMMAND INFO FCALL FCALL_RO FUNCTION|LOAD FUNCTION|DELETE FUNCTION|LIST FUNCTION|FLUSH FUNCTION|DUMP"],
        *["COMMAND INFO FUNCTION|RESTORE FUNCTION|STATS FUNCTION|KILL FUNCTION|HELP", "COMMAND DOCS FCALL FCALL_RO"],
    ],
}


@each_protocol
@each(LOADED)
def test_a_library_is_loaded_or_refused_as_in_valkey(server: Server, peer: Server, protocol: int, row: str) -> None:
    lines: list[Line] = [load(row), "FCALL f 0", "FCALL_RO f 0", "FUNCTION STATS", "FCALL g 0"]
    assert_alike(server, peer, protocol, lines)


@pytest.mark.snugly_only
def test_a_library_that_logs_while_it_is_loaded_ends_nobody(server: Server) -> None:
    """valkey-server 9.1 crashes."""
    emptied(server)
    with server.connect() as connection:
        connection.command(*load(library("redis.log(redis.LOG_DEBUG, 'x') redis.register_function('f', tostring)")))
        assert connection.command("PING") == Simple(b"PONG")


@each_protocol
@each(CALLED)
def test_a_function_answers_what_it_answers_in_valkey(server: Server, peer: Server, protocol: int, row: str) -> None:
    lines: list[Line] = [
        *["SET text hello", load(row), "FCALL f 2 text l x y", "FCALL f 1 text z", "FCALL_RO f 1 text"],
        *["GET text", "EXISTS k", "MULTI", "FCALL f 1 text z", "EXEC"],
    ]
    assert_alike(server, peer, protocol, lines)


@each_protocol
@each(COMMANDS)
def test_the_commands_of_functions_answer_as_in_valkey(
    server: Server, peer: Server, protocol: int, row: list[Line]
) -> None:
    assert_alike(server, peer, protocol, row)


FULL = {
    "no flags": function("return redis.call('set', 'k', 1)"),
    "no flags and no call": function("return 1"),
    "allowed": function("return redis.call('set', 'k', 1)", options=", flags={'allow-oom'}"),
    "no writes": READER,
}


@each(FULL)
def test_functions_in_a_full_memory_do_what_they_do_in_valkey(server: Server, peer: Server, row: str) -> None:
    lines: list[Line] = [
        *[load(row), "CONFIG SET maxmemory-policy noeviction", "CONFIG SET maxmemory 1"],
        *["FCALL f 1 k", "FCALL_RO f 1 k", load(row, "REPLACE"), "CONFIG SET maxmemory 0", "EXISTS k"],
    ]
    try:
        assert_alike(server, peer, 2, lines)
    finally:
        for tested in (server, peer):
            with tested.connect() as connection:
                connection.command("CONFIG", "SET", "maxmemory", 0)


# Dumps, which either server restores.

OTHER = library("redis.register_function('g', function() return 'other' end)", "other")


def loaded(server: Server, *libraries: str) -> bytes:
    """The dump of a server that has these libraries."""
    emptied(server)
    with server.connect() as connection:
        for text in libraries:
            assert isinstance(connection.command("FUNCTION", "LOAD", text), bytes)
        dump = connection.command("FUNCTION", "DUMP")
        assert isinstance(dump, bytes)
        return dump


@pytest.mark.parametrize("libraries", [[], [ECHO], [ECHO, OTHER], [READER]], ids=["none", "one", "two", "options"])
def test_a_dump_is_restored_by_either_server(server: Server, peer: Server, libraries: list[str]) -> None:
    for source in (server, peer):
        dump = loaded(source, *libraries)
        lines: list[Line] = [
            *[restore(dump), "FUNCTION STATS", "FCALL f 1 k a", "FCALL g 0"],
            *[restore(dump, "REPLACE"), restore(dump, "FLUSH"), "FUNCTION STATS", "FCALL f 1 k a", "FCALL g 0"],
        ]
        assert_alike(server, peer, 2, lines)


POLICIES = ["", "APPEND", "REPLACE", "FLUSH", "append", "NOTHING", "APPEND x"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_dump_meets_what_is_there_as_in_valkey(server: Server, peer: Server, policy: str) -> None:
    dump = loaded(peer, ECHO, OTHER)
    same_name = library("redis.register_function('h', function() return 'kept' end)")
    same_function = library("redis.register_function('g', function() return 'kept' end)", "third")
    for before in (same_name, same_function):
        lines: list[Line] = [
            *[load(before), restore(dump, *policy.split()), "FUNCTION STATS"],
            *["FCALL f 0", "FCALL g 0", "FCALL h 0"],
        ]
        assert_alike(server, peer, 2, lines)


def test_a_damaged_dump_is_refused_and_changes_nothing(server: Server, peer: Server) -> None:
    dump = loaded(peer, ECHO)
    damaged = [
        dump[:-1],
        dump[1:],
        b"\xff" + dump[1:],
        dump[:20] + bytes([dump[20] ^ 1]) + dump[21:],
        dump[-10:],
        dump * 2,
    ]
    lines: list[Line] = [load(OTHER)]
    for text in damaged:
        lines += [["FUNCTION", "RESTORE", text, "FLUSH"], "FCALL g 0"]
    assert_alike(server, peer, 2, lines)


# A function that takes too long.

FOREVER = function("while true do end")


@pytest.fixture
def impatient(server: Server) -> Server:
    emptied(server)
    with server.connect() as connection:
        assert connection.command("CONFIG", "SET", "busy-reply-threshold", 100) == OK
        connection.command("FUNCTION", "LOAD", FOREVER)
    return server


def running(connection: Connection) -> object:
    stats = connection.command("FUNCTION", "STATS")
    assert isinstance(stats, list)
    script = stats[1]
    assert isinstance(script, list)
    named = dict(zip(script[::2], script[1::2], strict=True))
    return named[b"name"], named[b"command"]


def test_a_function_that_takes_too_long_is_told_and_ended(impatient: Server) -> None:
    try:
        with impatient.connect() as client:
            client.send(encode("FCALL", "f", 1, "key", "argument"))
            until(lambda: is_busy(impatient))
            with impatient.connect() as other:
                assert running(other) == (b"f", [b"FCALL", b"f", b"1", b"key", b"argument"])
                refused = other.command("SCRIPT", "KILL")
                assert isinstance(refused, Failure)
                assert refused.text.startswith(b"BUSY ")
                assert other.command("FUNCTION", "KILL") == OK
            ended = client.read()
            assert isinstance(ended, Failure)
            assert ended.text.startswith(b"ERR Script killed by user with FUNCTION KILL")
    finally:
        with impatient.connect() as connection:
            connection.command("FUNCTION", "KILL")
            connection.command("CONFIG", "SET", "busy-reply-threshold", 5000)
