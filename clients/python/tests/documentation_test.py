"""The documentation: its examples run, and its lists are complete."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

import servers
import snugly
from servers import Server

PAGES = [servers.ROOT / "clients" / "python" / "README.md", servers.ROOT / "docs" / "python.md"]
GUIDE = PAGES[1].read_text()


def examples() -> list[object]:
    blocks = re.compile(r"^( *)```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
    return [
        pytest.param(re.sub(f"^{indent}", "", code, flags=re.MULTILINE), id=f"{page.name} {number}")
        for page in PAGES
        for number, (indent, code) in enumerate(blocks.findall(page.read_text()))
    ]


@pytest.mark.parametrize("example", examples())
def test_every_example_runs(valkey_server: Server, example: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text("import snugly\n" + example.replace('host="localhost"', f"port={valkey_server.port}"))
    exec(compile(script.read_text(), str(script), "exec"), {})


def test_every_option_is_explained() -> None:
    for option in fields(snugly.CompressionConfiguration):
        assert f"| `{option.name}` | " in GUIDE, option.name


def test_every_name_of_the_package_is_explained() -> None:
    for name in set(snugly.__all__) - {"Compression", "SnuglyError"}:
        assert re.search(rf"`[^`\n]*\b{name}\b", GUIDE), name


def test_every_refused_command_is_listed() -> None:
    rows = json.loads((servers.ROOT / "spec" / "commands.json").read_text())["commands"]
    listed = GUIDE.partition("Refused, because")[2]
    for name, row in rows.items():
        if "refuse" in row or "compared" in str(row.get("arguments")):
            assert re.search(rf"\b{name}\b", listed), name
