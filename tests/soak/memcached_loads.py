"""Requests of writers in memcached's protocols: a table of loads for each of text, meta and binary."""

from __future__ import annotations

import struct
from collections.abc import Callable

import memcached
from memcached import Packet
from soak.ledger import Ledger, Outcome, Step
from soak.values import State, value
from soak.writer import Load, Writer

# Keys of each writer by kind; where the server evicts, there are more items than fit.
KEYS = {"item": 150, "tally": 10}
MORE_ITEMS = 1_000
# Statuses of the binary protocol.
DONE, NO_KEY = 0x00, 0x01
# Bytes of the extras of a binary value: its flags.
FLAGS = bytes(4)

Make = Callable[[Ledger, str], Step]


def content(key: str, state: State) -> bytes:
    assert isinstance(state, int)
    return value(key, state)


def stored(ledger: Ledger, key: str, reply: object, request: Callable[[bytes], bytes]) -> Step:
    version = ledger.version()
    return Step(request(value(key, version)), (Outcome(reply, {key: version}),), clears=True)


def found(ledger: Ledger, key: str, request: bytes, reply: Callable[[bytes], object], miss: object) -> Step:
    state = ledger.state(key)
    gone = Outcome(miss, {key: None})
    usual = gone if state is None else Outcome(reply(content(key, state)), {key: state})
    return Step(request, (usual,), (gone,), writes=False)


def removed(ledger: Ledger, key: str, request: bytes, done: object, miss: object) -> Step:
    usual = miss if ledger.state(key) is None else done
    return Step(request, (Outcome(usual, {key: None}),), (Outcome(miss, {key: None}),))


def counted(ledger: Ledger, key: str, request: bytes, reply: Callable[[int], object], miss: object) -> Step:
    """Adds 7 to a number that is there."""
    state = ledger.state(key)
    gone = Outcome(miss, {key: None})
    usual = Outcome(reply(state + 7), {key: state + 7}) if isinstance(state, int) else gone
    return Step(request, (usual,), (gone,))


def begun(ledger: Ledger, key: str, request: bytes, done: object, there: object) -> Step:
    """Adds a number that is not there yet."""
    state = ledger.state(key)
    new = Outcome(done, {key: 1})
    return Step(request, (new if state is None else Outcome(there, {key: state}),), (new,))


TEXT: dict[str, tuple[Make, ...]] = {
    "item": (
        lambda ledger, key: stored(
            ledger, key, b"STORED\r\n", lambda text: b"set %b 5 0 %d\r\n%b\r\n" % (key.encode(), len(text), text)
        ),
        lambda ledger, key: found(
            ledger,
            key,
            b"get %b\r\n" % key.encode(),
            lambda text: b"VALUE %b 5 %d\r\n%b\r\nEND\r\n" % (key.encode(), len(text), text),
            b"END\r\n",
        ),
        lambda ledger, key: removed(ledger, key, b"delete %b\r\n" % key.encode(), b"DELETED\r\n", b"NOT_FOUND\r\n"),
    ),
    "tally": (
        lambda ledger, key: counted(
            ledger, key, b"incr %b 7\r\n" % key.encode(), lambda number: b"%d\r\n" % number, b"NOT_FOUND\r\n"
        ),
        lambda ledger, key: begun(
            ledger, key, b"add %b 0 0 1\r\n1\r\n" % key.encode(), b"STORED\r\n", b"NOT_STORED\r\n"
        ),
    ),
}
META: dict[str, tuple[Make, ...]] = {
    "item": (
        lambda ledger, key: stored(
            ledger, key, b"HD\r\n", lambda text: b"ms %b %d F5\r\n%b\r\n" % (key.encode(), len(text), text)
        ),
        lambda ledger, key: found(
            ledger,
            key,
            b"mg %b v f\r\n" % key.encode(),
            lambda text: b"VA %d f5\r\n%b\r\n" % (len(text), text),
            b"EN\r\n",
        ),
        lambda ledger, key: removed(ledger, key, b"md %b\r\n" % key.encode(), b"HD\r\n", b"NF\r\n"),
    ),
    "tally": (
        lambda ledger, key: counted(
            ledger,
            key,
            b"ma %b D7 v\r\n" % key.encode(),
            lambda number: b"VA %d\r\n%d\r\n" % (len(str(number)), number),
            b"NF\r\n",
        ),
        lambda ledger, key: begun(ledger, key, b"ms %b 1 ME\r\n1\r\n" % key.encode(), b"HD\r\n", b"NS\r\n"),
    ),
}


def packet(opcode: int, key: str, text: bytes = b"", extras: bytes = b"") -> bytes:
    return Packet(opcode, key.encode(), text, extras).request()


BINARY: dict[str, tuple[Make, ...]] = {
    "item": (
        lambda ledger, key: stored(
            ledger, key, (DONE, b""), lambda text: packet(memcached.SET, key, text, FLAGS + bytes(4))
        ),
        lambda ledger, key: found(
            ledger, key, packet(memcached.GET, key), lambda text: (DONE, text), (NO_KEY, b"Not found")
        ),
        lambda ledger, key: removed(ledger, key, packet(memcached.DELETE, key), (DONE, b""), (NO_KEY, b"Not found")),
    ),
    "tally": (
        lambda ledger, key: counted(
            ledger,
            key,
            # Of a number that is not there, none is made.
            packet(memcached.INCREMENT, key, extras=struct.pack(">QQI", 7, 0, 0xFFFF_FFFF)),
            lambda number: (DONE, struct.pack(">Q", number)),
            (NO_KEY, b"Not found"),
        ),
        lambda ledger, key: begun(
            ledger,
            key,
            packet(memcached.ADD, key, b"1", FLAGS + bytes(4)),
            (DONE, b""),
            (0x02, b"Data exists for key."),
        ),
    ),
}


def load(name: str, weight: float, kind: str, count: int, makers: dict[str, tuple[Make, ...]]) -> Load:
    def run(writer: Writer) -> None:
        keys = writer.ledger.pick(writer.rng, kind, count)
        writer.perform(name, [writer.rng.choice(makers[kind])(writer.ledger, key) for key in keys])

    return Load(name, weight, run)


LOADS = {
    dialect: (
        load("items", 6, "item", 6, makers),
        load("pipelines of items", 2, "item", 60, makers),
        load("tallies", 3, "tally", 4, makers),
    )
    for dialect, makers in (("text", TEXT), ("meta", META), ("binary", BINARY))
}
