"""Reads numbers from INFO."""

from __future__ import annotations

from resp import Connection


def info(connection: Connection, section: str, field: str) -> int:
    text = connection.command("INFO", section)
    assert isinstance(text, bytes)
    return int(text.split(b"\r\n" + field.encode() + b":")[1].split(b"\r\n")[0])
