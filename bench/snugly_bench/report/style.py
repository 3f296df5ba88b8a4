"""The style of figures: one colour for each client library in all of them, and the parts that several kinds share."""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from snugly_bench.clients.plan import LZ4, LZ4_DICTIONARY, NONE, ZSTD, ZSTD_DICTIONARY, Contender, named_version
from snugly_bench.results import Spread

COLOURS = {"snugly": "#0a7d78", "valkey-glide": "#d1495b", "valkey-py": "#4b6cb7", "redis-py": "#b7791f"}
OTHER_COLOUR = "#6b7280"
TINTS = {NONE: 0.35, LZ4: 0.55, LZ4_DICTIONARY: 0.7, ZSTD: 0.85, ZSTD_DICTIONARY: 1.0}
"""Share of its library's colour in a backend; the rest is paper."""
OTHER_VERSION = 0.55
"""Share of its library's colour in a version beside the installed one; the rest is ink."""
DPI = 150
SIGNATURE_CHARACTERS = 16
"""In an inch of the signature."""
LEAST_RATIO, MOST_RATIO = 0.25, 4.0
"""The ends of the colours of ratios."""
SPREAD_CAPS = 2.5
"""Width of the ends of a stroke that shows the range of the rounds."""


@dataclass(frozen=True)
class Theme:
    """The colours of a page's figures; those of `page.html` are the same."""

    name: str
    paper: str
    ink: str
    soft: str
    line: str
    lift: float
    """Share of white in the colours of libraries, so that they stand out from the paper."""
    ratios: tuple[str, str]
    """Of the least and the most ratio; between them is paper."""


LIGHT = Theme("light", "#ffffff", "#1f2937", "#6b7280", "#e5e7eb", 0.0, ("#8c510a", "#01665e"))
DARK = Theme("dark", "#1a2027", "#e4e8ee", "#9aa5b4", "#323b47", 0.3, ("#b26a1c", "#138a80"))
THEMES = (LIGHT, DARK)
_theme: ContextVar[Theme] = ContextVar("theme", default=LIGHT)


@contextmanager
def themed(theme: Theme) -> Iterator[None]:
    """Draws in the colours of `theme`. A figure must be made and saved within: some parts are made when it is saved."""
    token = _theme.set(theme)
    try:
        with mpl.rc_context(
            {
                "font.size": 10,
                "axes.titlesize": 10.5,
                "axes.titleweight": "bold",
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.grid": True,
                "axes.axisbelow": True,
                "legend.frameon": False,
                "grid.color": theme.line,
                "axes.edgecolor": theme.soft,
                "axes.facecolor": theme.paper,
                "figure.facecolor": theme.paper,
                **dict.fromkeys(
                    ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), theme.ink
                ),
            }
        ):
            yield
    finally:
        _theme.reset(token)


def soft() -> str:
    """The colour of what is beside the point."""
    return _theme.get().soft


@dataclass(frozen=True)
class Plot:
    """A figure with what is told beside it."""

    name: str
    """Of its file, without the ending."""
    title: str
    caption: str
    """How to read the figure, in words."""
    figure: Figure

    def sign(self, text: str) -> None:
        """Adds a line below that tells what a figure must say of itself where it stands alone."""
        wrapped = textwrap.fill(text, int(self.figure.get_figwidth() * SIGNATURE_CHARACTERS))
        self.figure.supxlabel(wrapped, x=0.01, ha="left", fontsize=7, color=_theme.get().soft)

    def png(self) -> bytes:
        output = io.BytesIO()
        self.figure.savefig(output, format="png", dpi=DPI, bbox_inches="tight", pad_inches=0.15)
        return output.getvalue()


@dataclass(frozen=True)
class Picture:
    """A plot in the colours of each theme, as PNG."""

    name: str
    title: str
    caption: str
    pngs: Mapping[str, bytes]
    """By the names of themes."""

    def save(self, folder: Path) -> Path:
        """Writes the light one."""
        path = folder / f"{self.name}.png"
        path.write_bytes(self.pngs[LIGHT.name])
        return path

    def data_url(self, theme: Theme) -> str:
        return "data:image/png;base64," + base64.b64encode(self.pngs[theme.name]).decode()


def pictures(draw: Callable[[], list[Plot]], signature: str) -> list[Picture]:
    """The output of `draw`, signed, in the colours of every theme."""
    found: dict[str, Picture] = {}
    for theme in THEMES:
        with themed(theme):
            for plot in draw():
                plot.sign(signature)
                known = found.get(plot.name, Picture(plot.name, plot.title, plot.caption, {}))
                found[plot.name] = replace(known, pngs={**known.pngs, theme.name: plot.png()})
    return list(found.values())


def mixed(colour: str, other: str, share: float) -> tuple[float, float, float]:
    """So much of `colour`; the rest is `other`."""
    red, green, blue = (share * one + (1 - share) * two for one, two in zip(to_rgb(colour), to_rgb(other), strict=True))
    return red, green, blue


def colour(peer: str) -> str:
    """Of a library; other versions of it are nearer to ink."""
    theme = _theme.get()
    library, version = named_version(peer)
    lifted = mixed(COLOURS.get(library, OTHER_COLOUR), "white", 1 - theme.lift)
    return to_hex(mixed(to_hex(lifted), theme.ink, OTHER_VERSION) if version else lifted)


def shade(contender: Contender) -> tuple[float, float, float]:
    """The colour of the library, paler the less it compresses."""
    return mixed(colour(contender.peer), _theme.get().paper, TINTS.get(contender.backend, 1.0))


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


def reach(spreads: Sequence[Spread | None]) -> list[list[float]]:
    """Distances of the rounds below and above their medians, as error bars want them."""
    return [
        [0.0 if spread is None else spread.median - spread.low for spread in spreads],
        [0.0 if spread is None else spread.high - spread.median for spread in spreads],
    ]


def medians(spreads: Sequence[Spread | None]) -> list[float]:
    return [nan if spread is None else spread.median for spread in spreads]


def ratio_cells(
    axes: Axes, cells: list[list[Spread | None]], columns: Sequence[str], rows: Sequence[str], title: str
) -> None:
    """A heat map of ratios with the range of the rounds: over 1 in one colour, under in the other."""
    theme = _theme.get()
    low, high = theme.ratios
    ramp = LinearSegmentedColormap.from_list("ratios", [low, theme.paper, high])
    shown = [[float("nan") if cell is None else cell.median for cell in row] for row in cells]
    axes.imshow(shown, cmap=ramp, norm=LogNorm(LEAST_RATIO, MOST_RATIO), aspect="auto")
    for y, row in enumerate(cells):
        for x, cell in enumerate(row):
            if cell is None:
                continue
            written = "white" if not 0.45 < cell.median < 2.2 else theme.ink
            ranged = cell.low != cell.high
            axes.text(x, y - 0.12 * ranged, f"{cell.median:.2f}", ha="center", va="center", color=written)
            if ranged:
                text = f"{cell.low:.2f} to {cell.high:.2f}"
                axes.text(x, y + 0.26, text, ha="center", va="center", color=written, fontsize=6)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_title(title)
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
