"""The servers of a soak: each in a situation of its own, with the errors and the lines of the log expected in it.

It knows how they are started and what is expected of each; it knows neither load nor disturbances.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import servers
from authority import Authority
from mounts import small_disk
from resp import Connection
from servers import Server
from soak.links import PATIENCE, Addresses

MB = 1 << 20
# Bounds of every server: for all clients, for samples and dictionaries, for decoded list nodes.
CLIENTS = 128 * MB
DICTIONARIES = 16 * MB
NODES = 4 * MB
# A reply that a client does not take, over which its connection is ended.
OUTPUT = 6 * MB
# A value of which more than that waits in the server, whatever the buffers of the system take.
LONG = OUTPUT + 12 * MB
DISK_BYTES = 96 * MB
# More than connect at once, idle ones included.
MAX_CLIENTS = 12_000


@dataclass(frozen=True)
class Situation:
    """A row of the table: how a server is started, and what is expected of it."""

    name: str
    max_memory: int
    # Keys may go when memory is full.
    evicts: bool = False
    # A store is kept, of which everything must be there behind a restart.
    keeps: bool = False
    # The disk of its store is a small one, which is filled.
    fills: bool = False
    # Beginnings of the errors that a write may get.
    refusals: tuple[bytes, ...] = ()
    # Lines of its log, beside those of level INFO and those of every server.
    logged: tuple[str, ...] = ()

    def options(self) -> list[str]:
        policy = "allkeys-lru" if self.evicts else "noeviction"
        return ["--max-memory", str(self.max_memory), "--max-memory-policy", policy]


SITUATIONS = (
    Situation("evicting", 8 * MB, evicts=True),
    Situation("keeping", 4 * MB, keeps=True),
    Situation(
        "full disk",
        4 * MB,
        keeps=True,
        fills=True,
        refusals=(
            b"MISCONF there is no room left on the disk",
            b"SERVER_ERROR there is no room left on the disk",
            b"there is no room left on the disk",
        ),
        logged=(
            "ERROR .* changes cannot be written to disk; trying again.*no room left",
            "WARN .* records are not re-encoded as long as there is no room for them",
        ),
    ),
)
# Lines that any server may log above INFO, each for what is done to it.
LOGGED = (
    # Slow readers.
    "WARN .* a connection is closed .*client-output-buffer-limit",
    # Clients that go away while they agree on keys.
    "WARN .* clients did not agree with the server on TLS",
    # Files that are wrong, or of which some setting takes a restart.
    "ERROR .* SIGHUP changed nothing: .*max-memori is no setting",
    "WARN .* SIGHUP: .*refused: databases \\(it takes a restart\\)",
    # Settings of Valkey's that have nothing to do here.
    "WARN .* CONFIG SET of a setting that has no effect here was accepted",
    # A limit of open files.
    "WARN .* the system lets this process open",
    # The banner, which is no event.
    r"^  \S",
)


@dataclass
class Instance:
    """A running server of a situation; `files` is held by whoever changes its certificates or its configuration."""

    situation: Situation
    server: Server
    at: Addresses
    folder: Path
    authority: Authority
    files: threading.Lock = field(default_factory=threading.Lock)
    # Connections of writers that it has ended when it was asked to.
    killed: int = 0

    @property
    def name(self) -> str:
        return self.situation.name

    @property
    def configuration(self) -> Path:
        return self.folder / "snugly.toml"

    @property
    def saved(self) -> Path:
        """The file that BGSAVE writes."""
        return self.folder / "dump.rdb"

    @property
    def disk(self) -> Path:
        """The folder on which its store is, or would be."""
        return self.folder / "disk"

    def connect(self) -> Connection:
        return Connection(self.at.port, timeout=PATIENCE)


@contextlib.contextmanager
def disk(situation: Situation, folder: Path) -> Iterator[Path]:
    """The folder of a store; raises NotMounted where a small disk is wanted and not to be had."""
    if situation.fills:
        with small_disk(folder, DISK_BYTES) as mounted:
            yield mounted
    else:
        folder.mkdir()
        yield folder


@contextlib.contextmanager
def running(situation: Situation, folder: Path, authority: Authority) -> Iterator[Instance]:
    """A server of a situation, on free ports, whose store is in a folder that is there."""
    with contextlib.ExitStack() as stack:
        tls_port, memcached_port = (stack.enter_context(servers.reserved_port()) for _ in range(2))
        path = folder / "socket"
        configuration = folder / "snugly.toml"
        configuration.touch()
        options = [
            *[
                "--config",
                str(configuration),
                "--dir",
                str(folder),
                "--threads",
                "2",
                "--max-clients",
                str(MAX_CLIENTS),
            ],
            *["--tls-port", str(tls_port), *authority.options("--tls-auth-clients", "no")],
            *["--memcached-port", str(memcached_port), "--unix-socket", str(path)],
            *["--max-memory-clients", str(CLIENTS), "--dictionary-memory", str(DICTIONARIES)],
            *["--list-cache-memory", str(NODES), "--client-output-buffer-limit", f"normal {OUTPUT} 0 0"],
            *situation.options(),
        ]
        if situation.keeps:
            options += ["--storage", str(folder / "disk" / "store")]
        server = stack.enter_context(servers.snugly(*options))
        at = Addresses(server.port, tls_port, memcached_port, path, authority.file)
        yield Instance(situation, server, at, folder, authority)


def unexpected(situation: Situation, log: str) -> list[str]:
    """Lines of a log that nothing that is done to such a server explains."""
    expected = [re.compile(pattern) for pattern in (*LOGGED, *situation.logged)]
    return [line for line in log.splitlines() if is_raised(line) and not any(e.search(line) for e in expected)]


def is_raised(line: str) -> bool:
    """Whether a line of the log is of a level above INFO, or of none, as a panic is."""
    return re.match(r"\S+Z +(INFO|DEBUG|TRACE) |snugly \S+ listens on ", line) is None
