"""Runs the same commands on two servers and compares the bytes of every reply.

It knows which replies differ for good reasons (clocks, identities, order); everything else must be equal.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import pytest

import dumps
from random_commands import Command
from resp import Failure, Map, Reply, Simple, encode, parse
from servers import Server

# Two servers read their clocks a little apart: seconds and milliseconds.
TOLERANCE = {b"TTL": 1, b"PTTL": 2000, b"EXPIRETIME": 1, b"PEXPIRETIME": 2000}
# Replies of which only the form can be the same: clocks, identities, sizes, and how a value lies in memory.
BY_FORM = {
    b"TIME",
    (b"CLIENT", b"ID"),
    b"LASTSAVE",
    (b"COMMAND", b"COUNT"),
    (b"COMMANDLOG", b"LEN"),
    (b"SLOWLOG", b"LEN"),
    (b"MEMORY", b"DOCTOR"),
    (b"MEMORY", b"USAGE"),
    (b"OBJECT", b"IDLETIME"),
}
LIST_ENCODINGS = {b"listpack", b"quicklist"}


# State that random commands change beside keys, as it is at the start.
LOG_SETTINGS = (
    *("commandlog-request-larger-than", 1 << 20, "commandlog-large-reply-max-len", 128, "slowlog-max-len", 128),
    *("slowlog-log-slower-than", 10_000),
)

SEQUENCES = int(os.environ.get("SNUGLY_COMPARE_SEQUENCES", "40"))
IN_GATE = 10


def seeds(start: int = 0, part: int = 1) -> list[Any]:
    """Seeds of random sequences, of which those behind the first are slow; `part` takes one in so many of both."""
    count, in_gate = SEQUENCES // part, IN_GATE // part
    return [pytest.param(start + n, marks=pytest.mark.slow if n >= in_gate else []) for n in range(count)]


@dataclass(frozen=True)
class Difference:
    """The first reply that is not the same on both servers."""

    commands: list[Command]
    at: int
    replies: tuple[bytes, bytes]

    def __str__(self) -> str:
        lines = [" ".join(shown(arg) for arg in command) for command in self.commands[: self.at + 1]]
        ours, theirs = (shown(reply) for reply in self.replies)
        return "\n".join([*lines, f"  this server: {ours}", f"  valkey:      {theirs}"])


def shown(data: bytes) -> str:
    text = repr(data)[1:]
    return text if len(text) < 300 else f"{text[:200]}... ({len(data)} bytes)"


def run(server: Server, protocol: int, commands: list[Command], at_once: int = 1_000) -> list[bytes]:
    """The raw replies, on an emptied server, to commands of which so many are sent in one go."""
    with server.connect() as connection:
        connection.command("FLUSHALL")
        connection.command("CONFIG", "SET", *LOG_SETTINGS)
        if protocol == 3:
            connection.command("HELLO", 3)
        replies = []
        for start in range(0, len(commands), at_once):
            some = commands[start : start + at_once]
            connection.send(b"".join(encode(*command) for command in some))
            replies += [connection.read_raw() for _ in some]
        return replies


def compare(
    ours: Server, theirs: Server, protocol: int, commands: list[Command], at_once: int = 1_000
) -> Difference | None:
    replies = zip(run(ours, protocol, commands, at_once), run(theirs, protocol, commands, at_once), strict=True)
    queued: list[Command] = []
    for at, (command, pair) in enumerate(zip(commands, replies, strict=True)):
        if not same(command, queued, *pair):
            return Difference(commands, at, pair)
        queued = in_transaction(queued, command, pair[0])
    return None


def in_transaction(queued: list[Command], command: Command, reply: bytes) -> list[Command]:
    """The contents of the transaction behind this command."""
    if reply == b"+QUEUED\r\n":
        return [*queued, command]
    return [] if command[0].upper() in (b"MULTI", b"EXEC", b"DISCARD", b"RESET") else queued


def shrink(ours: Server, theirs: Server, protocol: int, found: Difference) -> Difference:
    """The same kind of difference with as few commands as leaving out single ones gets to."""
    best = found
    at = found.at
    commands = found.commands[: at + 1]
    while at > 0:
        at -= 1
        smaller = compare(ours, theirs, protocol, commands[:at] + commands[at + 1 :])
        if smaller:
            best = smaller
            commands = smaller.commands[: smaller.at + 1]
            at = min(at, smaller.at)
    return best


def same(command: Command, queued: list[Command], ours: bytes, theirs: bytes) -> bool:
    return ours == theirs or alike(command, queued, parse(ours)[0], parse(theirs)[0])


def alike(command: Command, queued: list[Command], left: Reply, right: Reply) -> bool:
    if left == right:
        return True
    if isinstance(left, Failure) and isinstance(right, Failure):
        return alike_but_cut(left, right)
    name, sub = command[0].upper(), (command[1].upper() if len(command) > 1 else b"")
    match name:
        case b"EXEC":
            return isinstance(left, list) and isinstance(right, list) and all_alike(queued, left, right)
        case b"EVAL" | b"EVAL_RO":
            return alike_inside(left, right)
        case b"TTL" | b"PTTL" | b"EXPIRETIME" | b"PEXPIRETIME":
            return near(left, right, TOLERANCE[name])
        case b"KEYS":
            return isinstance(left, list) and ordered(left) == ordered(right)
        case b"SCAN":
            return scanned(command, left) == scanned(command, right)
        case b"DUMP":
            return isinstance(left, bytes) and isinstance(right, bytes) and dumped(left) == dumped(right)
        case b"RANDOMKEY":
            return isinstance(left, bytes) and isinstance(right, bytes)
        case b"COMMANDLOG" | b"SLOWLOG" if sub == b"GET":
            return isinstance(left, list) and isinstance(right, list)
        case b"DEBUG" if sub == b"OBJECT":
            return isinstance(left, Simple) and isinstance(right, Simple)
        case b"OBJECT" if sub == b"ENCODING":
            # Of strings it depends on how they came to be; of lists on what they hold.
            return {left, right}.isdisjoint(LIST_ENCODINGS) and form(left) == form(right)
        case b"MEMORY" if sub == b"STATS":
            return type(left) is type(right)
        case b"ROLE":
            return isinstance(left, list) and form(left) == form(right)
        case b"HELLO":
            return greeting(left) == greeting(right) is not None
    return (name in BY_FORM or (name, sub) in BY_FORM) and form(left) == form(right)


def alike_but_cut(left: Failure, right: Failure) -> bool:
    """Whether it is the same error: valkey-server cuts a quotation at a zero byte."""
    return b"\x00" in left.text and right.text.startswith(left.text.split(b"\x00")[0])


def alike_inside(left: Reply, right: Reply) -> bool:
    """Whether two replies of scripts are the same but for errors in them that are cut."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(alike_inside, left, right))
    if isinstance(left, Failure) and isinstance(right, Failure):
        return left == right or alike_but_cut(left, right)
    return left == right


