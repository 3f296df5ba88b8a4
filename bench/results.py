"""Samples, their medians and paired ratios, aims, and tables of them. Knows nothing of how they are measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Literal

CSV_HEADER = ("workload", "server", "metric", "rounds", "median", "min", "max", "ratio", "ratio_min", "ratio_max")
"""Of the lines of `Results.csv`."""


@dataclass(frozen=True)
class Spread:
    """What several rounds measured."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: list[float]) -> Spread:
        return cls(median(samples), min(samples), max(samples))

    def show(self, decimals: int = 2) -> str:
        """The median, and behind it the range if there is one."""
        if self.low == self.high:
            return f"{self.median:,.{decimals}f}"
        return f"{self.median:,.{decimals}f} ({self.low:,.{decimals}f} to {self.high:,.{decimals}f})"


@dataclass
class Results:
    """One sample for each round, of every metric of every server in every workload."""

    base: str
    """The server that the others are compared with."""
    samples: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    """By workload, server and metric."""

    def add(self, workload: str, server: str, metrics: dict[str, float]) -> None:
        for metric, value in metrics.items():
            self.samples.setdefault((workload, server, metric), []).append(value)

    def spread(self, workload: str, server: str, metric: str) -> Spread:
        return Spread.of(self.samples[workload, server, metric])

    def ratio(self, workload: str, server: str, metric: str, base: str) -> Spread:
        """One server over another: of the ratios within each round, since what disturbs a round disturbs both."""
        pairs = zip(self.samples[workload, server, metric], self.samples[workload, base, metric], strict=True)
        return Spread.of([mine / other for mine, other in pairs])

    def rows(self) -> list[tuple[str, str]]:
        """Every workload with every server measured in it, workload by workload, in the order of measuring."""
        measured = dict.fromkeys((workload, server) for workload, server, _ in self.samples)
        workloads = list(dict.fromkeys(workload for workload, _ in measured))
        return sorted(measured, key=lambda row: workloads.index(row[0]))

    def csv(self) -> list[list[str]]:
        """A line for every metric: its spread, and the spread of its ratio to the base's."""
        lines = []
        for (workload, server, metric), samples in self.samples.items():
            value = self.spread(workload, server, metric)
            ratio = self.ratio(workload, server, metric, self.base)
            numbers = (value.median, value.low, value.high, ratio.median, ratio.low, ratio.high)
            lines.append([workload, server, metric, str(len(samples)), *(f"{number:.6g}" for number in numbers)])
        return lines


@dataclass(frozen=True)
class Aim:
    """A bound on one server's metric, in some workloads."""

    server: str
    metric: str
    at: Literal["most", "least"]
    bound: float
    base: str | None
    """Another server, if the bound is on the ratio to its metric."""
    workloads: tuple[str, ...]

    def judge(self, results: Results, workload: str) -> str:
        """What is asked for, whether that was reached, and the median that was measured."""
        if self.base is None:
            found, asked = results.spread(workload, self.server, self.metric).median, f"{self.bound:g}"
        else:
            found = results.ratio(workload, self.server, self.metric, self.base).median
            asked = f"{self.bound:.2f} of {self.base}"
        met = found <= self.bound if self.at == "most" else found >= self.bound
        return f"{self.metric} at {self.at} {asked}: {'met' if met else 'MISSED'} ({found:.3g})"


def judge(aims: tuple[Aim, ...], results: Results, workload: str, server: str) -> str:
    """The cell of a table that tells the aims of one row."""
    own = [aim for aim in aims if aim.server == server and workload in aim.workloads]
    return "; ".join(aim.judge(results, workload) for aim in own)


def table(header: list[str], rows: list[list[str]], texts: tuple[int, ...]) -> str:
    """A Markdown table that is aligned as plain text too; the columns `texts` to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * width if at in texts else "-" * (width - 1) + ":" for at, width in enumerate(widths)]

    def line(cells: list[str]) -> str:
        padded = (
            cell.ljust(width) if at in texts else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    return "\n".join(map(line, (header, rule, *rows)))
