"""A page that holds all of a report in one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from snugly_bench.report.record import About
from snugly_bench.report.style import DARK, LIGHT, Picture


@dataclass(frozen=True)
class Mark:
    """A cell of a table."""

    text: str
    style: str = ""
    """A class of the page's style sheet."""


@dataclass(frozen=True)
class Section:
    """A figure, or a table."""

    title: str
    caption: str
    image: str = ""
    """As a data URL."""
    dark_image: str = ""
    """The same for those who read light on dark."""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[Mark]] = ()


def figure_section(picture: Picture) -> Section:
    return Section(picture.title, picture.caption, picture.data_url(LIGHT), picture.data_url(DARK))


@dataclass(frozen=True)
class Aims:
    """The target."""

    verdict: str
    """Of all."""
    rows: Sequence[Sequence[str]]
    """Each aim with the range that was found, in how many cases it was met, and `met` or `missed`."""


def write_page(
    path: Path, title: str, about: About, sections: list[Section], aims: Aims | None = None, table: str = ""
) -> None:
    """Writes a page with all that is given; `table` is plain text."""
    environment = Environment(
        loader=PackageLoader("snugly_bench.report", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.get_template("page.html")
    path.write_text(template.render(title=title, about=about, sections=sections, aims=aims, table=table))