def all_alike(commands: list[Command], left: list[Reply], right: list[Reply]) -> bool:
    """Whether the replies of a transaction are, each as that of its command."""
    replies = zip(commands, left, right, strict=False)
    return len(commands) == len(left) == len(right) and all(alike(command, [], *pair) for command, *pair in replies)


def dumped(payload: bytes) -> object:
    """The contents of a payload, which either server compresses in its own way and writes in a version of its own."""
    return dumps.nodes(payload) if payload[:1] == dumps.LIST else dumps.value(payload)


def near(left: Reply, right: Reply, tolerance: int) -> bool:
    """Two times, neither of which says that there is none (0, -1, -2)."""
    return isinstance(left, int) and isinstance(right, int) and min(left, right) > 0 and abs(left - right) <= tolerance


def ordered(reply: Reply) -> list[bytes] | None:
    if isinstance(reply, list):
        return sorted(item for item in reply if isinstance(item, bytes))
    return None


def scanned(command: Command, reply: Reply) -> object:
    """The keys of a scan that sees everything at once; of any other only its form, as the order decides the rest."""
    match reply:
        case [bytes(cursor), list() as keys] if command[1:4] == [b"0", b"COUNT", b"1000"]:
            return cursor, ordered(keys)
        case [bytes(), list()]:
            return "a cursor and keys"
    return reply


def greeting(reply: Reply) -> object:
    """The parts of HELLO that do not depend on the server: its fields, protocol, mode and role."""
    match reply:
        case list():
            pairs = list(zip(reply[::2], reply[1::2], strict=True))
        case Map(pairs):
            pass
        case _:
            return None
    told = {name: value for name, value in pairs if isinstance(name, bytes)}
    return type(reply), list(told), [told.get(name) for name in (b"proto", b"mode", b"role")]


def form(reply: Reply) -> object:
    """The types and the lengths of arrays, without the scalars."""
    return [form(item) for item in reply] if isinstance(reply, list) else type(reply)
