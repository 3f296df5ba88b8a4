"""What goes wrong inside the server, or around it, and must not reach anybody else."""

from __future__ import annotations

import resource
import socket
import subprocess
import threading
from pathlib import Path

import pytest

import servers
from resp import Connection, Failure, Simple, encode
from tested import Start
from waiting import until

pytestmark = pytest.mark.snugly_only
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
                # What it was about to be told, and all that it takes part in, goes with it.
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


def test_a_log_that_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    with servers.reserved_port() as port:
        command = [str(servers.snugly_binary()), "serve", "--port", str(port), "--storage", str(tmp_path / "store")]
        process = subprocess.Popen([*command, "--log-level", "debug"], stderr=subprocess.PIPE)
        try:
            assert process.stderr is not None
            process.stderr.readline()
            process.stderr.close()
            until(lambda: servers.answers_ping(port))
            for number in range(20):
                with Connection(port) as probe:
                    probe.send(b"POST / HTTP/1.1\r\n")
                    probe.read_to_end()
                with Connection(port) as connection:
                    assert connection.command("SET", f"key:{number}", "value") == OK
                    assert not isinstance(connection.command("NOSUCH"), Simple)
            with Connection(port) as connection:
                assert info(connection, b"connected_clients") == 1
                assert connection.command("PING") == PONG
            process.terminate()
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
            process.wait()
    servers.check(tmp_path / "store")


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
        assert isinstance(connection.command("CONFIG", "SET", "appendonly", "yes"), Failure)
        found = connection.command("CONFIG", "GET", "*")
        assert isinstance(found, list)
        names = [name for name in found[::2] if isinstance(name, bytes)]
        assert names == sorted(names)
