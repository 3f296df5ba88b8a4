"""Scripts: what there is for a script and what is not, what it may change, and that nothing is left for the next one.

Every row runs on this server and on valkey-server.
"""

from __future__ import annotations

import pytest

from plays import assert_alike, each, each_protocol_at_length, script
from resp import Connection
from servers import Server

# What there is.

# Names with two underscores are valkey-server's own business.
NAMES = """
local function names(t)
    local found = {}
    for name, value in pairs(t) do
        if not tostring(name):find('^__') then found[#found + 1] = tostring(name) .. ' ' .. type(value) end
    end
    table.sort(found)
    return found
end
"""
LIBRARIES = ["string", "table", "math", "os", "coroutine", "bit", "cjson", "cmsgpack", "struct", "redis", "server"]
ABSENT = [
    *["io", "require", "module", "package", "debug", "dofile", "loadfile", "print", "newproxy", "setfenv", "getfenv"],
    *[
        "os.execute",
        "os.exit",
        "os.getenv",
        "os.remove",
        "os.rename",
        "os.tmpname",
        "os.time",
        "os.date",
        "os.difftime",
    ],
    *["os.setlocale", "string.dump", "table.unpack", "table.pack", "math.tointeger", "utf8", "bit32", "jit", "ffi"],
    *["_VERSION", "_G", "load", "loadstring", "rawget", "rawset", "rawequal", "rawlen", "collectgarbage", "gcinfo"],
    *["getmetatable", "setmetatable", "xpcall", "pcall", "select", "unpack", "next", "table.getn", "math.mod"],
    *["string.gfind", "string.gsub", "string.format", "os.clock", "table.foreach", "table.setn", "table.maxn"],
]


@pytest.mark.parametrize("table", ["_G", *LIBRARIES])
def test_a_table_has_the_names_that_it_has_in_valkey(server: Server, peer: Server, table: str) -> None:
    assert_alike(server, peer, 2, [script(f"{NAMES} return names({table})")])


@pytest.mark.parametrize("name", ABSENT)
def test_a_name_is_there_or_not_as_in_valkey(server: Server, peer: Server, name: str) -> None:
    lines = [
        script(f"return type({name})"),
        script(f"local ok, message = pcall(function() return type({name}) end) return {{ok, tostring(message)}}"),
    ]
    assert_alike(server, peer, 2, lines)


SELVES = {
    "the version of Lua": "return _VERSION",
    "redis and server": "return {redis == server, redis.call == server.call, type(redis), type(server)}",
    "log levels": "return {redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING}",
    "log levels of server": "return {server.LOG_DEBUG, server.LOG_VERBOSE, server.LOG_NOTICE, server.LOG_WARNING}",
    "kinds of replication": "return {redis.REPL_NONE, redis.REPL_AOF, redis.REPL_SLAVE, redis.REPL_REPLICA, "
    "redis.REPL_ALL}",
    "types of versions": "return {type(redis.REDIS_VERSION), type(redis.REDIS_VERSION_NUM), "
    "type(server.SERVER_VERSION), type(server.SERVER_VERSION_NUM), type(server.SERVER_NAME)}",
    "the version agrees with its number": "local a, b, c = string.match(redis.REDIS_VERSION, '(%d+)%.(%d+)%.(%d+)') "
    "return a * 65536 + b * 256 + c == redis.REDIS_VERSION_NUM",
    "the clock": "local t = os.clock() return {type(t), t >= 0}",
    "memory that is not counted so": "return collectgarbage('nothing')",
    "stop of collection": "return {collectgarbage('stop'), collectgarbage('restart')}",
    "coroutines": "local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) return b * 2 end) "
    "return {coroutine.resume(co, 1), coroutine.resume(co, 5), coroutine.status(co), tostring(coroutine.resume(co))}",
    "calls in coroutines": "local co = coroutine.wrap(function() coroutine.yield(redis.call('incr', 'n')) "
    "return redis.call('incr', 'n') end) return {co(), co()}",
    "a yield outside": "return coroutine.yield(1)",
    "the running coroutine": "return type(coroutine.running())",
    "unpack": "return {unpack({1, 2, 3}, 2)}",
    "select": "return {select('#', 1, nil, 3), select(2, 'a', 'b', 'c')}",
    "next": "return {next({}), next({7})}",
    "raw": "return {rawequal('a', 'a'), rawget({a = 1}, 'a'), rawset({}, 'a', 2).a}",
    "string library": "return {('x'):rep(3), ('abc'):upper(), ('abc'):reverse(), ('abc'):byte(2), "
    "('%d:%5.2f:%q'):format(3, 2.5, 'a')}",
    "patterns": "return {('key=value'):match('(%w+)=(%w+)'), ('abc'):gsub('%w', '%0%0'), ('a,b'):find(',', 1, true)}",
    "formats of numbers": "return ('%d %i %u %c %x %X %o %e %g'):format(5, -5, 5, 65, 255, 255, 8, 1.5, 1e20)",
    "tables": "local t = {3, 1, 2} table.sort(t) table.insert(t, 9) table.remove(t, 1) "
    "return {table.concat(t, ','), #t, table.maxn(t)}",
    "mathematics": "return {math.floor(2.7), math.ceil(2.1), math.max(1, 5, 3), math.fmod(7, 3), math.abs(-3)}",
    "tonumber": "return {tonumber('0x10'), tonumber('10', 2), tonumber('z', 36), tonumber(' 5 '), tonumber('x')}",
}


