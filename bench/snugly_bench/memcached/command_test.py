"""The servers and requests that are compared, and the tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import servers
from snugly_bench.memcached import command, measure, verdict
from snugly_bench.memcached.measure import RECOMPRESSED, SIZES, TOTAL, VALUE, Size, all_peers, loads_of
from snugly_bench.memcached.verdict import NONE, report, report_memory, workloads
from snugly_bench.results import Results
from snugly_bench.servers.loads import BUSY, CPU, RATE
from snugly_bench.servers.peers import LEARNING, MEMCACHED, Peer
from tables import line

SPEED = {MEMCACHED: 100.0, NONE: 101.0, LEARNING: 89.0}
"""Requests a second of each server in whatever it does."""


def recorded() -> Results:
    results = Results(MEMCACHED)
    for size in SIZES:
        for workload in workloads(size):
            for server, rate in SPEED.items():
                results.add(workload, server, {RATE: rate, CPU: 1000 / rate, BUSY: 1.0})
    return results


def test_each_size_is_asked_by_one_key_and_by_many_and_written_once() -> None:
    size = Size("1 B", 1, keys=5, requests=1200)
    assert workloads(size)[:3] == (
        "GET, 1 B, 1 connection",
        "SET, 1 B, 1 connection",
        "GET, 1 B, 1 connection, 20 keys",
    )
    assert [load.keys_per_get for load in loads_of(size, ())] == [1, 20] * 3
    assert all(load.keys == 5 for load in loads_of(size, ()))


def test_a_snugly_is_asked_as_memcached_and_taught_over_resp() -> None:
    peers = all_peers(str(servers.snugly_binary()), Peer("m", "", ()))
    for peer in peers.peers[1:]:
        words = list(peer.command)
        assert peer.scheme == "memcached"
        assert words[words.index("--memcached-port") + 1] == "{port}"
        assert words[words.index("--port") + 1] == str(peers.resp_ports[peer.name])


def test_the_aims_are_shares_of_memcached() -> None:
    text = report(recorded(), rounds=1)
    small = "GET, 1 KB, 16 connections"
    assert "requests/s at least 1.00 of memcached: met (1.01)" in line(text, small, NONE)
    assert "requests/s at least 0.90 of memcached: MISSED (0.89)" in line(text, small, LEARNING)
    assert line(text, "GET, 16 KB, 16 connections", LEARNING).endswith("| 100% | ")


def test_memory_is_judged_where_all_is_recompressed() -> None:
    results = Results(MEMCACHED)
    for server, total in {MEMCACHED: 1000.0, LEARNING: 490.0}.items():
        for state in (measure.WRITTEN, RECOMPRESSED):
            results.add(state, server, {VALUE: 900.0, TOTAL: total})
    text = report_memory(results, keys=10)
    assert line(text, RECOMPRESSED, LEARNING).endswith(
        "| 490.0 | 0.49 | bytes per value at most 0.50 of memcached: met (0.49)"
    )
    assert line(text, measure.WRITTEN, LEARNING).endswith("| 490.0 | 0.49 | ")


@pytest.mark.skipif(shutil.which("memcached") is None, reason="memcached is not installed")
def test_all_servers_are_measured_and_the_results_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = (Size("1 KB", measure.SMALL_BYTES, keys=1_000, requests=4_000),)
    for module in (measure, verdict):
        monkeypatch.setattr(module, "SIZES", sizes)
        monkeypatch.setattr(module, "CONNECTIONS", (2,))
    words = ["--program", str(servers.snugly_binary()), "--quick", "--only", "throughput", "--output", str(tmp_path)]
    command.main(words)
    assert (tmp_path / "memcached.md").read_text() in capsys.readouterr().out
    results = Results.read(tmp_path / "memcached.csv")
    assert len(results.rows()) == 3 * len(SPEED)
    assert all(results.spread(*row, CPU).median > 0 for row in results.rows())
