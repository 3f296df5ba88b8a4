"""The log in JSON: every line on standard error is an object, whatever happens."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import servers
from resp import Simple
from servers import Server
from tested import Start

pytestmark = pytest.mark.snugly_only


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def messages(text: str) -> list[str]:
    return [event["fields"]["message"] for event in events(text)]


def log_of(server: Server) -> str:
    server.process.terminate()
    assert server.process.wait(60) == 0
    return server.output()


def test_every_line_is_an_object(start: Start, tmp_path: Path) -> None:
    server = start("--log-format", "json", "--storage", str(tmp_path / "store\n"), "--memcached-port", "0")
    with server.connect() as connection:
        assert connection.command("CONFIG", "SET", "hz", "20") == Simple(b"OK")
        assert connection.command("CONFIG", "GET", "log-format") == [b"log-format", b"json"]
    told = log_of(server)
    for event in events(told):
        assert event.keys() == {"timestamp", "level", "fields", "target"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", event["timestamp"]), "in UTC"
        assert event["level"] in ("ERROR", "WARN", "INFO")
    assert any(f"listens on 127.0.0.1:{server.port}" in message for message in messages(told))
    assert any("memcached" in message for message in messages(told))
    assert messages(told)[-1] == "stopped"
    [warning] = [event for event in events(told) if event["level"] == "WARN"]
    assert warning["fields"]["setting"] == "hz"


def test_a_level_holds_for_the_banner_too(start: Start) -> None:
    server = start("--log-format", "json", "--log-level", "error")
    assert log_of(server) == ""


def test_a_start_that_fails_is_an_object_too(tmp_path: Path) -> None:
    command = [str(servers.snugly_binary()), "serve", "--port", "0", "--log-format", "json"]
    for options in (
        ["--load-rdb", str(tmp_path / "none.rdb")],
        ["--tls-port", "0"],
        ["--durability", "fsync"],
    ):
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 1
        [event] = events(done.stderr)
        assert event["level"] == "ERROR"
        assert event["fields"]["message"]


def test_a_command_that_panics_is_told_in_objects(start: Start) -> None:
    server = start("--log-format", "json")
    with server.connect() as connection, contextlib.suppress(OSError, EOFError):
        connection.command("DEBUG", "PANIC")
    told = log_of(server)
    [panic] = [event for event in events(told) if event["fields"]["message"] == "a thread panicked"]
    assert panic["level"] == "ERROR"
    assert panic["fields"]["reason"] == "DEBUG PANIC was called"
    assert panic["fields"]["thread"].startswith("worker-")
    assert "debug.rs" in panic["fields"]["place"]


def test_text_is_the_default(start: Start) -> None:
    server = start()
    assert server.says("To try it: redis-cli -p")
    with server.connect() as connection:
        assert connection.command("CONFIG", "GET", "log-format") == [b"log-format", b"text"]
