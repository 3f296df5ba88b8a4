"""Scripts: what becomes of values on their way from replies to Lua, from Lua to replies, and to arguments of commands.

Every row runs on this server and on valkey-server.
"""

from __future__ import annotations

import pytest

from plays import Line, assert_alike, each, each_protocol, script
from resp import encode
from servers import Server

SCALARS = {
    "nothing": "return",
    "no script": "",
    "nil": "return nil",
    "true": "return true",
    "false": "return false",
    "an integer": "return 7",
    "a negative integer": "return -7",
    "a fraction": "return 3.99",
    "a negative fraction": "return -3.99",
    "less than one": "return 0.999",
    "minus less than one": "return -0.999",
    "minus zero": "return -0",
    "two to the 53rd": "return 2^53",
    "two to the 53rd and one": "return 2^53 + 1",
    "two to the 62nd": "return 2^62",
    "minus two to the 63rd": "return -2^63",
    "a number in scientific notation": "return 1.5e3",
    "a hexadecimal number": "return 0xff",
    "a string": "return 'text'",
    "an empty string": "return ''",
    "a string that is a number": "return '10'",
    "a string with all bytes": "local t = {} for n = 0, 255 do t[#t + 1] = string.char(n) end return table.concat(t)",
    "a long string": "return string.rep('0123456789', 10000)",
    "several values": "return 1, 2, 3",
    "a function": "return tostring",
    "a coroutine": "return coroutine.create(function() end)",
    "a value behind a comment": "return 1 -- 2",
}
TABLES = {
    "an empty table": "return {}",
    "numbers": "return {1, 2, 3}",
    "fractions": "return {1.1, -2.9}",
    "strings": "return {'a', '', 'c'}",
    "nested": "return {1, {2, {3, {4, {}}}}, 5}",
    "a hole": "return {1, nil, 3}",
    "a hole at the start": "return {nil, 1}",
    "a nil at the end": "return {1, 2, nil}",
    "true and false": "return {true, false, 1}",
    "a table of false": "return {false}",
    "only a second": "return {[2] = 1}",
    "an index of zero": "return {[0] = 0, 1}",
    "names": "return {a = 1, b = 2}",
    "names and numbers": "return {1, a = 2, 3}",
    "a name in the middle of numbers": "return {1, {a = 2}, 3}",
    "a function among numbers": "return {1, tostring, 3}",
    "fractional indices": "return {[1] = 1, [1.5] = 2, [2] = 3}",
    "indices as strings": "return {['1'] = 1}",
    "many": "local t = {} for n = 1, 1000 do t[n] = n end return t",
    "the keys and arguments": "return {KEYS, ARGV}",
    "a table with values of another": "return setmetatable({}, {__index = {1, 2, 3}})",
    "a table that says its length": "return setmetatable({1, 2}, {__len = function() return 1 end})",
    "deep": "local t = {} for n = 1, 200 do t = {t} end return t",
}
NAMED = {
    "ok": "return {ok = 'fine'}",
    "ok of nothing": "return {ok = ''}",
    "ok of lines": "return {ok = 'a\\r\\nb'}",
    "ok of a number": "return {ok = 7}",
    "ok of a table": "return {ok = {}}",
    "ok of true": "return {ok = true}",
    "ok among others": "return {1, ok = 'fine', 2}",
    "ok inside": "return {1, {ok = 'fine'}}",
    "err": "return {err = 'ERR wrong'}",
    "err of one word": "return {err = 'wrong'}",
    "err with a code": "return {err = 'CODE what is wrong'}",
    "err with a dash": "return {err = '-CODE what is wrong'}",
    "err of nothing": "return {err = ''}",
    "err of lines": "return {err = 'ERR a\\r\\nb'}",
    "err of a number": "return {err = 7}",
    "err of a table": "return {err = {}}",
    "err inside": "return {1, {err = 'ERR wrong'}, 2}",
    "err and ok": "return {err = 'ERR wrong', ok = 'fine'}",
    "err that is not counted": "return {err = 'ERR wrong', ignore_error_stats_update = true}",
    "err with its place": "return {err = 'ERR wrong', source = 'x', line = '3'}",
    "double": "return {double = 1.5}",
    "double of an integer": "return {double = 3}",
    "double of a tenth": "return {double = 0.1}",
    "double of a third": "return {double = 1 / 3}",
    "double that is large": "return {double = 1e100}",
    "double that is small": "return {double = 1e-7}",
    "double of many digits": "return {double = 123456789.123456789}",
    "double beyond integers": "return {double = 12345678901234567890}",
    "double that is infinite": "return {double = math.huge}",
    "double that is minus infinite": "return {double = -math.huge}",
    "double of a string": "return {double = '1.5'}",
    "double of a table": "return {double = {}}",
    "double inside": "return {1, {double = 1.5}}",
    "big number": "return {big_number = '1234567890123456789012345678901234567890'}",
    "big number that is none": "return {big_number = 'abc'}",
    "big number of lines": "return {big_number = '1\\r\\n2'}",
    "big number of a number": "return {big_number = 5}",
    "big number of a table": "return {big_number = {}}",
    "map": "return {map = {a = 1}}",
    "map of nothing": "return {map = {}}",
    "map of a list": "return {map = {'x', 'y'}}",
    "map of several": "return {map = {a = 1, b = 2, c = 3}}",
    "map of maps": "return {map = {a = {map = {b = {3}}}}}",
    "map of truths": "return {map = {a = true}}",
    "map of lies": "return {map = {a = false}}",
    "map by numbers": "return {map = {[1.5] = 'x'}}",
    "map by truth": "return {map = {[true] = 'x'}}",
    "map of a number": "return {map = 1}",
    "set": "return {set = {a = true}}",
    "set of nothing": "return {set = {}}",
    "set of a list": "return {set = {'x', 'y'}}",
    "set of several": "return {set = {a = true, b = true, c = true}}",
    "set of lies": "return {set = {a = false}}",
    "set of a number": "return {set = 1}",
    "verbatim": "return {verbatim_string = {format = 'txt', string = 'some text'}}",
    "verbatim of another format": "return {verbatim_string = {format = 'mkd', string = '# title'}}",
    "verbatim of a long format": "return {verbatim_string = {format = 'markdown', string = '# title'}}",
    "verbatim of a short format": "return {verbatim_string = {format = 'a', string = 'text'}}",
    "verbatim of nothing": "return {verbatim_string = {format = 'txt', string = ''}}",
    "verbatim of bytes": "return {verbatim_string = {format = 'txt', string = 'a\\0\\r\\nb'}}",
    "verbatim without text": "return {verbatim_string = {format = 'txt'}}",
    "verbatim without format": "return {verbatim_string = {string = 'text'}}",
    "verbatim of a string": "return {verbatim_string = 'text'}",
    "verbatim of a number": "return {verbatim_string = {format = 'txt', string = 7}}",
    "attributes": "return {attribute = {a = 1}}",
    "null": "return {null = true}",
    "err of errors": "return redis.error_reply('CODE what is wrong')",
    "err of errors with a dash": "return redis.error_reply('-CODE what is wrong')",
    "err of errors of one word": "return redis.error_reply('wrong')",
    "err of errors of nothing": "return redis.error_reply('')",
    "err of errors of lines": "return redis.error_reply('a\\r\\nb')",
    "err of errors of two": "return redis.error_reply('a', 'b')",
    "err of errors of a number": "return redis.error_reply(7)",
    "err of errors of a table": "return redis.error_reply({})",
    "err of errors of none": "return redis.error_reply()",
    "fields of an error": "local e = redis.error_reply('wrong') return {e.err, tostring(e.ignore_error_stats_update)}",
    "status": "return redis.status_reply('fine')",
    "status of nothing": "return redis.status_reply('')",
    "status of lines": "return redis.status_reply('a\\r\\nb')",
    "status of a number": "return redis.status_reply(7)",
    "status of none": "return redis.status_reply()",
    "status of two": "return redis.status_reply('a', 'b')",
    "fields of a status": "return {redis.status_reply('fine').ok}",
    "indexed by others": "return setmetatable({}, {__index = {ok = 'fine'}})",
}
# Out of the range of integers, where C says nothing and processors differ: those of x86 are compared.
BEYOND = {
    "two to the 63rd": "return 2^63",
    "much": "return 1e300",
    "infinity": "return 1 / 0",
    "minus infinity": "return -1 / 0",
    "not a number": "return 0 / 0",
}


