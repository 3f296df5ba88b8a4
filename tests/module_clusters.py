"""Valkey Clusters of which some nodes have the module: starting them, moving slots, and looking at what is stored.

It knows how nodes are told to do so and how far they are. It knows nothing of what is tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import servers
import valkey_module
from cluster_traffic import Traffic, until_each_has_worked
from nodes import ask, identity
from replicas import replication, until_up
from resp import Connection, Map, Reply, Simple
from servers import Server
from valkey_module import EAGER, panics
from waiting import until

OK = Simple(b"OK")
# What is at a key, and whether it expires.
Found: TypeAlias = dict[bytes, tuple[Reply, bool]]
ALL = range(100)


# Only commands compress, so that what is stored stays as it is.
QUIET = (*EAGER, "--snugly.background-cpu-percent", "0")


@contextmanager
def cluster(
    primaries: int = 3,
    replicas: int = 0,
    *options: str,
    with_module: Sequence[int] = ALL,
    settings: Sequence[str] = QUIET,
) -> Iterator[list[Server]]:
    """A cluster of which the nodes of these numbers have the module, which compresses what it may."""
    numbers = [number for number in range(primaries * (1 + replicas)) if number in with_module]
    module = ("--loadmodule", str(valkey_module.library()), *settings) if numbers else ()
    with servers.valkey_cluster(primaries, replicas, *options, own=dict.fromkeys(numbers, module)) as nodes:
        yield nodes
        assert [panics(nodes[number]) for number in numbers] == [0] * len(numbers)


@contextmanager
def joining(nodes: Sequence[Server], *options: str) -> Iterator[Server]:
    """A server that becomes a node of a cluster, without slots."""
    with servers.reserved_port() as bus:
        settled = ("--cluster-enabled", "yes", "--cluster-port", str(bus), *options)
        with servers.valkey(*settled) as node:
            for other in nodes:
                assert ask(other, "CLUSTER", "MEET", "127.0.0.1", node.port, bus) == OK
            until(lambda: all(len(known_nodes(each)) == len(nodes) + 1 for each in (*nodes, node)))
            yield node


def known_nodes(node: Server) -> list[bytes]:
    """Identities of the nodes that a node knows and is in touch with."""
    told = ask(node, "CLUSTER", "NODES")
    assert isinstance(told, bytes)
    return [line.split()[0] for line in told.splitlines() if b"handshake" not in line and b" connected" in line]


def emptied(nodes: Sequence[Server]) -> None:
    for node in nodes:
        assert ask(node, "FLUSHALL") == OK


def keys_in(node: Server, slot: int) -> list[bytes]:
    keys = ask(node, "CLUSTER", "GETKEYSINSLOT", slot, 100_000)
    assert isinstance(keys, list)
    return sorted(key for key in keys if isinstance(key, bytes))


def is_primary(node: Server) -> bool:
    role, info = ask(node, "ROLE"), ask(node, "CLUSTER", "INFO")
    return isinstance(role, list) and role[0] == b"master" and isinstance(info, bytes) and b"cluster_state:ok" in info


def owners(node: Server, slot: int) -> list[int]:
    """Ports of the slot's primary and its replicas, as a node knows them."""
    rows = ask(node, "CLUSTER", "SLOTS")
    assert isinstance(rows, list)
    for row in rows:
        assert isinstance(row, list)
        first, last, *places = row
        assert isinstance(first, int)
        assert isinstance(last, int)
        if first <= slot <= last:
            return [place[1] for place in places if isinstance(place, list) and isinstance(place[1], int)]
    return []


def until_known(nodes: Sequence[Server], slot: int, owner: Server) -> None:
    until(lambda: all(owners(node, slot)[:1] == [owner.port] for node in nodes))


def until_followed(primary: Server, replica: Server) -> None:
    """Waits until one has become a primary, and the other its replica that has all."""
    until(lambda: is_primary(primary))
    with replica.connect() as connection:
        until(lambda: replication(connection).get("master_port") == str(primary.port))
        until_up(connection)


