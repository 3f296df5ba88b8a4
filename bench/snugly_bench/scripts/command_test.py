"""Scripts that are measured, and their table."""

from __future__ import annotations

from pathlib import Path

import pytest

import servers
from snugly_bench.results import Results
from snugly_bench.scripts import command
from snugly_bench.servers.loads import CPU
from snugly_bench.servers.peers import Peer
from tables import line

PEERS = [Peer(name, "1.0", (name,)) for name in ("valkey", "snugly none")]


def test_a_table_has_the_ratio_of_each_load_and_judges_what_has_an_aim() -> None:
    results = Results("valkey")
    for name in command.LOADS:
        results.add(name, "valkey", {CPU: 2.0})
        results.add(name, "snugly none", {CPU: 3.0})
    text = command.report(results, PEERS, 1)
    assert line(text, "GET") == "GET | 2.00 | 3.00 | 1.50 | "
    assert "MISSED (1.5)" in line(text, "EVAL of a GET")


def test_all_is_measured_and_the_results_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SNUGLY_VALKEY_SERVER", str(servers.valkey_binary()))
    command.main(["--quick", "--program", str(servers.snugly_binary()), "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "only show that everything runs" in printed
    assert all(name in printed for name in command.LOADS)
    results = Results.read(tmp_path / "scripts.csv")
    assert {name for name, _ in results.rows()} == set(command.LOADS)