@each_protocol
@each(SCALARS | TABLES | NAMED | BEYOND)
def test_a_value_of_lua_becomes_the_reply_of_valkey(server: Server, peer: Server, protocol: int, row: str) -> None:
    lines: list[Line] = [
        script(row, "key", "argument", keys=1),
        script("redis.setresp(3) " + row, "key", "argument", keys=1),
        script("redis.setresp(2) " + row, "key", "argument", keys=1),
        ["EVAL_RO", row, 0],
    ]
    assert_alike(server, peer, protocol, lines)


# A value of Lua in words, of which the types can be seen.
TELL = """
local function tell(value)
    if type(value) ~= 'table' then return type(value) .. ' ' .. tostring(value) end
    local parts = {}
    for name, held in pairs(value) do parts[#parts + 1] = tell(name) .. ': ' .. tell(held) end
    table.sort(parts)
    return '{' .. table.concat(parts, ', ') .. '}'
end
"""
FILL: list[Line] = [
    "SET text hello",
    "SET number 10",
    "SET empty ''",
    ["SET", "bytes", b"\x00\xff\r\n"],
    "RPUSH list a b '' 1",
]
REPLIES = {
    "a string": "'get', 'text'",
    "an empty string": "'get', 'empty'",
    "bytes": "'get', 'bytes'",
    "no string": "'get', 'nothing'",
    "a string that is a number": "'get', 'number'",
    "ok": "'set', 'x', 'y'",
    "pong": "'ping'",
    "a type": "'type', 'list'",
    "a null for ok": "'set', 'text', 'x', 'nx'",
    "an integer": "'incr', 'number'",
    "a negative integer": "'decrby', 'number', 20",
    "the largest integer": "'incrby', 'other', '9223372036854775807'",
    "an integer that a double cannot hold": "'incrby', 'other', '9007199254740993'",
    "the smallest integer": "'decrby', 'other', '9223372036854775807'",
    "a float": "'incrbyfloat', 'number', '0.1'",
    "an array": "'lrange', 'list', 0, -1",
    "an empty array": "'lrange', 'nothing', 0, -1",
    "an array with a null": "'mget', 'text', 'nothing', 'number'",
    "an array of nulls": "'mget', 'nothing', 'nothing'",
    "an array of integers": "'lpos', 'list', 'b', 'count', 0",
    "a null array": "'lpop', 'nothing', 2",
    "a null for what is blocked": "'blpop', 'nothing', 0",
    "an array of arrays": "'lmpop', 2, 'nothing', 'list', 'left', 'count', 2",
    "a map of settings": "'command', 'docs', 'nothing'",
    "a bit": "'setbit', 'bits', 7, 1",
    "bits with a null": "'bitfield', 'number', 'overflow', 'fail', 'incrby', 'u2', 0, 9",
    "a cursor and keys": "'scan', 0, 'match', 'text'",
    "an error": "'incr', 'text'",
    "an error of types": "'lpush', 'text', 1",
    "an error of arity": "'get'",
    "an unknown command": "'nothing', 'text'",
}
# Members of sets that are tables come in the order of their addresses.
SETS = {
    "sets": "'command', 'info', 'get', 'nothing'",
    "a set in arrays": "'command', 'getkeysandflags', 'set', 'a', 'b', 'get'",
}


