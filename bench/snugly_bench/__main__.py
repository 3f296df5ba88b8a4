"""The command line: which benchmark is to run. What follows its name is the benchmark's own."""

from __future__ import annotations

import importlib
import signal
import sys
from types import FrameType

COMMANDS = {
    "clients": ("snugly_bench.clients.command", "client libraries beside each other, with and without compression"),
    "java": ("snugly_bench.java.command", "client libraries for Java beside each other, with and without compression"),
    "sizes": ("snugly_bench.sizes.command", "what compression saves and costs by size and type of value"),
    "report": ("snugly_bench.report.command", "draw the report of a run again"),
    "servers": ("snugly_bench.servers.compare", "snugly beside valkey-server and memcached"),
    "mixed": ("snugly_bench.servers.mixed", "what reads from disk cost those who find their values in memory"),
    "dictionaries": ("snugly_bench.dictionaries.command", "what dictionaries that the server learns save and cost"),
    "adaptive": ("snugly_bench.adaptive.command", "compression that the server chooses, beside each fixed choice"),
    "lists": ("snugly_bench.lists.command", "long lists, compressed and not, beside valkey-server"),
    "demo": ("snugly_bench.servers.demo", "what each codec of the server saves and costs for real values"),
}
"""The module of each, with a `main` that takes the arguments, and what it is for."""


def usage() -> str:
    lines = [f"  {name:<12}  {purpose}" for name, (_, purpose) in COMMANDS.items()]
    return "\n".join(["usage: python -m snugly_bench COMMAND [OPTIONS]", "", *lines, "", "COMMAND --help has more."])


def terminated(_signal: int, _frame: FrameType | None) -> None:
    """Unwinds, so that every server and client is ended."""
    sys.exit(128 + signal.SIGTERM)


def main(words: list[str]) -> None:
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        return
    command, *arguments = words
    if command not in COMMANDS:
        raise SystemExit(f"there is no benchmark {command}\n\n{usage()}")
    signal.signal(signal.SIGTERM, terminated)
    try:
        importlib.import_module(COMMANDS[command][0]).main(arguments)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main(sys.argv[1:])
