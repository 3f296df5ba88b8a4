"""Writes spec/key-positions.json: where the keys of each command are, as COMMAND of a real valkey-server tells it.

`make key-positions` runs it. It needs the packages of tests/requirements.txt.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "tests")]

import servers  # noqa: E402
from document_commands import plain  # noqa: E402
from resp import Connection  # noqa: E402

FILE = HERE / "key-positions.json"


def position(specification: dict[str, Any]) -> dict[str, Any] | None:
    """One specification without levels and defaults; nothing if it finds no keys."""
    start, end = specification["begin_search"]["spec"], specification["find_keys"]["spec"]
    if not start or "not_key" in specification["flags"]:
        return None
    found = {**start, **end}
    if found.get("limit") == 0:
        del found["limit"]
    if "incomplete" in specification["flags"]:
        found["incomplete"] = True
    return found


def positions(rows: list[list[Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of COMMAND, and those of their subcommands, by names in capitals."""
    found = {}
    for row in rows:
        told = [position(specification) for specification in row[8]]
        found[row[0].upper()] = [each for each in told if each]
        found |= positions(row[9])
    return found


def document(valkey: Connection) -> str:
    hello = plain(valkey.command("HELLO"))
    found = sorted(positions(plain(valkey.command("COMMAND"))).items())
    rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(told)}" for name, told in found)
    release = ".".join(hello["version"].split(".")[:2])
    return f'{{\n  "version": 1,\n  "server": "{hello["server"]} {release}",\n  "commands": {{\n{rows}\n  }}\n}}\n'


def main() -> None:
    with servers.valkey() as server, server.connect(protocol=3) as valkey:
        FILE.write_text(document(valkey))


if __name__ == "__main__":
    main()
