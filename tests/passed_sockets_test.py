"""Sockets that a service manager opens, and passes to `snugly serve` in systemd's protocol (sd_listen_fds)."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

import memcached
import servers
from resp import Connection, Simple

pytestmark = pytest.mark.snugly_only
# What a manager does between fork and exec: the sockets become the files from 3 on, and the process is named.
PASS = """
import fcntl, os, sys
files = [int(number) for number in sys.argv[1].split(",")]
spare = [fcntl.fcntl(file, fcntl.F_DUPFD, 50) for file in files]
for number, file in enumerate(spare):
    os.dup2(file, 3 + number)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(files)))
if sys.argv[2]:
    os.environ["LISTEN_FDNAMES"] = sys.argv[2]
os.execv(sys.argv[3], sys.argv[3:])
"""


@contextlib.contextmanager
def opened(*, path: Path | None = None) -> Iterator[socket.socket]:
    """A listening socket of the manager's."""
    family, address = (socket.AF_INET, ("127.0.0.1", 0)) if path is None else (socket.AF_UNIX, str(path))
    with socket.socket(family) as listening:
        listening.bind(address)
        listening.listen()
        yield listening


def port_of(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])


def serve(passed: dict[str, socket.socket], *options: str, names: bool = True) -> subprocess.Popen[str]:
    files = ",".join(str(listening.fileno()) for listening in passed.values())
    named = ":".join(passed) if names else ""
    command = [sys.executable, "-c", PASS, files, named, str(servers.snugly_binary()), "serve", *options]
    inherited = [listening.fileno() for listening in passed.values()]
    return subprocess.Popen(command, pass_fds=inherited, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> str:
    """Ends the server; what it has told."""
    process.terminate()
    _, told = process.communicate(timeout=servers.STOP_SECONDS)
    assert process.returncode == 0, told
    return told


@pytest.mark.parametrize("name", ["resp", "snugly.socket", ""])
def test_a_passed_socket_takes_the_place_of_the_port(name: str) -> None:
    with opened() as listening, servers.reserved_port() as other:
        process = serve({name: listening}, "--port", str(other), names=name != "")
        with Connection(port_of(listening)) as connection:
            assert connection.command("PING") == Simple(b"PONG")
        with pytest.raises(ConnectionRefusedError):
            Connection(other)
        assert f"listens on 127.0.0.1:{port_of(listening)}" in end(process)


def test_clients_that_connect_while_no_server_runs_are_served_by_the_next(tmp_path: Path) -> None:
    options = ["--storage", str(tmp_path / "store")]
    with opened() as listening:
        first = serve({"resp": listening}, *options)
        with Connection(port_of(listening)) as connection:
            connection.command("SET", "key", "value")
        end(first)
        with Connection(port_of(listening)) as waiting:
            second = serve({"resp": listening}, *options)
            assert waiting.command("GET", "key") == b"value"
        end(second)


def test_each_purpose_has_its_name(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "certificate.pem"))
    certificates = ["--tls-cert-file", str(tmp_path / "certificate.pem"), "--tls-key-file", str(tmp_path / "key.pem")]
    context = ssl.create_default_context(cafile=str(tmp_path / "authority.pem"))
    with opened() as tls, opened() as text, opened() as text_in_tls, opened() as admin:
        passed = {"tls": tls, "memcached": text, "memcached-tls": text_in_tls, "admin": admin}
        process = serve(passed, "--port", "off", "--tls-auth-clients", "no", *certificates)
        with memcached.Client(port_of(text)) as client:
            assert client.ask(b"set key 0 0 5\r\nvalue\r\n") == b"STORED\r\n"
        for listening, request, reply in [
            (tls, b"GET key\r\n", b"$5\r\nvalue\r\n"),
            (text_in_tls, b"get key\r\n", b"VALUE key 0 5\r\nvalue\r\nEND\r\n"),
        ]:
            plain = socket.create_connection(("127.0.0.1", port_of(listening)))
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as inside:
                inside.sendall(request)
                received = b""
                while len(received) < len(reply):
                    received += inside.recv(100)
                assert received == reply
        with socket.create_connection(("127.0.0.1", port_of(admin))) as http:
            http.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert http.recv(100).startswith(b"HTTP/1.0 200")
        end(process)


def test_a_passed_socket_at_a_path_stays_when_the_server_ends(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with opened(path=path) as listening:
        process = serve({"resp": listening}, "--port", "0")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            assert client.recv(100) == b"+PONG\r\n"
        end(process)
        assert path.exists(), "it is the manager's"


def test_a_socket_with_an_unknown_name_is_an_error_that_says_which_there_are() -> None:
    with opened() as listening:
        process = serve({"http": listening}, "--port", "0")
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert 'a socket called "http"' in errors
    assert "resp, tls, memcached" in errors


def test_a_socket_that_does_not_listen_is_an_error() -> None:
    with socket.socket() as connected:
        process = serve({"resp": connected}, "--port", "0")
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "it is no listening socket" in errors


def test_sockets_for_another_process_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN_PID", "1")
    monkeypatch.setenv("LISTEN_FDS", "3")
    with servers.snugly() as server, server.connect() as connection:
        assert connection.command("PING") == Simple(b"PONG")
