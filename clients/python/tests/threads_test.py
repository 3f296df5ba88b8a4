"""One client, many threads."""

from __future__ import annotations

from typing import Any

import pytest
import redis.cluster

import snugly
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


@pytest.mark.parametrize("clustered", [False, True], ids=["one server", "cluster"])
def test_threads_share_a_client(valkey_server: Server, cluster: list[Server], clustered: bool) -> None:
    client: Any
    if clustered:
        client = snugly.compress(redis.cluster.RedisCluster(host="127.0.0.1", port=cluster[0].port))
    else:
        client = snugly.Valkey(port=valkey_server.port, compression=True)
    in_threads(*(lambda thread=thread: work(client, thread) for thread in range(THREADS)))
    counted = snugly.statistics(client)
    written = sum(count for name, count in counted.items() if name.startswith("encoded_values_"))
    assert written == THREADS * ROUNDS * 4
    read = sum(count for name, count in counted.items() if name.startswith("decoded_values_"))
    assert read == written
    assert counted["decode_failures"] == counted["encode_failures"] == 0
    client.close()
