"""The requests to every server that keeps lists, and the evaluation of the answers."""

from __future__ import annotations

from pathlib import Path

import pytest
import valkey

import servers
from snugly_bench.lists import command
from snugly_bench.lists.choices import BASES, DATA, DICTIONARY, LZ4, LZF, NONE, RIVALS, ZSTD, peers, snugly_lists
from snugly_bench.lists.driver import Driver, driving
from snugly_bench.lists.measure import ANONYMOUS, GIVEN, P50, P99, TESTS, USED, Scale, memory_workload, workload
from snugly_bench.lists.verdict import aims, report
from snugly_bench.results import Results
from snugly_bench.servers.loads import CPU, RATE, SERVER_CORE
from snugly_bench.servers.peers import VALKEY, start
from tables import line

TINY = Scale(lists=6, elements=120, element_size=512, requests=200, rounds=1)
SPEED = {VALKEY: 100.0, LZF: 40.0, NONE: 110.0, LZ4: 80.0, ZSTD: 70.0, DICTIONARY: 70.0}
"""Requests a second of each server in whatever it does."""
TAKEN = {VALKEY: 1000.0, LZF: 500.0, NONE: 990.0, LZ4: 520.0, ZSTD: 380.0, DICTIONARY: 290.0}
"""Bytes of memory of each server."""


def recorded(data: str) -> Results:
    results = Results("", dict(BASES))
    for server, rate in SPEED.items():
        for test in TESTS:
            metrics = {RATE: rate, CPU: 1000 / rate, P50: 5.0, P99: 9.0}
            results.add(workload(test, data), server, metrics)
        taken = {GIVEN: 950.0, USED: TAKEN[server], ANONYMOUS: TAKEN[server]}
        results.add(memory_workload(data), server, taken)
    return results


def test_quick_is_less_of_everything_unless_it_is_given() -> None:
    quick, full = (command.scale(command.parse_arguments(words)) for words in (["--quick"], []))
    assert quick.lists * quick.elements * quick.requests < full.lists * full.elements * full.requests
    given = command.scale(command.parse_arguments(["--quick", "--lists", "7", "--element-size", "90"]))
    assert (given.lists, given.element_size, given.elements) == (7, 90, quick.elements)
    assert given.connections == 7
    with pytest.raises(SystemExit):
        command.parse_arguments(["--data", "random"])


def test_every_server_has_one_to_be_compared_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNUGLY_VALKEY_SERVER", str(servers.valkey_binary()))
    names = [peer.name for peer in peers(str(servers.snugly_binary()))]
    assert names == list(BASES)
    assert all(RIVALS[name] in names for name in names if name != VALKEY)


def test_what_compression_costs_and_gains_is_told_beside_the_aims() -> None:
    text = report(recorded("varied"), "varied")
    shown = line(text, "LINDEX, random place", LZ4)
    assert "0.73 | 2.00 |" in shown, "of its own uncompressed, and of valkey's with LZF"
    assert f"requests/s at least 0.75 of {NONE}: MISSED (0.727)" in shown
    assert f"requests/s at least 1.60 of {LZF}: met (2)" in shown
    assert f"{CPU} at most 1.33 of {NONE}: MISSED (1.37)" in shown
    assert "requests/s at least 1.00 of valkey: met (1.1)" in line(text, "RPOP", NONE)
    assert line(text, "RPUSH", LZ4).endswith("| "), "nothing is aimed at"
    memory = line(text, LZ4)
    assert "520 | 0.547 | 0.53 | 1.04 |" in memory
    assert f"{USED} at most 1.05 of {LZF}: met (1.04)" in memory
    assert f"{ANONYMOUS} at most 0.75 of {LZF}: MISSED (0.76)" in line(text, ZSTD)
    assert f"{USED} at most 0.60 of {LZF}: met (0.58)" in line(text, DICTIONARY)


def test_every_aim_is_for_something_that_is_measured() -> None:
    for data in DATA:
        results = recorded(data)
        for aim in aims(data):
            assert aim.workloads
            assert all(aim.found(results, workload) > 0 for workload in aim.workloads)
    assert "at most 0.90 of valkey LZF: MISSED" in line(report(recorded("repetitive"), "repetitive"), LZ4)


def test_a_server_is_asked_step_by_step_and_its_lists_are_compared_at_the_end() -> None:
    program = str(servers.snugly_binary())
    with (
        start(snugly_lists(program, "none"), SERVER_CORE) as server,
        driving(program, server, TINY.options("repetitive")) as driver,
        valkey.Valkey(port=server.port) as client,
    ):
        rows = [driver.step() for _ in range(2)]
        assert [row["test"] for row in rows] == ["fill-rpush", "lindex-fixed"]
        assert {row["server"] for row in rows} == {server.peer.name}
        for number in range(TINY.lists):
            key = f"snugly-bench:list:{number}"
            assert client.llen(key) == TINY.elements
            client.lset(key, TINY.elements // 2, "another")
        with pytest.raises(SystemExit, match=r"(?s)measuring snugly none failed: .*was due"):
            step_on(driver)


def step_on(driver: Driver) -> None:
    """Runs all tests that are left."""
    while True:
        driver.step()


def test_all_lists_are_compared_after_the_last_test() -> None:
    program = str(servers.snugly_binary())
    with (
        start(snugly_lists(program, "lz4"), SERVER_CORE) as server,
        driving(program, server, TINY.options("varied")) as driver,
        valkey.Valkey(port=server.port) as client,
    ):
        for _ in TESTS:
            driver.step()
        client.lset("snugly-bench:list:5", 3, "another")
        with pytest.raises(SystemExit, match=r"read back of snugly-bench:list:5 was answered"):
            driver.finish()


@pytest.mark.slow
def test_all_servers_are_measured_and_the_results_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SNUGLY_VALKEY_SERVER", str(servers.valkey_binary()))
    size = ["--lists", "6", "--elements", "120", "--requests", "200", "--rounds", "2", "--data", "varied"]
    command.main(["--program", str(servers.snugly_binary()), "--output", str(tmp_path), *size])
    shown = capsys.readouterr().out
    assert (tmp_path / "lists.md").read_text() in shown
    results = Results.read(tmp_path / "lists.csv")
    for server in BASES:
        assert len(results.samples[workload("lindex-random", "varied"), server, RATE]) == 2
        assert results.spread(memory_workload("varied"), server, GIVEN).median > 6 * 120 * 400
