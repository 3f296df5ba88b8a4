"""Envelopes by snugly's codec, which cargo builds."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def snugly_encode(jobs: list[tuple[str, int | None, bytes, bytes]]) -> list[bytes]:
    """Envelopes by snugly's codec; a job is a backend, a level, a dictionary (or nothing) and a value."""
    lines = [
        f"{backend} {'default' if level is None else level} {dictionary.hex() or '-'} {value.hex()}"
        for backend, level, dictionary, value in jobs
    ]
    command = ["cargo", "run", "--quiet", "-p", "snugly-codec", "--example", "vectors"]
    done = subprocess.run(command, cwd=ROOT, input="\n".join(lines), capture_output=True, text=True, check=True)
    return [bytes.fromhex(line) for line in done.stdout.split()]
