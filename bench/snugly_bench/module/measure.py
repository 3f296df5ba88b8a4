"""The two servers asked for the same in turn: processor time, memory, and bytes for replicas and on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, cycle, islice, product, starmap

import valkey

from snugly_bench.module.batches import Client, Exchange, getting, in_batches, setting
from snugly_bench.module.peers import Pair, logging, replica_of
from snugly_bench.module.requests import DEPTHS, Load
from snugly_bench.progress import Progress
from snugly_bench.results import Results
from snugly_bench.servers.info import grown_bytes, info
from snugly_bench.servers.loads import CPU, LOAD_CORE
from snugly_bench.servers.peers import Peer, Server, start
from snugly_bench.servers.pinning import pinned
from snugly_bench.servers.process import process_seconds, steady_anonymous_bytes
from snugly_bench.splits import Split

BATCH = 50
LESSON_PASSES = 6
"""Times that a server gets what may be learned from: whoever learns may wait for keys to come again."""
MOST_BYTES = 400 << 20
"""Values that are written for memory take no more."""
MOST_STEADY_SECONDS = 10.0
LINK_SECONDS = 60.0
"""Longest time for a replica to have everything."""
POLL_SECONDS = 0.01
ACTIVE = "active µs/request"
GIVEN, ANONYMOUS, USED = "value bytes", "anonymous memory", "used_memory"
REPLICATED, LOGGED = "bytes to a replica", "bytes in the append-only file"


@dataclass(frozen=True)
class Scale:
    """The size of the measurement."""

    rounds: int
    requests: Mapping[int, int]
    """Of each load, by how many are sent at a time."""
    turns: int
    """In which the servers get the requests of a load within a round: what disturbs one of them disturbs both."""
    connections: int
    values: int
    """For memory, of each set."""
    logged: int
    """For replicas and files, of each set."""
    settle: float
    """Seconds for what may be learned, before anything is measured."""
    steady: float
    """Seconds after which memory that has not changed is told; 10 at the most."""


@dataclass(frozen=True)
class Asked:
    """A server while it is measured."""

    name: str
    client: Client
    worked: Callable[[], float]
    """Tells for how many seconds it has worked."""


def lesson(split: Split) -> Iterator[Exchange]:
    """Writes of what is not measured, under keys that look the same."""
    for _ in range(LESSON_PASSES):
        yield from (setting(key(split.name, number), value) for number, value in enumerate(split.training))


def key(name: str, number: int) -> str:
    return f"{name}:{number}"


def teach(client: Client, split: Split, scale: Scale) -> None:
    client.compare(in_batches(lesson(split), BATCH))
    time.sleep(scale.settle)


def time_metric(pair: Pair) -> str:
    """The name of what is measured of a request: threads that wait for each other in a loop use processor time."""
    return CPU if pair.io_threads == 1 else ACTIVE


def measure_time(pair: Pair, split: Split, loads: Sequence[Load], scale: Scale) -> Results:
    """Each round with servers just started, and another one first."""
    results = Results(pair.stock.name)
    with Progress(scale.rounds * len(loads) * len(DEPTHS)) as progress:
        for number in range(scale.rounds):
            with ExitStack() as running:
                peers = pair.peers if number % 2 == 0 else pair.peers[::-1]
                servers = [running.enter_context(start(peer, pair.core)) for peer in peers]
                running.enter_context(pinned(LOAD_CORE))
                found = [asked(pair, server, scale, running) for server in servers]
                for each in found:
                    teach(each.client, split, scale)
                for load in loads:
                    what = f"round {number + 1} of {scale.rounds}: {load.name}"
                    for workload, name, seconds in measure_load(found, load, scale, progress, what):
                        results.add(workload, name, {time_metric(pair): 1e6 * seconds})
                for server in servers:
                    pair.check_pinned(server)
    return results


def asked(pair: Pair, server: Server, scale: Scale, running: ExitStack) -> Asked:
    client = running.enter_context(Client(server.port, scale.connections))
    if pair.io_threads == 1:
        return Asked(server.peer.name, client, lambda: process_seconds(server.pid))
    asking = running.enter_context(valkey.Valkey(port=server.port))
    return Asked(server.peer.name, client, lambda: active_seconds(asking))


def active_seconds(client: valkey.Valkey) -> float:
    """Seconds in which the threads of a Valkey had something to do. Exits where it does not tell."""
    told = [float(value) for name, value in info(client, "cpu").items() if name.startswith("used_active_time_")]
    if not told:
        raise SystemExit(
            "this Valkey does not tell how long its threads have worked: leave --io-threads out, or take 9.1"
        )
    return sum(told)


def measure_load(
    found: Sequence[Asked], load: Load, scale: Scale, progress: Progress, what: str
) -> Iterator[tuple[str, str, float]]:
    """The workload, the name of a server, and its seconds for a request."""
    for each in found:
        each.client.compare(in_batches(chain(load.before, load.exchanges), BATCH))
    for depth, requests in scale.requests.items():
        with progress.step(1, f"{what}, {DEPTHS[depth]}"):
            taken = ask_in_turn(found, load, depth, requests, scale.turns)
        for name, seconds in taken.items():
            yield load.workload(depth), name, seconds / requests
    for each in found:
        each.client.compare(in_batches(load.after, BATCH))


def ask_in_turn(found: Sequence[Asked], load: Load, depth: int, requests: int, turns: int) -> dict[str, float]:
    """Seconds that each server worked for so many requests, by its name."""
    batches = list(in_batches(load.exchanges, depth))
    taken = {each.name: 0.0 for each in found}
    sent = {each.name: cycle(batches) for each in found}
    for turn in range(turns):
        for each in found if turn % 2 == 0 else found[::-1]:
            before = each.worked()
            each.client.ask(islice(sent[each.name], requests // turns // depth))
            taken[each.name] += each.worked() - before
    return taken


def repeated(values: Sequence[bytes], most: int, most_bytes: int = MOST_BYTES) -> Iterator[bytes]:
    """The values again and again, until there are so many or so many bytes."""
    total = 0
    for value in islice(cycle(values), most):
        total += len(value)
        if total > most_bytes:
            return
        yield value


def keyed(split: Split, most: int) -> Iterator[tuple[str, bytes]]:
    """Values under keys of their own, the first ones under those of what may be learned from."""
    for number, value in enumerate(repeated(split.measured, most)):
        yield key(split.name, number), value


def write(client: Client, split: Split, most: int) -> None:
    client.compare(in_batches(starmap(setting, keyed(split, most)), BATCH))


def compare(client: Client, split: Split, most: int) -> None:
    client.compare(in_batches(starmap(getting, keyed(split, most)), BATCH))


def growth(split: Split, most: int, before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, float]:
    """By how much each number grew for a value, and the bytes that a value has."""
    sizes = [len(value) for _, value in keyed(split, most)]
    grown = {metric: (after[metric] - before[metric]) / len(sizes) for metric in after}
    return {GIVEN: sum(sizes) / len(sizes), **grown}


def measure_memory(pair: Pair, sets: Sequence[Split], scale: Scale) -> Results:
    """A server just started for each set, since an emptied one keeps memory."""
    results = Results(pair.stock.name)
    with Progress(len(sets) * len(pair.peers)) as progress:
        for split, peer in product(sets, pair.peers):
            with progress.step(1, f"memory: {split.name}, {peer.name}"):
                results.add(split.name, peer.name, memory(peer, split, scale))
    return results


def memory(peer: Peer, split: Split, scale: Scale) -> dict[str, float]:
    """By how much memory grew for a value, with all that the server has learned and needed for that."""
    with start(peer) as server, Client(server.port) as client, valkey.Valkey(port=server.port) as asking:
        before = taken(server, asking, scale)
        teach(client, split, scale)
        write(client, split, scale.values)
        after = taken(server, asking, scale)
        compare(client, split, scale.values)
    return growth(split, scale.values, before, after)


def taken(server: Server, client: valkey.Valkey, scale: Scale) -> dict[str, int]:
    return {
        ANONYMOUS: steady_anonymous_bytes(server.pid, scale.steady, MOST_STEADY_SECONDS),
        USED: grown_bytes(client),
    }


def measure_log(pair: Pair, sets: Sequence[Split], scale: Scale) -> Results:
    """A server just started for each set, with a replica of its own kind."""
    results = Results(pair.stock.name)
    with Progress(len(sets) * len(pair.peers)) as progress:
        for split, peer in product(sets, pair.peers):
            with progress.step(1, f"replica and file: {split.name}, {peer.name}"):
                results.add(split.name, peer.name, log(peer, split, scale))
    return results


def log(peer: Peer, split: Split, scale: Scale) -> dict[str, float]:
    """What a replica and the append-only file get for a value; the replica is asked for it."""
    with (
        start(logging(peer)) as server,
        start(replica_of(server, peer)) as replica,
        Client(server.port) as client,
        Client(replica.port) as reader,
        valkey.Valkey(port=server.port) as asking,
    ):
        wait_for_replica(replica, 0)
        teach(client, split, scale)
        before = logged(asking)
        write(client, split, scale.logged)
        after = logged(asking)
        wait_for_replica(replica, after[REPLICATED])
        compare(reader, split, scale.logged)
    return growth(split, scale.logged, before, after)


def logged(client: valkey.Valkey) -> dict[str, int]:
    return {
        REPLICATED: int(info(client, "replication")["master_repl_offset"]),
        LOGGED: int(info(client, "persistence")["aof_current_size"]),
    }


def wait_for_replica(replica: Server, offset: int) -> None:
    """Waits until a replica has what its primary sent up to an offset."""
    deadline = time.monotonic() + LINK_SECONDS
    with valkey.Valkey(port=replica.port) as client:
        while True:
            told = info(client, "replication")
            if told["master_link_status"] == "up" and int(told["slave_repl_offset"]) >= offset:
                return
            if time.monotonic() > deadline:
                raise SystemExit(f"after {LINK_SECONDS:.0f} seconds {replica.peer.name} lacks writes of its primary")
            time.sleep(POLL_SECONDS)
