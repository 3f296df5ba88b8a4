"""Live servers with values in them, and the tools of the program that look at live servers."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import servers
from alike import user
from resp import Argument, Connection, encode
from servers import Server

BATCH = 500


def write(connection: Connection, requests: list[tuple[Argument, ...]]) -> None:
    for start in range(0, len(requests), BATCH):
        batch = requests[start : start + BATCH]
        connection.send(b"".join(encode(*request) for request in batch))
        for _ in batch:
            connection.read()


def put_users(connection: Connection, count: int, tag: str = "") -> None:
    write(connection, [("SET", f"{tag}user:{number}", user(number)) for number in range(count)])


def url(server: Server, login: str = "", scheme: str = "redis") -> str:
    return f"{scheme}://{login}127.0.0.1:{server.port}"


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [str(servers.snugly_binary()), *arguments]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The program, whatever comes of it; it never panics."""
    with started(*arguments) as process:
        out, err = process.communicate(timeout=120)
    assert "panicked" not in err
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def tool(*arguments: str) -> str:
    """The output of the program; it must succeed."""
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def analysis(url: str, *options: str, rate: int = 100_000) -> dict[str, Any]:
    """The findings of `snugly analyze`, quickly."""
    found = json.loads(tool("analyze", url, "--json", "--observe", "0", "--rate", str(rate), *options))
    assert isinstance(found, dict)
    return found


def pattern(found: dict[str, Any], name: str) -> dict[str, Any]:
    [row] = [row for row in found["patterns"] if row["pattern"] == name]
    assert isinstance(row, dict)
    return row


def calls(connection: Connection) -> dict[str, int]:
    """Number of calls of each command."""
    text = connection.command("INFO", "commandstats")
    assert isinstance(text, bytes)
    lines = [line for line in text.decode().splitlines() if line.startswith("cmdstat_")]
    return {line.split(":")[0][8:]: int(line.split("calls=")[1].split(",")[0]) for line in lines}
