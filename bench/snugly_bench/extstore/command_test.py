"""The distributions of requests, the servers that are asked, and the tables."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

import servers
from snugly_bench.extstore import command, measure
from snugly_bench.extstore.measure import (
    ANONYMOUS,
    DISK,
    FROM_DISK,
    GIVEN,
    HITS,
    KEPT,
    MEMCACHED,
    PER_HIT,
    SET,
    UNIFORM,
    USED,
    ZIPF,
    Scale,
    memory_mib,
    orders,
)
from snugly_bench.extstore.verdict import report
from snugly_bench.results import Results
from snugly_bench.servers.loads import CPU, RATE
from tables import line

TINY = Scale(count=500, requests=2_000, rounds=1, pace=30_000)


def recorded(names: tuple[str, ...]) -> Results:
    results = Results(MEMCACHED)
    for number, name in enumerate(names, 1):
        for workload in (SET, ZIPF, UNIFORM):
            metrics = {HITS: number / 4, FROM_DISK: 0.125, CPU: 2.0 * number, PER_HIT: 8.0, RATE: 1000.0}
            results.add(workload, name, metrics)
        results.add(KEPT, name, {GIVEN: 100.0, USED: 40.0, DISK: 50.0 * number, ANONYMOUS: 10.0})
    return results


def test_quick_is_less_of_everything_unless_it_is_given() -> None:
    quick, full = (command.scale(command.parse_arguments(words)) for words in (["--quick"], []))
    assert quick.count * quick.requests * quick.rounds < full.count * full.requests * full.rounds
    given = command.scale(command.parse_arguments(["--quick", "--count", "7"]))
    assert (given.count, given.requests) == (7, 7)


def test_few_values_are_asked_for_often_by_zipf_and_all_alike_otherwise() -> None:
    asked = orders(TINY)
    assert asked == orders(TINY), "all servers get the same requests"
    assert all(len(order) == TINY.requests and set(order) <= set(range(TINY.count)) for order in asked.values())
    most = {workload: Counter(order).most_common(1)[0][1] for workload, order in asked.items()}
    assert most[ZIPF] > TINY.requests / 10 > 5 * most[UNIFORM]


def test_there_is_memory_for_a_tenth_of_the_values() -> None:
    assert memory_mib([bytes(1 << 20)] * 300) == 30
    assert memory_mib([b"x"]) == 2


def test_hits_and_costs_are_told_beside_memcached() -> None:
    text = report(recorded((MEMCACHED, "snugly zstd")))
    assert (
        line(text, ZIPF, "snugly zstd") == f"{ZIPF} | snugly zstd | 50.0% | 12.5% | 4.00 | 2.00 | 8.00 | 1.00 | 1,000"
    )
    assert line(text, "snugly zstd") == "snugly zstd | 100.0 | 40.0 | 100.0 | 2.00 | 10.0 | 1.00"


def test_without_memcached_there_are_no_ratios() -> None:
    assert line(report(recorded(("snugly zstd",))), "snugly zstd") == "snugly zstd | 100.0 | 40.0 | 50.0 |  | 10.0 | "


def measured(folder: Path) -> Results:
    size = ["--count", "500", "--requests", "600", "--rounds", "1", "--codecs", "zstd"]
    command.main(["--program", str(servers.snugly_binary()), "--output", str(folder), *size])
    return Results.read(folder / "extstore.csv")


@pytest.mark.skipif(shutil.which("memcached") is None, reason="memcached is not installed")
def test_both_servers_are_measured_and_the_results_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = measured(tmp_path)
    assert (tmp_path / "extstore.md").read_text() in capsys.readouterr().out
    for name in (MEMCACHED, "snugly zstd"):
        assert results.spread(SET, name, HITS).median == 1
        assert results.spread(UNIFORM, name, HITS).median > 0.5
        assert results.spread(KEPT, name, ANONYMOUS).median > 0
    assert results.spread(ZIPF, "snugly zstd", HITS).median == 1


def test_where_memcached_is_not_installed_it_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measure, "memcached", lambda *_: None)
    assert {subject for _, subject in measured(tmp_path).rows()} == {"snugly zstd"}
    assert "Without memcached, which is not installed." in capsys.readouterr().out
