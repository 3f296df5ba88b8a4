"""Memory that is copied while a child process saves and its parent writes."""

from __future__ import annotations

import time
from statistics import fmean

import valkey

from snugly_bench.module.batches import Client
from snugly_bench.module.measure import GIVEN, POLL_SECONDS, Scale, teach, write
from snugly_bench.module.peers import Pair
from snugly_bench.progress import Progress
from snugly_bench.results import Results
from snugly_bench.servers.info import info
from snugly_bench.servers.peers import Peer, start
from snugly_bench.splits import Split

COPIED = "bytes copied for a write"
LEAST_MICROSECONDS = 1_000_000
"""Time that a child sleeps in all, a bit of it at each key, so that it is there for all writes."""


def measure_saving(pair: Pair, split: Split, scale: Scale) -> Results:
    """A server just started in each round."""
    results = Results(pair.stock.name)
    given = fmean(map(len, split.measured))
    with Progress(scale.rounds * len(pair.peers)) as progress:
        for number in range(scale.rounds):
            for peer in pair.peers:
                with progress.step(1, f"saving: round {number + 1} of {scale.rounds}, {peer.name}"):
                    results.add(split.name, peer.name, {GIVEN: given, COPIED: copied(peer, split, scale)})
    return results


def copied(peer: Peer, split: Split, scale: Scale) -> float:
    """Bytes that a child and its parent had no longer in common, for each write. Exits if the child was gone before the
    last one."""
    with start(peer) as server, Client(server.port) as client, valkey.Valkey(port=server.port) as asking:
        teach(client, split, scale)
        write(client, split, scale.values)
        asking.config_set("rdb-key-save-delay", LEAST_MICROSECONDS // scale.values)
        asking.bgsave()
        write(client, split, scale.logged)
        if not is_saving(asking):
            raise SystemExit(f"the child of {peer.name} was done before all was written: save more values")
        while is_saving(asking):
            time.sleep(POLL_SECONDS)
        return int(info(asking, "persistence")["rdb_last_cow_size"]) / scale.logged


def is_saving(client: valkey.Valkey) -> bool:
    return bool(int(info(client, "persistence")["rdb_bgsave_in_progress"]))
