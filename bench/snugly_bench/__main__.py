"""The command line: names a benchmark; the arguments after the name are the benchmark's own."""

from __future__ import annotations

import importlib
import signal
import sys
from types import FrameType

COMMANDS = {
    "clients": ("snugly_bench.clients.command", "client libraries, with and without compression"),
    "java": ("snugly_bench.java.command", "client libraries for Java, with and without compression"),
    "sizes": ("snugly_bench.sizes.command", "savings and costs of compression by size and type of value"),
    "report": ("snugly_bench.report.command", "redraw the report of a run"),
    "servers": ("snugly_bench.servers.compare", "snugly beside valkey-server and memcached"),
    "mixed": ("snugly_bench.servers.mixed", "effect of disk reads on clients whose values are in memory"),
    "dictionaries": ("snugly_bench.dictionaries.command", "savings and costs of dictionaries learned by the server"),
    "adaptive": ("snugly_bench.adaptive.command", "automatic compression beside each fixed choice"),
    "lists": ("snugly_bench.lists.command", "long lists, compressed and not, beside valkey-server"),
    "compile-cache": ("snugly_bench.compile_cache.command", "object files on disk, with each compression and without"),
    "memcached": ("snugly_bench.memcached.command", "snugly over memcached's protocol, beside memcached"),
    "extstore": ("snugly_bench.extstore.command", "more values than memory, beside memcached with external storage"),
    "tls": ("snugly_bench.tls.command", "what TLS costs, beside Redis or Valkey"),
    "scripts": ("snugly_bench.scripts.command", "what scripts cost, beside valkey-server"),
    "module": ("snugly_bench.module.command", "valkey-server with the module, beside the same without"),
    "demo": ("snugly_bench.servers.demo", "savings and costs of each codec of the server, beside Valkey and Redis"),
}
"""The module of each, with a `main` that takes the arguments, and its purpose."""


def usage() -> str:
    lines = [f"  {name:<13}  {purpose}" for name, (_, purpose) in COMMANDS.items()]
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
