"""The report of `sizes`: savings and cost by size and type, and what is to be chosen."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from snugly_bench.clients.plan import BACKENDS, CPU, NONE, OPERATIONS, Contender, Operation
from snugly_bench.report.measured import Measured
from snugly_bench.report.page import Mark, Section, figure_section, write_page
from snugly_bench.report.record import WIDTH, About
from snugly_bench.report.style import (
    OTHER_COLOUR,
    SPREAD_CAPS,
    Plot,
    grid_of_axes,
    medians,
    numbered_ticks,
    one_legend,
    pictures,
    reach,
    shade,
    share_limits,
    short_ticks,
)
from snugly_bench.results import Results, Spread, table
from snugly_bench.sizes.advice import GOALS, LEAST_SAVING, READS, Choice, Goal, Point, choices, choose, worth_from

MARKERS = dict(zip(BACKENDS, "o^s", strict=True))


def write(folder: Path, about: About, results: Results) -> list[Path]:
    """Writes every figure, the table and the page, and returns their paths, the page first."""
    measured = Measured(results)
    drawn = pictures(lambda: [savings(measured), cost(measured)], about.signature())
    content = folder / "sizes.md"
    content.write_text(text(about, results) + "\n")
    sections = [*tables(about, measured), *map(figure_section, drawn)]
    page = folder / "sizes.html"
    write_page(page, f"What {measured.peers[0]} saves and costs, by size and type of value", about, sections)
    return [page, content, *(picture.save(folder) for picture in drawn)]


def tables(about: About, measured: Measured) -> list[Section]:
    """The advice, if enough was measured for that, and the measurements."""
    advice = [] if about.rough else [*(goal_section(measured, goal) for goal in GOALS), threshold_section(measured)]
    return [*advice, measured_section(about, measured)]


def text(about: About, results: Results) -> str:
    """The tables as Markdown."""
    measured = Measured(results)
    parts = [about.text()]
    for section in tables(about, measured):
        rows = [[cell.text for cell in row] for row in section.rows]
        shown = table(list(section.header), rows, texts=tuple(range(len(rows[0]))))
        parts.append(f"## {section.title}\n\n{textwrap.fill(section.caption, WIDTH)}\n\n{shown}")
    return "\n\n".join(parts)


def kinds(measured: Measured) -> list[str]:
    return list(dict.fromkeys(data.partition(":")[0] for data in measured.data))


def sizes(measured: Measured) -> list[int]:
    return sorted({int(data.partition(":")[2]) for data in measured.data})


def points(measured: Measured, kind: str, size: int) -> dict[str, Point]:
    """The measurements of every backend."""
    data, cell = f"{kind}:{size}", measured.cells[0]
    found = {}
    for contender in measured.contenders:
        values = (
            measured.memory(data, contender),
            measured.stored(data, contender),
            measured.median(data, "SET", cell, contender, CPU),
            measured.median(data, "GET", cell, contender, CPU),
        )
        found[contender.backend] = Point(*(value for value in values if value is not None))
    return found


def told(choice: Choice) -> Mark:
    if choice.backend == NONE:
        return Mark("none", NONE)
    return Mark(f"{choice.backend}: -{choice.saving:.0%}, CPU {choice.cost - 1:+.0%}", choice.backend)


def goal_section(measured: Measured, goal: Goal) -> Section:
    """The advice for every type and size."""
    rows = [
        [Mark(kind), *(told(choose(points(measured, kind, size), goal)) for size in sizes(measured))]
        for kind in kinds(measured)
    ]
    caption = (
        f"Memory and client CPU beside no compression, for {READS:.0%} GETs. What saves less than {LEAST_SAVING:.0%} "
        "is not worth it."
    )
    return Section(f"{goal.name}: {goal.purpose}", caption, header=["", *map(size_of, sizes(measured))], rows=rows)


def measured_section(about: About, measured: Measured) -> Section:
    """The results of every backend for every type and size."""
    found = {
        (kind, size, each.backend): each
        for kind in kinds(measured)
        for size in sizes(measured)
        for each in choices(points(measured, kind, size))
    }

    def cell(kind: str, size: int, backend: str) -> Mark:
        choice = found[kind, size, backend]
        saved = f"-{choice.saving:.0%}" if choice.saving > 0 else f"{-choice.saving:+.0%}" if choice.saving else "0%"
        return Mark(f"{saved}, CPU {choice.cost - 1:+.0%}")

    rows = [
        [Mark(f"{kind}, {backend}"), *(cell(kind, size, backend) for size in sizes(measured))]
        for kind in kinds(measured)
        for backend in measured.backends
        if backend != NONE
    ]
    caption = (
        f"Memory and client CPU beside no compression, for {READS:.0%} GETs. Values that are stored as they were given "
        "save nothing."
    )
    if about.rough:
        caption += " A quick run shows that it works, and judges nothing: for what to choose, leave --quick out."
    return Section("What was measured", caption, header=["", *map(size_of, sizes(measured))], rows=rows)


def size_of(size: int) -> str:
    return f"{size // 1024} KiB" if size >= 1024 and size % 1024 == 0 else f"{size:,} B"


def saving(measured: Measured, kind: str, backend: str) -> list[tuple[int, float]]:
    """The share of memory that is saved at every size."""
    return [
        (size, next(each.saving for each in choices(points(measured, kind, size)) if each.backend == backend))
        for size in sizes(measured)
    ]


def threshold_section(measured: Measured) -> Section:
    """From which size on compressing is worth it."""
    compressing = [backend for backend in measured.backends if backend != NONE]

    def cell(kind: str, backend: str) -> Mark:
        found = worth_from(saving(measured, kind, backend))
        return Mark("never", NONE) if found is None else Mark(f"{size_of(found)} and more")

    rows = [[Mark(kind), *(cell(kind, backend) for backend in compressing)] for kind in kinds(measured)]
    caption = (
        f"The smallest size from which on all sizes that were measured save at least {LEAST_SAVING:.0%} of the "
        "server's memory: set min_compression_size to it."
    )
    return Section("Where compression begins to be worth it", caption, header=["", *compressing], rows=rows)


def panel_for_each_kind(
    measured: Measured, title: str, rows: Iterable[str], draw: Callable[[Axes, str, str, Contender], None]
) -> tuple[Figure, list[list[Axes]]]:
    """Panels of lines over the size, a row for each of `rows` and a column for each type."""
    named = list(rows)
    figure, axes = grid_of_axes(title, len(named), len(kinds(measured)), (2.6, 2.7))
    for panels, row in zip(axes, named, strict=True):
        for panel, kind in zip(panels, kinds(measured), strict=True):
            for contender in measured.contenders:
                draw(panel, row, kind, contender)
            panel.set_title(f"{row}, {kind}" if row else kind)
            numbered_ticks(panel, sizes(measured))
            panel.tick_params(axis="x", rotation=60, labelsize=8)
    for panel in axes[-1]:
        panel.set_xlabel("bytes of a value")
    return figure, axes


def line(panel: Axes, contender: Contender, heights: list[Spread | None], width: list[int]) -> None:
    """A line over the sizes, with the range of the rounds where they differ."""
    plain = contender.backend == NONE
    panel.errorbar(
        width,
        medians(heights),
        yerr=reach(heights),
        marker=MARKERS[contender.backend],
        markersize=5,
        color=OTHER_COLOUR if plain else shade(contender),
        label=contender.backend,
        capsize=SPREAD_CAPS,
        elinewidth=1,
    )


def savings(measured: Measured) -> Plot:
    def draw(panel: Axes, _row: str, kind: str, contender: Contender) -> None:
        shares = [100 * share for _, share in saving(measured, kind, contender.backend)]
        line(panel, contender, [Spread.of([share]) for share in shares], sizes(measured))

    title = f"Server memory saved by {measured.peers[0]}, by size and type of value"
    figure, axes = panel_for_each_kind(measured, title, [""], draw)
    share_limits(axes[0])
    axes[0][0].set_ylabel("% of memory saved")
    one_legend(figure, axes[0])
    caption = (
        "Beside the same library without compression; key and overhead are part of the memory. Types whose smallest "
        "record is longer than a size are represented by the beginnings of records."
    )
    return Plot("savings", title, caption, figure)


def cost(measured: Measured) -> Plot:
    def draw(panel: Axes, row: str, kind: str, contender: Contender) -> None:
        operation: Operation = "SET" if row == "SET" else "GET"
        cell = measured.cells[0]
        found = [measured.spread(f"{kind}:{size}", operation, cell, contender, CPU) for size in sizes(measured)]
        line(panel, contender, found, sizes(measured))

    title = f"Client CPU of {measured.peers[0]} for an operation, by size and type of value"
    figure, axes = panel_for_each_kind(measured, title, OPERATIONS, draw)
    for row in axes:
        for panel in row:
            panel.set_yscale("log")
            short_ticks(panel, "y")
        share_limits(row)
        row[0].set_ylabel("µs of client CPU")
    one_legend(figure, axes[0])
    batch = measured.cells[0].batch
    caption = (
        f"The time of all threads of the client's process, in batches of {batch}. Both axes are logarithmic. Points "
        "are medians, and the strokes through them reach from the least to the most of the rounds."
    )
    return Plot("cost", title, caption, figure)
