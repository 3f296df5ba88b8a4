"""Writes crates/server/src/commands/documentation.json: what valkey-server tells of the commands that snugly has.

`make command-documentation` runs it, after commands were added. It asks both servers, and keeps of Valkey's answers
what snugly's own command table does not say: COMMAND DOCS, the categories, tips and key specifications of COMMAND INFO,
and the texts of HELP.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import servers
from resp import Connection, Items, Map, Reply, Simple

FILE = Path(__file__).resolve().parent.parent / "crates" / "server" / "src" / "commands" / "documentation.json"
# HELP's name of the container itself.
NO_SUBCOMMAND = "(no subcommand)"
# Commands that read their subcommands themselves.
OWN_SUBCOMMANDS = {"debug": {"sleep", "object", "help"}}


def plain(reply: Reply) -> Any:
    """A reply as JSON has it."""
    match reply:
        case Map(pairs):
            return {plain(name): plain(value) for name, value in pairs}
        case Items(_, items):
            return [plain(item) for item in items]
        case list():
            return [plain(item) for item in reply]
        case Simple(text):
            return text.decode()
        case bytes():
            return reply.decode()
    return reply


def commands_of(server: Connection) -> list[str]:
    return sorted(plain(server.command("COMMAND", "LIST")))


def subcommands(command: str, commands: list[str]) -> set[str]:
    found = {name.removeprefix(f"{command}|") for name in commands if name.startswith(f"{command}|")}
    return found or OWN_SUBCOMMANDS.get(command, set())


def documentation(valkey: Connection, command: str, subcommands: set[str]) -> dict[str, Any] | None:
    """All that is told of one command; nothing if Valkey does not have it."""
    (row,) = plain(valkey.command("COMMAND", "INFO", command))
    if row is None:
        return None
    told: dict[str, Any] = plain(valkey.command("COMMAND", "DOCS", command))[command]
    told.pop("subcommands", None)
    told["acl_categories"] = [category.removeprefix("@") for category in row[6]]
    told["tips"] = row[7]
    told["key_specifications"] = row[8]
    if subcommands:
        told["help"] = [part for part in help_of(valkey, command) if part["subcommand"] in {"", *subcommands}]
    return {name: value for name, value in told.items() if value != []}


def help_of(valkey: Connection, command: str) -> list[dict[str, Any]]:
    """The lines of HELP, in its order, by the subcommand that they are about."""
    parts: list[dict[str, Any]] = []
    for line in plain(valkey.command(command, "HELP"))[1:]:
        if line.startswith(" "):
            parts[-1]["lines"].append(line)
        else:
            subcommand = "" if line == NO_SUBCOMMAND else line.split()[0].lower()
            parts.append({"subcommand": subcommand, "lines": [line]})
    return parts


def write(told: dict[str, dict[str, Any]]) -> None:
    rows = [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in told.items()]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def main() -> None:
    with (
        servers.snugly() as ours,
        servers.valkey() as theirs,
        ours.connect() as snugly,
        theirs.connect(protocol=3) as valkey,
    ):
        commands = commands_of(snugly)
        told = {command: documentation(valkey, command, subcommands(command, commands)) for command in commands}
    write({command: value for command, value in told.items() if value is not None})


if __name__ == "__main__":
    main()