@each_protocol
@each(REPLIES)
@pytest.mark.parametrize("inside", [2, 3], ids=["setresp2", "setresp3"])
def test_a_reply_becomes_the_value_of_lua_that_it_is_in_valkey(
    server: Server, peer: Server, protocol: int, row: str, inside: int
) -> None:
    lines: list[Line] = [
        *FILL,
        script(f"{TELL} redis.setresp({inside}) return tell(redis.pcall({row}))"),
        *["FLUSHALL", *FILL],
        script(f"redis.setresp({inside}) return redis.call({row})"),
        *["FLUSHALL", *FILL],
        script(f"redis.setresp({inside}) return {{redis.pcall({row}), 1}}"),
    ]
    assert_alike(server, peer, protocol, lines)


@each_protocol
@each(SETS)
def test_a_set_has_its_members_as_names(server: Server, peer: Server, protocol: int, row: str) -> None:
    lines = [script(f"{TELL} redis.setresp({inside}) return tell(redis.pcall({row}))") for inside in (2, 3)]
    assert_alike(server, peer, protocol, lines)


# Where the numbers differ between two servers, their types are alike.
TYPES = {
    "the time": "local t = redis.call('time') return {#t, type(t[1]), type(t[2])}",
    "a verbatim string": "local t = redis.call('info', 'server') return type(t) == 'table' "
    "and {type(t.verbatim_string.string), t.verbatim_string.format} or type(t)",
    "doubles": "local t = redis.call('memory', 'stats') t = t.map or t "
    "local d = t['dataset.percentage'] return type(d) == 'table' and type(d.double) or type(d)",
}


