"""`snugly bench lists` on one server, a test at a time, so that servers can be asked in turn."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from snugly_bench.servers.generators import Row
from snugly_bench.servers.loads import LOAD_CORE, SERVER_CORE
from snugly_bench.servers.peers import Server, end


@dataclass
class Driver:
    """A load generator that waits to be told."""

    server: Server
    process: subprocess.Popen[bytes]
    columns: list[str]
    """Of its results; empty before the first one."""

    def step(self) -> Row:
        """Runs the next test. Exits if it fails."""
        self.tell()
        if not self.columns:
            self.columns = self.cells()
        row = dict(zip(self.columns, self.cells(), strict=True))
        self.server.check_pinned(SERVER_CORE)
        return row

    def finish(self) -> None:
        """Has all lists compared, when all tests have run. Exits if one of them is not as it should be."""
        self.tell()
        if self.process.wait() != 0:
            self.fail()

    def tell(self) -> None:
        """Lets it go on; where it has ended, what it does next tells why."""
        try:
            stream = opened(self.process.stdin)
            stream.write(b"\n")
            stream.flush()
        except BrokenPipeError:
            self.fail()

    def cells(self) -> list[str]:
        line = opened(self.process.stdout).readline().decode()
        if not line:
            self.fail()
        return next(csv.reader([line]))

    def fail(self) -> None:
        said = opened(self.process.stderr).read().decode().strip()
        raise SystemExit(f"measuring {self.server.peer.name} failed: {said}")


def opened(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


@contextmanager
def driving(program: str, server: Server, options: Sequence[str]) -> Iterator[Driver]:
    """Starts it on a core of its own, and ends it in any case."""
    named = ("--url", server.url, "--label", server.peer.name, "--pid", str(server.pid), "--step")
    process = subprocess.Popen(
        ["taskset", "--cpu-list", str(LOAD_CORE), program, "bench", "lists", *named, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield Driver(server, process, [])
        finally:
            end(process)
