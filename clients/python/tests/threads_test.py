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
import sys, threading, time
import snugly
client = snugly.Valkey(port=int(sys.argv[1]), compression=True)
client.set("key", "value" * 100)
started = threading.Barrier(9)
def read():
    client.get("key")
    started.wait()
    while True:
        client.get("key")
        client.blpop("none", 0.001)
for _ in range(8):
    threading.Thread(target=read, daemon=True).start()
started.wait()
time.sleep(0.02)
"""


@pytest.mark.slow
def test_the_interpreter_ends_while_threads_wait_for_replies(valkey_server: Server) -> None:
    for _ in range(10):
        command = [sys.executable, "-c", DAEMONS, str(valkey_server.port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")


INSIDE = """
import sys, threading, time
import snugly
class Slow(str):
    def encode(self, *args):
        time.sleep(0.001)
        return super().encode(*args)
client = snugly.Valkey(port=int(sys.argv[1]), compression=True)
value = Slow("value" * 100)
def write():
    client.set("key", value)
    started.wait()
    while True:
        client.set("key", value)
started = threading.Barrier(9)
for _ in range(8):
    threading.Thread(target=write, daemon=True).start()
started.wait()
time.sleep(0.02)
"""


@pytest.mark.slow
def test_the_interpreter_ends_while_native_code_calls_back(valkey_server: Server) -> None:
    for _ in range(10):
        command = [sys.executable, "-c", INSIDE, str(valkey_server.port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
