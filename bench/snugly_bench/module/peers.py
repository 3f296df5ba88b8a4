"""The two servers: valkey-server as it comes, and the same with the module. Knows nothing of what is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from snugly_bench.servers.loads import SERVER_CORE
from snugly_bench.servers.peers import Peer, Server, valkey_peer

MODULE = "valkey with the module"
AGAIN = "valkey once more"
"""What stands in its place in a control, whose ratios tell how exact the others are."""


@dataclass(frozen=True)
class Pair:
    """The servers, with the same options but for the module."""

    stock: Peer
    subject: Peer
    io_threads: int = 1

    @property
    def peers(self) -> tuple[Peer, Peer]:
        return self.stock, self.subject

    @property
    def core(self) -> int | None:
        """Where all threads of a server are; threads that wait for each other in a loop need cores of their own."""
        return SERVER_CORE if self.io_threads == 1 else None

    def check_pinned(self, server: Server) -> None:
        if self.core is not None:
            server.check_pinned(self.core)


def pair(module: Path | None, settings: Sequence[str], io_threads: int) -> Pair:
    """The servers, or two without where there is no module. Its settings are `NAME=VALUE`. Exits where there is no such
    library."""
    plain = valkey_peer()
    stock = replace(plain, command=(*plain.command, "--io-threads", str(io_threads)), one_thread=())
    if module is None:
        return Pair(stock, replace(stock, name=AGAIN), io_threads)
    if not module.is_file():
        raise SystemExit(f"{module} is no library: build it with `cargo build --release --package snugly-module`")
    words = [
        word for name, _, value in (each.partition("=") for each in settings) for word in (f"--snugly.{name}", value)
    ]
    return Pair(
        stock,
        replace(stock, name=MODULE, command=(*stock.command, "--loadmodule", str(module.resolve()), *words)),
        io_threads,
    )


def logging(peer: Peer) -> Peer:
    """The same with an append-only file that is never rewritten and is written before a request is answered, and with
    nothing but writes in what replicas get."""
    options = {
        "--appendonly": "yes",
        "--appendfsync": "no",
        "--auto-aof-rewrite-percentage": "0",
        "--repl-diskless-sync-delay": "0",
        "--repl-ping-replica-period": "3600",
    }
    return replace(peer, command=(*peer.command, *(word for option in options.items() for word in option)))


def replica_of(primary: Server, peer: Peer) -> Peer:
    return replace(peer, command=(*peer.command, "--replicaof", "127.0.0.1", str(primary.port)))
