"""Samples, ratios, aims and tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from snugly_bench.results import Aim, Results, Spread, table, write_report


def two_rounds() -> Results:
    results = Results("base")
    for mine, other in ((10.0, 20.0), (30.0, 20.0), (50.0, 10.0)):
        results.add("work", "base", {"rate": other})
        results.add("work", "mine", {"rate": mine})
    return results


def test_a_ratio_is_the_median_of_the_ratios_within_each_round() -> None:
    assert two_rounds().ratio("work", "mine", "rate", "base") == Spread(1.5, 0.5, 5.0)


def test_a_subject_is_compared_with_its_own_base_where_it_has_one() -> None:
    results = two_rounds()
    results.bases["mine"] = "mine"
    assert results.base_of("mine") == "mine"
    assert results.base_of("other") == "base"


def test_what_is_written_is_read_again_sample_for_sample(tmp_path: Path) -> None:
    results = two_rounds()
    results.add("work", "third", {"rate": 1 / 3})
    results.bases["third"] = "nobody"
    path = tmp_path / "new" / "results.csv"
    results.write(path)
    read = Results.read(path)
    assert read.samples == results.samples
    assert [read.base_of(subject) for subject in ("mine", "base", "third")] == ["base", "base", "nobody"]


def test_a_report_is_written_as_text_and_as_lines(tmp_path: Path) -> None:
    said = write_report(tmp_path / "new", "name", "the text", [two_rounds(), two_rounds()])
    assert (tmp_path / "new" / "name.md").read_text() == "the text"
    assert len((tmp_path / "new" / "name.csv").read_text().splitlines()) == 1 + 2 * 2
    assert "name.md" in said


def test_lines_have_no_ratio_where_the_base_was_not_measured() -> None:
    results = Results("nobody")
    results.add("work", "mine", {"rate": 2.0})
    assert results.csv() == [["work", "mine", "rate", "1", "2", "2", "2", "nobody", "", "", "", "2.0"]]


def test_lines_have_no_ratio_to_nothing() -> None:
    results = two_rounds()
    results.add("work", "base", {"rate": 0.0})
    results.add("work", "mine", {"rate": 1.0})
    assert [line[7:11] for line in results.csv()] == [["base", "", "", ""]] * 2


@pytest.mark.parametrize(("at", "bound", "met"), [("least", 1.5, True), ("least", 1.6, False), ("most", 1.4, False)])
def test_an_aim_is_met_at_its_bound_and_missed_beyond(at: str, bound: float, met: bool) -> None:
    aim = Aim("mine", "rate", "least" if at == "least" else "most", bound, "base", ("work",))
    assert aim.met(two_rounds(), "work") is met
    assert ("MISSED" in aim.judge(two_rounds(), "work")) is not met


def test_an_aim_without_a_base_is_for_the_figure_itself() -> None:
    assert Aim("mine", "rate", "most", 30, None, ("work",)).met(two_rounds(), "work")


def test_tables_have_columns_of_equal_width_and_rules_that_align() -> None:
    lines = table(["a", "name"], [["1", "x"], ["200", "longer"]], texts=(1,)).splitlines()
    assert lines[1] == "| --: | ------ |"
    assert len(set(map(len, lines))) == 1
