"""The libraries of scripts beside Lua's own: cjson, cmsgpack, struct and bit.

Every row runs on this server and on valkey-server.
"""

from __future__ import annotations

import random

import pytest

from plays import assert_alike, each, script
from servers import Server

JSON = {
    "numbers": "return cjson.encode({1, -2, 1.5, 0.1, 1e100, 1e-7, 2 ^ 53, 123456789012345678})",
    "scalars": "return {cjson.encode('x'), cjson.encode(true), cjson.encode(7), cjson.encode(cjson.null)}",
    "nil": "return cjson.encode(nil)",
    "nothing": "return cjson.encode()",
    "two": "return cjson.encode(1, 2)",
    "an empty table": "return cjson.encode({})",
    "an object": "return cjson.encode({a = 1})",
    "an array": "return cjson.encode({1, 'x', {true, false}, {a = {}}})",
    "an array with a hole": "return cjson.encode({1, nil, 3})",
    "a sparse array": "return cjson.encode({[1] = 1, [3] = 3})",
    "a very sparse array": "return cjson.encode({[1] = 1, [100] = 2})",
    "numbers as names": "return cjson.encode({[1] = 'a', x = 'b'})",
    "fractions as names": "return cjson.encode({[1.5] = 'a'})",
    "truth as a name": "return cjson.encode({[true] = 'a'})",
    "a function": "return cjson.encode(tostring)",
    "a function inside": "return cjson.encode({a = tostring})",
    "not a number": "return cjson.encode(0 / 0)",
    "infinity": "return cjson.encode(math.huge)",
    "escapes": "return cjson.encode('\\0\\1\\t\\n\\r\\\"\\\\/\\127\\200 \\226\\130\\172')",
    "every byte": "local t = {} for n = 0, 255 do t[#t + 1] = string.char(n) end return cjson.encode(table.concat(t))",
    "decoded": 'local t = cjson.decode(\'{"a": [1, 2.5, null, true, "x"]}\') return {t.a[1], t.a[2], t.a[4], t.a[5]}',
    "null": "return {type(cjson.null), tostring(cjson.decode('null') == cjson.null), cjson.decode('[null]')[1] == nil}",
    "null returned": "return cjson.null",
    "null in a table": "return {1, cjson.null, 3}",
    "null in a table of names": "return cjson.encode(cjson.decode('{\"a\": null}'))",
    "an empty array": "return cjson.encode(cjson.decode('[]'))",
    "an empty object": "return cjson.encode(cjson.decode('{}'))",
    "decoded numbers": "return cjson.encode(cjson.decode('[0, -0, 1e3, 1E-2, 12345678901234567890, 1.0]'))",
    "decoded hexadecimal": "return cjson.decode('0x10')",
    "decoded infinity": "return tostring(cjson.decode('inf'))",
    "decoded escapes": "return cjson.decode('\"\\\\u20ac \\\\ud83d\\\\ude00 \\\\n \\\\/\"')",
    "a lonely surrogate": "return cjson.decode('\"\\\\ud83d\"')",
    "a wrong escape": "return cjson.decode('\"\\\\x\"')",
    "names that are numbers": "return cjson.decode('{\"1\": \"x\"}')['1']",
    "names twice": 'return cjson.decode(\'{"a": 1, "a": 2}\').a',
    "nothing decoded": "return cjson.decode('')",
    "nil decoded": "return cjson.decode(nil)",
    "a number decoded": "return cjson.decode(7)",
    "a table decoded": "return cjson.decode({})",
    "text behind": "return cjson.decode('1 2')",
    "an unfinished array": "return cjson.decode('[1, 2')",
    "an unfinished object": "return cjson.decode('{\"a\": ')",
    "an unfinished string": "return cjson.decode('\"abc')",
    "a comma at the end": "return cjson.decode('[1,]')",
    "a word": "return cjson.decode('hello')",
    "single quotes": "return cjson.decode(\"{'a': 1}\")",
    "a zero byte": "return cjson.decode('1\\0')",
    "a wrong text that is caught": "return {pcall(cjson.decode, '[1,')}",
    "a loop": "local t = {} t.t = t return {pcall(cjson.encode, t)}",
    "depths": "return {cjson.encode_max_depth(), cjson.decode_max_depth()}",
    "a wrong depth": "return cjson.encode_max_depth(0)",
    "numbers that are invalid": "return {cjson.encode_invalid_numbers(), cjson.decode_invalid_numbers()}",
    "sparse arrays": "return {cjson.encode_sparse_array()}",
    "precision": "return cjson.encode_number_precision()",
    "buffer": "return cjson.encode_keep_buffer()",
    "another instance": "return type(cjson.new)",
    "arrays of a metatable": "return type(cjson.array_mt)",
}
MESSAGES = {
    "scalars": "return {cmsgpack.pack(1), cmsgpack.pack('x'), cmsgpack.pack(true), cmsgpack.pack(nil)}",
    "integers": "local t = {} for n = 0, 63 do t[n + 1] = cmsgpack.pack(2 ^ n, -2 ^ n, 2 ^ n - 1) end return t",
    "integers around": "return cmsgpack.pack(127, 128, 255, 256, 65535, 65536, -32, -33, -128, -129, -32769)",
    "fractions": "return {cmsgpack.pack(1.5), cmsgpack.pack(0.1), cmsgpack.pack(1e100), cmsgpack.pack(-1 / 3)}",
    "infinity": "return {cmsgpack.pack(math.huge), cmsgpack.pack(-math.huge)}",
    "strings": "local t = {} for _, n in ipairs({0, 31, 32, 255, 256, 65535, 65536}) do "
    "t[#t + 1] = cmsgpack.pack(string.rep('x', n)) end return t",
    "arrays": "return {cmsgpack.pack({}), cmsgpack.pack({1, 2, 3}), cmsgpack.pack({1, {2, {3}}})}",
    "a long array": "local t = {} for n = 1, 70000 do t[n] = 1 end return #cmsgpack.pack(t)",
    "an array with a hole": "return cmsgpack.pack({1, nil, 3})",
    "a map": "return cmsgpack.pack({a = 1})",
    "a map of numbers": "return cmsgpack.pack({[5] = 'x'})",
    "several": "return cmsgpack.pack(1, 'x', {2})",
    "nothing": "return cmsgpack.pack()",
    "a function": "return cmsgpack.pack(tostring)",
    "back again": "return cmsgpack.unpack(cmsgpack.pack({1, 'x', {true, false}, 2.5, -7, 'y'}))",
    "a map back again": "local t = cmsgpack.unpack(cmsgpack.pack({a = {b = 'c'}})) return t.a.b",
    "several back again": "return {cmsgpack.unpack(cmsgpack.pack(1, 'x', 2))}",
    "one": "return {cmsgpack.unpack_one(cmsgpack.pack(1, 'x'))}",
    "one at a place": "return {cmsgpack.unpack_one(cmsgpack.pack(1, 'x'), 1)}",
    "one at the end": "return {cmsgpack.unpack_one(cmsgpack.pack(1), 1)}",
    "one behind the end": "return {cmsgpack.unpack_one(cmsgpack.pack(1), 9)}",
    "one at a negative place": "return {cmsgpack.unpack_one(cmsgpack.pack(1), -1)}",
    "a few": "return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 2)}",
    "a few of none": "return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 0)}",
    "a negative few": "return {cmsgpack.unpack_limit(cmsgpack.pack(1), -1)}",
    "a few at a place": "return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 1, 1)}",
    "nothing unpacked": "return cmsgpack.unpack('')",
    "nil unpacked": "return cmsgpack.unpack(nil)",
    "a number unpacked": "return cmsgpack.unpack(7)",
    "a table unpacked": "return cmsgpack.unpack({})",
    "cut off": "return cmsgpack.unpack('\\147\\1\\2')",
    "a string cut off": "return cmsgpack.unpack('\\165abc')",
    "a claim of much": "return cmsgpack.unpack('\\221\\255\\255\\255\\255')",
    "a claim of a large map": "return cmsgpack.unpack('\\223\\255\\255\\255\\255')",
    "a claim of a long string": "return cmsgpack.unpack('\\219\\255\\255\\255\\255')",
    "a claim that overflows": "return cmsgpack.unpack('\\198\\255\\255\\255\\255')",
    "an unknown byte": "return cmsgpack.unpack('\\193')",
    "every first byte": "local t = {} for n = 0, 255 do "
    "t[n + 1] = {pcall(cmsgpack.unpack, string.char(n) .. KEYS[1])} end return t",
    "safely": "return type(cmsgpack.safe)",
}
STRUCTURES = {
    "bytes": "return struct.pack('bBhHlLiI', -1, 255, -2, 65535, -3, 4, -5, 6)",
    "byte orders": "return {struct.pack('>I', 1), struct.pack('<I', 1)}",
    "sizes of integers": "local t = {} for n = 1, 8 do t[n] = struct.pack('>I' .. n, 7) end return t",
    "an integer that is too large": "return struct.pack('I33', 1)",
    "an integer of nine": "return struct.pack('I9', 1)",
    "alignment": "return {struct.pack('!4bi', 1, 2), struct.pack('!bd', 1, 2), struct.pack('bx', 1)}",
    "a wrong alignment": "return struct.pack('!3bi', 1, 2)",
    "floats": "return {struct.pack('>f', 1.5), struct.pack('>d', -0.1)}",
    "strings": "return {struct.pack('s', 'abc'), struct.pack('c3', 'abcdef'), struct.pack('c0', 'abc')}",
    "a string that is too short": "return struct.pack('c5', 'abc')",
    "sizes": "return {struct.size('bBhHiIlLfd'), struct.size('!8bd'), struct.size('c10')}",
    "a size that is not known": "return struct.size('s')",
    "a size of c0": "return struct.size('c0')",
    "unpacked": "return {struct.unpack('>bHI', '\\255\\1\\2\\0\\0\\0\\7')}",
    "unpacked strings": "return {struct.unpack('sc2', 'abc\\0defg')}",
    "unpacked with a length": "return {struct.unpack('Bc0', '\\3abcdef')}",
    "unpacked at a place": "return {struct.unpack('B', 'abc', 2)}",
    "unpacked behind the end": "return {struct.unpack('B', 'abc', 9)}",
    "unpacked at a negative place": "return {struct.unpack('B', 'abc', -1)}",
    "unpacked of too few": "return struct.unpack('I', 'abc')",
    "unpacked without an end": "return struct.unpack('s', 'abc')",
    "unpacked with a length of much": "return struct.unpack('>I4c0', '\\255\\255\\255\\255abc')",
    "unpacked with an overflow": "return struct.unpack('c2147483647', 'abc')",
    "unpacked with a larger overflow": "return struct.unpack('c4294967297', 'abc')",
    "floats unpacked": "return {tostring(struct.unpack('>d', struct.pack('>d', 0.1)))}",
    "an unknown letter": "return struct.pack('y', 1)",
    "no values": "return struct.pack('I')",
    "no format": "return struct.pack()",
    "a value of another type": "return struct.pack('I', 'x')",
    "blanks": "return struct.pack(' b b ', 1, 2)",
    "large values": "return {struct.pack('>I4', 2 ^ 32 - 1), struct.pack('>I4', 2 ^ 32), struct.pack('>i8', -2 ^ 53)}",
}
BITS = {
    "and, or, xor": "return {bit.band(12, 10), bit.bor(12, 10), bit.bxor(12, 10)}",
    "of several": "return {bit.band(15, 7, 3), bit.bor(1, 2, 4), bit.bxor(1, 1, 1)}",
    "of one": "return {bit.band(15), bit.bor(7)}",
    "of none": "return bit.band()",
    "not": "return {bit.bnot(0), bit.bnot(-1), bit.bnot(1)}",
    "shifts": "return {bit.lshift(1, 31), bit.lshift(1, 32), bit.rshift(-1, 1), bit.arshift(-8, 1), bit.lshift(1, -1)}",
    "rotations": "return {bit.rol(1, 31), bit.rol(1, 33), bit.ror(1, 1)}",
    "swaps": "return {bit.bswap(0x12345678), bit.bswap(1)}",
    "hexadecimal": "return {bit.tohex(255), bit.tohex(255, 4), bit.tohex(255, -4), bit.tohex(-1), bit.tohex(1, 0)}",
    "many digits": "return {bit.tohex(1, 99), bit.tohex(1, -99), bit.tohex(1, 2 ^ 31), bit.tohex(1, -2 ^ 31)}",
    "normal": "return {bit.tobit(2 ^ 32), bit.tobit(2 ^ 31), bit.tobit(-1), bit.tobit(0xffffffff), bit.tobit(1.5)}",
    "large": "return {bit.tobit(2 ^ 40 + 5), bit.tobit(2 ^ 51), bit.tobit(-2 ^ 40 - 5)}",
    "halves": "return {bit.tobit(0.5), bit.tobit(1.5), bit.tobit(2.5), bit.tobit(-0.5)}",
    "strings": "return {bit.band('7', 3)}",
    "no number": "return bit.band('x', 1)",
    "nil": "return bit.band(nil, 1)",
}


