"""The choices, and their reasons."""

from __future__ import annotations

from math import inf

import pytest

from snugly_bench.sizes.advice import Choice, Goal, Point, choices, choose, worth_from

POINTS = {
    "none": Point(memory=1000, stored=900, set_us=10, get_us=10),
    "lz4": Point(memory=800, stored=700, set_us=16, get_us=11),
    "zstd": Point(memory=500, stored=400, set_us=50, get_us=15),
}


def test_savings_and_cost_are_beside_no_compression_and_reads_count_more() -> None:
    found = {choice.backend: choice for choice in choices(POINTS)}
    assert found["none"] == Choice("none", 0.0, 1.0)
    assert found["lz4"].saving == pytest.approx(0.2)
    assert found["lz4"].cost == pytest.approx((0.8 * 11 + 0.2 * 16) / 10)


@pytest.mark.parametrize(("most_cost", "backend"), [(inf, "zstd"), (2.2, "zstd"), (1.5, "lz4"), (1.1, "none")])
def test_the_backend_that_saves_most_within_the_cost_is_chosen(most_cost: float, backend: str) -> None:
    assert choose(POINTS, Goal("a goal", most_cost)).backend == backend


def test_what_saves_next_to_nothing_is_not_chosen_however_cheap() -> None:
    points = {"none": POINTS["none"], "lz4": Point(memory=951, stored=850, set_us=1, get_us=1)}
    assert choose(points, Goal("a goal", inf)) == Choice("none", 0.0, 1.0)


def test_values_that_are_stored_as_they_were_given_save_nothing_whatever_memory_says() -> None:
    points = {
        "none": Point(memory=110, stored=38, set_us=10, get_us=10),
        "zstd": Point(memory=95, stored=38, set_us=9, get_us=9),
    }
    assert [choice.saving for choice in choices(points)] == [0, 0]
    assert choose(points, Goal("a goal", inf)) == Choice("none", 0.0, 1.0)


def test_a_goal_says_what_it_is_for() -> None:
    assert Goal("a goal", 1.5).purpose.endswith("at most 50% more client CPU")
    assert "whatever it costs" in Goal("a goal", inf).purpose


def test_compression_is_worth_it_from_where_all_larger_sizes_save_enough() -> None:
    assert worth_from([(38, 0.3), (100, 0.0), (200, 0.05), (400, 0.4)]) == 200
    assert worth_from([(38, 0.1), (100, 0.2)]) == 38
    assert worth_from([(38, 0.3), (100, 0.04)]) is None
