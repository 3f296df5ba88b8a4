"""Clients of memcached for other languages, as they come, with memcached and with snugly.

It knows the commands that run their programs, and which checks they make; clients/README.md has the rest.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import subprocess
from dataclasses import dataclass

import pytest

import memcached
from other_clients_test import FOLDER, LANGUAGES, RUN_SECONDS, build

pytestmark = pytest.mark.slow

COMMON = ("connect", "binary", "missing", "modes", "expiry", "counter", "concurrency", "errors")


@dataclass(frozen=True)
class Program:
    """The command behind which the addresses stand, and the checks of each client that it runs."""

    command: tuple[str, ...]
    checks: dict[str, tuple[str, ...]]
    knows_passwords: bool = True


PROGRAMS = {
    "go": Program(
        command=("build/clients", "memcached"),
        checks={"gomemcache-text": (*COMMON, "several", "cas")},
        knows_passwords=False,
    ),
    "node": Program(
        command=("node", "memcached.js"),
        checks={"memjs-binary": (*COMMON, "statistics", "quiet", "password")},
    ),
    "java": Program(
        command=("java", "-cp", "target/classes:target/dependency/*", "snugly.clients.Memcached"),
        checks={
            "spymemcached-text": (*COMMON, "objects", "several", "cas"),
            "spymemcached-binary": (*COMMON, "objects", "several", "cas", "password"),
        },
    ),
}


@functools.cache
def details(language: str, server: str) -> dict[tuple[str, str], str | None]:
    """What the program of a language has found: None for success, else the error, of each client and check."""
    built = build(language)
    assert built.returncode == 0, built.stdout
    program = PROGRAMS[language]
    with contextlib.ExitStack() as stack:
        if server == "snugly":
            cache = stack.enter_context(memcached.spoken_by_snugly())
            locked = stack.enter_context(memcached.spoken_by_snugly("--password", "secret"))
        else:
            # Has no users that it could ask.
            cache = locked = stack.enter_context(memcached.real())
        ports = [str(cache.port), str(locked.port)] if program.knows_passwords else [str(cache.port)]
        done = subprocess.run(
            [*program.command, "127.0.0.1", *ports],
            cwd=FOLDER / language,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
    assert done.stderr == ""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        (f"{line['client']}-{line['protocol']}", line["check"]): None if line["ok"] else line["detail"]
        for line in lines
    }


@pytest.mark.parametrize("server", ["memcached", pytest.param("snugly", marks=pytest.mark.snugly_only)])
@pytest.mark.parametrize(
    ("language", "client", "check"),
    [
        pytest.param(language, client, check, id=f"{client}-{check}")
        for language, program in PROGRAMS.items()
        for client, checks in program.checks.items()
        for check in checks
    ],
)
def test_a_client_works_as_it_comes(server: str, language: str, client: str, check: str) -> None:
    absent = [tool for tool in LANGUAGES[language].tools if shutil.which(tool) is None]
    if absent:
        pytest.skip(f"no {' and no '.join(absent)} here, with which tests/clients/{language} is built")
    if server == "memcached" and check == "password":
        pytest.skip("memcached asks no password here")
    found = details(language, server)
    assert (client, check) in found, "was not checked"
    assert found[client, check] is None
