"""Runs the programs that load servers, and returns what they report. Knows nothing of which server it is."""

from __future__ import annotations

import csv
import subprocess
import tempfile
from pathlib import Path

from snugly_bench.servers.peers import Server

Row = dict[str, str]
"""A line of a program's CSV, by the names of its columns."""


def snugly_bench(
    program: str, benchmark: str, server: Server, options: list[str], core: int | None = None
) -> list[Row]:
    """Runs `snugly bench BENCHMARK`, pinned to `core` if there is one."""
    with tempfile.TemporaryDirectory(prefix="snugly-bench-") as folder:
        result = Path(folder, "result.csv")
        named = ["--url", server.url, "--label", server.peer.name, "--csv", str(result)]
        run([program, "bench", benchmark, *named, *options], server, core)
        with result.open(newline="") as lines:
            return list(csv.DictReader(lines))


def redis_benchmark(program: str, server: Server, options: list[str], core: int) -> list[Row]:
    """Runs redis-benchmark, pinned to `core`."""
    output = run([program, "-h", "127.0.0.1", "-p", str(server.port), "--csv", *options], server, core)
    return list(csv.DictReader(output.splitlines()))


def run(command: list[str], server: Server, core: int | None) -> str:
    pinned = [] if core is None else ["taskset", "--cpu-list", str(core)]
    done = subprocess.run([*pinned, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"measuring {server.peer.name} failed: {' '.join(command)}\n{done.stderr.strip()}")
    return done.stdout
