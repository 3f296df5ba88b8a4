"""Failures inside the server, or around it, which must not reach anybody else."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
from resp import Connection, Failure, Simple, encode
from tested import Start
from waiting import until

pytestmark = pytest.mark.snugly_only
needs_a_full_disk = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
OK, PONG = Simple(b"OK"), Simple(b"PONG")


def info(connection: Connection, name: bytes) -> int:
    text = connection.command("INFO", "everything")
    assert isinstance(text, bytes)
    return int(text.split(name + b":")[1].split(b"\r\n")[0])


def test_a_command_that_panics_ends_its_own_connection_and_reaches_nobody_else(start: Start) -> None:
    server = start("--threads", "1")
    with server.connect() as other:
        other.command("SET", "value", b"v" * 5000)
        for _ in range(3):
            with Connection(server.port) as broken:
                # Its pending messages, and all that it takes part in, go with it.
                for request in (("CLIENT", "TRACKING", "ON", "BCAST"), ("WATCH", "value")):
                    assert broken.command(*request) == OK
                broken.send(encode("GET", "value") * 3 + encode("DEBUG", "PANIC") + encode("GET", "value"))
                assert broken.read_to_end() == b""
            assert other.command("PING") == PONG
        assert other.command("SET", "value", "2") == OK
        until(lambda: info(other, b"connected_clients") == 1)
        assert info(other, b"tracking_clients") == 0
        assert info(other, b"watching_clients") == 0
        assert info(other, b"broken_connections") == 3
    assert server.says("a command panicked")


def test_a_panic_inside_a_transaction_leaves_no_key_locked(start: Start) -> None:
    server = start("--threads", "1")
    with Connection(server.port) as broken, server.connect() as other:
        assert broken.command("MULTI") == OK
        for request in (("SET", "a", "1"), ("DEBUG", "PANIC"), ("SET", "b", "1")):
            assert broken.command(*request) == Simple(b"QUEUED")
        broken.send(encode("EXEC"))
        assert broken.read_to_end() == b""
        assert other.command("SET", "a", "2") == OK
        assert other.command("MGET", "a", "b") == [b"2", None]


@contextlib.contextmanager
def a_log_that_cannot_be_written(kind: str) -> Iterator[int]:
    """A pipe whose reader has gone, or a disk that is full."""
    if kind == "full disk":
        with open("/dev/full", "wb", buffering=0) as full:
            yield full.fileno()
        return
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


@pytest.mark.parametrize("durability", ["batched", "fsync"])
@pytest.mark.parametrize("kind", ["gone reader", pytest.param("full disk", marks=needs_a_full_disk)])
def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path, kind: str, durability: str) -> None:
    store = tmp_path / "store"
    with servers.reserved_port() as port, a_log_that_cannot_be_written(kind) as log:
        command = [str(servers.snugly_binary()), "serve", "--port", str(port), "--max-clients", "8"]
        command += ["--storage", str(store), "--durability", durability, "--log-level", "debug"]
        process = subprocess.Popen(command, stderr=log)
        try:
            until(lambda: servers.answers_ping(port))
            for number in range(20):
                with Connection(port) as probe:
                    probe.send(b"POST / HTTP/1.1\r\n")
                    probe.read_to_end()
                with Connection(port) as connection:
                    assert connection.command("SET", f"key:{number}", "value") == OK
                    assert not isinstance(connection.command("NOSUCH"), Simple)
            with Connection(port) as connection:
                until(lambda: info(connection, b"connected_clients") == 1)
                assert connection.command("PING") == PONG
            process.terminate()
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
            process.wait()
    servers.check(store)
    with servers.snugly("--storage", str(store)) as server, server.connect() as connection:
        assert connection.command("DBSIZE") == 20


@contextlib.contextmanager
def a_log_that_nobody_reads() -> Iterator[int]:
    """A pipe that is soon full, and stays so."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    try:
        yield writer
    finally:
        os.close(reader)
        os.close(writer)


def test_a_log_that_nobody_reads_stops_nobody() -> None:
    with servers.reserved_port() as port, a_log_that_nobody_reads() as log:
        command = [str(servers.snugly_binary()), "serve", "--port", str(port), "--log-level", "debug"]
        process = subprocess.Popen(command, stderr=log)
        try:
            until(lambda: servers.answers_ping(port))
            for number in range(300):
                with Connection(port) as malformed:
                    # Its end is a line of the log.
                    malformed.send(b"*1\r\n$-5\r\n")
                    malformed.read_to_end()
                with Connection(port) as connection:
                    assert connection.command("SET", f"key:{number}", "value") == OK
            process.terminate()
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
            process.wait()


def test_a_log_in_a_file_has_no_colours(start: Start) -> None:
    server = start("--log-level", "debug")
    with Connection(server.port) as probe:
        probe.send(b"POST / HTTP/1.1\r\n")
        probe.read_to_end()
    assert server.says("speak HTTP")
    assert "\x1b" not in server.output()


@pytest.mark.parametrize("files", [10, 16, 24])
def test_too_few_open_files_are_an_error_and_an_exit(files: int) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    command = [str(servers.snugly_binary()), "serve", "--port", "0", "--threads", "8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, preexec_fn=limit)
    assert done.returncode == 1
    assert "panicked" not in done.stderr
    assert "limit of open files" in done.stderr


def test_no_more_clients_are_served_than_max_clients_however_many_come_at_once(start: Start) -> None:
    server = start("--max-clients", "50")
    served: list[socket.socket] = []
    kept: list[socket.socket] = []

    def connect() -> None:
        for _ in range(20):
            other = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            kept.append(other)
            other.sendall(encode("PING"))
            if other.recv(5) == b"+PONG":
                served.append(other)

    threads = [threading.Thread(target=connect) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(served) == 50
    for other in kept:
        other.close()

    def is_free() -> bool:
        with Connection(server.port) as connection:
            return not isinstance(connection.command("PING"), Failure)

    until(is_free)


@pytest.mark.parametrize(
    ("options", "environment", "told"),
    [
        (["--durability", "fsync"], {}, "--storage"),
        (["--max-disk", "1gb"], {}, "--storage"),
        ([], {"SNUGLY_MAXMEMORY": "1gb"}, "SNUGLY_MAX_MEMORY"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(
    options: list[str], environment: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    command = [str(servers.snugly_binary()), "serve", "--port", "0", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert told in done.stderr


def test_client_reply_on_answers_right_behind_skip(start: Start) -> None:
    with start().connect() as connection:
        skip = encode("CLIENT", "REPLY", "SKIP")
        connection.send(skip + encode("CLIENT", "REPLY", "ON") + skip + encode("PING") + encode("ECHO", "a"))
        assert [connection.read(), connection.read()] == [OK, b"a"]


def test_settings_that_cannot_change_may_be_set_to_what_they_are(start: Start) -> None:
    with start().connect() as connection:
        assert connection.command("CONFIG", "SET", "save", "", "appendonly", "no") == OK
        told = connection.command("CONFIG", "GET", "*")
        assert isinstance(told, list)
        for name, value in zip(told[::2], told[1::2], strict=True):
            assert isinstance(name, bytes)
            assert isinstance(value, bytes)
            assert connection.command("CONFIG", "SET", name, value) == OK, name
        assert isinstance(connection.command("CONFIG", "SET", "databases", "17"), Failure)
        assert isinstance(connection.command("CONFIG", "SET", "appendonly", "yes"), Failure)
        found = connection.command("CONFIG", "GET", "*")
        assert isinstance(found, list)
        names = [name for name in found[::2] if isinstance(name, bytes)]
        assert names == sorted(names)
