"""The command table (commands.json): where a command has values, where its reply has them, and what is refused.

It knows the table's language, which the specification explains (commands.md), and no command. What encoding and
decoding a value means is passed in.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

Json = dict[str, Any]
Decode = Callable[[Any, Any], Any]
"""Of a value in a reply and the key that it belongs to, if that is known, makes the value."""
Shape = Callable[[Any, Decode, Any, Sequence[Any]], Any]
"""Applied to a reply, with what decodes, the key known so far, and the keys of the arguments."""

ID = re.compile(r"\*|[0-9]+(-([0-9]+|\*))?", re.ASCII)
COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
# No writer encodes a value that is shorter, so the server may compare it; spec/commands.md, `compared`.
COMPARABLE_BYTES = 32
# Matches are remembered for commands of up to this many arguments.
REMEMBERED_LENGTH = 16


def text(argument: Any) -> str:
    """An argument as the table compares it; empty for what cannot be a word."""
    if isinstance(argument, str):
        return argument
    if isinstance(argument, bytes | bytearray | memoryview):
        return bytes(argument).decode("latin-1")
    return str(argument) if isinstance(argument, int) else ""


@dataclass
class Found:
    """What a pattern found in a command. Positions count from the command's name at 0."""

    keys: list[int] = field(default_factory=list)
    values: list[tuple[int, int]] = field(default_factory=list)
    """Positions of each value and of its key."""
    compared: list[int] = field(default_factory=list)
    options: set[str] = field(default_factory=set)


NOTHING = Found()


class Misfit(Exception):
    """The arguments do not follow the row's pattern; the server will say what is wrong with them."""


class Match:
    """One command against its row's pattern, from left to right, without going back."""

    def __init__(self, items: list[Any], options: dict[str, list[Any]], args: Sequence[Any]) -> None:
        self.args = args
        self.options = options
        self.at = 1
        self.found = Found()
        self.items(items)
        if self.at != len(args):
            raise Misfit

    def items(self, items: list[Any]) -> None:
        for item in items:
            self.item(item)

    def item(self, item: Any) -> None:
        match item:
            case "key":
                self.found.keys.append(self.take())
            case "value":
                self.found.values.append((self.take(), self.found.keys[-1]))
            case "compared":
                self.found.compared.append(self.take())
            case "field" | "word":
                self.take()
            case "id":
                if not ID.fullmatch(text(self.args[self.take()])):
                    raise Misfit
            case "rest":
                self.at = len(self.args)
            case "options":
                while self.option():
                    pass
            case "tail":
                while self.at < len(self.args):
                    if not self.option():
                        self.take()
            case {"maybe": words}:
                if self.at < len(self.args) and text(self.args[self.at]).upper() in words:
                    self.take()
            case {"repeat": group}:
                self.repeat(group)
            case {"counted": group}:
                count = text(self.args[self.take()])
                if not COUNT.fullmatch(count):
                    raise Misfit
                for _ in range(int(count)):
                    self.items(group)
            case _:
                raise ValueError(f"the command table has an unknown pattern item: {item!r}")

    def take(self) -> int:
        if self.at >= len(self.args):
            raise Misfit
        self.at += 1
        return self.at - 1

    def option(self) -> bool:
        word = text(self.args[self.at]).upper() if self.at < len(self.args) else ""
        if word not in self.options:
            return False
        self.take()
        self.found.options.add(word)
        self.items(self.options[word])
        return True

    def repeat(self, group: list[Any]) -> None:
        """The group as often as it fits, at least once."""
        self.items(group)
        while self.at < len(self.args):
            before = self.at
            try:
                self.items(group)
            except Misfit:
                self.at = before
                return


def by_length_alone(items: list[Any]) -> bool:
    """Whether what these items find depends on nothing but how many arguments there are."""
    plain = {"key", "value", "compared", "field", "word", "rest"}
    return all(item in plain if isinstance(item, str) else by_length_alone(item.get("repeat", [""])) for item in items)


