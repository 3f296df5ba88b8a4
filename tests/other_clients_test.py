"""Clients of other languages, as they come: the programs in clients/ connect with them, and this tells what they saw.

It knows how to build and run these programs, and which checks they make; clients/README.md has the rest.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from servers import Server
from tested import started, target_name

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).resolve().parent / "clients"
BUILD_SECONDS = 600
RUN_SECONDS = 120


@dataclass(frozen=True)
class Language:
    """The command that runs the program of a language (a target of clients/Makefile builds it), and its clients."""

    tools: tuple[str, ...]
    command: tuple[str, ...]
    clients: tuple[str, ...]
    write_before_they_read: bool = True

    @property
    def checks(self) -> tuple[str, ...]:
        return (*CHECKS, "large-pipeline") if self.write_before_they_read else CHECKS


LANGUAGES = {
    "go": Language(
        tools=("go",),
        command=("build/clients",),
        clients=("go-redis-resp2", "go-redis-resp3", "valkey-go-resp2", "valkey-go-resp3"),
    ),
    "node": Language(
        tools=("node", "npm"),
        command=("node", "main.js"),
        clients=("ioredis-resp2", "ioredis-resp3", "iovalkey-resp2", "node-redis-resp2", "node-redis-resp3"),
        write_before_they_read=False,
    ),
    "java": Language(
        tools=("javac", "mvn"),
        command=("java", "-cp", "target/classes:target/dependency/*", "snugly.clients.Main"),
        clients=(
            *("jedis-resp2", "jedis-resp3", "valkey-java-resp2", "valkey-java-resp3"),
            *("lettuce-resp2", "lettuce-resp3"),
        ),
    ),
}
CHECKS = (
    *("connect", "identity", "json", "binary", "missing", "expiry", "several", "counter", "scan", "pipeline"),
    *("delete", "errors", "concurrency", "transaction", "script", "watch", "password", "quiet"),
)


@dataclass
class Outcome:
    """The results that a program printed about each client and check: None for success, else the error."""

    details: dict[tuple[str, str], str | None]
    errors: str
    code: int


def build(language: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--silent", "-C", str(FOLDER), language]
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_SECONDS, check=False
    )


def run(language: str, server: Server, locked: Server) -> Outcome:
    command = [*LANGUAGES[language].command, "127.0.0.1", str(server.port), str(locked.port)]
    process = subprocess.Popen(
        command, cwd=FOLDER / language, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        output, errors = process.communicate(timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        errors += f"ended after {RUN_SECONDS} seconds"
    return Outcome(details_of(output), errors, process.returncode)


def details_of(output: str) -> dict[tuple[str, str], str | None]:
    lines = [json.loads(line) for line in output.splitlines()]
    details = {
        (f"{line['client']}-resp{line['protocol']}", line["check"]): None if line["ok"] else line["detail"]
        for line in lines
    }
    assert len(details) == len(lines), "something was checked twice"
    return details


@functools.cache
def outcome_of(language: str) -> Outcome:
    """The findings of the program of a language; built and run once, whatever the result, for all tests about it."""
    built = build(language)
    if built.returncode != 0:
        return Outcome({}, built.stdout, built.returncode)
    with started(target_name()) as server, started(target_name(), password="secret") as locked:
        return run(language, server, locked)


@pytest.fixture
def outcome(request: pytest.FixtureRequest) -> Outcome:
    language: str = request.param
    absent = [tool for tool in LANGUAGES[language].tools if shutil.which(tool) is None]
    if absent:
        pytest.skip(f"no {' and no '.join(absent)} here, with which tests/clients/{language} is built")
    return outcome_of(language)


each_language = pytest.mark.parametrize("outcome", LANGUAGES, indirect=True)
each_check = pytest.mark.parametrize(
    ("outcome", "client", "check"),
    [
        pytest.param(name, client, check, id=f"{client}-{check}")
        for name, language in LANGUAGES.items()
        for client in language.clients
        for check in language.checks
    ],
    indirect=["outcome"],
)


@each_check
def test_a_client_works_as_it_comes(outcome: Outcome, client: str, check: str) -> None:
    assert (client, check) in outcome.details, f"was not checked; the program printed: {outcome.errors}"
    detail = outcome.details[client, check]
    assert detail is None, detail


@each_language
def test_a_program_prints_nothing_but_its_checks_and_fails_if_one_fails(outcome: Outcome) -> None:
    assert outcome.errors == ""
    assert {client for client, _ in outcome.details} <= {
        client for language in LANGUAGES.values() for client in language.clients
    }
    assert {check for _, check in outcome.details} <= {
        check for language in LANGUAGES.values() for check in language.checks
    }
    failed = any(detail is not None for detail in outcome.details.values())
    assert outcome.code == int(failed)
