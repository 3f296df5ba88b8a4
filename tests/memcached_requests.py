"""Makes random requests of memcached's protocols, over few keys.

It knows the forms of requests; it does not know what they are answered.
"""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import memcached
from memcached import Packet

# Numbers are counted and never stale: a count that makes a number longer makes a stale one good in memcached, and any
# other count does not.
TEXTS = [b"alpha", b"beta", b"gamma"]
NUMBERS = [b"number:1", b"number:2"]
# Times that are long over or far away, so that no clock has a part in any reply but those that tell seconds.
TIMES = [0, 0, 0, 100_000, 2_000_000, 2_592_000, 2_592_001, -1, 1_000_000_000, 2_100_000_000]


@dataclass(frozen=True)
class Request:
    """Bytes, or a packet, in which `<#3>`, and the number -3, stand for the third last number told of its key."""

    content: bytes | Packet

    def __str__(self) -> str:
        text = repr(self.content)
        return text if len(text) < 300 else f"{text[:200]}... ({len(text)})"


Part: TypeAlias = Callable[[random.Random], bytes]


def any_key(rng: random.Random) -> bytes:
    return rng.choice(TEXTS + NUMBERS)


def counted_key(rng: random.Random) -> bytes:
    return rng.choice(NUMBERS if rng.random() < 0.8 else TEXTS)


def seconds(rng: random.Random) -> bytes:
    return b"%d" % rng.choice(TIMES)


def later(rng: random.Random) -> bytes:
    """A time that has not passed, for what tells of it at once: of a past one memcached tells 2^32 seconds."""
    return rng.choice([b"0", b"100000", b"2592000", b"2100000000"])


def flags(rng: random.Random) -> bytes:
    return b"%d" % rng.choice([0, 0, 1, 77, 1 << 31, (1 << 32) - 1])


def difference(rng: random.Random) -> bytes:
    return b"%d" % rng.choice([0, 1, 1, 1, 5, 90, 1000, 1 << 30])


def no_difference(rng: random.Random) -> bytes:
    return rng.choice([b"x", b"-1", b"1x", b"18446744073709551616", b""])


def number(rng: random.Random) -> bytes:
    """A number that a reply has told of the key, mostly the last one."""
    return b"<#%d>" % rng.choice([1, 1, 1, 1, 2, 3, 8])


def quiet(rng: random.Random) -> bytes:
    return rng.choice([b"", b"", b"", b" noreply"])


def text(rng: random.Random) -> bytes:
    """A value without ends of lines."""
    kinds: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: rng.choice([b"a", b"some text", "Zürich, 🦊".encode()]),
        lambda: b'{"id": %d, "name": "somebody", "tags": ["cache", "compressed"]}' % rng.randrange(100),
        lambda: b"<p>again and again</p>" * rng.randrange(1, 400),
        lambda: rng.randbytes(rng.randrange(600)).translate(None, b"\r\n"),
    ]
    return rng.choice(kinds)()


def digits(rng: random.Random) -> bytes:
    """A number, or something like one. Not even a few in a row make one of 2^63, from where on memcached looks for a
    minus sign, and behind the value's end as well."""
    if rng.random() < 0.3:
        return rng.choice([b"007", b"5  ", b"", b"x", b"-1", b"18446744073709551616"])
    return b"%d" % rng.choice([0, 1, 9, 10, 99, rng.randrange(1 << 20)])


def value(rng: random.Random, key: bytes) -> bytes:
    return digits(rng) if key in NUMBERS and rng.random() < 0.9 else text(rng)


def storing(rng: random.Random) -> bytes:
    name = rng.choices([b"set", b"add", b"replace", b"append", b"prepend", b"cas"], [8, 3, 3, 3, 3, 5])[0]
    key = any_key(rng)
    body = value(rng, key)
    compared = b" " + number(rng) if name == b"cas" else b""
    head = b"%b %b %b %b %d" % (name, key, flags(rng), seconds(rng), len(body))
    return b"%b%b%b\r\n%b\r\n" % (head, compared, quiet(rng), body)


