"""A page that holds all of a report in one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from snugly_bench.report.record import About


@dataclass(frozen=True)
class Section:
    """A figure, or a table of text cells."""

    title: str
    caption: str
    image: str = ""
    """As a data URL."""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def write_page(
    path: Path,
    title: str,
    about: About,
    sections: list[Section],
    verdicts: list[list[str]],
    verdict: str,
    table: str,
) -> None:
    """`verdicts` are aims with their range, their count and whether they were met, `verdict` tells of all; `table` is
    plain text."""
    environment = Environment(
        loader=PackageLoader("snugly_bench.report", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.get_template("page.html")
    path.write_text(
        template.render(title=title, about=about, sections=sections, verdicts=verdicts, verdict=verdict, table=table)
    )
