"""The report, drawn from results that were recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from snugly_bench.clients import aims
from snugly_bench.clients.peers import base_of
from snugly_bench.clients.plan import (
    BACKENDS,
    CPU,
    MEMORY,
    NONE,
    OPERATIONS,
    PERCENTILES,
    RATE,
    SERVER_CPU,
    STORED,
    VALUE,
    ZSTD_DICTIONARY,
    Cell,
    Contender,
    Workload,
    bases,
    contenders,
    memory_workload,
)
from snugly_bench.report import clients
from snugly_bench.report.command import main
from snugly_bench.report.measured import Measured
from snugly_bench.report.record import About, load, save
from snugly_bench.report.style import LIGHT, THEMES, colour, reach, themed
from snugly_bench.results import Results, Spread

PNG = b"\x89PNG\r\n\x1a\n"
ABOUT = About(
    benchmark="clients",
    when="2026-01-02 03:04 UTC",
    machine="2 cores of <some> processor",
    server="valkey-server 9.1.2",
    shared=True,
    clients={"valkey-glide": "2.5.3"},
    command="python -m snugly_bench clients --quick",
    rounds=2,
    seconds=0.3,
    values=2000,
)


def recorded(found: list[Contender], cells: Iterable[Cell]) -> Results:
    results = Results("", bases(found, "valkey-glide"))
    for number, contender in enumerate(found):
        results.add(memory_workload("json:1900"), str(contender), {MEMORY: 2000 - 100 * number, VALUE: 1900})
        results.add(memory_workload("html:800"), str(contender), {MEMORY: 900 - 50 * number, VALUE: 800})
    for cell, operation, (number, contender) in product(cells, OPERATIONS, enumerate(found)):
        metrics = {RATE: 1000.0 * cell.batch * (number + 1), CPU: 50 / cell.batch, SERVER_CPU: 5.0}
        metrics |= {name: float(percentile) for percentile, name in PERCENTILES.items()}
        for _ in range(2):
            results.add(str(Workload("json:1900", operation, cell)), str(contender), metrics)
    return results


ALL = contenders({"snugly": BACKENDS, "valkey-glide": BACKENDS, "redis-py": (NONE,)}, BACKENDS)
MANY = [Cell(1, 10, 1), Cell(1, 10, 20), Cell(1, 100, 1), Cell(1, 100, 20), Cell(2, 10, 1), Cell(2, 10, 20)]


def test_the_report_has_a_page_of_its_own_a_table_and_every_figure(tmp_path: Path) -> None:
    page, table, *figures = clients.write(tmp_path, ABOUT, recorded(ALL, MANY))
    assert {path.stem for path in figures} == {
        *("comparison", "memory", "ratio-to-base", "ratio-to-uncompressed", "batch", "processes", "latency")
    }
    assert all(path.read_bytes().startswith(PNG) for path in figures)
    html = page.read_text()
    assert html.count("data:image/png;base64,") == len(figures) * len(THEMES)
    assert 'src="http' not in html
    assert "href=" not in html
    assert ABOUT.command in html
    assert "2 cores of &lt;some&gt; processor" in html
    assert "at least 2.00 of valkey-glide zstd" in html
    assert "snugly zstd" in table.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("found", "missing"),
    [
        ([Contender("valkey-glide", backend) for backend in BACKENDS], {"ratio-to-base", "processes"}),
        ([Contender("redis-py", NONE)], {"ratio-to-base", "ratio-to-uncompressed", "processes"}),
        ([Contender("snugly", "zstd")], {"memory", "ratio-to-base", "ratio-to-uncompressed", "processes"}),
    ],
)
def test_a_figure_that_nothing_was_measured_for_is_left_out(
    tmp_path: Path, found: list[Contender], missing: set[str]
) -> None:
    _, _, *figures = clients.write(tmp_path, ABOUT, recorded(found, [Cell(1, 10, 1)]))
    assert {path.stem for path in figures} == {
        *("comparison", "memory", "ratio-to-base", "ratio-to-uncompressed", "batch", "processes", "latency")
    } - missing


def test_what_was_measured_is_found_by_what_it_is_of() -> None:
    measured = Measured(recorded(ALL, MANY))
    ours, theirs = Contender("snugly", "zstd"), Contender("valkey-glide", "zstd")
    assert measured.peers == ["snugly", "valkey-glide", "redis-py"]
    assert measured.data == ["json:1900", "html:800"]
    assert measured.cells == MANY
    assert measured.value_bytes("html:800") == 800
    assert measured.ratio("json:1900", "SET", MANY[0], ours, theirs, RATE) == Spread.of([6 / 7])
    assert measured.ratio("json:1900", "SET", Cell(9, 9, 9), ours, theirs, RATE) is None
    assert measured.median("html:800", "GET", MANY[0], ours, RATE) is None
    assert measured.memory("html:800", ours) == 900 - 50 * ALL.index(ours)


@pytest.mark.slow
def test_a_dictionary_is_drawn_beside_zstd_of_the_base_and_its_aims_are_told(tmp_path: Path) -> None:
    found = [Contender("snugly", ZSTD_DICTIONARY), Contender("valkey-glide", "zstd")]
    results = recorded(found, MANY)
    for number, contender in enumerate(found):
        sizes = {MEMORY: 500.0, STORED: 300.0 + 200 * number, VALUE: 874.0}
        results.add(memory_workload("json-movies"), str(contender), sizes)
    page, table, *figures = clients.write(tmp_path, ABOUT, results)
    assert "ratio-to-base" in {path.stem for path in figures}
    assert "snugly zstd+dictionary, json-movies: stored bytes/value at most 0.60" in page.read_text()
    assert "0.60" in table.read_text()


@pytest.mark.slow
def test_a_report_is_drawn_again_from_what_was_saved(tmp_path: Path) -> None:
    results = recorded(ALL, MANY[:2])
    save(tmp_path, ABOUT, results)
    about, read = load(tmp_path, "clients")
    assert about == ABOUT
    assert read.samples == results.samples
    main([str(tmp_path)])
    assert (tmp_path / "clients.html").is_file()
    with pytest.raises(SystemExit, match="has no results"):
        main([str(tmp_path / "elsewhere")])


def test_a_quick_run_judges_no_aims(tmp_path: Path) -> None:
    found = [Contender("snugly", "zstd"), Contender("valkey-glide", "zstd")]
    page, table, *_ = clients.write(tmp_path, replace(ABOUT, rough=True), recorded(found, MANY[:1]))
    for written in (page.read_text(), table.read_text()):
        assert "judges no aims" in written
        assert not re.search(r"\b(met|missed|MISSED)\b", written.partition("</style>")[2] or written)


def test_strokes_reach_from_the_least_to_the_most_of_the_rounds() -> None:
    assert reach([Spread.of([1.0, 4.0, 2.0]), None, Spread.of([3.0])]) == [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]


def test_two_versions_of_the_base_are_told_apart_and_each_has_aims() -> None:
    peers = ("snugly", "valkey-glide==2.6.0", "valkey-glide")
    results = recorded(contenders(dict.fromkeys(peers, BACKENDS), BACKENDS), MANY)
    asked = " ".join(asked for asked, *_ in clients.verdicts(results))
    assert "at least 2.00 of valkey-glide zstd" in asked
    assert "at least 2.00 of valkey-glide==2.6.0 zstd" in asked
    assert "rate >= 2 of 2.6.0" in aims.ratios(results, [str(Workload("json:1900", "SET", MANY[0]))])
    assert base_of(peers) == "valkey-glide"
    with themed(LIGHT):
        assert len({colour(peer) for peer in peers}) == len(peers)
