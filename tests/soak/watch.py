"""Watches a server while it is under load: that it answers, keeps within its memory, and logs nothing unexpected.

It looks from outside, at PING, INFO and the log, and knows neither load nor disturbances.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from info import number
from resp import Simple, encode
from soak.instances import CLIENTS, DICTIONARIES, LONG, MB, NODES, Instance, unexpected
from soak.ledger import Wrong, short
from soak.links import CARRIERS, Resp

# The program itself, what its threads keep for the next large value, and changes on their way to the disk.
OTHER = 96 * MB
# Two commits of `commit-bytes`, and the longest value of all, in a server that keeps a store.
CHANGES = 2 * 8 * MB + LONG
# Writes of two threads that have found the same room, and what is kept beside values: the next write makes room for it.
AT_ONCE = 1 * MB
# Resident memory for each byte that the allocator has given away: pages are given back later than they are freed, and
# what is evicted leaves holes.
RESIDENT_PER_USED = 1.5
# Figures of a look, and their sections of INFO.
FIELDS = {
    "connected_clients": "clients",
    "used_memory_dataset": "memory",
    "used_memory": "memory",
    "used_memory_rss": "memory",
    "evicted_keys": "stats",
    "expired_keys": "stats",
    "keyspace_hits": "stats",
    "keyspace_misses": "stats",
    "client_output_buffer_limit_disconnections": "stats",
    "rdb_bgsave_in_progress": "persistence",
    "rdb_saves": "persistence",
    "dictionaries": "dictionaries",
    "recompressed_records": "compression",
}


@dataclass
class Watch:
    """One server, as it was seen: the latest figures, the largest ones, and the bytes of its log that were read."""

    instance: Instance
    latest: dict[str, int] = field(default_factory=dict)
    most: Counter[str] = field(default_factory=Counter)
    longest_ping: float = 0.0
    pings: int = 0
    read: int = 0

    def look(self) -> None:
        """Raises Wrong if anything is not as it must be."""
        if (status := self.instance.server.process.poll()) is not None:
            raise Wrong(f"the server has ended with status {status}")
        self.ping()
        self.measure()
        self.read_log()

    def ping(self) -> None:
        carrier = ("plain", "tls", "path")[self.pings % 3]
        began = time.monotonic()
        link = Resp(CARRIERS[carrier](self.instance.at), 2)
        link.send(encode("PING"))
        reply = link.receive()
        link.close()
        self.longest_ping = max(self.longest_ping, time.monotonic() - began)
        self.pings += 1
        if reply != Simple(b"PONG"):
            raise Wrong(f"PING over {carrier} was answered {short(reply)}")

    def measure(self) -> None:
        with self.instance.connect() as connection:
            told = connection.command("INFO", "everything")
        was_saving = self.latest.get("rdb_bgsave_in_progress", 0)
        self.latest = {field: number(told, field) for field in FIELDS}
        for name, figure in self.latest.items():
            self.most[name] = max(figure, self.most[name])
        # While it is saved, what is overwritten is kept beside what is new.
        copies = 1 + max(self.latest["rdb_bgsave_in_progress"], was_saving)
        situation = self.instance.situation
        # Changes on their way to the disk cannot leave memory, whatever its limit.
        max_memory = situation.max_memory + AT_ONCE + (CHANGES if situation.keeps else 0)
        used = 2 * max_memory + CLIENTS + DICTIONARIES + NODES + OTHER
        bounds = {
            "used_memory_dataset": copies * max_memory,
            "used_memory": used,
            "used_memory_rss": int(RESIDENT_PER_USED * used),
        }
        for name, bound in bounds.items():
            if self.latest[name] > bound:
                raise Wrong(f"{name} is {self.latest[name]:,}, over its bound of {bound:,}")

    def read_log(self) -> None:
        # Lines that are whole: the last one may be being written.
        log = self.instance.server.log.read_bytes()
        whole = log[self.read : log.rfind(b"\n") + 1]
        self.read += len(whole)
        if found := unexpected(self.instance.situation, whole.decode(errors="replace")):
            raise Wrong(f"the log has {found[0]!r}")
