"""Errors of scripts: their texts, the line that they name, and what pcall makes of them.

Every row runs on this server and on valkey-server.
"""

from __future__ import annotations

import hashlib

from plays import Line, assert_alike, each, each_protocol_at_length, script
from servers import Server

ERRORS = {
    "a string": "error('wrong')",
    "a string with a code": "error('CODE wrong')",
    "a string without a place": "error('wrong', 0)",
    "a string of another level": "local function f() error('wrong', 2) end\nf()",
    "an empty string": "error('')",
    "a number": "error(7)",
    "nil": "error(nil)",
    "nothing": "error()",
    "true": "error(true)",
    "a table": "error({err = 'wrong'})",
    "a table with a code": "error({err = 'CODE what is wrong'})",
    "a table with a dash": "error({err = '-CODE what is wrong'})",
    "a table without an error": "error({})",
    "a table with another field": "error({ok = 'fine'})",
    "a table with a number": "error({err = 7})",
    "a table of lines": "error({err = 'CODE a\\r\\nb'})",
    "a table that is named": "error(setmetatable({}, {__tostring = function() return 'named' end}))",
    "a table that knows its place": "error({err = 'CODE wrong', source = '@here', line = 5})",
    "an error reply": "error(redis.error_reply('CODE wrong'))",
    "an error reply of one word": "error(redis.error_reply('wrong'))",
    "a status": "error(redis.status_reply('fine'))",
    "a line": "\n\nerror('wrong')",
    "a line of a function": "local function f()\n  error('wrong')\nend\n\nf()",
    "a line behind others": "local a = 1\nlocal b = nil\nreturn a + b",
    "lines": "error('a\\nb')",
    "assert": "assert(false, 'wrong')",
    "assert without a text": "assert(nil)",
    "assert of a table": "assert(false, {err = 'CODE wrong'})",
    "assert that holds": "return assert(5, 'wrong')",
    "arithmetic of nil": "local a return a + 1",
    "arithmetic of a string": "return 'x' + 1",
    "arithmetic of a table": "return {} * 2",
    "concatenation of nil": "local a return 'x' .. a",
    "concatenation of a table": "return 'x' .. {}",
    "comparison of types": "return 1 < 'x'",
    "comparison of tables": "return {} < {}",
    "a call of nil": "local a a()",
    "a call of a field": "local t = {} t.f()",
    "a call of a method": "local t = {} t:f()",
    "a call of a string": "('x')()",
    "a call of a number": "local n = 1 n()",
    "an index of nil": "local a return a.b",
    "an index of nil in a table": "local t = {} return t.a.b",
    "an index of a number": "local n = 1 return n.x.y",
    "an index of a function": "return tostring.x",
    "an index that is nil": "local t = {} t[nil] = 1",
    "an index that is no number": "local t = {} t[0 / 0] = 1",
    "the length of nil": "local a return #a",
    "a for of a string": "for n = 'x', 2 do end",
    "a for without an end": "for n = 1, {} do end",
    "a for with a step of nil": "for n = 1, 2, nil do end",
    "an iteration of nil": "for a in nil do end",
    "an argument of a function": "return ('x'):rep({})",
    "an argument that is missing": "return string.rep()",
    "a method of a string that is not there": "return ('x'):nothing()",
    "an argument of tostring": "return tostring()",
    "a metamethod that fails": "return setmetatable({}, {__add = function() error('wrong') end}) + 1",
    "a metatable that is protected": "setmetatable(setmetatable({}, {__metatable = 1}), {})",
    "a format without its argument": "return string.format('%d')",
    "a format that is none": "return string.format('%y', 1)",
    "a pattern that is malformed": "return ('x'):find('[a')",
    "a pattern that ends with a percent": "return ('x'):find('%')",
    "a number of another base": "return tonumber('1', 99)",
}
SYNTAX = {
    "no expression": "return return",
    "no end": "if true then",
    "an end too many": "end",
    "a word": "hello",
    "words": "hello world",
    "an unfinished string": "return 'abc",
    "an unfinished long string": "return [[abc",
    "an unfinished comment": "--[[ abc",
    "a wrong escape": "return '\\300'",
    "a wrong number": "return 3x",
    "a wrong symbol": "return 1 ! 2",
    "a symbol of Lua 5.3": "return 7 // 2",
    "goto": "goto continue ::continue::",
    "a break outside": "break",
    "a return in between": "return 1 local x = 2",
    "an assignment to a call": "f() = 1",
    "varargs outside": "local function f() return ... end",
    "a line": "local a = 1\nlocal b = = 2",
    "an ambiguous call": "local f = tostring\nf\n(1)",
    "an unknown operator": "return a += 1",
    "a reserved word": "local end = 1",
    "a zero byte": "return 1 \0 2",
    "a long line": "return " + "x" * 300 + " " + "y" * 300,
    "bytes": "\x01\x02",
    "JSON": '{"a": 1}',
    "Python": "def f():\n    return 1",
}
CAUGHT = {
    "pcall of an error": "return {pcall(error, 'wrong')}",
    "pcall of an error of a table": "local ok, e = pcall(error, {err = 'CODE wrong'}) return {ok, tostring(e)}",
    "pcall of an error of another table": "local ok, e = pcall(error, {code = 7}) return {ok, type(e), e.code}",
    "pcall of an error of a table of numbers": "local ok, e = pcall(error, {err = 7}) return {ok, tostring(e)}",
    "pcall in a pcall": "return {pcall(pcall, error, 'wrong')}",
    "pcall of an error reply": "local ok, e = pcall(error, redis.error_reply('wrong')) return {ok, tostring(e)}",
    "pcall of a line": "return {pcall(function() error('wrong') end)}",
    "pcall of a number": "return {pcall(error, 7)}",
    "pcall of nil": "return {select('#', pcall(error, nil)), select('#', pcall(error))}",
    "pcall of nothing": "return {pcall()}",
    "pcall of no function": "return {pcall(7)}",
    "pcall that succeeds": "return {pcall(function(...) return ... end, 1, 2)}",
    "pcall of a call": "local ok, e = pcall(redis.call, 'incr', 'text') return {ok, type(e), tostring(e)}",
    "pcall of an unknown command": "local ok, e = pcall(redis.call, 'nothing') return {ok, type(e), tostring(e)}",
    "pcall of arguments": "local ok, e = pcall(redis.call, 'get', {}) return {ok, type(e), tostring(e)}",
    "pcall of no arguments": "local ok, e = pcall(redis.call) return {ok, type(e), tostring(e)}",
    "fields of an error of a call": "local ok, e = pcall(redis.call, 'incr', 'text') local t = {} "
    "for k, v in pairs(e) do t[#t + 1] = k .. ' ' .. tostring(v) end table.sort(t) return t",
    "fields of an error of a pcall": "local e = redis.pcall('incr', 'text') local t = {} "
    "for k, v in pairs(e) do t[#t + 1] = k .. ' ' .. tostring(v) end table.sort(t) return t",
    "fields of an error of an unknown command": "local e = redis.pcall('nothing') local t = {} "
    "for k, v in pairs(e) do t[#t + 1] = k .. ' ' .. tostring(v) end table.sort(t) return t",
    "fields of an error of arguments": "local e = redis.pcall('get', {}) local t = {} "
    "for k, v in pairs(e) do t[#t + 1] = k .. ' ' .. tostring(v) end table.sort(t) return t",
    "fields of an error of a function": "local ok, e = pcall(redis.sha1hex) local t = {} "
    "for k, v in pairs(e) do t[#t + 1] = k .. ' ' .. tostring(v) end table.sort(t) return t",
    "an error of a call thrown again": "local ok, e = pcall(redis.call, 'incr', 'text')\nerror(e)",
    "an error of a pcall thrown again": "local e = redis.pcall('incr', 'text')\nerror(e)",
    "the text of an error thrown again": "local e = redis.pcall('incr', 'text') error(e.err)",
    "an error of a pcall returned": "return redis.pcall('incr', 'text')",
    "an error of a call returned": "return select(2, pcall(redis.call, 'incr', 'text'))",
    "an error that is changed": "local e = redis.pcall('incr', 'text') e.err = 'OTHER text' return e",
    "an error of types": "return redis.call('lpush', 'text', 1)",
    "an error of types by pcall": "return redis.pcall('lpush', 'text', 1)",
    "an error of syntax": "return redis.call('set', 'a', 'b', 'nothing')",
    "an error of a line": "redis.call('get', 'text')\n\nredis.call('incr', 'text')",
    "an error of a function": "local function f()\n  return redis.call('incr', 'text')\nend\nreturn f()",
    "an error of loaded text": 'return loadstring(\'return redis.call("incr", "text")\')()',
    "an error of a coroutine": "return {coroutine.resume(coroutine.create(function() error('wrong') end))}",
    "an error of a call in a coroutine": "local ok, e = coroutine.resume(coroutine.create(function() "
    "return redis.call('incr', 'text') end)) return {ok, e.err}",
    "an error of a wrapped coroutine": "return coroutine.wrap(function() error('wrong') end)()",
    "an error of a call in a wrapped coroutine": "return coroutine.wrap(function() redis.call('incr', 'text') end)()",
    "xpcall": "return {xpcall(function() error('wrong') end, function(e) return 'handled ' .. e end)}",
    "xpcall of a call": "return {xpcall(function() redis.call('incr', 'text') end, function(e) return e.err end)}",
    "xpcall whose handler fails": "return {xpcall(function() error('a') end, function() error('b') end)}",
    "an iterator that fails": "for _ in function() error('wrong') end do end",
    "a sort that fails": "table.sort({3, 2, 1}, function() error('wrong') end)",
    "a substitution that fails": "return ('x'):gsub('x', function() error('wrong') end)",
}
CALLS = {
    "sha1hex": "return redis.sha1hex('text')",
    "sha1hex of nothing": "return redis.sha1hex('')",
    "sha1hex of a number": "return redis.sha1hex(7)",
    "sha1hex of bytes": "return redis.sha1hex('a\\0b')",
    "sha1hex of nil": "return redis.sha1hex(nil)",
    "sha1hex of a table": "return redis.sha1hex({})",
    "sha1hex of none": "return redis.sha1hex()",
    "sha1hex of two": "return redis.sha1hex('a', 'b')",
    "log": "return redis.log(redis.LOG_NOTICE, 'said by a script')",
    "log of every level": "for level = 0, 3 do redis.log(level, 'said') end return 1",
    "log of several": "return redis.log(redis.LOG_WARNING, 'a', 'b', 7)",
    "log of an unknown level": "return redis.log(4, 'said')",
    "log of a negative level": "return redis.log(-1, 'said')",
    "log of a fractional level": "return redis.log(1.5, 'said')",
    "log of a level that is a string": "return redis.log('2', 'said')",
    "log of a level that is none": "return redis.log('notice', 'said')",
    "log of a level alone": "return redis.log(redis.LOG_NOTICE)",
    "log of none": "return redis.log()",
    "log of a table": "return redis.log(redis.LOG_DEBUG, {})",
    "log of nil": "return redis.log(redis.LOG_DEBUG, nil)",
    "log of true": "return redis.log(redis.LOG_DEBUG, true)",
    "log of bytes": "return redis.log(redis.LOG_DEBUG, 'a\\0b\\r\\n')",
    "set_repl": "return redis.set_repl(redis.REPL_ALL)",
    "set_repl of each": "redis.set_repl(redis.REPL_NONE) redis.set_repl(redis.REPL_AOF) redis.set_repl(2) return 1",
    "set_repl of an unknown": "return redis.set_repl(99)",
    "set_repl of a negative": "return redis.set_repl(-1)",
    "set_repl of a string": "return redis.set_repl('x')",
    "set_repl of none": "return redis.set_repl()",
    "set_repl of two": "return redis.set_repl(1, 2)",
    "replicate_commands": "return redis.replicate_commands()",
    "replicate_commands of an argument": "return redis.replicate_commands(1)",
    "breakpoint": "return redis.breakpoint()",
    "debug": "return redis.debug('x')",
    "debug of none": "return redis.debug()",
    "acl_check_cmd": "return {redis.acl_check_cmd('get', 'k'), redis.acl_check_cmd('SET', 'k', 'v')}",
    "acl_check_cmd of an unknown command": "return redis.acl_check_cmd('nothing')",
    "acl_check_cmd of an arity": "return redis.acl_check_cmd('get')",
    "acl_check_cmd of none": "return redis.acl_check_cmd()",
    "acl_check_cmd of a table": "return redis.acl_check_cmd({})",
    "acl_check_cmd of an empty string": "return redis.acl_check_cmd('')",
    "acl_check_cmd of a subcommand": "return redis.acl_check_cmd('config', 'get', 'x')",
    "acl_check_cmd of an unknown subcommand": "return redis.acl_check_cmd('config', 'nothing')",
    "acl_check_cmd caught": "local ok, e = pcall(redis.acl_check_cmd, 'nothing') return {ok, tostring(e)}",
    "register_function": "return redis.register_function('f', function() end)",
    "an unknown function": "return redis.nothing()",
    "an unknown constant": "return redis.NOTHING",
    "call of nothing by name": "return redis['call']('ping')",
    "call kept": "local call = redis.call return call('ping')",
    "call with a method's colon": "return redis:call('ping')",
}


