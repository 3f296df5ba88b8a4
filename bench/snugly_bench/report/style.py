"""How figures look: one colour for each client library in all of them, and what several kinds of figures share."""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from snugly_bench.clients.plan import DICTIONARY, LZ4, NONE, ZSTD, Contender

COLOURS = {"snugly": "#0a7d78", "valkey-glide": "#d1495b", "valkey-py": "#4b6cb7", "redis-py": "#b7791f"}
OTHER_COLOUR = "#6b7280"
TINTS = {NONE: 0.35, LZ4: 0.55, ZSTD: 0.8, DICTIONARY: 1.0}
"""How much of its library's colour a backend has; the rest is white."""
DPI = 150
SIGNATURE_CHARACTERS = 16
"""In an inch of the signature."""
LEAST_RATIO, MOST_RATIO = 0.25, 4.0
"""Where the colours of ratios end."""

mpl.rcParams.update(
    {
        "font.size": 10,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e5e7eb",
        "legend.frameon": False,
        "figure.facecolor": "white",
    }
)


@dataclass(frozen=True)
class Plot:
    """A figure with what is told beside it."""

    name: str
    """Of its file, without the ending."""
    title: str
    caption: str
    """How to read it."""
    figure: Figure

    def sign(self, text: str) -> None:
        """Adds a line below that tells what a figure must say of itself where it stands alone."""
        wrapped = textwrap.fill(text, int(self.figure.get_figwidth() * SIGNATURE_CHARACTERS))
        self.figure.supxlabel(wrapped, x=0.01, ha="left", fontsize=7, color=OTHER_COLOUR)

    def save(self, folder: Path) -> Path:
        path = folder / f"{self.name}.png"
        path.write_bytes(self.png)
        return path

    @cached_property
    def png(self) -> bytes:
        output = io.BytesIO()
        self.figure.savefig(output, format="png", dpi=DPI, bbox_inches="tight", pad_inches=0.15)
        return output.getvalue()

    def data_url(self) -> str:
        return "data:image/png;base64," + base64.b64encode(self.png).decode()


def colour(peer: str) -> str:
    return COLOURS.get(peer, OTHER_COLOUR)


def shade(contender: Contender) -> tuple[float, float, float]:
    """The colour of the library, paler the less it compresses."""
    share = TINTS.get(contender.backend, 1.0)
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour(contender.peer)))
    return red, green, blue


def grid_of_axes(title: str, rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[list[Axes]]]:
    """A figure with `rows` times `columns` panels of `size` inches each."""
    figure = Figure(figsize=(columns * size[0], rows * size[1] + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    return figure, [list(row) for row in axes]


def share_limits(panels: list[Axes]) -> None:
    """The same scale for all, so that they can be compared."""
    limits = [panel.get_ylim() for panel in panels]
    for panel in panels:
        panel.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def one_legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """Names every line once, beside the title."""
    named = {
        label: handle for panel in panels for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(list(named.values()), list(named), loc="outside right upper", fontsize=9)


def short(number: float) -> str:
    """As a label: 17.9k, 1.31M, 42."""
    for divisor, unit in ((1e6, "M"), (1e3, "k")):
        if number >= divisor:
            return f"{number / divisor:.3g}{unit}"
    return f"{number:.3g}"


def numbered_ticks(axes: Axes, ticks: Sequence[int]) -> None:
    """A logarithmic axis below that names just `ticks`."""
    axes.set_xscale("log")
    axes.set_xticks(list(ticks), [str(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def short_ticks(axes: Axes, which: str) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    if axis.get_scale() == "log":
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_locator(MaxNLocator(4))
    axis.set_major_formatter(FuncFormatter(lambda number, _position: short(number)))


def ratio_cells(
    axes: Axes, cells: list[list[float | None]], columns: Sequence[str], rows: Sequence[str], title: str
) -> None:
    """A heat map of ratios: what is over 1 in one colour, what is under in the other."""
    shown = [[float("nan") if cell is None else cell for cell in row] for row in cells]
    axes.imshow(shown, cmap="BrBG", norm=LogNorm(LEAST_RATIO, MOST_RATIO), aspect="auto")
    for y, row in enumerate(cells):
        for x, cell in enumerate(row):
            if cell is not None:
                strong = not 0.45 < cell < 2.2
                axes.text(x, y, f"{cell:.2f}", ha="center", va="center", color="white" if strong else "#1f2937")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_title(title)
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