@each_protocol_at_length
@each(SELVES)
def test_what_there_is_works_as_in_valkey(server: Server, peer: Server, protocol: int, row: str) -> None:
    assert_alike(server, peer, protocol, [script(row)])


# Code from strings.

CODE = {
    "loadstring": "return loadstring('return 1 + 1')()",
    "loadstring with arguments": "return loadstring('local a, b = ... return a + b')(3, 4)",
    "loadstring of a wrong text": "return {select(2, loadstring('return return'))}",
    "loadstring with a name": "return {select(2, loadstring('return return', 'name'))}",
    "loadstring with a file's name": "return {select(2, loadstring('return return', '@name'))}",
    "loadstring of nothing": "return type(loadstring(''))",
    "loadstring of nil": "return loadstring(nil)",
    "loadstring of a table": "return loadstring({})",
    "loadstring sees keys": "return loadstring('return KEYS[1]')()",
    "loadstring sees no locals": "local x = 1 return loadstring('return x')()",
    "loadstring makes no global": "return loadstring('x = 1')()",
    "load": "local parts = {'return ', '5'} local at = 0 return load(function() at = at + 1 return parts[at] end)()",
    "load of a string": "return load('return 1')",
    "loaded bytecode": "return {select(2, loadstring('\\27Lua\\81\\0\\1\\4\\8\\4\\8\\0'))}",
    "load of bytecode": "return {select(2, load(coroutine.wrap(function() coroutine.yield('\\27Lua') end)))}",
    "a first byte of bytecode": "return {select(2, loadstring('\\27'))}",
    "bytecode behind a comment": "return {select(2, loadstring('#x\\n\\27Lua'))}",
    "dump": "return type(string.dump)",
    "a hash line": "return {select(2, loadstring('#!lua\\nreturn 1'))}",
}


@each_protocol_at_length
@each(CODE)
def test_code_is_loaded_as_in_valkey(server: Server, peer: Server, protocol: int, row: str) -> None:
    assert_alike(server, peer, protocol, [script(row, "key", keys=1)])


@pytest.mark.parametrize(
    "code", [b"\x1bLua", b"\x1bLuaQ\x00\x01\x04\x08\x04\x08\x00", b"\x1b", b"\x00", b"return '\x00'"]
)
def test_a_script_of_bytes_is_no_bytecode(server: Server, peer: Server, code: bytes) -> None:
    assert_alike(server, peer, 2, [["EVAL", code, 0], ["SCRIPT", "LOAD", code]])


# What may not be changed. By pcall, too, since a script may want to go on.

