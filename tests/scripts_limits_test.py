"""Scripts that go deep or want much: what valkey-server ends with an error, and what would end it."""

from __future__ import annotations

import pytest

from plays import assert_alike, each, each_protocol_at_length, script
from resp import Failure, encode
from servers import Server
from tested import Start

DEPTHS = {
    "recursion": "local function f() return f() + 1 end return f()",
    "recursion that is caught": "local function f() return f() + 1 end return {select(2, pcall(f))}",
    "tail calls": "local function f(n) if n == 0 then return 'done' end return f(n - 1) end return f(100000)",
    "recursion of metamethods": "return setmetatable({}, {__index = function(t, k) return t[k + 1] end})[1]",
    "metatables in a circle": "local t = {} setmetatable(t, {__index = t}) return t.x",
    "recursion of pcall": "local function f(n) return pcall(f, n + 1) end return type(f(1))",
    "recursion of error handlers": "local function f() return xpcall(f, f) end return f()",
    "recursion of substitutions": "local function f() return (string.gsub('a', 'a', f)) end return f()",
    "recursion of sorting": "local function f(a, b) table.sort({1, 2, 3}, f) return a < b end table.sort({1, 2, 3}, f)",
    "sorting without an order": "local t = {} for n = 1, 100 do t[n] = n end table.sort(t, function() return true end)",
    "captures": "return string.find('x', string.rep('(', 40))",
    "many values": "return #{unpack({}, 1, 7000)}",
    "too many values": "return unpack({}, 1, 1e7)",
    "values that are not there": "return redis.call('rpush', 'list', unpack({}, 1, 3))",
    "too many bytes": "return string.byte(string.rep('x', 1e6), 1, -1)",
    "too many characters": "return #string.char(unpack({}, 1, 9000))",
    "a string of nothing": "return string.rep('x', -1)",
    "a string of much": "return #string.rep('0123456789', 1e6)",
    "concatenation": "local t = {} for n = 1, 10000 do t[n] = n end return #table.concat(t, ',')",
    "a long format": "return string.format('%99.99f', 1 / 3)",
    "a format that is too long": "return string.format('%100d', 1)",
    "nesting of text": "return " + "(" * 150 + "1" + ")" * 150,
    "nesting of text that is too deep": "return " + "(" * 300 + "1" + ")" * 300,
    "nesting of text that is much too deep": "return " + "(" * 200_000,
    "nesting of tables that is too deep": "return " + "{" * 200_000,
    "nesting of blocks that is too deep": "do " * 300 + "end " * 300,
    "nesting of loaded text": "return {loadstring('return ' .. string.rep('(', 200000))}",
    "too many locals": " ".join(f"local a{n} = {n}" for n in range(201)),
    "too many upvalues": " ".join(f"local a{n} = {n}" for n in range(100))
    + " return (function() return "
    + " + ".join(f"a{n}" for n in range(100))
    + " end)()",
    "many constants": "local t = {" + ",".join(f"'{n}'" for n in range(70_000)) + "} return #t",
    "an expression of many terms": "return " + "1 + " * 50_000 + "1",
    "a concatenation of many": "return 'x'" + " .. 'x'" * 300,
    "depth of json": "local t = {} for n = 1, 1001 do t = {t} end return cjson.encode(t)",
    "depth of decoded json": "return cjson.decode(string.rep('[', 1001) .. string.rep(']', 1001))",
    "json without an end": "return cjson.decode(string.rep('[', 1000000))",
    "json of a circle": "local t = {} t[1] = t return cjson.encode(t)",
    "depth of messages": "local t = {} for n = 1, 20 do t = {t} end return cmsgpack.pack(t)",
    "messages of a circle": "local t = {} t[1] = t return #cmsgpack.pack(t)",
}


@each_protocol_at_length
@each(DEPTHS)
def test_what_is_deep_or_large_ends_as_in_valkey(server: Server, peer: Server, protocol: int, row: str) -> None:
    assert_alike(server, peer, protocol, [script(row), "PING"])


# What ends valkey-server 9.1 itself, or would take all memory of the machine.