def reading(rng: random.Random) -> bytes:
    keys = b" ".join(any_key(rng) for _ in range(rng.choice([1, 1, 1, 2, 4])))
    names = [b"get", b"gets", b"gets", b"gat " + seconds(rng), b"gats " + seconds(rng)]
    return b"%b %b\r\n" % (rng.choice(names), keys)


def counting(rng: random.Random) -> bytes:
    by = (no_difference if rng.random() < 0.05 else difference)(rng)
    return b"%b %b %b%b\r\n" % (rng.choice([b"incr", b"decr"]), counted_key(rng), by, quiet(rng))


def deleting(rng: random.Random) -> bytes:
    return b"delete %b%b%b\r\n" % (any_key(rng), rng.choice([b"", b"", b" 0", b" 5"]), quiet(rng))


def touching(rng: random.Random) -> bytes:
    return b"touch %b %b%b\r\n" % (any_key(rng), rng.choice([seconds(rng), seconds(rng), b"x"]), quiet(rng))


def flushing(rng: random.Random) -> bytes:
    # A time to come would bring back, in memcached, what was flushed before.
    return b"flush_all%b%b\r\n" % (rng.choice([b"", b"", b" 0", b" x"]), quiet(rng))


def nonsense(rng: random.Random) -> bytes:
    return (
        rng.choice([b"nosuch", b"get", b"incr a", b"touch", b"verbosity 0", b"", b"gat x k", b"mz k", b"md"]) + b"\r\n"
    )


def opaque(rng: random.Random) -> bytes:
    return rng.choice([b"", b"1", b"xyz", b"9" * 31])


def no_token(_: random.Random) -> bytes:
    return b""


def recache(rng: random.Random) -> bytes:
    return rng.choice([b"30", b"1000000", b"x"])


# Flags of meta commands, with what makes their tokens. Which are unknown depends on the command.
COMMON: dict[bytes, Part] = {b"k": no_token, b"q": no_token, b"O": opaque, b"b": no_token, b"z": no_token}
READ: dict[bytes, Part] = dict.fromkeys((b"v", b"s", b"f", b"t", b"h", b"l", b"c"), no_token)
GET: dict[bytes, Part] = {**READ, b"T": later}
RENEW: dict[bytes, Part] = {b"N": later, b"R": recache}
STORE: dict[bytes, Part] = {
    b"c": no_token,
    b"C": number,
    b"F": flags,
    b"T": seconds,
    b"M": lambda rng: rng.choice([b"E", b"A", b"P", b"R", b"S", b"S", b"x", b""]),
}
STALE: dict[bytes, Part] = {b"I": no_token}
# No T: memcached forgets the time where the number gets longer.
COUNT: dict[bytes, Part] = {
    b"v": no_token,
    b"t": no_token,
    b"c": no_token,
    b"C": number,
    b"N": later,
    b"J": difference,
    b"D": lambda rng: (no_difference if rng.random() < 0.1 else difference)(rng),
    b"M": lambda rng: rng.choice([b"I", b"D", b"+", b"-", b"x", b"incr"]),
}


def is_answered_otherwise(name: bytes, letter: bytes, others: list[bytes]) -> bool:
    """Whether snugly answers a flag beside these others in another way than memcached, on purpose."""
    is_told_of_what_is_set = letter == b"t" and {b"T", b"N"} & {*others}
    return bool(is_told_of_what_is_set or (name == b"ma" and letter == b"q" and b"N" in others))


def meta(rng: random.Random, name: bytes, key: bytes, letters: Mapping[bytes, Part]) -> bytes:
    """The words of a meta command up to the end of its line, in any order, now and then one of them twice."""
    known = {**letters, **COMMON}
    chosen = rng.sample(list(known), rng.choice([0, 1, 1, 2, 3, 4, 6]))
    if rng.random() < 0.8:
        chosen = [letter for letter in chosen if letter != b"z"]
    if chosen and rng.random() < 0.05:
        chosen.append(rng.choice(chosen))
    chosen = [letter for letter in chosen if not is_answered_otherwise(name, letter, chosen)]
    on_wire = base64.b64encode(key) if b"b" in chosen and rng.random() < 0.95 else key
    if on_wire == key and b"b" in chosen:
        # Which of several errors is told differs.
        chosen = [letter for letter in chosen if letter in (b"b", b"k", b"q")]
    size = [b"<size>"] if name == b"ms" else []
    return b" ".join([name, on_wire, *size, *[letter + known[letter](rng) for letter in chosen]])