TOLD = "local function told(ok, e) return {ok, type(e) == 'table' and e.err or e} end"
PROTECTED = {
    "a global": "x = 1",
    "a global of a function": "function f() end",
    "a global of _G": "_G.x = 1",
    "a global by rawset": "rawset(_G, 'x', 1)",
    "a library": "string = {}",
    "a global that is there": "tostring = nil",
    "reading a global": "return x",
    "reading a global of _G": "return _G.x",
    "reading a global of nil": "return x == nil",
    "reading a global raw": "return type(rawget(_G, 'x'))",
    "reading a global in a function": "local function f() return y end return f()",
    "calling a global": "return nothing()",
    "indexing a global": "return nothing.x",
    "redis": "redis.x = 1",
    "redis.call": "redis.call = nil",
    "redis by rawset": "rawset(redis, 'call', tostring)",
    "server": "server.x = 1",
    "string": "string.foo = 1",
    "string.rep": "string.rep = nil",
    "string by rawset": "rawset(string, 'rep', tostring)",
    "table": "table.x = 1",
    "table by insert": "table.insert(string, 1)",
    "table.sort": "table.sort = nil",
    "math": "math.random = nil",
    "os": "os.clock = nil",
    "bit": "bit.band = nil",
    "cjson": "cjson.encode = nil",
    "cmsgpack": "cmsgpack.pack = nil",
    "struct": "struct.pack = nil",
    "coroutine": "coroutine.create = nil",
    "a metatable for all": "setmetatable(_G, {})",
    "no metatable for all": "setmetatable(_G, nil)",
    "a metatable of redis": "setmetatable(redis, {})",
    "a metatable of string": "setmetatable(string, {__index = function() return 1 end})",
    "the metatable of strings": "getmetatable('').__index = nil",
    "the metatable of strings added to": "getmetatable('').__add = function() return 1 end",
    "the metatable of strings raw": "rawset(getmetatable(''), '__index', 1)",
    "what is in the metatable of strings": "return type(getmetatable('').__index)",
    "keys of a library": "for name in pairs(string) do string[name] = nil end",
    "the version": "redis.REDIS_VERSION = '1'",
    "keys": "KEYS = {}",
    "keys inside": "KEYS[1] = 'x' return KEYS[1]",
    "the metatable of keys": "setmetatable(KEYS, {__index = function() return 'x' end}) return KEYS[9]",
    "own tables": "local t = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v * 2) end}) t.a = 2 "
    "return t.a",
}


@each_protocol_at_length
@each(PROTECTED)
def test_what_may_not_be_changed_is_refused_as_in_valkey(server: Server, peer: Server, protocol: int, row: str) -> None:
    lines = [
        script(row, "key", keys=1),
        script(f"{TOLD} return told(pcall(function() {row} end))", "key", keys=1),
        # Nothing of it is left.
        script(f"{NAMES} return {{names(_G), names(redis), names(string), names(getmetatable('') or {{}})}}"),
        script("return {('x'):rep(2), tostring(1), redis.call('ping'), #KEYS, pcall(function() return x end)}"),
    ]
    assert_alike(server, peer, protocol, lines)


# Every way in which a script could leave something, and who would notice it.

PROBE = script(
    NAMES + "local seen = names(_G) "
    "for _, library in ipairs({string, table, math, os, coroutine, bit, cjson, cmsgpack, struct, redis}) do "
    "for _, name in ipairs(names(library)) do seen[#seen + 1] = name end end "
    "return {seen, KEYS, ARGV, type(redis.call('get', 'nothing')), "
    "pcall(function() return left end), ('x'):len(), type(getmetatable({})), cjson.encode({1.5, {}})}"
)
LEAVERS = {
    "a global": "pcall(function() left = 1 end)",
    "a global by rawset": "pcall(rawset, _G, 'left', 1)",
    "a global by load": "pcall(loadstring('left = 1'))",
    "a global of a coroutine": "coroutine.resume(coroutine.create(function() left = 1 end))",
    "a global of a handler": "xpcall(function() error('x') end, function() left = 1 end)",
    "a global of a metamethod": "local t = setmetatable({}, {__index = function() left = 1 end}) "
    "pcall(function() return t.x end)",
    "a global of a finalizer": "local t = setmetatable({}, {__gc = function() left = 1 end}) t = nil collectgarbage()",
    "keys": "KEYS[5] = 'x' ARGV[5] = 'y' return #KEYS",
    "a metatable of keys": "setmetatable(KEYS, {__index = function() return 'left' end}) return KEYS[9]",
    "a metatable of all": "pcall(setmetatable, _G, {__index = function() return 1 end})",
    "a metatable of strings": "pcall(function() getmetatable('').__index = function() return 1 end end)",
    "an operator of strings": "pcall(function() getmetatable('').__call = function() return 1 end end)",
    "an operator of strings raw": "pcall(function() rawset(getmetatable(''), '__unm', 1) end)",
    "a function of a library": "pcall(function() string.rep = nil end)",
    "a function of a library raw": "pcall(rawset, string, 'left', 1)",
    "an element of a library": "pcall(table.insert, string, 'left')",
    "a function of redis": "pcall(function() redis.call = function() return 'left' end end)",
    "the version of the protocol": "redis.setresp(3)",
    "the version of the protocol of a script that fails": "redis.setresp(3) error('x')",
    "the seed": "math.randomseed(7) return math.random()",
    "a place in the sequence": "for n = 1, 10 do math.random() end",
    "collection stopped": "collectgarbage('stop')",
    "a suspended coroutine": "coroutine.resume(coroutine.create(function() coroutine.yield() left = 1 end))",
    "precision of json": "pcall(function() cjson.encode_number_precision(3) end)",
    "sparse arrays of json": "pcall(function() cjson.encode_sparse_array(true) end)",
    "a buffer of json": "pcall(function() cjson.encode_keep_buffer(false) end)",
    "numbers of json": "pcall(function() cjson.encode_invalid_numbers(true) end)",
    "another database": "redis.call('select', 5)",
    "what is replicated": "redis.set_repl(redis.REPL_NONE)",
    "an error": "error('x')",
    "an error of a table": "error({err = 'X y'})",
    "an error that is caught": "pcall(error, 'x')",
    "endless recursion": "local function f() return f() + 1 end return f()",
    "the locale": "pcall(function() os.setlocale('de_DE') end)",
}


