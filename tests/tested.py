"""The tested server, and how to start it with options in its own words.

SNUGLY_TEST_TARGET chooses: `snugly` (default) or `valkey`, with which every test that is not about snugly alone must
pass too; that keeps the tests themselves honest.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

import pytest

import servers
from servers import Server

TARGETS = {"snugly": servers.snugly, "valkey": servers.valkey}
# The same wish in each program's words.
FLAGS = {
    "snugly": {"memory": "--max-memory", "policy": "--max-memory-policy", "password": "--password"},
    "valkey": {"memory": "--maxmemory", "policy": "--maxmemory-policy", "password": "--requirepass"},
}
Start = Callable[..., Server]


def target_name() -> str:
    name = os.environ.get("SNUGLY_TEST_TARGET", "snugly")
    if name not in TARGETS:
        pytest.exit(f"SNUGLY_TEST_TARGET is {name!r}: choose one of {', '.join(TARGETS)}")
    return name


@contextlib.contextmanager
def started(name: str, *options: str, **wishes: str) -> Iterator[Server]:
    flags = [part for wish, value in wishes.items() for part in (FLAGS[name][wish], value)]
    try:
        with TARGETS[name](*options, *flags) as server:
            yield server
    except servers.NoProgram as error:
        pytest.exit(str(error))
