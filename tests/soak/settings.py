"""Settings for CONFIG SET and files for SIGHUP while a soak runs, none of which changes what is right."""

from __future__ import annotations

from dataclasses import dataclass

# Names in CONFIG, and what they are set to.
LIVE: dict[str, tuple[str, ...]] = {
    "compression": ("auto", "lz4", "zstd", "none", "auto"),
    "compression-goal": ("memory", "balanced", "speed"),
    "compression-min-bytes": ("32", "256", "1024"),
    "dictionaries": ("yes", "fixed", "no", "yes"),
    "dictionary-exclude": ("", "pair:*"),
    "background-cpu-percent": ("1", "10", "50"),
    "cold-after": ("1", "5", "600"),
    "cold-compression-level": ("3", "15"),
    "list-compress-codec": ("none", "lz4", "lzf", "zstd"),
    "list-compress-depth": ("0", "1", "3"),
    "list-max-listpack-size": ("-1", "-2", "-5", "16"),
    "latency-tracking": ("yes", "no"),
    "commandlog-execution-slower-than": ("-1", "0", "10000"),
    "tcp-keepalive": ("0", "60", "300"),
    "hash-max-listpack-entries": ("128", "512"),
}
# Shares of the limit of memory at which a server that evicts starts.
MEMORY_SHARES = (0.5, 0.75, 1.0)


@dataclass(frozen=True)
class File:
    """A configuration file: its text, what the log says of it behind SIGHUP, and the setting that it then has."""

    text: str
    logged: str
    name: str = ""
    value: str = ""


FILES = (
    File("commandlog-slow-execution-max-len = 64\n", "SIGHUP: ", "commandlog-slow-execution-max-len", "64"),
    File("commandlog-slow-execution-max-len = 32\n", "SIGHUP: ", "commandlog-slow-execution-max-len", "32"),
    File("acl-log-max-len = 16\ntracking-table-max-keys = 5000\n", "SIGHUP: ", "acllog-max-len", "16"),
    File("acl-log-max-len = 17\ndatabases = 3\n", "refused: databases", "acllog-max-len", "17"),
    File("max-memori = 1\n", "SIGHUP changed nothing: "),
)