class PlainShape(NamedTuple):
    """A shape that needs no function: the reply is a value, or its elements are, or nothing in it is."""

    kind: Literal["value", "each"] | None
    of_arguments: bool = False
    """Whether the elements belong to the keys of the arguments, one after the other."""


class Plan(NamedTuple):
    """What is the same for all commands of a name and a number of words. Positions count from the name at 0."""

    values: list[tuple[int, int]]
    """Positions of values, each with that of its key."""
    reply: Literal["value", "each"] | None
    keys: list[int]
    """Positions of the keys that values in the reply belong to."""
    telling: list[str]
    """Words that change all of this where they are among the arguments."""


NO_VALUES = Plan([], None, [], [])


@dataclass(frozen=True)
class Refusal:
    """A rule of a row: the command is refused if one of these options is given, or always if there are none."""

    options: frozenset[str]
    message: str


class Row:
    """What becomes of one command, for a client that compresses certain types of values."""

    def __init__(self, name: str, row: Json, types: frozenset[str], table: Table) -> None:
        self.name = name
        self.carries_values = row.get("type") in types
        self.refusals = [
            Refusal(frozenset(rule.get("with", ())), table.message(name, rule["reason"]))
            for rule in row.get("refuse", ())
            if types & set(rule["types"])
        ]
        self.refused_always = any(not rule.options for rule in self.refusals)
        self.comparison = table.message(name, "compare")
        self._items: list[Any] = row.get("arguments", ["rest"])
        self._options: dict[str, list[Any]] = row.get("options", {})
        self._remembered: dict[int, Found] = {}
        # A tail that is not there says nothing, so the commonest form of SET is one of those to remember.
        tail = self._items[-1:] in (["tail"], ["options"])
        fixed = self._items[:-1] if tail else self._items
        self._by_length = by_length_alone(fixed)
        self._before_tail = 1 + len(fixed) if tail else None
        self._remember_upto = 0
        if self._by_length:
            self._remember_upto = self._before_tail or REMEMBERED_LENGTH
        reply: Json = row.get("reply", {}) if self.carries_values else {}
        self.shape = table.shape(reply["shape"]) if reply else None
        """Where the reply has values, if it has any."""
        self._with = frozenset(reply.get("with", ()))
        self._without = frozenset(reply.get("without", ()))
        self.shape_depends = bool(self._with or self._without)
        self._plain_shape = table.plain_shape(reply["shape"]) if reply else PlainShape(None)

    def find(self, args: Sequence[Any]) -> Found:
        """Keys, values and options; nothing at all if the arguments do not fit."""
        count = len(args)
        found = self._remembered.get(count)
        if found is not None:
            return found
        try:
            found = Match(self._items, self._options, args).found
        except Misfit:
            found = NOTHING
        if count <= self._remember_upto:
            self._remembered[count] = found
        return found

    def plan(self, words: int) -> Plan | None:
        """What is the same for all such commands of so many words; None if there is nothing."""
        if self.refused_always or not self._by_length or self._plain_shape is None:
            return None
        has_tail = self._before_tail is not None and words > self._before_tail
        found = self.find([""] * (self._before_tail if has_tail and self._before_tail else words))
        if found.compared:
            return None
        shape = self._plain_shape if self.shape_given(NOTHING) else PlainShape(None)
        keys = found.keys if shape.of_arguments else found.keys[:1]
        return Plan(found.values, shape.kind, keys, sorted(self._telling()) if has_tail else [])

    def _telling(self) -> set[str]:
        """Options with which a command is not as others of its length."""
        refused = {option for rule in self.refusals for option in rule.options}
        carrying = {option for option, items in self._options.items() if not set(items) <= {"word"}}
        return refused | carrying | self._with | self._without

    def refusal(self, args: Sequence[Any], found: Found) -> str | None:
        """Why the command must not be sent, if it must not."""
        for rule in self.refusals:
            if not rule.options or rule.options & found.options:
                return rule.message
        if self.carries_values and any(not comparable(args[position]) for position in found.compared):
            return self.comparison
        return None

    def shape_given(self, found: Found) -> Shape | None:
        """Where the reply has values, if it has any with the options that were found."""
        if (self._with and not self._with & found.options) or self._without & found.options:
            return None
        return self.shape