@each_protocol_at_length
@each(ERRORS | SYNTAX | CAUGHT | CALLS)
def test_an_error_is_the_one_of_valkey(server: Server, peer: Server, protocol: int, row: str) -> None:
    lines: list[Line] = ["SET text hello", script(row), ["SCRIPT", "LOAD", row], ["EVAL_RO", row, 0]]
    assert_alike(server, peer, protocol, lines)


@each_protocol_at_length
@each(ERRORS | CAUGHT)
def test_an_error_of_a_loaded_script_is_the_one_of_valkey(
    server: Server, peer: Server, protocol: int, row: str
) -> None:
    digest = hashlib.sha1(row.encode()).hexdigest()
    lines: list[Line] = ["SET text hello", ["SCRIPT", "LOAD", row]]
    assert_alike(server, peer, protocol, [*lines, ["EVALSHA", digest, 0], ["EVALSHA", digest.upper(), 0]])


@each(ERRORS | CAUGHT)
def test_errors_are_counted_as_in_valkey(server: Server, peer: Server, row: str) -> None:
    """Of an error that a script throws, and of one that it catches, there is one of its kind, or none."""
    counted = []
    for tested in (server, peer):
        with tested.connect() as connection:
            connection.command("FLUSHALL")
            connection.command("SET", "text", "hello")
            connection.command("CONFIG", "RESETSTAT")
            connection.command(*script(row))
            statistics = [connection.command("INFO", section) for section in ("errorstats", "commandstats")]
            counted.append([counts(text) for text in statistics])
    assert counted[0] == counted[1]


def counts(text: object) -> list[str]:
    """The lines of statistics without times."""
    assert isinstance(text, bytes)
    fields = [line.split(",") for line in text.decode().splitlines() if ":" in line and "info" not in line]
    return sorted(",".join(field for field in line if not field.startswith("usec")) for line in fields)
