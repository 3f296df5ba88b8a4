"""Disk of a server that keeps values there: when it is done with writing, and how much it takes.

Knows how snugly tells of it; knows nothing of what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import valkey

from snugly_bench.servers.info import info
from snugly_bench.servers.peers import Server

WRITTEN_SECONDS = 600.0
"""Time for everything to be written."""
STEADY_SECONDS = 0.5
"""Time without a change after which nothing is written any more."""
POLL_SECONDS = 0.02
BLOCK_BYTES = 512
"""Unit of `st_blocks`, whatever blocks the file system has."""


def used_bytes(client: valkey.Valkey) -> int:
    """Pages in use and the journal of a snugly."""
    return int(info(client, "disk")["disk_used_bytes"])


def wait_until_on_disk(client: valkey.Valkey) -> None:
    """Waits until a snugly has no change that is not on the disk."""
    deadline = time.monotonic() + WRITTEN_SECONDS
    while int(info(client, "disk")["disk_pending_bytes"]):
        if time.monotonic() > deadline:
            raise SystemExit(f"after {WRITTEN_SECONDS:.0f} seconds there are still changes that are not on the disk")
        time.sleep(POLL_SECONDS)


def steady(read: Callable[[], int]) -> int:
    """What `read` tells once it has told the same for a while."""
    deadline = time.monotonic() + WRITTEN_SECONDS
    found, since = read(), time.monotonic()
    while time.monotonic() < min(since + STEADY_SECONDS, deadline):
        time.sleep(STEADY_SECONDS / 5)
        now = read()
        if now != found:
            found, since = now, time.monotonic()
    return found


def taken_bytes(server: Server, name: str) -> int:
    """Room on the disk of the file or folder that a server has under this name where it runs."""
    top = Path(f"/proc/{server.pid}/cwd", name)
    return sum(blocks_bytes(path) for path in (top, *top.rglob("*")))


def blocks_bytes(path: Path) -> int:
    # A server may remove a file meanwhile.
    with suppress(FileNotFoundError):
        return path.stat().st_blocks * BLOCK_BYTES
    return 0
