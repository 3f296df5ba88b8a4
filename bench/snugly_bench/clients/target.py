"""The server that clients are measured with: one of our own, or one that runs elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import valkey

from snugly_bench.clients.peers import Address
from snugly_bench.servers.peers import start, valkey_peer

DELETE_BATCH = 1000
FREE_SECONDS = 0.05
"""Interval of asking whether deleted keys are freed."""


class Target:
    """A server, asked by a connection of its own."""

    def __init__(self, address: Address, own: bool) -> None:
        """`own` is whether it was started for this, so that it may be emptied."""
        self.address = address
        self.own = own
        self.connection: Any = valkey.Valkey(host=address.host, port=address.port)
        try:
            self.connection.ping()
        except valkey.ValkeyError as error:
            said = str(error).rstrip(".")
            raise SystemExit(
                f"no server answers at {address.host}:{address.port}: {said}. Start one, or leave out --no-server"
            ) from None

    def version(self) -> str:
        fields = self.connection.info("server")
        name = "snugly" if "snugly_version" in fields else "valkey-server" if "valkey_version" in fields else "server"
        version = fields.get(f"{name.partition('-')[0]}_version", fields.get("redis_version", "of unknown version"))
        where = "started for this" if self.own else f"at {self.address.host}:{self.address.port}"
        return f"{name} {version}, {where}"

    def memory(self) -> int:
        """Bytes that the server says it uses, without those of its connections."""
        fields = self.connection.info("memory")
        return int(fields["used_memory"]) - int(fields.get("mem_clients_normal", 0))

    def stored(self, keys: list[str]) -> int:
        """Bytes of the values of these keys, as the server has them."""
        pipeline = self.connection.pipeline(transaction=False)
        for key in keys:
            pipeline.strlen(key)
        return sum(pipeline.execute())

    def cpu(self) -> float:
        """Seconds of processor time that it has used."""
        fields = self.connection.info("cpu")
        return float(fields["used_cpu_user"]) + float(fields["used_cpu_sys"])

    def clear(self, prefixes: list[str]) -> None:
        """Removes everything from a server of our own, and only our keys from another."""
        if self.own:
            self.connection.execute_command("FLUSHALL", "SYNC")
            return
        for prefix in prefixes:
            found = list(self.connection.scan_iter(f"{prefix}*", count=DELETE_BATCH))
            for first in range(0, len(found), DELETE_BATCH):
                self.connection.unlink(*found[first : first + DELETE_BATCH])
        while int(self.connection.info("memory").get("lazyfree_pending_objects", 0)):
            time.sleep(FREE_SECONDS)


@contextmanager
def target(host: str, port: int, own: bool) -> Iterator[Target]:
    """A server that listens already, or, if `own`, a valkey-server on a free port that is ended afterwards."""
    with ExitStack() as afterwards:
        if own:
            host, port = "127.0.0.1", afterwards.enter_context(start(valkey_peer())).port
        try:
            yield Target(Address(host, port), own)
        except valkey.ConnectionError as error:
            raise SystemExit(f"the server at {host}:{port} is gone: {error}") from None