def replicas_take_over(nodes: Sequence[Server], clients: Sequence[Traffic]) -> Iterator[list[Server]]:
    """Of three primaries with a replica each: since they are told to, then since the third primary is killed.

    Stops after each, when all clients have worked, with the nodes that are there.
    """
    for primary, replica in ((nodes[0], nodes[3]), (nodes[3], nodes[0]), (nodes[1], nodes[4])):
        assert ask(replica, "CLUSTER", "FAILOVER") == OK
        until_followed(replica, primary)
        until_each_has_worked(clients)
        yield list(nodes)
    nodes[2].process.kill()
    until(lambda: is_primary(nodes[5]))
    for client in clients:
        # No other replica is there that one could wait for.
        client.waits = False
    until_each_has_worked(clients)
    yield [*nodes[:2], *nodes[3:]]


# What is stored.


def stored(node: Server, slot: int, beside: Server) -> Found:
    """All that a node has in a slot, as the server without the module gives it to which it is copied."""
    assert ask(beside, "FLUSHALL") == OK
    keys = keys_in(node, slot)
    if keys:
        assert ask(node, "MIGRATE", "127.0.0.1", beside.port, "", 0, 60_000, "COPY", "KEYS", *keys) == OK
    return contents(beside, keys)


def contents(node: Server, keys: Sequence[bytes]) -> Found:
    with node.connect() as connection:
        return {key: (value_at(connection, key), connection.command("PEXPIRETIME", key) != -1) for key in keys}


def value_at(connection: Connection, key: bytes) -> Reply:
    is_list = connection.command("TYPE", key) == Simple(b"list")
    return connection.command(*(("LRANGE", key, 0, -1) if is_list else ("GET", key)))


# Slots that move key by key.


def open_slot(slot: int, source: Server, target: Server) -> None:
    assert ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", identity(source)) == OK
    assert ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", identity(target)) == OK


def close_slot(slot: int, nodes: Sequence[Server], owner: Server) -> None:
    for node in (owner, *(node for node in nodes if node is not owner)):
        assert ask(node, "CLUSTER", "SETSLOT", slot, "NODE", identity(owner)) == OK


def move_keys(source: Server, target: Server, keys: Sequence[bytes]) -> None:
    if keys:
        moved = ask(source, "MIGRATE", "127.0.0.1", target.port, "", 0, 60_000, "REPLACE", "KEYS", *keys)
        assert moved in (OK, Simple(b"NOKEY"))


def move_slot_by_keys(slot: int, nodes: Sequence[Server], source: Server, target: Server) -> Iterator[None]:
    """Stops when half of the keys are there."""
    open_slot(slot, source, target)
    keys = keys_in(source, slot)
    move_keys(source, target, keys[::2])
    yield
    while keys := keys_in(source, slot):
        move_keys(source, target, keys)
    close_slot(slot, nodes, target)


# Slots that move at once.


def migrations(node: Server) -> list[dict[bytes, Reply]]:
    """What a node tells of the slots that it has given away or taken over, the last ones first."""
    rows = ask(node, "CLUSTER", "GETSLOTMIGRATIONS")
    assert isinstance(rows, list)
    return [dict(pairs(row)) for row in rows]


def pairs(row: Reply) -> list[tuple[bytes, Reply]]:
    if isinstance(row, Map):
        return [(name, value) for name, value in row.pairs if isinstance(name, bytes)]
    assert isinstance(row, list)
    return [(name, value) for name, value in zip(row[::2], row[1::2], strict=True) if isinstance(name, bytes)]


def begin_migration(source: Server, target: Server, first: int, last: int) -> None:
    told = ask(source, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", first, last, "NODE", identity(target))
    assert told == OK, told


def until_state(source: Server, wanted: bytes) -> None:
    """Waits until the last migration is so far; fails if it ends otherwise."""

    def is_there() -> bool:
        last = migrations(source)[0]
        assert last[b"state"] == wanted or last[b"state"] not in (b"failed", b"cancelled", b"success"), last
        return last[b"state"] == wanted

    until(is_there)


def migrate(nodes: Sequence[Server], source: Server, target: Server, first: int, last: int) -> None:
    begin_migration(source, target, first, last)
    until_state(source, b"success")
    until_known(nodes, first, target)


@contextmanager
def held(source: Server, target: Server, slot: int) -> Iterator[None]:
    """A migration that has sent what was there, and sends what is written until this ends."""
    assert ask(source, "DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", 1) == OK
    try:
        begin_migration(source, target, slot, slot)
        until_state(source, b"waiting-to-pause")
        yield
    finally:
        assert ask(source, "DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", 0) == OK
