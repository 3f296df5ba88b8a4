"""A cluster of six nodes that changes under traffic: slots move from node to node, and a primary is killed.

Values are written under `wrap`, and some of them are envelopes: one that was encoded or restored twice, or not at all,
is not the value that is expected.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from valkey.crc import key_slot

import servers
import snugly
from kinds import KINDS, Driver, Kind, connected
from nodes import ask, identity
from servers import Server
from snugly import CompressionConfiguration, ExistingEnvelopes, codec
from waiting import until

pytestmark = pytest.mark.slow

PRIMARIES = 3
# Hash tags of the keys in one slot; each of these slots is another primary's.
TAGS = ("b", "c", "a")
KEYS_IN_SLOT = 3
# Rounds until all that a client does has been done in each slot.
CYCLE = 5 * len(TAGS)
WRAP = CompressionConfiguration(existing_envelopes=ExistingEnvelopes.WRAP)
PACKAGE = str(Path(snugly.__file__).parent)


def value_of(key: str, version: int) -> bytes:
    """No other key and no other version has the same: too short to compress, long, or an envelope itself."""
    text = f"{key} in version {version}; ".encode() * (1 + version % 40)
    return codec.encode(text) if version % 4 == 3 else text


def is_a_failure(error: Exception) -> bool:
    """Libraries raise all kinds of errors while a cluster changes. Wrong values are failures, and errors of ours."""
    *_, raised_at = traceback.extract_tb(error.__traceback__)
    return isinstance(error, AssertionError | snugly.SnuglyError) or raised_at.filename.startswith(PACKAGE)


class Traffic:
    """One client at work in a thread of its own, on keys of its own, whose values it checks."""

    def __init__(self, kind: Kind, driver: Driver, loses: bool) -> None:
        self.kind = kind
        self.driver = driver
        self.rounds = 0
        self.rounds_without_error = 0
        self.values_sent = 0
        self.errors = 0
        self.failure: Exception | None = None
        self._loses = loses
        """Whether a write that was answered may be gone: a primary that is killed takes some with it."""
        self._version = 0
        self._possible: dict[str, list[bytes]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=kind.name)

    def start(self) -> None:
        for tag in TAGS:
            self._write(self._keys(tag), lambda pairs: self.driver("mset", pairs))
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def written(self) -> Iterator[tuple[str, list[bytes]]]:
        """Each key with the values that it may have."""
        return iter(self._possible.items())

    def _keys(self, tag: str) -> list[str]:
        return [f"{{{tag}}} {self.kind.name} {number}" for number in range(KEYS_IN_SLOT)]

    def _run(self) -> None:
        works = [self._singly, self._in_a_pipeline, self._in_many_slots, self._in_one_slot]
        # Clients of redis-py's asyncio clusters look for nodes in event loops of their own, and lose their connections.
        if self.kind.transactions and "asyncio" not in self.kind.name:
            works.append(self._in_a_transaction)
        while not self._stopping.is_set() and self.failure is None:
            work = works[self.rounds % len(works)]
            tag = TAGS[self.rounds // len(works) % len(TAGS)]
            try:
                work(tag)
                self.rounds_without_error += 1
            except Exception as error:
                if is_a_failure(error):
                    self.failure = error
                self.errors += 1
                self.rounds_without_error = 0
            self.rounds += 1

    def _singly(self, tag: str) -> None:
        for key in self._keys(tag):
            self._write([key], lambda pairs: self.driver("set", *next(iter(pairs.items()))))
            self._check([key], [self.driver("get", key)])

    def _in_a_pipeline(self, tag: str) -> None:
        keys = self._keys(tag)
        self._write(keys, lambda pairs: self.driver.batch(*(("set", *pair) for pair in pairs.items())))
        self._check(keys, self.driver.batch(*(("get", key) for key in keys)))

    def _in_a_transaction(self, tag: str) -> None:
        keys = self._keys(tag)
        self._write(
            keys, lambda pairs: self.driver.batch(*(("set", *pair) for pair in pairs.items()), transaction=True)
        )
        self._check(keys, self.driver.batch(*(("get", key) for key in keys), transaction=True))

    def _in_one_slot(self, tag: str) -> None:
        keys = self._keys(tag)
        self._write(keys, lambda pairs: self.driver("mset", pairs))
        self._check(keys, self.driver("mget", keys))

    def _in_many_slots(self, _tag: str) -> None:
        keys = [self._keys(tag)[0] for tag in TAGS]
        self._write(keys, lambda pairs: self.driver("mset_nonatomic", pairs))
        self._check(keys, self.driver("mget_nonatomic", keys))

    def _write(self, keys: list[str], send: Callable[[dict[str, bytes]], Any]) -> None:
        self._version += 1
        pairs = {key: value_of(key, self._version) for key in keys}
        for key, value in pairs.items():
            self._possible.setdefault(key, []).append(value)
        self.values_sent += len(pairs)
        send(pairs)
        if not self._loses:
            self._possible.update({key: [value] for key, value in pairs.items()})

    def _check(self, keys: list[str], values: list[Any]) -> None:
        assert len(values) == len(keys)
        for key, value in zip(keys, values, strict=True):
            assert value in self._possible[key], f"{key} is {value!r}"


@contextmanager
def traffic(port: int, loses: bool) -> Iterator[list[Traffic]]:
    """Clients of all kinds at work, on a cluster that has a node at `port`. A wrong value is raised at the end."""
    with ExitStack() as stack:
        clients: list[Traffic] = []
        for kind in KINDS:
            if kind.cluster:
                client = Traffic(kind, stack.enter_context(connected(kind, port, WRAP)), loses)
                client.start()
                stack.callback(client.stop)
                clients.append(client)
        yield clients
        for client in clients:
            client.stop()
        for client in clients:
            if client.failure is not None:
                raise client.failure


def until_each_has_worked(clients: list[Traffic], rounds: int) -> None:
    goals = [(client, client.rounds + rounds) for client in clients]
    until(lambda: all(client.rounds >= goal or client.failure for client, goal in goals), 180)


def until_each_works_again(clients: list[Traffic]) -> None:
    until_each_has_worked(clients, CYCLE)
    until(lambda: all(client.rounds_without_error >= CYCLE or client.failure for client in clients), 180)


def errors_answered(nodes: Iterable[Server], name: str) -> int:
    """Number of times that these nodes have answered with an error of this name."""
    total = 0
    for node in nodes:
        info = ask(node, "INFO", "errorstats")
        assert isinstance(info, bytes)
        for line in info.decode().splitlines():
            if line.startswith(f"errorstat_{name}:count="):
                total += int(line.partition("=")[2])
    return total


def move_keys(slot: int, source: Server, target: Server, most: int) -> int:
    """Moves up to `most` keys of the slot; returns how many."""
    keys = ask(source, "CLUSTER", "GETKEYSINSLOT", slot, most)
    assert isinstance(keys, list)
    names = [key for key in keys if isinstance(key, bytes)]
    if names:
        moved = ask(source, "MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *names)
        assert moved is not None
    return len(names)


def move_slot(slot: int, nodes: list[Server], source: Server, target: Server, half_way: Callable[[], None]) -> None:
    ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", identity(source))
    ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", identity(target))
    move_keys(slot, source, target, 10)
    half_way()
    while move_keys(slot, source, target, 100):
        pass
    for node in (target, *(node for node in nodes[:PRIMARIES] if node is not target)):
        ask(node, "CLUSTER", "SETSLOT", slot, "NODE", identity(target))


def test_no_value_is_wrong_while_slots_move_from_node_to_node() -> None:
    with servers.valkey_cluster(PRIMARIES, 1) as nodes, traffic(nodes[0].port, loses=False) as clients:
        for number, tag in enumerate(TAGS):
            source, target = nodes[number], nodes[(number + 1) % PRIMARIES]
            asked, moved = errors_answered(nodes, "ASK"), errors_answered(nodes, "MOVED")
            move_slot(key_slot(tag.encode()), nodes, source, target, lambda: until_each_has_worked(clients, CYCLE))
            assert errors_answered(nodes, "ASK") > asked
            until_each_has_worked(clients, CYCLE)
            assert errors_answered(nodes, "MOVED") > moved
        until_each_works_again(clients)
        for client in clients:
            client.stop()
            counted = snugly.statistics(client.driver.client)
            assert encoded(counted) == client.values_sent
            assert counted["encoded_values_zstd"] > client.values_sent / 2
            assert counted["decode_failures"] == counted["encode_failures"] == 0
        with connected(KINDS[-1], nodes[0].port, False) as plain:
            for client in clients:
                for key, values in client.written():
                    assert codec.decode(plain("get", key)) in values


def encoded(counted: dict[str, int]) -> int:
    return sum(count for name, count in counted.items() if name.startswith("encoded_values_"))


def test_no_value_is_wrong_while_a_primary_is_killed_and_its_replica_takes_over() -> None:
    with (
        servers.valkey_cluster(PRIMARIES, 1, "--cluster-node-timeout", "2000") as nodes,
        traffic(nodes[0].port, loses=True) as clients,
    ):
        until_each_has_worked(clients, CYCLE)
        killed, replica = nodes[0], nodes[PRIMARIES]
        killed.process.kill()
        until(lambda: is_primary(replica))
        until_each_works_again(clients)
        for client in clients:
            client.stop()
            # A command that did not get as far as a node may not have been encoded.
            assert encoded(snugly.statistics(client.driver.client)) <= client.values_sent
        assert any(client.errors for client in clients)


def is_primary(node: Server) -> bool:
    role, info = ask(node, "ROLE"), ask(node, "CLUSTER", "INFO")
    return isinstance(role, list) and role[0] == b"master" and isinstance(info, bytes) and b"cluster_state:ok" in info
