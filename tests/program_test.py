"""The program `snugly serve` itself: flags, banner, signals, exit codes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import servers
from resp import Connection, Failure, Simple, encode
from tested import Start
from waiting import until

pytestmark = pytest.mark.snugly_only


def serve(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`snugly serve` that is expected to end by itself."""
    command = [str(servers.snugly_binary()), "serve", *options]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--port", "nonsense"], ["--port", "nonsense"]),
        (["--port", "70000"], ["--port", "70000"]),
        (["--no-such-flag"], ["--no-such-flag"]),
        (["--compression", "brotli"], ["--compression", "brotli", "zstd", "auto"]),
        (["--requirepass", "secret"], ["--requirepass", "--password-file"]),
        (["--save", ""], ["--save", "--storage"]),
        (["--unixsocket", "/tmp/socket"], ["--unixsocket", "--unix-socket"]),
        (["--port", "off"], ["--port", "--tls-port", "--unix-socket"]),
        (["--tls-port", "0"], ["tls-cert-file", "tls-key-file"]),
        (["--compression", "zstd", "--compression-level", "23"], ["23", "22"]),
        (["--compression", "lz4", "--compression-level", "-129"], ["-129", "-128"]),
        (["--max-memory", "lots"], ["--max-memory", "lots"]),
        (["--max-memory-policy", "fifo"], ["fifo", "allkeys-lru"]),
        (["--threads", "-1"], ["--threads"]),
        (["--log-level", "loud"], ["loud"]),
        (["--bind", "not an address", "--port", "0"], ["not"]),
        (["unexpected"], ["unexpected"]),
    ],
    ids=lambda options: " ".join(options),
)
def test_a_bad_flag_is_a_clear_error(options: list[str], told: list[str]) -> None:
    done = serve(*options)
    assert done.returncode not in (0, 101), "success, or a panic"
    assert done.stdout == ""
    for words in told:
        assert words in done.stderr
    assert "panicked" not in done.stderr
    assert len(done.stderr.splitlines()) < 12


def test_the_password_can_lie_in_a_file(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text("a secret\n")
    server = start("--password-file", str(file))
    with server.connect() as connection:
        assert isinstance(connection.command("PING"), Failure)
        assert connection.command("AUTH", "a secret") == Simple(b"OK")
    tool = [str(servers.snugly_binary()), "dictionaries", "--url", f"snugly://127.0.0.1:{server.port}", "list"]
    assert subprocess.run(tool, capture_output=True, check=False).returncode == 1
    monkeypatch.setenv("SNUGLY_PASSWORD_FILE", str(file))
    assert subprocess.run(tool, capture_output=True, check=False).returncode == 0
    monkeypatch.setenv("REDISCLI_AUTH", "another one")
    assert subprocess.run(tool, capture_output=True, check=False).returncode == 1


def test_a_password_that_cannot_be_had_is_a_clear_error(tmp_path: Path) -> None:
    missing, empty, file = tmp_path / "missing", tmp_path / "empty", tmp_path / "password"
    empty.write_text("\n")
    file.write_text("secret")
    for options, told in (
        (["--password-file", str(missing)], "No such file"),
        (["--password-file", str(empty)], "the file is empty"),
        (["--password-file", str(file), "--password", "other"], "give one of them"),
    ):
        done = serve("--port", "0", *options)
        assert (done.returncode, told in done.stderr) == (1, True), done.stderr
        assert "secret" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "elvish", "powershell"])
def test_shells_complete_the_values_of_settings(shell: str) -> None:
    command = [str(servers.snugly_binary()), "completions", shell]
    script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if shell in ("bash", "zsh", "fish"):
        assert re.search(r"allkeys-lru\S*\s+\S*allkeys-lfu", script)
        assert re.search(r"fsync\S*\s+\S*batched", script)
        assert re.search(r"memory\S*\s+\S*balanced\S*\s+\S*speed", script)
    assert "max-memory-policy" in script


def test_a_file_that_cannot_be_loaded_is_told_once(tmp_path: Path) -> None:
    done = serve("--port", "0", "--load-rdb", str(tmp_path / "none.rdb"))
    assert done.returncode == 1
    assert done.stderr.count("No such file") == 1


