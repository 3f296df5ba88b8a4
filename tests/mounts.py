"""Small and read-only file systems, which only root can mount.

Tests that want one are skipped where there is none to be had (conftest.py).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


class NotMounted(Exception):
    """There is no such file system to be had here; the message says why."""


def mount(*arguments: str) -> None:
    """Raises NotMounted where the system refuses it."""
    if os.geteuid() != 0:
        raise NotMounted("only root can mount a file system")
    try:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NotMounted("there is no mount command") from None
    if done.returncode != 0:
        raise NotMounted(f"a file system cannot be mounted here: {done.stderr.strip()}")


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A disk of `size` bytes, mounted on a folder that is made for it."""
    folder.mkdir()
    mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Keeps everybody, root included, from writing to what is mounted on a folder."""
    mount("-o", "remount,ro", str(folder))
    try:
        yield
    finally:
        mount("-o", "remount,rw", str(folder))
