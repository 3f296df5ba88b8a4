"""The system's numbers of a server's process: its memory, and the processor time of its threads."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

STEADY_BYTES = 256 << 10
"""Memory that changes by less is steady."""
CLOCK_OF_PROCESS = 2
"""CPUCLOCK_SCHED of Linux: the low bits of a process's clock, above which is its inverted id."""


def anonymous_bytes(pid: int) -> int:
    """Resident memory that is of no file."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:"))


def steady_anonymous_bytes(pid: int, steady: float, most: float) -> int:
    """The same once it has not changed for `steady` seconds, after `most` seconds at the latest: allocators give memory
    back late."""
    deadline = time.monotonic() + most
    found, since = anonymous_bytes(pid), time.monotonic()
    while time.monotonic() < min(since + steady, deadline):
        time.sleep(steady / 10)
        now = anonymous_bytes(pid)
        if abs(now - found) > STEADY_BYTES:
            found, since = now, time.monotonic()
    return anonymous_bytes(pid)


def thread_seconds(pid: int, name: str) -> float:
    """Processor time of all threads that are called so, user and system; 0 where there are none."""
    ticks = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            if (task / "comm").read_text().strip() == name:
                # The part in parentheses is the name, which may hold blanks; user and system are fields 14 and 15.
                fields = (task / "stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def process_seconds(pid: int) -> float:
    """Processor time of all threads that a process has and has had, user and system.

    From the clock that clock_getcpuclockid(3) names, which Python does not have: /proc counts hundredths of a second,
    and many reads take no more.
    """
    return time.clock_gettime(~pid << 3 | CLOCK_OF_PROCESS)
