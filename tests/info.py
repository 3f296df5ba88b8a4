"""Reads numbers from INFO."""

from __future__ import annotations

from resp import Connection


def info(connection: Connection, section: str, field: str) -> int:
    return number(connection.command("INFO", section), field)


def number(text: object, field: str) -> int:
    """A field of what INFO has answered."""
    assert isinstance(text, bytes)
    return int(text.split(b"\r\n" + field.encode() + b":")[1].split(b"\r\n")[0])


def word(connection: Connection, section: str, field: str) -> str:
    """What INFO says of something that is no number."""
    told = connection.command("INFO", section)
    assert isinstance(told, bytes)
    return dict(line.split(":", 1) for line in told.decode().splitlines() if ":" in line)[field]
