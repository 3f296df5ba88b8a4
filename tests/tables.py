"""Markdown tables in texts, as benchmarks print them."""

from __future__ import annotations


def line(text: str, *beginning: str) -> str:
    """The row of a table that begins with these cells."""
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines() if row.startswith("|")]
    return next(" | ".join(row) for row in rows if row[: len(beginning)] == list(beginning))
