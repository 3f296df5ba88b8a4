"""One client, many threads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import redis
import redis.cluster

import snugly
from kinds import gated
from servers import Server
from threads import in_threads

THREADS = 32
ROUNDS = 40


def value_of(thread: int, round: int) -> bytes:
    """Of sizes below and above those that are compressed with and without the interpreter's lock."""
    return f"thread {thread} round {round}; ".encode() * (1 + (thread * round) % 97 * (200 if thread % 8 == 0 else 2))


def work(client: Any, thread: int) -> None:
    for round in range(ROUNDS):
        key, value = f"key {thread}", value_of(thread, round)
        client.set(key, value)
        assert client.get(key) == value
        pipeline = client.pipeline()
        for number in range(3):
            pipeline.set(f"{key} {number}", value)
            pipeline.get(f"{key} {number}")
        assert pipeline.execute() == [True, value] * 3


CLIENTS: dict[str, Callable[[int, int], Any]] = {
    "snugly": lambda port, _: snugly.Valkey(port=port, compression=True),
    "snugly not native": lambda port, _: snugly.Valkey(port=port, compression=True, native=False),
    "redis-py": lambda port, _: snugly.compress(redis.Redis(port=port)),
    "snugly cluster": lambda _, port: snugly.ValkeyCluster(host="127.0.0.1", port=port, compression=True),
    "redis-py cluster": lambda _, port: snugly.compress(redis.cluster.RedisCluster(host="127.0.0.1", port=port)),
}


@pytest.mark.parametrize("name", gated(CLIENTS, {"snugly", "snugly cluster"}))
def test_threads_share_a_client(valkey_server: Server, cluster: list[Server], name: str) -> None:
    client = CLIENTS[name](valkey_server.port, cluster[0].port)
    in_threads(*(lambda thread=thread: work(client, thread) for thread in range(THREADS)))
    counted = snugly.statistics(client)
    written = sum(count for name, count in counted.items() if name.startswith("encoded_values_"))
    assert written == THREADS * ROUNDS * 4
    read = sum(count for name, count in counted.items() if name.startswith("decoded_values_"))
    assert read == written
    assert counted["decode_failures"] == counted["encode_failures"] == 0
    client.close()


DAEMONS = """
import os, sys, threading, time
import snugly
class Slow(str):
    def encode(self, *args):
        time.sleep(0.001)
        return super().encode(*args)
what, port, forks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
compression = snugly.CompressionConfiguration(
    dictionary="auto" if what == "learning" else None, dictionary_refresh=0.5
)
client = snugly.Valkey(port=port, compression=compression)
small, large, slow = "value" * 100, os.urandom(100_000).hex(), Slow("value" * 100)
def work():
    if what == "replies":
        client.get("key")
        client.blpop("none", 0.001)
    elif what == "large values":
        client.set("large", large)
        client.get("large")
    elif what == "pipelines":
        pipeline = client.pipeline(transaction=False)
        for number in range(100):
            pipeline.set(str(number), large[number : number + 2_000])
        pipeline.execute()
    elif what == "learning":
        for number in range(200):
            client.set(f"user:{number}", '{"name": "%s", "place": "somewhere"}' % (str(number) * 40))
    else:
        client.set("key", slow)
def forever():
    client.set("key", small)
    work()
    started.wait()
    while True:
        work()
started = threading.Barrier(9)
for _ in range(8):
    threading.Thread(target=forever, daemon=True).start()
started.wait()
time.sleep(0.02)
for _ in range(forks):
    child = os.fork()
    if child == 0:
        sys.exit()
    os.waitpid(child, 0)
"""
WORK = ("replies", "large values", "pipelines", "learning", "calls back")


def ended(what: str, server: Server, forks: int = 0) -> tuple[int, str]:
    """The return code of a process that ends while eight daemon threads work, and its complaints."""
    command = [sys.executable, "-W", "ignore", "-c", DAEMONS, what, str(server.port), str(forks)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("what", WORK)
def test_the_interpreter_ends_while_threads_work(what: str, valkey_server: Server) -> None:
    for _ in range(60):
        assert ended(what, valkey_server) == (0, "")


@pytest.mark.slow
def test_a_forked_child_does_not_wait_for_the_threads_of_its_parent(valkey_server: Server) -> None:
    # Each that did would wait for ten seconds.
    assert ended("large values", valkey_server, forks=20) == (0, "")