def test_the_version_names_the_commit_that_it_was_built_from() -> None:
    done = subprocess.run([str(servers.snugly_binary()), "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"snugly \d+\.\d+\.\d+( \([0-9a-f]{12}\))?\n", done.stdout)


def test_a_bad_environment_variable_is_a_clear_error() -> None:
    done = serve(SNUGLY_PORT="nonsense")
    assert done.returncode not in (0, 101)
    assert "SNUGLY_PORT" in done.stderr or "--port" in done.stderr
    assert "nonsense" in done.stderr


def test_a_port_that_is_taken_is_a_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = serve("--bind", "127.0.0.1", "--port", port)
    assert done.returncode not in (0, 101)
    assert port in done.stderr
    assert "in use" in done.stderr


def test_help_names_every_flag() -> None:
    done = serve("--help")
    assert done.returncode == 0
    for flag in (
        *["--bind", "--port", "--threads", "--max-memory", "--max-memory-policy", "--compression"],
        *["--compression-level", "--compression-min-bytes", "--log-level", "--password"],
    ):
        assert flag in done.stdout


def test_the_banner_says_what_will_happen_to_values(start: Start) -> None:
    server = start("--compression", "lz4", "--compression-level", "9", "--compression-min-bytes", "100")
    for words in ("lz4", "9", "100", str(server.port)):
        assert server.says(words)
    assert start("--compression", "zstd").says("zstd")


def test_the_environment_sets_what_flags_do_not(monkeypatch: pytest.MonkeyPatch, start: Start) -> None:
    monkeypatch.setenv("SNUGLY_COMPRESSION", "lz4")
    monkeypatch.setenv("SNUGLY_MAX_MEMORY", "5mb")
    with start("--max-memory", "7mb").connect() as connection:
        assert connection.command("CONFIG", "GET", "compression") == [b"compression", b"lz4"]
        assert connection.command("CONFIG", "GET", "maxmemory") == [b"maxmemory", b"7340032"]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_it_gracefully_with_clients_connected(start: Start, signum: int) -> None:
    server = start()
    with server.connect() as idle, server.connect() as busy:
        busy.send(b"".join(encode("SET", f"key:{number}", "x" * 1000) for number in range(1000)))
        assert busy.read() == Simple(b"OK")
        server.process.send_signal(signum)
        assert server.process.wait(60) == 0
        assert idle.read_to_end() == b""
    assert "panicked" not in server.output()
    assert "did not take their last replies" not in server.output()
    with pytest.raises(ConnectionRefusedError):
        server.connect()


def test_a_client_that_takes_no_replies_keeps_the_server_no_longer_than_it_is_told(start: Start) -> None:
    server = start("--shutdown-timeout", "0")
    with server.connect() as connection:
        connection.command("SET", "large", "x" * 10_000_000)
        connection.send(encode("GET", "large") * 100)
        connection.read()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    assert "did not take their last replies" in server.output()


def test_shutdown_ends_it(start: Start) -> None:
    server = start()
    with server.connect() as connection:
        connection.send(encode("SHUTDOWN", "NOSAVE"))
        assert connection.read_to_end() == b""
    assert server.process.wait(60) == 0


def test_many_clients_come_and_go(start: Start) -> None:
    server = start("--threads", "2")
    for _ in range(5):
        clients = [server.connect() for _ in range(200)]
        for number, client in enumerate(clients):
            client.send(encode("SET", f"key:{number}", f"value {number}"))
        assert {client.read() for client in clients} == {Simple(b"OK")}
        for client in clients:
            client.close()
    with server.connect() as connection:
        assert connection.command("DBSIZE") == 200
        until(lambda: b"connected_clients:1\r\n" in info(connection))


def test_increments_from_many_connections_all_count(start: Start) -> None:
    server = start("--threads", "4")
    clients = [server.connect() for _ in range(16)]
    for client in clients:
        client.send((encode("INCR", "counter") + encode("APPEND", "text", "x" * 100)) * 500)
    replies = [client.read() for client in clients for _ in range(1000)]
    assert sorted(replies[::2], key=str) == sorted(range(1, 8001), key=str)
    with server.connect() as connection:
        assert connection.command("GET", "counter") == b"8000"
        assert connection.command("GET", "text") == b"x" * 800_000
    for client in clients:
        client.close()


def info(connection: Connection) -> bytes:
    text = connection.command("INFO", "clients")
    assert isinstance(text, bytes)
    return text
