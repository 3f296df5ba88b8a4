"""The measurements, and their order."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from snugly_bench.clients.plan import (
    FULL,
    LZ4,
    LZ4_DICTIONARY,
    OPERATIONS,
    ZSTD,
    ZSTD_DICTIONARY,
    Cell,
    Contender,
    Workload,
    bases,
    by_processes,
    cells,
    contenders,
    counterpart,
    memory_data,
    memory_workload,
    turn,
)

PEERS = {"ours": ("none", "lz4", "zstd"), "theirs": ("none", "zstd"), "plain": ("none",)}
counts = st.integers(1, 10_000)


workloads = st.builds(
    Workload,
    st.from_regex(r"[^\s=]+", fullmatch=True),
    st.sampled_from(OPERATIONS),
    st.builds(Cell, counts, counts, counts),
)


@given(workloads)
def test_a_workload_is_found_again_from_its_name(workload: Workload) -> None:
    assert Workload.parse(str(workload)) == workload


def test_what_is_kept_for_memory_is_no_workload() -> None:
    assert Workload.parse(memory_workload("json:1900")) is None
    assert memory_data(memory_workload("json:1900")) == "json:1900"
    assert memory_data(str(Workload("json:1900", "SET", Cell(1, 10, 1)))) is None


def test_a_contender_is_found_again_from_its_name() -> None:
    for contender in (Contender("valkey-glide", "zstd"), Contender("two words", "none")):
        assert Contender.parse(str(contender)) == contender


def test_every_combination_is_measured_only_when_asked_for() -> None:
    every = {Cell(*cell) for cell in product(FULL.processes, FULL.clients, FULL.batches)}
    assert set(cells(FULL, every=True)) == every
    fewer = cells(FULL, every=False)
    assert set(fewer) < every
    assert {cell for cell in every if cell.processes == 1} <= set(fewer)
    assert {(cell.processes, cell.batch) for cell in fewer if cell.clients == 10 and cell.batch in (1, 20)} == set(
        product(FULL.processes, (1, 20))
    )


def test_cells_are_grouped_by_processes_and_none_is_lost() -> None:
    found = cells(FULL, every=False)
    groups = by_processes(reversed(found))
    assert list(groups) == [1, 2, 4, 8]
    assert [cell for group in groups.values() for cell in group] == found


def test_contenders_that_are_compared_stand_side_by_side() -> None:
    assert [str(each) for each in contenders(PEERS, ("none", "zstd"))] == [
        *("ours none", "theirs none", "plain none"),
        *("ours zstd", "theirs zstd"),
    ]


def test_each_round_begins_with_another_contender_and_has_all() -> None:
    found = contenders(PEERS, ("none", "lz4", "zstd"))
    orders = [turn(found, number) for number in range(len(found))]
    assert [order[0] for order in orders] == found
    assert all(set(order) == set(found) for order in orders)


def test_who_learns_is_compared_with_zstd_of_who_does_not() -> None:
    assert counterpart(Contender("ours", ZSTD_DICTIONARY), "theirs") == Contender("theirs", ZSTD)
    assert counterpart(Contender("ours", LZ4_DICTIONARY), "theirs") == Contender("theirs", LZ4)
    assert counterpart(Contender("ours", "lz4"), "theirs") == Contender("theirs", "lz4")
    found = bases([Contender("ours", ZSTD_DICTIONARY), Contender("theirs", ZSTD)], "theirs")
    assert found[f"ours {ZSTD_DICTIONARY}"] == "theirs zstd"


def test_a_contender_is_compared_only_with_the_same_backend() -> None:
    found = bases(contenders(PEERS, ("none", "lz4", "zstd")), "theirs")
    assert found["plain none"] == found["ours none"] == found["theirs none"] == "theirs none"
    assert found["ours zstd"] == "theirs zstd"
    assert "ours lz4" not in found
