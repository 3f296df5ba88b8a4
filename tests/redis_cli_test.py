"""The tools of redis-cli that look at a server, where they work without a terminal."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from servers import Server

REDIS_CLI = shutil.which("redis-cli") or shutil.which("valkey-cli")

pytestmark = pytest.mark.skipif(REDIS_CLI is None, reason="redis-cli is not installed")


def run(server: Server, *arguments: str, stdin: str = "") -> str:
    command = [str(REDIS_CLI), "-p", str(server.port), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def first_lines(server: Server, count: int, *arguments: str) -> Iterator[str]:
    """The first lines of a tool that does not end by itself."""
    command = [str(REDIS_CLI), "-p", str(server.port), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for _ in range(count):
            yield process.stdout.readline()
        process.terminate()


def test_stat_shows_keys_memory_clients_and_requests(server: Server) -> None:
    run(server, "SET", "key", "value")
    head, names, first, *more = first_lines(server, 5, "--stat", "-i", "0.1")
    assert "- data -" in head
    assert names.split()[:6] == ["keys", "mem", "clients", "blocked", "requests", "connections"]
    assert first.split()[0] == "1"
    assert all(int(line.split()[3]) == 0 for line in (first, *more))


def test_monitor_shows_commands(server: Server) -> None:
    lines = first_lines(server, 2, "MONITOR")
    assert next(lines) == "OK\n"
    run(server, "SET", "key", "value")
    assert next(lines).endswith('"SET" "key" "value"\n')
    assert list(lines) == []


def test_latencies_are_measured(server: Server) -> None:
    lowest, highest, average, count = run(server, "--latency", "--raw", "-i", "0.2").split()
    assert 0 <= float(lowest) <= float(average) <= float(highest)
    assert int(count) > 0


@pytest.mark.parametrize("tool", ["--bigkeys", "--memkeys"])
def test_large_keys_are_found(server: Server, tool: str) -> None:
    for number in range(20):
        run(server, "SET", f"key:{number}", random.Random(number).randbytes(10 + number * 50).hex())
    report = run(server, tool)
    assert "Sampled 20 keys in the keyspace!" in report
    assert "key:19" in report.split("summary")[1]


def test_a_script_of_commands_is_run_in_order(server: Server) -> None:
    assert run(server, stdin="SET key 1\nINCR key\nOBJECT ENCODING key\n").split() == ["OK", "2", "int"]