@each(JSON | {f"messages: {name}": row for name, row in MESSAGES.items()})
def test_values_are_written_and_read_as_in_valkey(server: Server, peer: Server, row: str) -> None:
    assert_alike(server, peer, 2, [script(row, "\1" * 40, keys=1)])


@each(STRUCTURES | BITS)
def test_structures_and_bits_are_those_of_valkey(server: Server, peer: Server, row: str) -> None:
    assert_alike(server, peer, 2, [script(row)])


# One call with random arguments: most are wrong in some way.


def random_text(rng: random.Random) -> str:
    """A text that is nearly JSON."""
    pieces = ["{", "}", "[", "]", ",", ":", '"', '"a"', "1", "-2.5e3", "true", "null", " ", "\\u00", "\\", "nul", "0x1"]
    return "".join(rng.choices(pieces, k=rng.randrange(1, 9)))


def random_bytes(rng: random.Random) -> bytes:
    """Bytes that are nearly a message: first bytes of every type, and lengths that are small."""
    firsts = [*range(0x80, 0xE0), 0xFF, 0x7F]
    return bytes(rng.choice(firsts) if rng.random() < 0.5 else rng.randrange(6) for _ in range(rng.randrange(1, 12)))


def random_format(rng: random.Random) -> str:
    letters = ["b", "B", "h", "H", "i", "I", "i3", "I8", "l", "L", "f", "d", "s", "c0", "c2", "x", ">", "<", "!4"]
    return "".join(rng.choices(letters, k=rng.randrange(1, 6)))


@pytest.mark.parametrize("seed", range(4))
def test_random_texts_messages_and_structures_are_read_as_in_valkey(server: Server, peer: Server, seed: int) -> None:
    rng = random.Random(seed)
    written = "local ok, v = pcall({}) return {{ok, type(v) == 'table' and cjson.encode({{v}}) or tostring(v)}}"
    lines = []
    for _ in range(150):
        lines += [
            script(written.format("cjson.decode, ARGV[1]"), random_text(rng)),
            script("return {pcall(cmsgpack.unpack, ARGV[1])}", random_bytes(rng)),
            script("return {pcall(struct.unpack, ARGV[1], ARGV[2])}", random_format(rng), random_bytes(rng) * 3),
            script("return {pcall(struct.pack, ARGV[1], 1, 'x', 3)}", random_format(rng)),
        ]
    assert_alike(server, peer, 2, lines)
