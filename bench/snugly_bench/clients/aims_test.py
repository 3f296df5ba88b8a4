"""Whether aims are judged where they are for something, and told."""

from __future__ import annotations

from snugly_bench.clients.aims import aims, judged, ratios, stored, verdict
from snugly_bench.clients.plan import CPU, MEMORY, RATE, STORED, VALUE, Cell, Workload, memory_workload
from snugly_bench.results import Results

SINGLE, FIVE, TWENTY = (str(Workload("json", "SET", Cell(1, 10, batch))) for batch in (1, 5, 20))


def measured(ours: float, theirs: float) -> Results:
    results = Results("", {f"{peer} zstd": "valkey-glide zstd" for peer in ("snugly", "valkey-glide")})
    for workload in (SINGLE, FIVE, TWENTY):
        results.add(workload, "snugly zstd", {RATE: ours, CPU: 10})
        results.add(workload, "valkey-glide zstd", {RATE: theirs, CPU: 20})
    return results


def test_there_are_aims_for_single_commands_and_batches_of_twenty_only() -> None:
    assert {workload for aim in aims([SINGLE, FIVE, TWENTY]) for workload in aim.workloads} == {SINGLE, TWENTY}
    assert not aims([FIVE, "data=json"])


def test_an_aim_is_judged_only_where_both_sides_were_measured() -> None:
    found = judged(measured(ours=210, theirs=100))
    assert {(aim.subject, aim.base) for aim, *_ in found} == {("snugly zstd", "valkey-glide zstd")}
    reached = {(aim.metric, workload): met for aim, workload, _, met in found}
    assert reached == {(RATE, SINGLE): True, (RATE, TWENTY): False, (CPU, SINGLE): True, (CPU, TWENTY): True}


def learned(ours: float, theirs: float) -> Results:
    results = Results("", {"snugly zstd+dictionary": "valkey-glide zstd"})
    for workload in (SINGLE, TWENTY):
        results.add(workload, "snugly zstd+dictionary", {RATE: 350, CPU: 10})
        results.add(workload, "valkey-glide zstd", {RATE: 100, CPU: 20})
    for data in ("json-movies", "json:1900"):
        results.add(memory_workload(data), "snugly zstd+dictionary", {STORED: ours, MEMORY: 400, VALUE: 900})
        results.add(memory_workload(data), "valkey-glide zstd", {STORED: theirs, MEMORY: 600, VALUE: 900})
    return results


def test_a_dictionary_is_to_be_faster_in_batches_and_smaller_where_there_is_an_aim() -> None:
    found = {(aim.metric, workload): met for aim, workload, _, met in judged(learned(ours=330, theirs=500))}
    assert found == {(RATE, TWENTY): True, (STORED, memory_workload("json-movies")): False}


def test_lz4_with_a_dictionary_has_aims_of_its_own_beside_lz4_and_the_bytes_of_zstd() -> None:
    results = Results("", {"snugly lz4+dictionary": "valkey-glide lz4"})
    results.add(TWENTY, "snugly lz4+dictionary", {RATE: 160, CPU: 10})
    results.add(TWENTY, "valkey-glide lz4", {RATE: 100, CPU: 20})
    results.add(memory_workload("json-movies"), "snugly lz4+dictionary", {STORED: 380, MEMORY: 400, VALUE: 900})
    results.add(memory_workload("json-movies"), "valkey-glide zstd", {STORED: 500, MEMORY: 600, VALUE: 900})
    found = {(aim.base, aim.bound): met for aim, _, _, met in judged(results)}
    assert found == {("valkey-glide lz4", 1.5): True, ("valkey-glide zstd", 0.75): False}


def test_bytes_stored_are_told_beside_those_of_the_base() -> None:
    lines = stored(learned(ours=250, theirs=500)).splitlines()
    ours = [line for line in lines if "dictionary" in line]
    assert all("0.50" in line for line in ours)
    assert ["met" in line for line in ours] == [True, False]


def test_the_verdict_counts_what_was_met_or_says_why_it_cannot() -> None:
    assert verdict(measured(ours=210, theirs=100)).startswith("3 of 4 aims met")
    nobody = Results("")
    nobody.add(SINGLE, "valkey-glide none", {RATE: 1.0, CPU: 1.0})
    assert "No aim could be judged" in verdict(nobody)


def test_the_table_has_the_ratio_to_the_base_and_what_was_asked_of_it() -> None:
    lines = ratios(measured(ours=150, theirs=100), [SINGLE]).splitlines()
    ours = next(line for line in lines if "snugly zstd" in line)
    assert "1.50" in ours
    assert "rate >= 2 MISSED; CPU <= 0.6 met" in ours
    assert len(lines) == 4