def comparable(argument: Any) -> bool:
    raw = argument.encode() if isinstance(argument, str) else argument
    if not isinstance(raw, bytes | bytearray | memoryview):
        return True
    raw = bytes(raw)
    return len(raw) < COMPARABLE_BYTES and not raw.startswith(b"\0\1\2")


class Table:
    """The rows that count for a client that compresses values of these types."""

    def __init__(self, types: Iterable[str]) -> None:
        self._data: Json = json.loads(resources.files("snugly").joinpath("commands.json").read_text())
        self._shapes: dict[str, Shape] = {}
        wanted = frozenset(map(str, types))
        self.rows = {name: Row(name, row, wanted, self) for name, row in self._data["commands"].items()}
        self.rows = {name: row for name, row in self.rows.items() if row.carries_values or row.refusals}
        untouched = [name for names in self._data["untouched"].values() for name in names]
        self.untouched = frozenset([*untouched, *self._data["numbers"]])
        self.names = self.untouched.union(self._data["commands"])
        """Every command that the table knows."""

    def message(self, command: str, reason: str) -> str:
        template: str = self._data["message"]
        return template.format(command=command, reason=self._data["reasons"][reason])

    def shape(self, name: str) -> Shape:
        """The shape of this name as a function."""
        if name not in self._shapes:
            self._shapes[name] = compiled(self._data["shapes"][name], self.shape)
        return self._shapes[name]

    def plain_shape(self, name: str) -> PlainShape | None:
        """The shape of this name, if it is a plain one."""
        match self._data["shapes"][name]:
            case "value":
                return PlainShape("value")
            case {"each": "value"} as shape:
                return PlainShape("each", shape.get("key") == "argument")
        return None


@functools.cache
def table_for(types: frozenset[str]) -> Table:
    """The table for clients that compress values of these types. It is read and compiled once for all of them."""
    return Table(types)


def compiled(shape: Any, named: Callable[[str], Shape]) -> Shape:
    match shape:
        case "value":
            return value
        case {"each": inner}:
            return each(named(inner), shape.get("key") == "argument")
        case {"at": position, "is": inner}:
            return at(position, named(inner), shape.get("key") == "reply")
        case {"pairs": inner}:
            return pairs(named(inner), shape.get("key") == "reply")
    raise ValueError(f"the command table has an unknown shape: {shape!r}")


def value(reply: Any, decode: Decode, key: Any, _keys: Sequence[Any]) -> Any:
    return decode(reply, key)


def each(inner: Shape, of_arguments: bool) -> Shape:
    def apply(reply: Any, decode: Decode, key: Any, keys: Sequence[Any]) -> Any:
        if not isinstance(reply, list):
            return inner(reply, decode, key, keys)
        if of_arguments:
            named = zip_longest(reply, keys[: len(reply)])
            return [inner(item, decode, own, keys) for item, own in named]
        return [inner(item, decode, key, keys) for item in reply]

    return apply


def at(position: int, inner: Shape, names_key: bool) -> Shape:
    def apply(reply: Any, decode: Decode, key: Any, keys: Sequence[Any]) -> Any:
        if not isinstance(reply, list) or len(reply) <= position:
            return reply
        own = reply[0] if names_key else key
        return [*reply[:position], inner(reply[position], decode, own, keys), *reply[position + 1 :]]

    return apply


def pairs(inner: Shape, names_key: bool) -> Shape:
    def apply(reply: Any, decode: Decode, key: Any, keys: Sequence[Any]) -> Any:
        def second(first: Any, item: Any) -> Any:
            return inner(item, decode, first if names_key else key, keys)

        if isinstance(reply, dict):
            return {first: second(first, item) for first, item in reply.items()}
        if not isinstance(reply, list) or not reply:
            return reply
        if isinstance(reply[0], list):
            return [[pair[0], second(*pair)] if isinstance(pair, list) and len(pair) == 2 else pair for pair in reply]
        flat = zip(reply[::2], reply[1::2], strict=False)
        return [item for first, value in flat for item in (first, second(first, value))]

    return apply