@each_protocol
@each(TYPES)
def test_what_differs_between_servers_is_of_the_same_types(
    server: Server, peer: Server, protocol: int, row: str
) -> None:
    assert_alike(server, peer, protocol, [script(row), script(f"redis.setresp(3) {row}")])


VERSIONS = {
    "the third": "return redis.setresp(3)",
    "a fraction": "return redis.setresp(2.9)",
    "a fourth": "return redis.setresp(4)",
    "a first": "return redis.setresp(1)",
    "a string": "return redis.setresp('3')",
    "none": "return redis.setresp()",
    "two": "return redis.setresp(2, 3)",
    "a word": "return redis.setresp('x')",
    "a table": "return redis.setresp({})",
    "by pcall": "return {pcall(redis.setresp, 7)}",
    "back again": "redis.setresp(3) redis.setresp(2) return redis.call('get', 'nothing')",
    "types of null": "redis.setresp(3) local three = redis.call('get', 'nothing') redis.setresp(2) "
    "return {type(three), type(redis.call('get', 'nothing'))}",
    "booleans of the third": "redis.setresp(3) return {true, false}",
    "a boolean of the third": "redis.setresp(3) return false",
    "a boolean of the second": "redis.setresp(2) return false",
}


@each_protocol
@each(VERSIONS)
def test_versions_of_the_protocol_are_chosen_as_in_valkey(
    server: Server, peer: Server, protocol: int, row: str
) -> None:
    # The second script is told by the first if anything of it is left.
    lines = [script(row), script("return {type(redis.call('get', 'nothing')), true, false}"), "GET nothing"]
    assert_alike(server, peer, protocol, lines)


NUMBERS = [
    *["1", "-1", "1.0", "1.5", "-1.5", "0.1", "1 / 3", "2 / 3", "100", "1e3", "1e15", "1e16", "1e17", "1e18", "1e19"],
    *["123456789012345678", "2^31", "2^53", "2^53 + 1", "-2^53", "2^62", "2^63", "-2^63", "2^64", "1e100", "1e-5"],
    *["1e-10", "5e-324", "1.7976931348623157e308", "-0", "0 * -1", "3.0000000001", "1e20", "12345.678", "0xff"],
    *["1 / 0", "-1 / 0", "1e22", "99999999999999999999", "0.1 + 0.2", "4.35", "1e21 + 0.5", "9007199254740993"],
    *["math.pi", "-math.pi * 1e10", "1e-7", "123456.7", "9223372036854774784", "-9223372036854775808"],
]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_the_argument_that_it_is_in_valkey(server: Server, peer: Server, number: str) -> None:
    lines = [
        script(f"return redis.call('echo', {number})"),
        script(f"redis.call('set', KEYS[1], {number}) return redis.call('get', KEYS[1])", "k", keys=1),
        script(f"return tostring({number}) .. ' ' .. {number}"),
        script(f"return redis.call('lpush', {number}, {number})"),
        script(f"return redis.call('exists', {number}, 'k')"),
    ]
    assert_alike(server, peer, 2, lines)


ARGUMENTS = {
    "nil": "'echo', nil",
    "true": "'echo', true",
    "a table": "'echo', {}",
    "a table of one": "'echo', {'x'}",
    "a function": "'echo', tostring",
    "a number": "'echo', 7",
    "a zero byte": "'echo', 'a\\0b'",
    "an empty string": "'echo', ''",
    "no command": "",
    "a nil for a command": "nil",
    "a table for a command": "{'get', 'x'}",
    "a number for a command": "7",
    "an empty command": "''",
    "a command with a zero byte": "'get\\0', 'x'",
    "a command with a space": "'get x'",
    "a command in capitals": "'ECHO', 'x'",
    "a subcommand": "'object', 'encoding', 'text'",
    "an unknown subcommand": "'object', 'nothing', 'text'",
    "a subcommand with a bar": "'object|encoding', 'text'",
    "too many": "'get', 'a', 'b'",
    "too few": "'set', 'a'",
    "many": "'rpush', 'many', unpack(ARGV)",
    "a long one": "'set', 'long', string.rep('x', 100000)",
}


