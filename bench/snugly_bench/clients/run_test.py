"""Samples of several processes, put together."""

from __future__ import annotations

from array import array

import pytest

from snugly_bench.clients.plan import CPU, RATE, SERVER_CPU, Cell, Contender
from snugly_bench.clients.run import Asked, metrics, prefix
from snugly_bench.clients.worker import Sample, WrongValue, check, starts
from snugly_bench.corpora import Corpus


def test_operations_are_counted_from_the_first_that_begins_to_the_last_that_ends() -> None:
    samples = [
        Sample(100, began=10.0, ended=11.0, cpu=0.5, latencies=array("d", [0.001] * 50)),
        Sample(300, began=10.5, ended=12.0, cpu=1.5, latencies=array("d", [0.003] * 50)),
    ]
    found = metrics(samples, server_cpu=0.2)
    assert found[RATE] == 200
    assert found[CPU] == pytest.approx(5000)
    assert found[SERVER_CPU] == pytest.approx(500)
    assert found["p50 ms"] == pytest.approx(2)
    assert found["p99 ms"] == pytest.approx(3)


def test_a_measurement_without_operations_is_refused() -> None:
    with pytest.raises(SystemExit, match="--seconds"):
        metrics([Sample(0, 0.0, 1.0, 0.0, array("d"))], server_cpu=0.0)


def test_a_value_that_comes_back_otherwise_is_an_error_that_names_its_key() -> None:
    check([("a", b"1"), ("b", b"2")], [b"1", b"2"])
    for replies in ([b"1", b"3"], [b"1", None]):
        with pytest.raises(WrongValue, match=r"^b "):
            check([("a", b"1"), ("b", b"2")], replies)
    with pytest.raises(ValueError, match="shorter"):
        check([("a", b"1"), ("b", b"2")], [b"1"])


def test_batches_never_reach_beyond_the_last_value() -> None:
    assert list(starts(range(10), 4)) == [0, 4]
    assert list(starts(range(3), 1)) == [0, 1, 2]


def test_no_contender_reads_what_another_has_written() -> None:
    found = {
        prefix(Contender(peer, backend), data) for peer in "ab" for backend in ("none", "zstd") for data in ("x", "y")
    }
    assert len(found) == 8


def test_the_time_that_is_left_grows_with_what_is_asked_for() -> None:
    corpus = Corpus("x", (b"1",))
    contenders = [Contender("a", "none"), Contender("a", "zstd")]
    once = Asked(contenders, [corpus], [corpus], [Cell(1, 10, 1)], 1, 1.0, None, False)
    twice = Asked(contenders, [corpus], [corpus], [Cell(1, 10, 1)], 2, 1.0, None, False)
    assert once.peers == ["a"]
    assert twice.weight() > once.weight() > 2 * 2 * 1.0
