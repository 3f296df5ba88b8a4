"""Small and read-only file systems, which only root can mount; tests that want one are skipped elsewhere."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def mount(*arguments: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    try:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")


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
