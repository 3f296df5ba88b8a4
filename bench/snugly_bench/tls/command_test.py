"""Servers that are asked with TLS and without, their requests, and the tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import servers
from snugly_bench.results import Results
from snugly_bench.servers.loads import CPU, RATE
from snugly_bench.servers.peers import Peer, Server, redis_peer
from snugly_bench.tls import command
from snugly_bench.tls.measure import CONNECT, IDLE, MEMORY, PIPELINES, bases, loads, subject, workload
from snugly_bench.tls.peers import CARRIERS, PLAIN, TLS, Certificates, encrypted, snugly_with_tls
from snugly_bench.tls.verdict import report, report_idle
from tables import line

NAMES = ["peer", "snugly none"]
FILES = Certificates("authority.pem", "server.crt", "server.key")
COST = {subject("peer", PLAIN): 2.0, subject("peer", TLS): 6.0}
COST |= {subject("snugly none", PLAIN): 1.0, subject("snugly none", TLS): 3.0}


def recorded(*workloads: str, metrics: tuple[str, ...]) -> Results:
    results = Results(subject("peer", PLAIN), bases(NAMES))
    for name in workloads:
        for who, cost in COST.items():
            results.add(name, who, dict.fromkeys(metrics, cost))
    return results


def test_a_server_listens_with_tls_and_without_and_is_the_same() -> None:
    each = encrypted(Peer("peer", "1.0", ("peer", "--port", "{port}")), FILES)
    words = list(each.peer.command)
    assert words[words.index("--tls-port") + 1] == str(each.tls_port)
    assert words[words.index("--tls-auth-clients") + 1] == "no"
    server = Server(each.peer, 1, 2)
    assert each.reached(server, PLAIN) == server
    assert (each.reached(server, TLS).port, each.reached(server, TLS).pid) == (each.tls_port, 2)


def test_snugly_compresses_nothing_here() -> None:
    words = list(snugly_with_tls(str(servers.snugly_binary()), FILES).peer.command)
    assert words[words.index("--compression") + 1] == "none"


def test_keys_are_read_and_written_with_each_pipeline_and_connections_made_anew() -> None:
    asked = loads(b'{"a": 1}', quick=True)
    assert {load.name for load in asked} == {
        *(workload(test, pipeline) for test in ("GET", "SET") for pipeline in PIPELINES),
        CONNECT,
    }
    (connect,) = (load for load in asked if load.name == CONNECT)
    assert connect.options[-2:] == ("-k", "0")
    assert all(load.words[-1] == '{"a": 1}' for load in asked if load.words[0] == "SET")


def test_tls_is_compared_with_none_and_with_the_peers() -> None:
    text = report(recorded("GET, 1 at a time", metrics=(CPU, RATE)), NAMES, rounds=1)
    assert line(text, "GET, 1 at a time", "snugly none").endswith("1.00 | 3.00 | 3.00 | 0.50 | 0.50")
    text = report_idle(recorded(IDLE, metrics=(MEMORY,)), NAMES, connections=10)
    assert line(text, IDLE, "peer").endswith("2 | 6 | 3.00 | 1.00 | 1.00")


@pytest.mark.skipif(shutil.which("redis-benchmark") is None, reason="there is no redis-benchmark here")
@pytest.mark.skipif(redis_peer() is None, reason="there is no redis-server here")
def test_all_is_measured_and_the_results_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SNUGLY_VALKEY_SERVER", str(servers.valkey_binary()))
    words = ["--program", str(servers.snugly_binary()), "--quick", "--output", str(tmp_path)]
    command.main(words)
    assert (tmp_path / "tls.md").read_text() in capsys.readouterr().out
    results = Results.read(tmp_path / "tls.csv")
    assert {who.split(", ")[1] for _, who in results.rows()} == set(CARRIERS)
    assert all(results.spread(load, who, CPU).median > 0 for load, who in results.rows() if load != IDLE)
