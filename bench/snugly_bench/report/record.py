"""Facts that a report has beside the results: machine, versions, command. Written beside them, and read again."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict, dataclass
from pathlib import Path

from snugly_bench.results import Results

WIDTH = 120


@dataclass(frozen=True)
class About:
    """One run."""

    benchmark: str
    when: str
    """Day and time, UTC."""
    machine: str
    server: str
    shared: bool
    """Whether the server ran on this machine too, beside the clients."""
    clients: dict[str, str]
    """Versions."""
    command: str
    rounds: int
    seconds: float
    """Of each measurement."""
    values: int
    """Of each corpus."""
    rough: bool = False
    """Whether this was --quick or --smoke, from which nothing is to be concluded."""

    def versions(self) -> str:
        return ", ".join(f"{name} {version}" for name, version in self.clients.items())

    def method(self) -> str:
        shared = " Clients and server share this machine's cores." if self.shared else ""
        return (
            f"Rounds: {self.rounds}, the clients in turn within each, {self.seconds:g} s for each measurement, "
            f"{self.values:,} values of each kind. Shown are medians; a ratio is the median of the ratios within each "
            f"round.{shared}"
        )

    def signature(self) -> str:
        return f"{self.command} · {self.machine} · {self.server} · {self.versions()} · {self.when}"

    def text(self) -> str:
        told = f"{self.machine}. {self.server}. {self.versions()}. {self.method()}"
        return f"# {self.command}\n\n{textwrap.fill(told, WIDTH)}"


def save(folder: Path, about: About, results: Results) -> None:
    """Writes `BENCHMARK.csv` and `BENCHMARK.json`."""
    results.write(folder / f"{about.benchmark}.csv")
    (folder / f"{about.benchmark}.json").write_text(json.dumps(asdict(about), indent=2) + "\n")


def load(folder: Path, benchmark: str) -> tuple[About, Results]:
    """The record that `save` wrote."""
    fields = json.loads((folder / f"{benchmark}.json").read_text())
    return About(**fields), Results.read(folder / f"{benchmark}.csv")
