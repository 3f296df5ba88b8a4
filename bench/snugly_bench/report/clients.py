"""The report of `clients`: its figures, and the page that shows them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

from matplotlib.axes import Axes

from snugly_bench.clients import aims
from snugly_bench.clients.peers import BASE
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
from snugly_bench.report.page import Aims, Section, write_page
from snugly_bench.report.record import About
from snugly_bench.report.style import (
    OTHER_COLOUR,
    Plot,
    colour,
    grid_of_axes,
    numbered_ticks,
    one_legend,
    ratio_cells,
    shade,
    share_limits,
    short,
    short_ticks,
)
from snugly_bench.results import Results

TITLE = "Clients of Valkey, with and without compression"
BAR = 0.8
"""The width of a group of bars."""


def write(folder: Path, about: About, results: Results) -> list[Path]:
    """Writes every figure, the table and the page, and returns their paths, the page first."""
    measured = Measured(results)
    plots = [plot for draw in FIGURES if (plot := draw(measured)) is not None]
    for plot in plots:
        plot.sign(about.signature())
    table = aims.ratios(results, [str(workload) for workload in measured.workloads])
    text = folder / "clients.md"
    stored = aims.stored(results)
    text.write_text(f"{about.text()}\n\n{aims.verdict(results)}\n\n{table}\n\n{stored}\n")
    page = folder / "clients.html"
    sections = [Section(plot.title, plot.caption, plot.data_url()) for plot in plots]
    write_page(page, TITLE, about, sections, Aims(aims.verdict(results), verdicts(results)), table)
    return [page, text, *(plot.save(folder) for plot in plots)]


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
    figure, ((axes,),) = grid_of_axes(title, 1, 1, (max(9, 2.6 * len(measured.data)), 4.4))
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
    axes.legend(ncols=len(shown), loc="lower left", bbox_to_anchor=(0, 1))
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
            values = [
                measured.median(measured.workloads[0].data, operation, where, contender, metric) or 0
                for contender in shown
            ]
            panel.barh(range(len(shown)), values, color=[shade(contender) for contender in shown], height=0.78)
            for at, value in enumerate(values):
                panel.text(value, at, f" {short(value)}", va="center", fontsize=8.5)
            panel.set_yticks(range(len(shown)), [str(each) for each in shown] if column == 0 else [""] * len(shown))
            panel.set_title(f"{operation}, {batches_of(batch)}")
            panel.set_xlabel(unit)
            panel.margins(x=0.18)
            panel.grid(axis="y", visible=False)
            short_ticks(panel, "x")
    caption = (
        "Above: longer is better. Below: shorter is better; it is the time of all threads of the client's process. "
        "Paler colours compress less."
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
            ratio_cells(panel, cells, list(map(str, sizes)), list(map(str, clients)), f"{operation}, {contender}")
            if column == 0:
                panel.set_ylabel("clients (C)")
            if row == 1:
                panel.set_xlabel("batch (B)")
    return Plot(name, title, caption, figure)


def beside_base(measured: Measured) -> Plot | None:
    base = BASE if BASE in measured.peers else measured.peers[0]
    pairs = [
        (contender, counterpart(contender, base))
        for contender in by_peer(measured)
        if contender.peer != base and counterpart(contender, base) in measured.contenders
    ]
    title = f"Throughput as a ratio to {base} with the same backend"
    caption = f"Teal: faster than {base}; brown: slower. Each cell is the median of the ratios within each round."
    return heat_map(measured, "ratio-to-base", title, caption, pairs)


def beside_uncompressed(measured: Measured) -> Plot | None:
    pairs = [
        (contender, Contender(contender.peer, NONE))
        for contender in by_peer(measured)
        if contender.backend != NONE and Contender(contender.peer, NONE) in measured.contenders
    ]
    title = "What compression costs: throughput as a ratio to the same client without compression"
    caption = "Teal: compression makes it faster; brown: it costs that much of the throughput."
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


def batch_effect(measured: Measured) -> Plot:
    cell, data = least(measured), measured.workloads[0].data

    def draw(axes: Axes, operation: Operation, contender: Contender) -> list[int]:
        found = [each for each in measured.cells if (each.processes, each.clients) == (cell.processes, cell.clients)]
        points = {each.batch: measured.median(data, operation, each, contender, RATE) for each in found}
        axes.plot(
            list(points), [value or float("nan") for value in points.values()], "o-", color=colour(contender.peer),
            label=contender.peer,
        )  # fmt: skip
        return list(points)

    title = f"Effect of batches ({setting(cell)}, {data})"
    return lines(measured, "batch", "batch (B)", title, "Both axes are logarithmic, and the same in all panels.", draw)


def scaling(measured: Measured) -> Plot | None:
    cell, data = least(measured), measured.workloads[0].data
    if len({each.processes for each in measured.cells}) == 1:
        return None

    def draw(axes: Axes, operation: Operation, contender: Contender) -> list[int]:
        ticks = []
        for batch, style in zip(dict.fromkeys(batches(measured)), ("o--", "o-"), strict=False):
            found = [each for each in measured.cells if (each.clients, each.batch) == (cell.clients, batch)]
            points = {each.processes: measured.median(data, operation, each, contender, RATE) for each in found}
            axes.plot(
                list(points), [value or float("nan") for value in points.values()], style,
                color=colour(contender.peer), label=f"{contender.peer}, B={batch}",
            )  # fmt: skip
            ticks += list(points)
        return ticks

    title = f"Scaling with processes ({cell.clients} clients in each, {data})"
    caption = (
        "Dashed: the smallest batch; solid: the largest. Client processes and the server share the cores of one "
        "machine unless --no-server was given: there is nothing to gain beyond its cores."
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
            points = [
                measured.median(data, operation, where, contender, metric) or float("nan")
                for metric in PERCENTILES.values()
            ]
            panel.plot(points, [at] * len(points), "-", color=colour(contender.peer), linewidth=2, alpha=0.5)
            for point, marker in zip(points, ("o", "|", "D"), strict=True):
                panel.plot(point, at, marker, color=colour(contender.peer), markersize=9 if marker == "|" else 6)
        panel.set_xscale("log")
        short_ticks(panel, "x")
        panel.set_yticks(range(len(shown)), [str(each) for each in shown] if column == 0 else [""] * len(shown))
        panel.set_title(f"{operation}, {batches_of(batch)}")
        panel.set_xlabel("milliseconds")
        panel.margins(y=0.06)
    caption = "Circle: median; stroke: 95th percentile; diamond: 99th. A request is a whole batch. Left is better."
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