def meta_reading(rng: random.Random) -> bytes:
    key = any_key(rng)
    # In memcached a number that was read counts as read after some changes.
    counted = {letter: part for letter, part in GET.items() if letter != b"h"}
    return meta(rng, b"mg", key, counted if key in NUMBERS else {**GET, **RENEW}) + b"\r\n"


def meta_storing(rng: random.Random) -> bytes:
    key = any_key(rng)
    body = value(rng, key)
    head = meta(rng, b"ms", key, STORE if key in NUMBERS else {**STORE, **STALE})
    return b"%b\r\n%b\r\n" % (head.replace(b"<size>", b"%d" % len(body)), body)


def meta_deleting(rng: random.Random) -> bytes:
    key = any_key(rng)
    compared: dict[bytes, Part] = {b"C": number}
    return meta(rng, b"md", key, compared if key in NUMBERS else {**compared, **STALE, b"T": seconds}) + b"\r\n"


def meta_counting(rng: random.Random) -> bytes:
    return meta(rng, b"ma", counted_key(rng), COUNT) + b"\r\n"


STORES = (memcached.SET, memcached.ADD, memcached.REPLACE, memcached.SETQ, memcached.ADDQ, memcached.REPLACEQ)
ENDS = (memcached.APPEND, memcached.PREPEND, memcached.APPENDQ, memcached.PREPENDQ)
READS = (memcached.GET, memcached.GETK, memcached.GETQ, memcached.GETKQ)
TOUCHES = (memcached.TOUCH, memcached.GAT, memcached.GATQ, memcached.GATK, memcached.GATKQ)
COUNTS = (memcached.INCREMENT, memcached.DECREMENT, memcached.INCREMENTQ, memcached.DECREMENTQ)
DELETES = (memcached.DELETE, memcached.DELETEQ)


def packet(rng: random.Random) -> Packet:
    key, opaque = any_key(rng), rng.choice([0, 1, 0xDEADBEEF])
    cas = -rng.choice([1, 1, 2, 3]) if rng.random() < 0.2 else 0
    lifetime = struct.pack(">i", rng.choice(TIMES))
    match rng.choices(("store", "add to", "get", "touch", "count", "delete", "other"), (8, 3, 8, 5, 6, 2, 1))[0]:
        case "store":
            extras = struct.pack(">I", int(flags(rng))) + lifetime
            return Packet(rng.choice(STORES), key, value(rng, key), extras, opaque=opaque, cas=cas)
        case "add to":
            return Packet(rng.choice(ENDS), key, value(rng, key), opaque=opaque, cas=cas)
        case "get":
            return Packet(rng.choice(READS), key, opaque=opaque)
        case "touch":
            return Packet(rng.choice(TOUCHES), key, extras=lifetime, opaque=opaque)
        case "count":
            numbers = struct.pack(">QQ", int(difference(rng)), int(difference(rng)))
            extras = numbers + rng.choice([lifetime, b"\xff\xff\xff\xff"])
            return Packet(rng.choice(COUNTS), counted_key(rng), extras=extras, opaque=opaque, cas=cas)
        case "delete":
            return Packet(rng.choice(DELETES), key, opaque=opaque, cas=cas)
    return rng.choice([Packet(memcached.NO_OP, opaque=opaque), Packet(memcached.FLUSH), Packet(0x77, opaque=opaque)])


TEXT: dict[Part, int] = {storing: 10, reading: 10, counting: 6, deleting: 2, touching: 2, flushing: 1, nonsense: 1}
META: dict[Part, int] = {meta_reading: 12, meta_storing: 10, meta_deleting: 3, meta_counting: 6}


def request(rng: random.Random) -> Request:
    if rng.random() < 0.3:
        return Request(packet(rng))
    kinds = {**TEXT, **META}
    return Request(rng.choices(list(kinds), list(kinds.values()))[0](rng))


def sequence(rng: random.Random, length: int) -> list[Request]:
    return [request(rng) for _ in range(length)]
