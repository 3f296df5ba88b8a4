"""Measures servers with one choice each, in turn, after they had time to learn."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import valkey

from snugly_bench.adaptive.choices import NONE
from snugly_bench.adaptive.driver import Driver, connected
from snugly_bench.adaptive.workload import Batch, Pair, writing
from snugly_bench.progress import Progress
from snugly_bench.results import Results
from snugly_bench.servers.info import cpu_seconds, dataset_bytes, dictionary_bytes, info
from snugly_bench.servers.learning import REST_SHARE, THREAD, hurrying
from snugly_bench.servers.loads import LOAD_CORE, SERVER_CORE
from snugly_bench.servers.peers import Peer, Server, start
from snugly_bench.servers.process import thread_seconds

SAVED, STORED, CPU, EACH, RATE, WORTH = (
    *("saved bytes", "stored bytes", "server CPU s", "CPU µs/request", "requests/s", "saved bytes/CPU s"),
)
LEARNED = ("dictionary_trainings", "dictionary_adoptions", "dictionaries_active")
"""Of INFO: what must not change any more."""
STEADY_LOOKS = 3
"""So often it must look the same."""
LEAST_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Subject:
    """A server that runs, with connections to it."""

    server: Server
    client: valkey.Valkey
    driver: Driver

    @property
    def name(self) -> str:
        return self.server.peer.name

    def stored(self) -> int:
        """Bytes that keys, values and dictionaries take, overhead included."""
        return dataset_bytes(self.client) + dictionary_bytes(self.client)


@contextmanager
def running(peers: Sequence[Peer]) -> Iterator[list[Subject]]:
    """All servers on one core, while this process is on another."""
    allowed = os.sched_getaffinity(0)
    with ExitStack() as afterwards:
        found = []
        for peer in peers:
            server = afterwards.enter_context(start(peer, SERVER_CORE))
            client = afterwards.enter_context(valkey.Valkey(port=server.port))
            found.append(Subject(server, client, afterwards.enter_context(connected(server))))
        os.sched_setaffinity(0, {LOAD_CORE})
        afterwards.callback(os.sched_setaffinity, 0, allowed)
        yield found


def warm_up(subject: Subject, pairs: Sequence[Pair], batches: Sequence[Batch], most_seconds: float) -> bool:
    """Writes all keys, and has requests answered until nothing more is learned; says whether it came to that."""
    subject.driver.run(writing(pairs))
    deadline, steady, before = time.monotonic() + most_seconds, 0, None
    with hurrying(subject.client):
        while steady < STEADY_LOOKS and time.monotonic() < deadline:
            began, worked = time.monotonic(), thread_seconds(subject.server.pid, THREAD)
            while time.monotonic() - began < LEAST_LOOK_SECONDS:
                subject.driver.run(batches)
            share = (thread_seconds(subject.server.pid, THREAD) - worked) / (time.monotonic() - began)
            found = info(subject.client, "dictionaries")
            state = [found[field] for field in LEARNED]
            steady = steady + 1 if state == before and share < REST_SHARE else 0
            before = state
    return steady == STEADY_LOOKS


def measure(
    subjects: Sequence[Subject], batches: Sequence[Batch], times: int, rounds: int, workload: str, results: Results,
    progress: Progress,
) -> None:  # fmt: skip
    """Has the same requests answered by all in turn, another one first in each round."""
    for number in range(rounds):
        first = number % len(subjects)
        found = {}
        for subject in (*subjects[first:], *subjects[:first]):
            with progress.step(1, f"{workload}, round {number + 1} of {rounds}: {subject.name}"):
                found[subject.name] = ask(subject, batches, times)
        whole = found[NONE][STORED]
        for name, metrics in found.items():
            saved = whole - metrics[STORED]
            results.add(workload, name, metrics | {SAVED: saved, WORTH: saved / metrics[CPU]})


def ask(subject: Subject, batches: Sequence[Batch], times: int) -> dict[str, float]:
    before = cpu_seconds(subject.client)
    requests, seconds = subject.driver.run(batches, times)
    cpu = cpu_seconds(subject.client) - before
    return {CPU: cpu, EACH: cpu / requests * 1e6, RATE: requests / seconds, STORED: float(subject.stored())}
