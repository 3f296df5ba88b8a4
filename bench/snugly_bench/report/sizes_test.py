"""The report of sizes, drawn from results that were recorded."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from snugly_bench.clients.plan import (
    BACKENDS,
    CPU,
    MEMORY,
    OPERATIONS,
    STORED,
    VALUE,
    Cell,
    Contender,
    Workload,
    memory_workload,
)
from snugly_bench.report import sizes
from snugly_bench.report.record import About
from snugly_bench.results import Results

ABOUT = About(
    benchmark="sizes",
    when="2026-01-02 03:04 UTC",
    machine="2 cores",
    server="valkey-server 9.1.2",
    shared=True,
    clients={"valkey-glide": "2.5.3"},
    command="python -m snugly_bench sizes",
    rounds=1,
    seconds=0.1,
    values=100,
)


def recorded() -> Results:
    """JSON that zstd halves from 1,000 bytes on and lz4 never makes smaller."""
    results = Results("")
    for size in (38, 1024):
        for backend in BACKENDS:
            subject, data = str(Contender("valkey-glide", backend)), f"json:{size}"
            memory = size / 2 if backend == "zstd" and size > 1000 else size
            results.add(memory_workload(data), subject, {MEMORY: memory, STORED: memory, VALUE: size})
            for operation in OPERATIONS:
                cost = 12.0 if backend == "zstd" else 10.0
                results.add(str(Workload(data, operation, Cell(1, 10, 20))), subject, {CPU: cost})
    return results


def test_the_page_says_what_to_choose_and_from_where_on(tmp_path: Path) -> None:
    page, table, *figures = sizes.write(tmp_path, ABOUT, recorded())
    html = page.read_text()
    assert '<td class="zstd">zstd: -50%, CPU +20%</td>' in html
    assert "1 KiB and more" in html
    assert '<td class="none">never</td>' in html
    assert ABOUT.command in html
    assert {path.stem for path in figures} == {"savings", "cost"}
    assert all(path.stat().st_size > 10_000 for path in figures)
    assert "zstd: -50%, CPU +20%" in table.read_text()


def test_a_goal_that_allows_less_cost_leaves_it_uncompressed() -> None:
    smallest, balanced, fastest, *_ = sizes.text(ABOUT, recorded()).split("\n## ")[1:]
    assert "zstd" in smallest
    assert "zstd" in balanced
    assert "zstd" not in fastest


def test_nothing_is_advised_where_what_is_stored_is_the_same() -> None:
    results = recorded()
    results.samples[memory_workload("json:38"), "valkey-glide zstd", MEMORY] = [20.0]
    smallest, *_, measured = sizes.text(ABOUT, results).split("\n## ")[1:]
    assert "zstd" not in smallest.split("json")[1].split("|")[1]
    assert "0%, CPU +20%" in measured


def test_a_quick_run_tells_what_was_measured_and_advises_nothing(tmp_path: Path) -> None:
    page, table, *figures = sizes.write(tmp_path, replace(ABOUT, rough=True), recorded())
    for written in (page.read_text(), table.read_text()):
        assert "-50%, CPU +20%" in written
        assert "judges nothing" in " ".join(written.split())
        assert "Smallest" not in written
        assert "and more" not in written
    assert len(figures) == 2


def test_figures_are_there_for_light_and_for_dark(tmp_path: Path) -> None:
    html = sizes.write(tmp_path, ABOUT, recorded())[0].read_text()
    dark = html.count('<source media="(prefers-color-scheme: dark)" srcset="data:image/png;base64,')
    assert (dark, html.count('<img src="data:image/png;base64,')) == (2, 2)
    assert len(set(re.findall('"(data:image/png;base64,[^"]+)"', html))) == 4
