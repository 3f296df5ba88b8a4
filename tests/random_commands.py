"""Random commands that collide: few keys, odd values, valid and invalid options, wrong arity.

One row of COMMANDS per command. It knows the syntax well enough to be right most of the time, and is wrong on purpose
for the rest; it knows nothing about replies.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import dumps

Command: TypeAlias = list[bytes]

KEYS = [b"a", b"b", b"c", b"key:1", b"key:2", b"", b"\x00\xff\r\n", b"k" * 300]
# Most often lists, which grow.
LISTS = [b"l", b"list:1"]
NUMBERS = [
    *[b"0", b"1", b"-1", b"7", b"100", b"12345", b"-32768"],
    *[b"9223372036854775807", b"9223372036854775806", b"-9223372036854775808", b"-9223372036854775807"],
    *[b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616", b"99999999999999999999999"],
]
NOT_INTEGERS = [b"", b" ", b"abc", b" 1", b"1 ", b"+1", b"01", b"-0", b"--1", b"1.0", b"0x10", b"1\x00", b"\xff"]
FLOATS = [
    *[b"0.1", b"-0.5", b"1.5", b"3.0", b"5.0e3", b"-1e-3", b"1e17", b"1e-17", b"3.14159265358979323846264338"],
    *[
        b"1e308",
        b"1e400",
        b"-1e4932",
        b"inf",
        b"-inf",
        b"nan",
        b"infinity",
        b".5",
        b"5.",
        b"1e",
        b"0x1p3",
        b" 1.5",
        b"1,5",
    ],
]
TEXTS = [
    b"hello",
    b"hello world",
    bytes(range(256)),
    b"x" * 44,
    b"x" * 45,
    b'{"id": 1, "name": "customer", "tags": ["a", "b"]}' * 30,
    random.Random(1).randbytes(300),
    b"\x00\x01\x02\x00\x01" + b"\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello",
    b"\x00\x01\x02\x03\x04\x05",
    b"z" * 5000,
]
WORDS = [
    *[b"NX", b"XX", b"GET", b"EX", b"PX", b"KEEPTTL", b"GT", b"LT", b"IFEQ", b"PERSIST", b"foo", b"MATCH", b"", b"*"],
    *[b"REPLACE", b"DB", b"BIT", b"BYTE", b"LEN", b"IDX", b"OVERFLOW"],
]
NOW = int(time.time())


def key(rng: random.Random) -> bytes:
    return rng.choices(KEYS + LISTS, [8, 8, 4, 4, 2, 2, 2, 1, 2, 1])[0]


def list_key(rng: random.Random) -> bytes:
    return rng.choice(LISTS) if rng.random() < 0.9 else key(rng)


def element(rng: random.Random) -> bytes:
    """Of a list: most often one that is there already."""
    return rng.choice([b"1", b"-2", b"x", b"hello", b"12345", b""]) if rng.random() < 0.6 else text(rng)


def small_count(rng: random.Random) -> bytes:
    return rng.choices([b"%d" % rng.randrange(4), b"%d" % rng.randrange(-20, 20), integer(rng)], [6, 2, 1])[0]


def short_timeout(rng: random.Random) -> bytes:
    """A timeout of a list: hardly any, or something that is no time."""
    bad = [b"-1", b"-0.1", b"nan", b"inf", b"1e400", b"9223372036854775807", *NOT_INTEGERS[:3], b" 1", b"1 ", b"1\x00"]
    return rng.choices([b"0.001", b"1e-3", rng.choice(bad)], [6, 2, 3])[0]


def list_end(rng: random.Random) -> bytes:
    return rng.choices([b"LEFT", b"RIGHT", b"left", word(rng)], [8, 8, 1, 1])[0]


def number_element(rng: random.Random) -> bytes:
    """Of a list that can be sorted by numbers, most often."""
    return b"%d" % rng.randrange(-9, 30) if rng.random() < 0.95 else element(rng)


def sort_pattern(rng: random.Random) -> bytes:
    """Keys that there may be, none, fields of hashes, the element itself, and none of it."""
    return rng.choice(
        [b"weight:*", b"weight:*", b"*", b"#", b"nosort", b"key:*->field", b"key:*->", b"*\x00", b"\x00*"]
    )


def small_place(rng: random.Random) -> bytes:
    """Of LSET, for which valkey-server keeps 32 bits of a number."""
    return rng.choice([b"%d" % rng.randrange(-12, 12), b"%d" % rng.randrange(-6000, 6000), *NOT_INTEGERS])


def list_place(rng: random.Random) -> bytes:
    return rng.choices([b"%d" % rng.randrange(-12, 12), place(rng)], [5, 1])[0]


def text(rng: random.Random) -> bytes:
    pool = rng.choices([TEXTS, NUMBERS, NOT_INTEGERS, FLOATS], [6, 4, 2, 2])[0]
    return rng.choice(pool)


def integer(rng: random.Random) -> bytes:
    pool = rng.choices([[b"1", b"2", b"10", b"-3"], NUMBERS, NOT_INTEGERS, FLOATS], [6, 4, 2, 1])[0]
    return rng.choice(pool)


def floating(rng: random.Random) -> bytes:
    pool = rng.choices([FLOATS, NUMBERS, NOT_INTEGERS], [6, 3, 1])[0]
    return rng.choice(pool)


def seconds(rng: random.Random) -> bytes:
    """From now on: so far away that no server is in the middle of it, or in the past, or out of range."""
    return rng.choices([b"%d" % rng.randrange(100, 100_000), integer_at_once(rng)], [4, 1])[0]


def milliseconds(rng: random.Random) -> bytes:
    return rng.choices([b"%d" % rng.randrange(100_000, 10**9), integer_at_once(rng)], [4, 1])[0]


def integer_at_once(rng: random.Random) -> bytes:
    """Any integer, except those that would expire a key while the servers are being compared."""
    soon = {b"1", b"7", b"100", b"12345"}
    return rng.choice([number for number in NUMBERS + NOT_INTEGERS if number not in soon])


def far_seconds(rng: random.Random) -> bytes:
    return b"%d" % (NOW + rng.randrange(1000, 10**6))


def far_milliseconds(rng: random.Random) -> bytes:
    return b"%d" % ((NOW + 10**6) * 1000 + rng.randrange(10**6))


def unix_seconds(rng: random.Random) -> bytes:
    past = b"%d" % (NOW - rng.randrange(1, 10**6))
    return rng.choices([far_seconds(rng), past, integer_at_once(rng)], [4, 1, 1])[0]


def unix_milliseconds(rng: random.Random) -> bytes:
    past = b"%d" % (NOW * 1000 - 5)
    return rng.choices([far_milliseconds(rng), past, integer_at_once(rng)], [4, 1, 1])[0]


def pattern(rng: random.Random) -> bytes:
    return rng.choice([b"*", b"a", b"?", b"key:*", b"[a-b]", b"[^a]", b"key:\\*", b"*\xff*", b"", b"[", b"k*k"])


def database(rng: random.Random) -> bytes:
    return rng.choices([b"0", b"1", b"15", b"16", b"-1", b"abc", b"", b"99999999999"], [20, 10, 2, 1, 1, 1, 1, 1])[0]


def cursor(rng: random.Random) -> bytes:
    odd = [b" 1", b"\v1", b"1 ", b"+1", b"-01", b"--1", b"+-1", b"01", b"1\x00", b"\x00", b" ", b"1_0", b"0x1"]
    large = [b"18446744073709551615", b"18446744073709551616"]
    return rng.choice([b"0", b"1", b"17", b"-1", b"abc", b"", b"1.0", *large, *odd])


def label(rng: random.Random) -> bytes:
    """A name for a client. Zero bytes are left out: valkey-server reads a name up to the first of them."""
    return rng.choice([text for text in TEXTS + NUMBERS + NOT_INTEGERS if b"\x00" not in text])


def place(rng: random.Random) -> bytes:
    """An index in a value, from the start or the end; sometimes beyond, or no number at all."""
    return rng.choices([b"%d" % rng.randrange(-60, 60), b"%d" % rng.randrange(-6000, 6000), integer(rng)], [6, 2, 1])[0]


def offset(rng: random.Random) -> bytes:
    """The position of a bit: a write makes the value as long, so it is not far away, or so far that it is refused."""
    too_far = [b"4294967296", b"9223372036854775807", b"-1"]
    pools = [[b"%d" % rng.randrange(80)], [b"%d" % rng.randrange(50_000)], too_far, NOT_INTEGERS]
    return rng.choice(rng.choices(pools, [8, 3, 1, 1])[0])


def field_offset(rng: random.Random) -> bytes:
    return rng.choices([offset(rng), b"#" + offset(rng)], [3, 2])[0]


def field_type(rng: random.Random) -> bytes:
    valid = rng.choice([b"i", b"u"]) + b"%d" % rng.choice([1, 2, 5, 7, 8, 9, 16, 31, 32, 33, 62, 63, 64])
    return rng.choices([valid, rng.choice([b"i0", b"i65", b"u65", b"x8", b"i", b"u-1", b"", b"8", b"I8"])], [12, 1])[0]


def bit(rng: random.Random) -> bytes:
    return rng.choices([b"0", b"1", b"2", integer(rng)], [6, 6, 1, 1])[0]


def unit(rng: random.Random) -> bytes:
    return rng.choices([b"BIT", b"BYTE", b"bit", word(rng)], [5, 4, 1, 1])[0]


def length(rng: random.Random) -> bytes:
    return rng.choices([b"%d" % rng.randrange(10), integer(rng)], [4, 1])[0]


def dump_body(rng: random.Random) -> bytes:
    """A type and a value, as a server writes it, or with a value that is cut off or not there."""
    size = rng.choice([1, 2, 4])
    number = rng.choice([0, 1, -1, 12, (1 << 8 * size - 1) - 1, -1 << 8 * size - 1])
    count, back = rng.randrange(3, 265), rng.randrange(1, 6)
    # More than the footer is cut off: valkey-server would take a shorter cut for a part of the value.
    damaged = [b"", b"\x00\x1fabc", b"\x00\x80\xff\xff\xff\xffabc", b"\x00\xc4", b"\x08\x01a", b"\xff\x01a"]
    wrong_lzf = [b"\x00\xc3\x02\x05\x00a", b"\x00\xc3\x02\x04\x20\x00", b"\x00\xc3\x02\x80\x7f\xff\xff\xff\x00a"]
    bodies = [
        dumps.raw(text(rng)),
        dumps.integer(number, size),
        dumps.lzf([b"abcdef", (count, back), b"z" * rng.randrange(1, 33), (3, 1)]),
        rng.choice(damaged + wrong_lzf),
    ]
    return rng.choices(bodies, [4, 3, 4, 2])[0]


def dumped(rng: random.Random) -> bytes:
    version = rng.choices([80, 11, 1, 0, 12, 79, 81, 65535], [8, 4, 1, 1, 1, 1, 1, 1])[0]
    right = dumps.payload(dump_body(rng), version)
    wrong = [right[:-1], right[3:], right[:-1] + bytes([right[-1] ^ 1]), text(rng)]
    return rng.choices([right, rng.choice(wrong)], [8, 1])[0]


def lifetime(rng: random.Random) -> bytes:
    """A lifetime for RESTORE, most often none."""
    return rng.choices([b"0", milliseconds(rng), unix_milliseconds(rng)], [6, 2, 2])[0]


def word(rng: random.Random) -> bytes:
    return rng.choice(WORDS)


def not_a_timeout(rng: random.Random) -> bytes:
    """The time of a pause: none at all, or something that is no time."""
    return rng.choice([b"0", b"-1", b"9223372036854775807", b"9223372036854775808", *NOT_INTEGERS])


def any_command(rng: random.Random) -> bytes:
    """A command that is told of without its subcommands, which may be others here."""
    names = {row.name for row in COMMANDS} - CONTAINERS | {b"config|get", b"object|encoding", b"config|nosuch", b""}
    return rng.choice(sorted(names))


def keys_of(rng: random.Random) -> bytes:
    return rng.choice([b"GETKEYS", b"GETKEYSANDFLAGS"])


def log_setting(rng: random.Random) -> bytes:
    """A setting of the logs of commands whose change no other reply shows."""
    return rng.choice([b"commandlog-request-larger-than", b"COMMANDLOG-LARGE-REPLY-MAX-LEN", b"slowlog-max-len"])


def log(rng: random.Random) -> bytes:
    return rng.choice([b"slow", b"large-request", b"LARGE-REPLY", b"foo"])


CONTAINERS = {
    *[
        b"ACL",
        b"CLIENT",
        b"COMMAND",
        b"COMMANDLOG",
        b"CONFIG",
        b"FUNCTION",
        b"LATENCY",
        b"MEMORY",
        b"OBJECT",
        b"SLOWLOG",
    ]
}

Part: TypeAlias = Callable[[random.Random], bytes]

EXPIRY: dict[bytes, list[Part]] = {
    b"EX": [seconds],
    b"PX": [milliseconds],
    b"EXAT": [unix_seconds],
    b"PXAT": [unix_milliseconds],
}
CONDITION: dict[bytes, list[Part]] = {b"NX": [], b"XX": []}
# Keys that MSETEX writes with a time in the past stay in valkey-server, unseen, until it comes across them: DBSIZE and
# MEMORY USAGE tell.
MSETEX_OPTIONS: dict[bytes, list[Part]] = {
    **EXPIRY,
    b"EXAT": [far_seconds],
    b"PXAT": [far_milliseconds],
    **CONDITION,
    b"KEEPTTL": [],
    b"GET": [],
}
FIELD_OPERATIONS: dict[bytes, list[Part]] = {
    b"GET": [field_type, field_offset],
    b"SET": [field_type, field_offset, integer],
    b"INCRBY": [field_type, field_offset, integer],
    b"OVERFLOW": [lambda rng: rng.choice([b"WRAP", b"SAT", b"FAIL", b"sat", b"foo"])],
}
LPOS_OPTIONS: dict[bytes, list[Part]] = {b"RANK": [small_count], b"COUNT": [small_count], b"MAXLEN": [small_count]}
# Without BY, elements of the same rank are the same; with it, valkey-server sorts a part of them in its own order.
SORT_OPTIONS: dict[bytes, list[Part]] = {
    b"ASC": [],
    b"DESC": [],
    b"ALPHA": [],
    b"GET": [sort_pattern],
    b"LIMIT": [small_count, small_count],
    b"foo": [],
}
RESTORE_OPTIONS: dict[bytes, list[Part]] = {b"REPLACE": [], b"ABSTTL": [], b"IDLETIME": [length], b"FREQ": [length]}


@dataclass(frozen=True)
class Row:
    """The recipe of one command: fixed parts, then a group repeated, then options, each with a chance of its own."""

    name: bytes
    weight: int = 2
    parts: list[Part] = field(default_factory=list)
    repeat: list[Part] = field(default_factory=list)
    options: dict[bytes, list[Part]] = field(default_factory=dict)
    damage: bool = True


COMMANDS = [
    Row(b"SET", 20, [key, text], options={**EXPIRY, **CONDITION, b"KEEPTTL": [], b"GET": [], b"IFEQ": [text]}),
    Row(b"SET", 6, [key, integer]),
    Row(b"SET", 3, [key, floating]),
    Row(b"GET", 10, [key]),
    Row(b"MGET", 3, [], [key]),
    Row(b"MSET", 3, [], [key, text]),
    Row(b"MSETNX", 2, [], [key, text]),
    Row(b"SETNX", 2, [key, text]),
    Row(b"SETEX", 2, [key, seconds, text]),
    Row(b"PSETEX", 2, [key, milliseconds, text]),
    Row(b"GETSET", 2, [key, text]),
    Row(b"GETEX", 4, [key], options={**EXPIRY, b"PERSIST": []}),
    Row(b"GETDEL", 2, [key]),
    Row(b"APPEND", 4, [key, text]),
    Row(b"STRLEN", 3, [key]),
    Row(b"DELIFEQ", 3, [key, text]),
    Row(b"MSETEX", 3, [lambda _: b"1", key, text], options=MSETEX_OPTIONS),
    Row(b"MSETEX", 3, [lambda _: b"2", key, text, key, text], options=MSETEX_OPTIONS),
    Row(b"MSETEX", 2, [integer, key, text], options=MSETEX_OPTIONS),
    Row(b"GETRANGE", 4, [key, place, place]),
    Row(b"SUBSTR", 1, [key, place, place]),
    Row(b"SETRANGE", 4, [key, place, text]),
    Row(b"SETRANGE", 1, [key, integer, lambda _: b""]),
    Row(b"LCS", 1, [key, key], options={b"LEN": [], b"IDX": [], b"MINMATCHLEN": [length], b"WITHMATCHLEN": []}),
    Row(b"LCS", 1, [key, key, lambda _: b"IDX"], options={b"MINMATCHLEN": [length], b"WITHMATCHLEN": []}),
    Row(b"SETBIT", 5, [key, offset, bit]),
    Row(b"GETBIT", 4, [key, offset]),
    Row(b"BITCOUNT", 2, [key]),
    Row(b"BITCOUNT", 1, [key, place]),
    Row(b"BITCOUNT", 2, [key, place, place]),
    Row(b"BITCOUNT", 3, [key, place, place, unit]),
    Row(b"BITPOS", 2, [key, bit]),
    Row(b"BITPOS", 2, [key, bit, place]),
    Row(b"BITPOS", 2, [key, bit, place, place]),
    Row(b"BITPOS", 4, [key, bit, place, place, unit]),
    Row(b"BITOP", 4, [lambda rng: rng.choice([b"AND", b"OR", b"XOR", b"not", b"DIFF"]), key], [key]),
    Row(b"BITOP", 1, [lambda _: b"NOT", key, key]),
    Row(b"BITFIELD", 8, [key], options=FIELD_OPERATIONS),
    Row(b"BITFIELD", 4, [key, lambda _: b"SET", field_type, field_offset, integer], options=FIELD_OPERATIONS),
    Row(b"BITFIELD", 2, [key, lambda _: b"GET", field_type, field_offset]),
    Row(b"BITFIELD_RO", 2, [key], options=FIELD_OPERATIONS),
    Row(b"BITFIELD_RO", 2, [key, lambda _: b"GET", field_type, field_offset]),
    Row(b"LPUSH", 10, [list_key], [element]),
    Row(b"RPUSH", 10, [list_key], [element]),
    Row(b"RPUSH", 2, [list_key, lambda _: b"z" * 5000, text], [element]),
    Row(b"LPUSHX", 2, [list_key], [element]),
    Row(b"RPUSHX", 2, [list_key], [element]),
    Row(b"LPOP", 3, [list_key]),
    Row(b"RPOP", 3, [list_key]),
    Row(b"LPOP", 2, [list_key, small_count]),
    Row(b"RPOP", 2, [list_key, small_count]),
    Row(b"LLEN", 4, [list_key]),
    Row(b"LRANGE", 8, [list_key, list_place, list_place]),
    Row(b"LRANGE", 4, [list_key, lambda _: b"0", lambda _: b"-1"]),
    Row(b"LINDEX", 5, [list_key, list_place]),
    Row(b"LSET", 5, [list_key, small_place, element], damage=False),
    Row(b"LINSERT", 5, [list_key, lambda rng: rng.choice([b"BEFORE", b"AFTER", b"after", b"foo"]), element, element]),
    Row(b"LREM", 3, [list_key, small_count, element]),
    Row(b"LTRIM", 2, [list_key, list_place, list_place]),
    Row(b"LPOS", 6, [list_key, element], options=LPOS_OPTIONS),
    Row(b"LMOVE", 5, [list_key, list_key, list_end, list_end]),
    Row(b"RPOPLPUSH", 3, [list_key, list_key]),
    Row(b"LMPOP", 3, [lambda _: b"2", list_key, list_key, list_end], options={b"COUNT": [small_count]}),
    Row(b"LMPOP", 1, [small_count, list_key, list_end], options={b"COUNT": [small_count]}),
    Row(b"BLPOP", 2, [list_key, list_key, short_timeout], damage=False),
    Row(b"BRPOP", 2, [list_key, short_timeout], damage=False),
    Row(
        b"BLMPOP",
        2,
        [short_timeout, lambda _: b"1", list_key, list_end],
        options={b"COUNT": [small_count]},
        damage=False,
    ),
    Row(b"BLMOVE", 2, [list_key, list_key, list_end, list_end, short_timeout], damage=False),
    Row(b"BRPOPLPUSH", 2, [list_key, list_key, short_timeout], damage=False),
    Row(b"RPUSH", 5, [lambda _: b"list:2"], [number_element], damage=False),
    Row(b"DEL", 1, [lambda _: b"list:2"], damage=False),
    Row(b"SET", 4, [lambda rng: b"weight:%d" % rng.randrange(-9, 30), number_element], damage=False),
    Row(b"SORT", 4, [lambda _: b"list:2"], options=SORT_OPTIONS, damage=False),
    Row(
        b"SORT", 2, [lambda _: b"list:2", lambda _: b"BY", sort_pattern], options={b"DESC": [], b"GET": [sort_pattern]}
    ),
    Row(b"SORT", 2, [lambda _: b"list:2", lambda _: b"STORE", list_key], options=SORT_OPTIONS, damage=False),
    Row(b"SORT", 2, [list_key], options=SORT_OPTIONS | {b"STORE": [list_key]}, damage=False),
    Row(b"SORT", 1, [list_key, lambda _: b"ALPHA", lambda _: b"STORE", list_key], options=SORT_OPTIONS),
    Row(b"SORT_RO", 2, [list_key, lambda _: b"ALPHA"], options=SORT_OPTIONS, damage=False),
    Row(b"SORT_RO", 2, [lambda _: b"list:2"], options=SORT_OPTIONS | {b"STORE": [list_key]}, damage=False),
    Row(b"OBJECT", 8, [lambda _: b"ENCODING", list_key]),
    Row(b"TYPE", 1, [list_key]),
    Row(b"DEL", 1, [list_key]),
    Row(b"RENAME", 4, [key, key]),
    Row(b"RENAMENX", 3, [key, key]),
    Row(b"COPY", 5, [key, key], options={b"DB": [database], b"REPLACE": []}),
    Row(b"MOVE", 4, [key, database]),
    Row(b"SWAPDB", 2, [database, database]),
    Row(b"DUMP", 4, [key]),
    Row(b"RESTORE", 8, [key, lifetime, dumped], options=RESTORE_OPTIONS),
    Row(b"RESTORE", 4, [key, lifetime, dumped, lambda _: b"REPLACE"], options=RESTORE_OPTIONS),
    Row(b"INCR", 3, [key]),
    Row(b"DECR", 3, [key]),
    Row(b"INCRBY", 4, [key, integer]),
    Row(b"DECRBY", 4, [key, integer]),
    Row(b"INCRBYFLOAT", 5, [key, floating]),
    Row(b"DEL", 3, [], [key]),
    Row(b"UNLINK", 1, [], [key]),
    Row(b"EXISTS", 2, [], [key]),
    Row(b"TYPE", 2, [key]),
    Row(b"TOUCH", 1, [], [key]),
    Row(b"EXPIRE", 4, [key, seconds], options={**CONDITION, b"GT": [], b"LT": []}),
    Row(b"PEXPIRE", 3, [key, milliseconds], options={**CONDITION, b"GT": [], b"LT": []}),
    Row(b"EXPIREAT", 3, [key, unix_seconds], options={**CONDITION, b"GT": [], b"LT": []}),
    Row(b"PEXPIREAT", 3, [key, unix_milliseconds], options={**CONDITION, b"GT": [], b"LT": []}),
    Row(b"TTL", 3, [key]),
    Row(b"PTTL", 3, [key]),
    Row(b"EXPIRETIME", 2, [key]),
    Row(b"PEXPIRETIME", 2, [key]),
    Row(b"PERSIST", 3, [key]),
    Row(b"SCAN", 2, [lambda _: b"0", lambda _: b"COUNT", lambda _: b"1000"], options={b"MATCH": [pattern]}),
    Row(b"SCAN", 1, [cursor], damage=False, options={b"MATCH": [pattern], b"COUNT": [integer], b"TYPE": [word]}),
    Row(b"SCAN", 1, [lambda _: b"0", lambda _: b"COUNT", lambda _: b"1000", lambda _: b"TYPE", lambda _: b"string"]),
    Row(b"SCAN", 1, [lambda _: b"0", lambda _: b"COUNT", lambda _: b"1000", lambda _: b"TYPE", lambda _: b"list"]),
    Row(b"KEYS", 2, [pattern]),
    Row(b"DBSIZE", 2),
    Row(b"RANDOMKEY", 1),
    Row(b"FLUSHDB", 1, options={b"ASYNC": [], b"SYNC": [], b"foo": []}),
    Row(b"FLUSHALL", 1, options={b"ASYNC": [], b"SYNC": [], b"foo": []}),
    Row(b"SELECT", 3, [database]),
    Row(b"PING", 1),
    Row(b"PING", 1, [text]),
    Row(b"ECHO", 1, [text]),
    Row(b"OBJECT", 2, [lambda _: b"ENCODING", key]),
    Row(b"OBJECT", 1, [lambda _: b"IDLETIME", key]),
    Row(b"OBJECT", 1, [lambda _: b"FREQ", key]),
    Row(b"OBJECT", 1, [word, key]),
    Row(b"CLIENT", 1, [lambda _: b"GETNAME"]),
    Row(b"CLIENT", 1, [lambda _: b"SETNAME", label], damage=False),
    Row(b"CLIENT", 1, [lambda _: b"ID"]),
    Row(b"CLIENT", 1, [lambda _: b"SETINFO", lambda _: b"LIB-NAME", label], damage=False),
    Row(b"CLIENT", 1, [lambda _: b"NO-EVICT", word]),
    Row(b"CLIENT", 1, [word, text]),
    Row(b"RESET", 1),
    Row(b"HELLO", 1, [lambda rng: rng.choice([b"2", b"3", b"4", b"1", b"abc", b""])]),
    Row(b"AUTH", 1, [text]),
    Row(b"AUTH", 1, [lambda _: b"default", text]),
    Row(b"TIME", 1),
    Row(b"COMMAND", 1, [lambda _: b"COUNT"], damage=False),
    Row(b"COMMAND", 2, [keys_of, any_command]),
    Row(b"COMMAND", 2, [keys_of, any_command, key], [text]),
    Row(b"COMMAND", 1, [lambda _: b"INFO", any_command], damage=False),
    Row(b"COMMAND", 1, [lambda _: b"DOCS", any_command], damage=False),
    Row(b"CONFIG", 1, [lambda _: b"SET", log_setting, integer]),
    Row(b"CONFIG", 1, [lambda _: b"SET"], [log_setting, integer], damage=False),
    Row(b"CONFIG", 1, [lambda _: b"GET", log_setting], damage=False),
    Row(b"SLOWLOG", 1, [lambda rng: rng.choice([b"LEN", b"RESET", b"HELP", b"NOSUCH"])]),
    Row(b"SLOWLOG", 1, [lambda _: b"GET", integer]),
    Row(b"COMMANDLOG", 1, [lambda rng: rng.choice([b"LEN", b"RESET"]), log]),
    Row(b"COMMANDLOG", 1, [lambda _: b"GET", integer, log]),
    Row(b"LATENCY", 1, [lambda rng: rng.choice([b"LATEST", b"RESET", b"HISTORY", b"GRAPH", b"HELP"])]),
    Row(b"LATENCY", 1, [lambda rng: rng.choice([b"RESET", b"HISTORY", b"GRAPH"]), word]),
    Row(b"MEMORY", 1, [lambda rng: rng.choice([b"DOCTOR", b"PURGE", b"HELP", b"STATS"])]),
    Row(b"MEMORY", 1, [lambda _: b"USAGE", key, lambda _: b"SAMPLES", integer]),
    Row(b"DEBUG", 1, [lambda rng: rng.choice([b"OBJECT", b"SLEEPY", b"NOSUCH"]), key]),
    Row(b"WAIT", 1, [lambda rng: rng.choice([b"0", b"-1", b"x"]), lambda rng: rng.choice([b"0", b"1", b"-1", b"x"])]),
    Row(b"LASTSAVE", 1),
    Row(b"ROLE", 1),
    Row(b"REPLICAOF", 1, [lambda rng: rng.choice([b"NO", b"no"]), lambda _: b"ONE"], damage=False),
    Row(b"SLAVEOF", 1, [label, lambda rng: rng.choice([b"x", b"-1", b"65536", b"", b"1.5"])], damage=False),
    Row(b"ACL", 1, [lambda rng: rng.choice([b"WHOAMI", b"NOSUCH"])]),
    Row(b"FUNCTION", 1, [lambda _: b"FLUSH"], options={b"ASYNC": [], b"SYNC": [], b"foo": []}),
    Row(b"FUNCTION", 1, [lambda _: b"LIST"], options={b"WITHCODE": [], b"LIBRARYNAME": [word]}),
    Row(b"SHUTDOWN", 1, [lambda _: b"ABORT"], options={b"NOW": [], b"foo": []}, damage=False),
    Row(b"CONFIG", 1, [lambda _: b"GET", lambda _: b"maxmemory-policy"], damage=False),
    Row(b"CONFIG", 1, [word, text]),
    Row(b"NOSUCHCOMMAND", 1, [], [text]),
    Row(b"MEMORY", 1, [lambda _: b"USAGE", key]),
    Row(b"MULTI", 1),
    Row(b"EXEC", 1),
    Row(b"DISCARD", 1),
    Row(b"WATCH", 1, [], [key]),
    Row(b"UNWATCH", 1),
    Row(b"UNSUBSCRIBE", 1, damage=False),
    Row(b"PUNSUBSCRIBE", 1, damage=False),
    Row(b"PUBLISH", 1, [key, text]),
    Row(b"SPUBLISH", 1, [key, text]),
    Row(b"PUBSUB", 1, [lambda rng: rng.choice([b"CHANNELS", b"NUMSUB", b"SHARDNUMSUB", b"NUMPAT"])], [word]),
    Row(b"CLIENT", 1, [lambda _: b"TRACKINGINFO"]),
    Row(b"CLIENT", 1, [lambda _: b"GETREDIR"]),
    Row(b"CLIENT", 1, [lambda _: b"CACHING", lambda rng: rng.choice([b"YES", b"no", b"maybe"])]),
    Row(b"CLIENT", 1, [lambda _: b"CAPA", word]),
    Row(b"CLIENT", 1, [lambda _: b"UNBLOCK", integer], options={b"TIMEOUT": [], b"error": [], b"foo": []}),
    Row(b"CLIENT", 1, [lambda _: b"IMPORT-SOURCE", lambda rng: rng.choice([b"ON", b"OFF", b""])]),
    Row(b"CLIENT", 1, [lambda _: b"PAUSE", not_a_timeout], options={b"WRITE": [], b"foo": []}, damage=False),
]


def command(rng: random.Random) -> Command:
    """One command; about one in ten is damaged."""
    row = rng.choices(COMMANDS, [row.weight for row in COMMANDS])[0]
    args = [row.name, *[part(rng) for part in row.parts]]
    if row.repeat:
        for _ in range(rng.choice([1, 1, 2, 2, 3])):
            args += [part(rng) for part in row.repeat]
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3]) if row.options else 0):
        option = rng.choice(list(row.options))
        args += [option, *[part(rng) for part in row.options[option]]]
    return damaged(rng, args) if row.damage and rng.random() < 0.1 else args


def sequence(rng: random.Random, length: int) -> list[Command]:
    """About so many commands, some of them in transactions."""
    commands: list[Command] = []
    while len(commands) < length:
        commands += transaction(rng) if rng.random() < 0.06 else [command(rng)]
    return commands


def transaction(rng: random.Random) -> list[Command]:
    """From WATCH to EXEC: now and then watched keys change in between, or something is refused."""
    watched = [key(rng) for _ in range(rng.randrange(3))]
    before = [[b"WATCH", *watched]] if watched else []
    before += [command(rng) for _ in range(rng.choice([0, 0, 1, 2]))]
    queued = [command(rng) for _ in range(rng.randrange(6))]
    return [*before, [b"MULTI"], *queued, [rng.choices([b"EXEC", b"DISCARD", b"RESET"], [12, 1, 1])[0]]]


def damaged(rng: random.Random, args: Command) -> Command:
    match rng.randrange(5):
        case 0 if len(args) > 1:
            return args[:-1]
        case 1:
            return [*args, rng.choice([word(rng), text(rng)])]
        case 2 if len(args) > 1:
            at = rng.randrange(1, len(args))
            return [*args[:at], text(rng), *args[at + 1 :]]
        case 3:
            return [arg.swapcase() if arg.isalpha() and len(arg) < 20 else arg for arg in args]
    at = rng.randrange(len(args))
    return [*args[: at + 1], *args[at:]]