FATAL = {
    "optional characters of a pattern": "return string.find(('a'):rep(300000), ('a?'):rep(300000) .. 'b')",
    "optional characters that are matched": "return string.match(('a'):rep(300000), ('a?'):rep(300000) .. 'b')",
    "optional characters that are substituted": "return string.gsub(('a'):rep(300000), ('a?'):rep(300000) .. 'b', '')",
    "optional characters of an iteration": "return string.gmatch(('a'):rep(300000), ('a?'):rep(300000) .. 'b')()",
    "minimal repetitions": "return string.find(('a'):rep(300000), ('a-'):rep(300000) .. 'b')",
    "captures of positions": "return string.find(('a'):rep(300000), ('a?()'):rep(30) .. ('a?'):rep(300000))",
    "messages in messages": "return cmsgpack.unpack(string.rep('\\145', 1000000))",
    "maps in messages": "return cmsgpack.unpack(string.rep('\\129\\1', 1000000))",
}
HUGE = {
    "a string": "return #string.rep('0123456789', 2 ^ 31 - 1)",
    "a string that is caught": "return pcall(string.rep, '0123456789', 2 ^ 31 - 1)",
    "a string that doubles": "local s = 'x' while true do s = s .. s end",
    "a table that grows": "local t = {} while true do t[#t + 1] = string.rep('x', 1000000) .. #t end",
    "a table of numbers": "local t = {} for n = 1, 1e12 do t[n] = n end",
    "a table of small strings": "local t = {} for n = 1, 1e12 do t[n] = 'text ' .. n end",
    "tables in tables": "local t = {} while true do t = {t, {}, {}} end",
    "functions": "local t = {} while true do local n = #t t[n + 1] = function() return n end end",
    "coroutines": "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
    "a table that grows and is caught": "return pcall(function() local t = {} while true do "
    "t[#t + 1] = string.rep('x', 1000000) .. #t end end)",
    "a concatenation": "local s = string.rep('x', 2 ^ 24) local t = {} for n = 1, 200 do t[n] = s end "
    "return #table.concat(t)",
    "a substitution": "return #string.gsub(string.rep('x', 2 ^ 20), 'x', string.rep('y', 2 ^ 20))",
    "json": "local s = string.rep('\\1', 2 ^ 24) return #cjson.encode({s, s, s, s, s, s, s, s, s, s})",
    "messages": "local s = string.rep('x', 2 ^ 24) local t = {} for n = 1, 64 do t[n] = s end return #cmsgpack.pack(t)",
    "a structure": "return #struct.pack('c' .. (2 ^ 31 - 1), 'x')",
    "loaded text": "local sent = string.rep('x', 2 ^ 20) return load(function() return sent end)",
}


@pytest.mark.snugly_only
@each(FATAL)
def test_a_script_that_would_take_the_whole_stack_fails_and_the_server_goes_on(server: Server, row: str) -> None:
    with server.connect() as connection:
        connection.command(*script(row))
        assert connection.command("EVAL", "return 'goes on'", 0) == b"goes on"


@pytest.mark.slow
@pytest.mark.snugly_only
@each(HUGE)
def test_a_script_that_wants_all_memory_fails_and_the_server_goes_on(start: Start, row: str) -> None:
    server = start(memory="50mb")
    with server.connect() as connection, server.connect() as other:
        connection.command("SET", "key", "value")
        reply = connection.command(*script(row))
        assert isinstance(reply, Failure) or reply is None, reply
        for client in (connection, other):
            assert client.command("EVAL", "return redis.call('get', KEYS[1])", 1, "key") == b"value"


@pytest.mark.slow
@pytest.mark.snugly_only
def test_a_reply_that_is_larger_than_a_client_may_get_ends_its_connection(start: Start) -> None:
    server = start(memory="50mb")
    text = "local s = string.rep('x', 2 ^ 24) local t = {} for n = 1, 1000 do t[n] = s end return t"
    with server.connect() as connection, server.connect() as other:
        connection.send(encode(*script(text)) + encode("PING"))
        assert b"PONG" not in connection.read_to_end()
        assert other.command("EVAL", "return 'goes on'", 0) == b"goes on"
