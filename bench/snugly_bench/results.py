"""Samples, their medians and paired ratios, aims, and tables of them. Knows nothing of how they are measured."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Literal

CSV_HEADER = (
    *("workload", "subject", "metric", "rounds", "median", "min", "max"),
    *("base", "ratio", "ratio_min", "ratio_max", "samples"),
)
"""Of the lines of `Results.csv`, whatever was measured. A ratio is to what the base measured in the same round; the
samples are those of all rounds, with blanks between them, so that everything else can be found again."""


@dataclass(frozen=True)
class Spread:
    """Measurements of several rounds."""

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
    """One sample for each round, of every metric of every subject (a server, a client) in every workload."""

    base: str
    """The subject that the others are compared with; empty where each has its own or none."""
    bases: dict[str, str] = field(default_factory=dict)
    """For subjects that are compared with another one."""
    samples: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    """By workload, subject and metric."""

    def add(self, workload: str, subject: str, metrics: dict[str, float]) -> None:
        for metric, value in metrics.items():
            self.samples.setdefault((workload, subject, metric), []).append(value)

    def spread(self, workload: str, subject: str, metric: str) -> Spread:
        return Spread.of(self.samples[workload, subject, metric])

    def ratio(self, workload: str, subject: str, metric: str, base: str) -> Spread:
        """One subject over another: of the ratios within each round, since what disturbs a round disturbs both."""
        pairs = zip(self.samples[workload, subject, metric], self.samples[workload, base, metric], strict=True)
        return Spread.of([mine / other for mine, other in pairs])

    def rows(self) -> list[tuple[str, str]]:
        """Every workload with every subject measured in it, workload by workload, in the order of measuring."""
        measured = dict.fromkeys((workload, subject) for workload, subject, _ in self.samples)
        workloads = list(dict.fromkeys(workload for workload, _ in measured))
        return sorted(measured, key=lambda row: workloads.index(row[0]))

    def base_of(self, subject: str) -> str:
        return self.bases.get(subject, self.base)

    def has(self, workload: str, subject: str, metric: str) -> bool:
        return (workload, subject, metric) in self.samples

    def csv(self) -> list[list[str]]:
        """A line for every metric: its spread, and the spread of its ratio to the base's where that is not 0."""
        lines = []
        for (workload, subject, metric), samples in self.samples.items():
            value, base = self.spread(workload, subject, metric), self.base_of(subject)
            numbers = [str(len(samples)), *shorten([value.median, value.low, value.high])]
            compared = [base, "", "", ""]
            if all(self.samples.get((workload, base, metric), [0.0])):
                ratio = self.ratio(workload, subject, metric, base)
                compared = [base, *shorten([ratio.median, ratio.low, ratio.high])]
            lines.append([workload, subject, metric, *numbers, *compared, " ".join(map(str, samples))])
        return lines

    def write(self, path: Path) -> None:
        """Writes a file of its own."""
        write_csv(path, [self])

    @classmethod
    def read(cls, path: Path) -> Results:
        """The results that `write` wrote."""
        results = cls("")
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                results.samples[row["workload"], row["subject"], row["metric"]] = [
                    float(sample) for sample in row["samples"].split()
                ]
                results.bases[row["subject"]] = row["base"]
        return results


def shorten(numbers: list[float]) -> list[str]:
    return [f"{number:.6g}" for number in numbers]


def write_csv(path: Path, results: list[Results]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(CSV_HEADER)
        for result in results:
            writer.writerows(result.csv())


def write_report(folder: Path, name: str, text: str, results: list[Results]) -> str:
    """Writes `NAME.md` and `NAME.csv`, and says so."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)
    write_csv(folder / f"{name}.csv", results)
    return f"Written to {folder}/{name}.md and {name}.csv"


@dataclass(frozen=True)
class Aim:
    """A bound on one subject's metric, in some workloads."""

    subject: str
    metric: str
    at: Literal["most", "least"]
    bound: float
    base: str | None
    """Another subject, if the bound is on the ratio to its metric."""
    workloads: tuple[str, ...]

    def found(self, results: Results, workload: str) -> float:
        """The median that was measured."""
        if self.base is None:
            return results.spread(workload, self.subject, self.metric).median
        return results.ratio(workload, self.subject, self.metric, self.base).median

    def met(self, results: Results, workload: str) -> bool:
        found = self.found(results, workload)
        return found <= self.bound if self.at == "most" else found >= self.bound

    def asked(self) -> str:
        bound = f"{self.bound:g}" if self.base is None else f"{self.bound:.2f} of {self.base}"
        return f"{self.metric} at {self.at} {bound}"

    def judge(self, results: Results, workload: str) -> str:
        """The target, whether it was reached, and the measurement."""
        met = "met" if self.met(results, workload) else "MISSED"
        return f"{self.asked()}: {met} ({self.found(results, workload):.3g})"


def judge(aims: tuple[Aim, ...], results: Results, workload: str, subject: str) -> str:
    """The cell of a table that tells the aims of one row."""
    own = [aim for aim in aims if aim.subject == subject and workload in aim.workloads]
    return "; ".join(aim.judge(results, workload) for aim in own)


def table(header: list[str], rows: list[list[str]], texts: tuple[int, ...]) -> str:
    """A Markdown table that is aligned as plain text too; the columns `texts` to the left, numbers to the right."""
    widths = [max(2, *map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * width if at in texts else "-" * (width - 1) + ":" for at, width in enumerate(widths)]

    def line(cells: list[str]) -> str:
        padded = (
            cell.ljust(width) if at in texts else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    return "\n".join(map(line, (header, rule, *rows)))