@each_protocol
@each(ARGUMENTS)
def test_arguments_that_are_no_strings_are_answered_as_in_valkey(
    server: Server, peer: Server, protocol: int, row: str
) -> None:
    many = [str(number) for number in range(5000)]
    lines = [*FILL, *[script(f"return redis.{by}({row})", *many) for by in ("call", "pcall")], ["LLEN", "many"]]
    assert_alike(server, peer, protocol, lines)


KEYS_AND_ARGUMENTS = {
    "both": (["k", "l", "x", "y"], 2, "return {KEYS[1], KEYS[2], ARGV[1], ARGV[2], #KEYS, #ARGV}"),
    "none": ([], 0, "return {#KEYS, #ARGV, type(KEYS[1]), type(ARGV[1])}"),
    "only keys": (["k", "k"], 2, "return {#KEYS, #ARGV, KEYS[1] == KEYS[2]}"),
    "only arguments": (["x"], 0, "return {#KEYS, #ARGV, ARGV[1]}"),
    "bytes": ([b"\x00\xff\r\n", b"\xfe\x00"], 1, "return {KEYS[1], ARGV[1], #KEYS[1], #ARGV[1]}"),
    "empty ones": (["", ""], 1, "return {KEYS[1], ARGV[1]}"),
    "numbers": (["10", "1.5"], 1, "return {KEYS[1] + ARGV[1] * 2, type(KEYS[1])}"),
    "replaced": (["k", "x"], 1, "KEYS = {1} ARGV = 'y' return {KEYS, ARGV}"),
    "changed": (["k", "x"], 1, "KEYS[1] = 'a' ARGV[2] = 'b' return {KEYS, ARGV}"),
    "as globals": (["k", "x"], 1, "return {rawget(_G, 'KEYS'), _G.ARGV, _G['KEYS'][1]}"),
    "many": ([str(number) for number in range(3000)], 1500, "return {#KEYS, #ARGV, KEYS[1500], ARGV[1500]}"),
    "in a function": (["k", "x"], 1, "local function f() return {KEYS[1], ARGV[1]} end return f()"),
    "arguments of the chunk": (["k", "x"], 1, "return {select('#', ...), ...}"),
}


@each_protocol
@each(KEYS_AND_ARGUMENTS)
def test_keys_and_arguments_are_those_of_the_request(
    server: Server, peer: Server, protocol: int, row: tuple[list[bytes | str], int, str]
) -> None:
    arguments, keys, text = row
    lines = [script(text, *arguments, keys=keys), script("return {KEYS, ARGV}"), script(text, *arguments, keys=keys)]
    assert_alike(server, peer, protocol, lines)


@each_protocol
def test_a_reply_of_a_script_can_be_as_large_as_others(server: Server, peer: Server, protocol: int) -> None:
    lines = [
        script("local t = {} for n = 1, 100000 do t[n] = n end return t"),
        script("return string.rep('x', 5000000)"),
        script("redis.call('set', 'k', string.rep('x', 1000000)) local v = redis.call('get', 'k') return {v, v, v}"),
    ]
    assert_alike(server, peer, protocol, lines)


@each_protocol
@pytest.mark.parametrize(
    "row", ["local t = {} for n = 1, 20000 do t = {t} end return t", "local t = {} t[1] = t return t"]
)
def test_a_reply_that_would_go_on_for_ever_ends_with_an_error(server: Server, protocol: int, row: str) -> None:
    with server.connect(protocol) as connection:
        connection.send(encode("EVAL", row, 0) + encode("QUIT"))
        assert connection.read_to_end().endswith(b"-ERR reached lua stack limit\r\n+OK\r\n")


def test_scripts_in_one_go_are_answered_in_order(server: Server, peer: Server) -> None:
    requests = [
        encode("EVAL", "return redis.call('incr', KEYS[1])", 1, "count") if number % 3 else encode("INCR", "count")
        for number in range(300)
    ]
    seen = []
    for tested in (server, peer):
        with tested.connect() as connection:
            connection.command("DEL", "count")
            connection.send(b"".join(requests))
            seen.append([connection.read() for _ in requests])
    assert seen[0] == seen[1] == list(range(1, 301))
