"""Reads spec/commands.json and applies it: the reference for every client's own interpreter.

It knows the table's language (spec/commands.md) and no command; what encoding and decoding a value means is
passed in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from resp import Map, Reply

TABLE = Path(__file__).resolve().parent.parent / "commands.json"
ID = re.compile(rb"\*|[0-9]+(-([0-9]+|\*))?")
Row: TypeAlias = dict[str, Any]
Encode: TypeAlias = Callable[[bytes, bytes], bytes]
Decode: TypeAlias = Callable[[bytes, bytes | None], bytes]


class Refused(Exception):
    """The table refuses the command while compression is on; the text is the one every client shows."""


class Misfit(Exception):
    """The arguments do not follow the row's pattern; the server will say what is wrong with them."""


@dataclass
class Arguments:
    """What a pattern found: positions count from the command's name at 0."""

    keys: list[int] = field(default_factory=list)
    values: list[tuple[int, int]] = field(default_factory=list)  # (position of the value, position of its key)
    compared: list[int] = field(default_factory=list)
    options: set[str] = field(default_factory=set)


class Pattern:
    """Matches the arguments of one command against its row's pattern, left to right, without going back."""

    def __init__(self, row: Row, args: list[bytes]) -> None:
        self.args = args
        self.at = 1
        self.options: dict[str, list[Any]] = row.get("options", {})
        self.found = Arguments()
        self.items(row.get("arguments", ["rest"]))
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
                if not ID.fullmatch(self.args[self.take()]):
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
                if self.at < len(self.args) and self.args[self.at].upper().decode("latin-1") in words:
                    self.take()
            case {"repeat": group}:
                self.repeat(group)
            case {"counted": group}:
                count = self.args[self.take()]
                if not re.fullmatch(rb"[0-9]{1,9}", count):
                    raise Misfit
                for _ in range(int(count)):
                    self.items(group)
            case _:
                raise ValueError(f"the table has a pattern item that nobody defined: {item!r}")

    def take(self) -> int:
        if self.at >= len(self.args):
            raise Misfit
        self.at += 1
        return self.at - 1

    def option(self) -> bool:
        word = self.args[self.at].upper().decode("latin-1") if self.at < len(self.args) else None
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


class Table:
    """The command table for a client that compresses values of the given types."""

    def __init__(self, types: set[str] | None = None) -> None:
        self.data: Row = json.loads(TABLE.read_text())
        self.types = types or {"strings"}

    def classified(self) -> list[str]:
        """Every command that the table names, in order, with repetitions if there are any."""
        untouched = [name for names in self.data["untouched"].values() for name in names]
        return [*self.data["commands"], *self.data["numbers"], *untouched]

    def row(self, name: bytes) -> Row:
        row: Row = self.data["commands"].get(name.upper().decode("latin-1"), {})
        return row

    def arguments(self, args: list[bytes]) -> Arguments | None:
        """None when the arguments do not fit the pattern."""
        try:
            return Pattern(self.row(args[0]), args).found
        except Misfit:
            return None

    def request(self, args: list[bytes], encode: Encode) -> list[bytes]:
        """The arguments as they go out. Raises Refused."""
        row = self.row(args[0])
        found = self.arguments(args) or Arguments()
        for rule in row.get("refuse", []):
            chosen = not rule.get("with") or found.options & set(rule["with"])
            if self.types & set(rule["types"]) and chosen:
                raise self.refusal(args[0], rule["reason"])
        if row.get("type") not in self.types:
            return args
        for position in found.compared:
            if len(args[position]) >= 32 or args[position].startswith(b"\0\1\2"):
                raise self.refusal(args[0], "compare")
        sent = list(args)
        for position, key in found.values:
            sent[position] = encode(args[position], args[key])
        return sent

    def reply(self, args: list[bytes], reply: Reply, decode: Decode) -> Reply:
        """The reply to `args` (as sent, or as given: they have the same shape) with its values restored."""
        row = self.row(args[0])
        rule = row.get("reply")
        if rule is None or row.get("type") not in self.types:
            return reply
        found = self.arguments(args) or Arguments()
        if rule.get("with") and not found.options & set(rule["with"]):
            return reply
        if found.options & set(rule.get("without", [])):
            return reply
        keys = [args[position] for position in found.keys]
        return self.shaped(rule["shape"], reply, decode, iter(keys), keys[0] if keys else None)

    def transaction(self, queued: list[list[bytes]], reply: Reply, decode: Decode) -> Reply:
        """The reply of EXEC: one reply for each command that was queued, in order."""
        if not isinstance(reply, list):
            return reply
        return [self.reply(args, item, decode) for args, item in zip(queued, reply, strict=True)]

    def refusal(self, name: bytes, reason: str) -> Refused:
        text = self.data["message"].format(command=name.upper().decode("latin-1"), reason=self.data["reasons"][reason])
        return Refused(text)

    def shaped(self, name: str, reply: Reply, decode: Decode, keys: Iterator[bytes], key: bytes | None) -> Reply:
        """`reply` with the shape `name` applied; `keys` are the arguments' keys, `key` the one known so far."""
        shape = self.data["shapes"][name]
        if shape == "value":
            return decode(reply, key) if isinstance(reply, bytes) else reply

        def apply(inner: str, item: Reply, named: bytes | None = key) -> Reply:
            return self.shaped(inner, item, decode, keys, named)

        def name_in(item: Reply) -> bytes | None:
            return item if shape.get("key") == "reply" and isinstance(item, bytes) else key

        match shape, reply:
            case {"each": inner, "key": "argument"}, list():
                return [apply(inner, item, next(keys, None)) for item in reply]
            case {"each": inner}, list():
                return [apply(inner, item) for item in reply]
            case {"each": inner}, _:
                return apply(inner, reply)
            case {"at": at, "is": inner}, list() if len(reply) > at:
                return [*reply[:at], apply(inner, reply[at], name_in(reply[0])), *reply[at + 1 :]]
            case {"pairs": inner}, Map(pairs):
                return Map([(first, apply(inner, second, name_in(first))) for first, second in pairs])
            case {"pairs": inner}, [list(), *_]:

                def pair(item: Reply) -> Reply:
                    match item:
                        case [first, second]:
                            return [first, apply(inner, second, name_in(first))]
                    return item

                return [pair(item) for item in reply]
            case {"pairs": inner}, list():
                flat = zip(reply[::2], reply[1::2], strict=False)
                paired = [item for first, second in flat for item in (first, apply(inner, second, name_in(first)))]
                return paired + reply[len(paired) :]
            case {"at": _} | {"pairs": _}, _:
                return reply
        raise ValueError(f"the table has a shape that nobody defined: {name}")
