"""A description of this machine."""

from __future__ import annotations

import os
from pathlib import Path


def machine() -> str:
    """Its processor."""
    models = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return f"{os.cpu_count()} cores of {models[0]}" if models else f"{os.cpu_count()} cores"
