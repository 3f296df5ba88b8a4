"""The blocks of code in the documents, as somebody pastes them who reads nothing else."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import servers

DOCUMENTS = [
    *(servers.ROOT / name for name in ("README.md", "clients/python/README.md")),
    *sorted((servers.ROOT / "docs").glob("*.md")),
]
BLOCKS = [
    pytest.param(block[1], id=f"{path.relative_to(servers.ROOT)} {number}")
    for path in DOCUMENTS
    for number, block in enumerate(re.finditer(r"^```python\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL))
]


@pytest.mark.parametrize("code", BLOCKS)
def test_a_block_of_python_names_nothing_that_it_does_not_import(code: str) -> None:
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select",
        "F821",
        "--target-version",
        "py311",
        "-",
    ]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
