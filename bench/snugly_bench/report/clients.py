"""The report of `clients`: its figures, and the page that shows them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

from matplotlib.axes import Axes

from snugly_bench.clients import aims
from snugly_bench.clients.peers import base_of
from snugly_bench.clients.plan import (
    CPU,
    NONE,
    OPERATIONS,
    PERCENTILES,
    RATE,
    Cell,
    Contender,
    Operation,
    Workload,
    counterpart,
    memory_data,
)
from snugly_bench.report.measured import Measured
from snugly_bench.report.page import Aims, figure_section, write_page
from snugly_bench.report.record import About
from snugly_bench.report.style import (
    OTHER_COLOUR,
    SPREAD_CAPS,
    Plot,
    colour,
    grid_of_axes,
    medians,
    numbered_ticks,
    one_legend,
    pictures,
    ratio_cells,
    reach,
    shade,
    share_limits,
    short,
    short_ticks,
    soft,
)
from snugly_bench.results import Results, Spread

TITLE = "Clients of Valkey, with and without compression"
BAR = 0.8
"""The width of a group of bars."""
LEAST_BAR = 0.45
"""Inches that a bar and the percentage over it need."""
LEGEND_COLUMNS = 4
ROUNDS = "Points are medians, and the strokes through them reach from the least to the most of the rounds."


def write(folder: Path, about: About, results: Results) -> list[Path]:
    """Writes every figure, the table and the page, and returns their paths, the page first."""
    measured = Measured(results)
    drawn = pictures(lambda: [plot for draw in FIGURES if (plot := draw(measured)) is not None], about.signature())
    verdict, rows = aims.verdict(results, about.rough), [] if about.rough else verdicts(results)
    table = aims.ratios(results, [str(workload) for workload in measured.workloads], about.rough)
    text = folder / "clients.md"
    text.write_text(f"{about.text()}\n\n{verdict}\n\n{table}\n\n{aims.stored(results, about.rough)}\n")
    page = folder / "clients.html"
    write_page(page, TITLE, about, list(map(figure_section, drawn)), Aims(verdict, rows), table)
    return [page, text, *(picture.save(folder) for picture in drawn)]


def verdicts(results: Results) -> list[list[str]]:
    """For each aim the best and the worst that was found, and in how many workloads it was met."""
    found: dict[str, list[tuple[float, bool]]] = {}
    for aim, workload, value, met in aims.judged(results):
        found.setdefault(f"{aim.subject}, {situation(workload)}: {aim.asked()}", []).append((value, met))
    return [
        [
            asked,
            f"{min(value for value, _ in cases):.2f} to {max(value for value, _ in cases):.2f}",
            f"{sum(met for _, met in cases)} of {len(cases)}",
            "met" if all(met for _, met in cases) else "missed",
        ]
        for asked, cases in found.items()
    ]


def situation(workload: str) -> str:
    parsed = Workload.parse(workload)
    return f"batches of {parsed.cell.batch}" if parsed else str(memory_data(workload))


def least(measured: Measured) -> Cell:
    return measured.cells[0]


def by_peer(measured: Measured) -> list[Contender]:
    return sorted(measured.contenders, key=lambda contender: measured.peers.index(contender.peer))


def batches(measured: Measured) -> tuple[int, int]:
    found = [cell.batch for cell in measured.cells]
    return min(found), max(found)


def setting(cell: Cell) -> str:
    processes = "1 process" if cell.processes == 1 else f"{cell.processes} processes"
    return f"{processes}, {cell.clients} clients"


def memory(measured: Measured) -> Plot | None:
    """Bars of bytes for each value; libraries that do not compress are all as the first without compression."""
    compressing = [contender for contender in by_peer(measured) if contender.backend != NONE]
    plain = next((contender for contender in measured.contenders if contender.backend == NONE), None)
    if plain is None:
        return None
    shown = [plain, *compressing]
    title = "Server memory for each value, by backend"
    inches = max(9, LEAST_BAR * len(shown) * len(measured.data))
    figure, ((axes,),) = grid_of_axes(title, 1, 1, (inches, 4.4))
    width = BAR / len(shown)
    for number, contender in enumerate(shown):
        places = [at + (number - (len(shown) - 1) / 2) * width for at in range(len(measured.data))]
        heights = [measured.memory(data, contender) or 0 for data in measured.data]
        plainly = contender == plain
        axes.bar(
            places,
            heights,
            width * 0.92,
            color=OTHER_COLOUR if plainly else shade(contender),
            label="uncompressed" if plainly else str(contender),
        )
        for place, height, data in zip(places, heights, measured.data, strict=True):
            whole = measured.memory(data, plain) or 1
            label = f"{height:,.0f}" if plainly else f"{height / whole - 1:+.0%}"
            axes.text(place, height, label, ha="center", va="bottom", fontsize=8.5)
    names = [f"{data.partition(':')[0]}\n{measured.value_bytes(data):,.0f} B" for data in measured.data]
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("bytes for each value (INFO)")
    axes.grid(axis="x", visible=False)
    axes.margins(y=0.12)
    axes.legend(ncols=min(len(shown), LEGEND_COLUMNS), loc="lower left", bbox_to_anchor=(0, 1))
    caption = (
        "What used_memory grows by, divided by the values: key and overhead included. Under the names: the bytes of a "
        "value as the application has it. Percentages: beside uncompressed."
    )
    return Plot("memory", title, caption, figure)


def comparison(measured: Measured) -> Plot:
    """Bars of throughput and processor time in the smallest cell."""
    low, high = batches(measured)
    cell = least(measured)
    title = f"All clients beside each other ({setting(cell)}, {measured.workloads[0].data})"
    figure, axes = grid_of_axes(title, 2, 4, (3.0, 0.34 * len(measured.contenders) + 0.9))
    shown = measured.contenders[::-1]
    for row, (metric, unit) in enumerate(((RATE, "operations a second"), (CPU, "client CPU, µs for each operation"))):
        for column, (batch, operation) in enumerate(product((low, high), OPERATIONS)):
            panel = axes[row][column]
            where = Cell(cell.processes, cell.clients, batch)
            data = measured.workloads[0].data
            rounds = [measured.spread(data, operation, where, contender, metric) for contender in shown]
            colours = [shade(contender) for contender in shown]
            stroke = {"ecolor": soft(), "capsize": SPREAD_CAPS, "elinewidth": 1}
            panel.barh(
                range(len(shown)), medians(rounds), color=colours, height=0.78, xerr=reach(rounds), error_kw=stroke
            )
            for at, spread in enumerate(rounds):
                if spread is not None:
                    panel.text(spread.high, at, f"  {short(spread.median)}", va="center", fontsize=8.5)
            panel.set_yticks(range(len(shown)), [str(each) for each in shown] if column == 0 else [""] * len(shown))
            panel.set_title(f"{operation}, {batches_of(batch)}")
            panel.set_xlabel(unit)
            panel.margins(x=0.18)
            panel.grid(axis="y", visible=False)
            short_ticks(panel, "x")
    caption = (
        "Above: longer is better. Below: shorter is better; it is the time of all threads of the client's process. "
        "Paler colours compress less. Bars are medians, and the strokes at their ends reach from the least to the most "
        "of the rounds."
    )
    return Plot("comparison", title, caption, figure)


def batches_of(batch: int) -> str:
    return "single commands" if batch == 1 else f"batches of {batch}"


def heat_map(
    measured: Measured, name: str, title: str, caption: str, pairs: list[tuple[Contender, Contender]]
) -> Plot | None:
    """Ratios of operations a second, by clients and batch, for each of the pairs and both operations."""
    if not pairs:
        return None
    processes = least(measured).processes
    found = [cell for cell in measured.cells if cell.processes == processes]
    clients, sizes = sorted({cell.clients for cell in found}), sorted({cell.batch for cell in found})
    data = measured.workloads[0].data
    figure, axes = grid_of_axes(title, 2, len(pairs), (max(2.4, 9 / len(pairs)), 2.4))
    for row, operation in enumerate(OPERATIONS):
        for column, (contender, base) in enumerate(pairs):
            cells = [
                [
                    measured.ratio(data, operation, Cell(processes, count, batch), contender, base, RATE)
                    for batch in sizes
                ]
                for count in clients
            ]
            panel = axes[row][column]
            subject = f"{operation}, {contender.peer}\n{contender.backend}"
            ratio_cells(panel, cells, list(map(str, sizes)), list(map(str, clients)), subject)
            if column == 0:
                panel.set_ylabel("clients (C)")
            if row == 1:
                panel.set_xlabel("batch (B)")
    return Plot(name, title, caption, figure)


def beside_base(measured: Measured) -> Plot | None:
    base = base_of(measured.peers)
    pairs = [
        (contender, counterpart(contender, base))
        for contender in by_peer(measured)
        if contender.peer != base and counterpart(contender, base) in measured.contenders
    ]
    title = f"Throughput as a ratio to {base} with the same backend"
    caption = (
        f"Teal: faster than {base}; brown: slower. Each cell is the median of the ratios within each round; below it "
        "the least and the most."
    )
    return heat_map(measured, "ratio-to-base", title, caption, pairs)


def beside_uncompressed(measured: Measured) -> Plot | None:
    pairs = [
        (contender, Contender(contender.peer, NONE))
        for contender in by_peer(measured)
        if contender.backend != NONE and Contender(contender.peer, NONE) in measured.contenders
    ]
    title = "What compression costs: throughput as a ratio to the same client without compression"
    caption = (
        "Teal: compression makes it faster; brown: it costs that much of the throughput. Below each median: the least "
        "and the most of the rounds."
    )
    return heat_map(measured, "ratio-to-uncompressed", title, caption, pairs)


def lines(
    measured: Measured,
    name: str,
    label: str,
    title: str,
    caption: str,
    draw: Callable[[Axes, Operation, Contender], list[int]],
) -> Plot:
    """A panel for each operation and backend, with what `draw` draws for each client in it; it returns the ticks."""
    figure, axes = grid_of_axes(title, 2, len(measured.backends), (3.4, 2.7))
    for row, operation in enumerate(OPERATIONS):
        for column, backend in enumerate(measured.backends):
            panel = axes[row][column]
            ticks = []
            for contender in measured.contenders:
                if contender.backend == backend:
                    ticks += draw(panel, operation, contender)
            numbered_ticks(panel, sorted(set(ticks)))
            panel.set_yscale("log")
            short_ticks(panel, "y")
            panel.set_title(f"{operation}, {backend}")
            if column == 0:
                panel.set_ylabel("operations a second")
    for panel in axes[-1]:
        panel.set_xlabel(label)
    panels = [panel for row in axes for panel in row]
    share_limits(panels)
    one_legend(figure, panels)
    return Plot(name, title, caption, figure)


def with_rounds(axes: Axes, points: dict[int, Spread | None], style: str, contender: Contender, label: str) -> None:
    """A line through the medians, with strokes from the least to the most of the rounds."""
    axes.errorbar(
        list(points),
        medians(list(points.values())),
        yerr=reach(list(points.values())),
        fmt=style,
        color=colour(contender.peer),
        label=label,
        capsize=SPREAD_CAPS,
        elinewidth=1,
    )


def batch_effect(measured: Measured) -> Plot:
    cell, data = least(measured), measured.workloads[0].data

    def draw(axes: Axes, operation: Operation, contender: Contender) -> list[int]:
        found = [each for each in measured.cells if (each.processes, each.clients) == (cell.processes, cell.clients)]
        points = {each.batch: measured.spread(data, operation, each, contender, RATE) for each in found}
        with_rounds(axes, points, "o-", contender, contender.peer)
        return list(points)

    title = f"Effect of batches ({setting(cell)}, {data})"
    return lines(
        measured, "batch", "batch (B)", title, f"Both axes are logarithmic, and the same in all panels. {ROUNDS}", draw
    )


def scaling(measured: Measured) -> Plot | None:
    cell, data = least(measured), measured.workloads[0].data
    if len({each.processes for each in measured.cells}) == 1:
        return None

    def draw(axes: Axes, operation: Operation, contender: Contender) -> list[int]:
        ticks = []
        for batch, style in zip(dict.fromkeys(batches(measured)), ("o--", "o-"), strict=False):
            found = [each for each in measured.cells if (each.clients, each.batch) == (cell.clients, batch)]
            points = {each.processes: measured.spread(data, operation, each, contender, RATE) for each in found}
            with_rounds(axes, points, style, contender, f"{contender.peer}, B={batch}")
            ticks += list(points)
        return ticks

    title = f"Scaling with processes ({cell.clients} clients in each, {data})"
    caption = (
        "Dashed: the smallest batch; solid: the largest. Client processes and the server share the cores of one "
        f"machine unless --no-server was given: there is nothing to gain beyond its cores. {ROUNDS}"
    )
    return lines(measured, "processes", "client processes (T)", title, caption, draw)


def latency(measured: Measured) -> Plot:
    """From the median to the 99th percentile of each contender in the smallest cell."""
    cell, data = least(measured), measured.workloads[0].data
    title = f"Time of a request ({setting(cell)}, {data})"
    figure, axes = grid_of_axes(title, 1, 4, (3.0, 0.36 * len(measured.contenders) + 0.9))
    shown = measured.contenders[::-1]
    for column, (batch, operation) in enumerate(product(batches(measured), OPERATIONS)):
        panel = axes[0][column]
        where = Cell(cell.processes, cell.clients, batch)
        for at, contender in enumerate(shown):
            rounds = [measured.spread(data, operation, where, contender, metric) for metric in PERCENTILES.values()]
            points, hue = medians(rounds), colour(contender.peer)
            panel.plot(points, [at] * len(points), "-", color=hue, linewidth=2, alpha=0.5)
            panel.errorbar(
                points, [at] * len(points), xerr=reach(rounds), fmt="none", ecolor=hue, capsize=4, elinewidth=1
            )
            for point, marker in zip(points, ("o", "x", "D"), strict=True):
                panel.plot(point, at, marker, color=hue, markersize=6)
        panel.set_xscale("log")
        short_ticks(panel, "x")
        panel.set_yticks(range(len(shown)), [str(each) for each in shown] if column == 0 else [""] * len(shown))
        panel.set_title(f"{operation}, {batches_of(batch)}")
        panel.set_xlabel("milliseconds")
        panel.margins(y=0.06)
    caption = (
        "Circle: median; cross: 95th percentile; diamond: 99th, with strokes from the least to the most of the rounds. "
        "A request is a whole batch. Left is better."
    )
    return Plot("latency", title, caption, figure)


FIGURES: tuple[Callable[[Measured], Plot | None], ...] = (
    comparison,
    memory,
    beside_base,
    beside_uncompressed,
    batch_effect,
    scaling,
    latency,
)
"""In the order of the page."""