# What valkey-server does leave.
LEFT_BY_VALKEY = {
    "depth of json": "cjson.encode_max_depth(1)",
    "depth of decoded json": "cjson.decode_max_depth(1)",
}


@each_protocol_at_length
@each(LEAVERS)
def test_nothing_is_left_for_the_next_script(server: Server, peer: Server, protocol: int, row: str) -> None:
    lines = [script(row, "key", "argument", keys=1), PROBE, "SET x 1", script("return redis.call('get', 'x')")]
    assert_alike(server, peer, protocol, lines)


def seen_before_and_after(connection: Connection, text: str) -> list[bytes]:
    """What the probe sees before and after a script."""
    lines = [PROBE, script(text, "key", "argument", keys=1), PROBE]
    return [connection.command_raw(*line) for line in lines][::2]


@each_protocol_at_length
@each(LEAVERS)
def test_a_script_sees_the_same_before_and_after_another_one(server: Server, protocol: int, row: str) -> None:
    with server.connect(protocol) as connection:
        before, after = seen_before_and_after(connection, row)
        assert before == after


@pytest.mark.snugly_only
@each(LEFT_BY_VALKEY)
def test_not_even_settings_of_libraries_are_left(server: Server, row: str) -> None:
    with server.connect() as connection:
        before, after = seen_before_and_after(connection, row)
        assert before == after


# Chance.

CHANCE = {
    "of a seed": "math.randomseed(42) for n = 1, 20 do t[n] = tostring(math.random()) end",
    "up to a number": "math.randomseed(42) for n = 1, 20 do t[n] = math.random(1000) end",
    "between numbers": "math.randomseed(42) for n = 1, 20 do t[n] = math.random(-5, 5) end",
    "of a seed of nothing": "math.randomseed(0) for n = 1, 20 do t[n] = math.random(1000000) end",
    "of a negative seed": "math.randomseed(-1) for n = 1, 20 do t[n] = math.random(1000000) end",
    "of a fractional seed": "math.randomseed(1.9) for n = 1, 20 do t[n] = math.random(1000000) end",
    "of a large seed": "math.randomseed(2 ^ 40 + 3) for n = 1, 20 do t[n] = math.random(1000000) end",
    "of two seeds": "math.randomseed(1) t[1] = math.random(1000) math.randomseed(1) t[2] = math.random(1000)",
    "of no seed": "math.randomseed()",
    "of a seed that is no number": "math.randomseed('x')",
    "of an empty interval": "t[1] = math.random(0)",
    "of a reversed interval": "t[1] = math.random(5, 1)",
    "of three": "t[1] = math.random(1, 2, 3)",
    "of large intervals": "math.randomseed(42) t[1] = math.random(2 ^ 31 - 1) t[2] = tostring(math.random(2 ^ 53))",
    "of no number": "t[1] = math.random('x')",
}


@each(CHANCE)
def test_chance_is_that_of_valkey(server: Server, peer: Server, row: str) -> None:
    assert_alike(server, peer, 2, [script(f"local t = {{}} {row} return t")] * 2)


def test_without_a_seed_a_script_does_not_repeat_the_one_before(connection: Connection) -> None:
    lines = [script("local t = {} for n = 1, 8 do t[n] = math.random(1000000) end return t")] * 4
    replies = [connection.command_raw(*line) for line in lines]
    assert len(set(replies)) == len(replies)
