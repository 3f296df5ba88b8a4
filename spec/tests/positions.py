"""Finds keys by spec/key-positions.json: the reference for every client's own interpreter.

It knows what Valkey's key specifications mean (spec/commands.md) and no command.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "key-positions.json"
COMMANDS: dict[str, list[dict[str, Any]]] = json.loads(FILE.read_text())["commands"]


class Misfit(Exception):
    """A position lies outside the arguments, or a number of keys is none."""


def specifications(args: list[bytes]) -> list[dict[str, Any]] | None:
    """Those of a command or of its subcommand; None if Valkey does not have it."""
    words = [arg.upper().decode("latin-1") for arg in args[:2]]
    return COMMANDS.get("|".join(words)) or COMMANDS.get(words[0])


def keys(args: list[bytes]) -> list[int] | None:
    """Positions of the keys, the name being at 0; None if nobody knows, or if they do not fit the arguments."""
    known = specifications(args)
    if known is None:
        return None
    found: list[int] = []
    for specification in known:
        try:
            places = located(specification, args)
        except Misfit:
            return None
        if places and specification.get("incomplete"):
            found = []
        found += places
    return found


def located(specification: dict[str, Any], args: list[bytes]) -> list[int]:
    match specification:
        case {"index": int(index)}:
            first = index
        case {"keyword": str(word), "startfrom": int(start)}:
            places = range(start, len(args) - 1) if start >= 0 else range(len(args) + start, 0, -1)
            at = next((place for place in places if args[place].upper() == word.encode()), None)
            if at is None:
                return []
            first = at + 1
        case _:
            raise ValueError(f"a key position that nobody defined: {specification}")
    match specification:
        case {"lastkey": int(last), "keystep": int(step)}:
            if last >= 0:
                last += first
            elif limit := specification.get("limit"):
                last += first + (len(args) - first) // limit
            else:
                last += len(args)
        case {"keynumidx": int(at), "firstkey": int(offset), "keystep": int(step)}:
            number = args[first + at] if first + at < len(args) else b""
            if not re.fullmatch(rb"0|[1-9][0-9]{0,8}", number):
                raise Misfit
            if number == b"0":
                return []
            first += offset
            last = first + (int(number) - 1) * step
        case _:
            raise ValueError(f"a key position that nobody defined: {specification}")
    if not first <= last < len(args):
        raise Misfit
    return list(range(first, last + 1, step))
