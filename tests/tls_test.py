"""TLS, sockets at a path and limits by address, with real clients."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
import valkey

import servers
from authority import Authority
from info import info
from resp import Connection, Failure, Simple
from servers import Server
from tested import Start
from waiting import until

pytestmark = pytest.mark.snugly_only
OK = Simple(b"OK")


@pytest.fixture
def certified(tmp_path: Path) -> Authority:
    return Authority.founded(tmp_path)


@pytest.fixture
def port() -> Iterator[int]:
    with servers.reserved_port() as reserved:
        yield reserved


def client(port: int, certified: Authority, **options: object) -> valkey.Valkey:
    return valkey.Valkey(port=port, ssl=True, ssl_ca_certs=certified.file, **options)  # type: ignore[arg-type]


def test_a_client_reads_and_writes_inside_tls(certified: Authority, port: int, start: Start) -> None:
    server = start("--tls-port", str(port), *certified.options("--tls-auth-clients", "no"))
    with client(port, certified) as inside, server.connect() as outside:
        large = os.urandom(5_000_000)
        inside.set("large", large)
        assert inside.get("large") == large
        pipeline = inside.pipeline(transaction=False)
        for number in range(10_000):
            pipeline.set(f"key:{number}", f"value {number}" * 20)
        assert all(pipeline.execute())
        assert inside.get("key:9999") == b"value 9999" * 20
        assert outside.command("EXISTS", "key:1", "large") == 2
        told = outside.command("INFO", "server")
        assert isinstance(told, bytes)
        assert f"listener1:name=tls,bind=127.0.0.1,port={port}".encode() in told
    assert server.says(f"With TLS: 127.0.0.1:{port}")


def test_messages_that_nobody_asked_for_arrive_inside_tls(certified: Authority, port: int, start: Start) -> None:
    server = start("--tls-port", str(port), *certified.options("--tls-auth-clients", "no"))
    with client(port, certified) as inside, inside.monitor() as monitor, server.connect() as outside:
        outside.command("SET", "seen", "x" * 100)
        assert monitor.next_command()["command"].startswith("SET seen")


@pytest.mark.parametrize(
    ("rule", "without", "with_one"), [("yes", False, True), ("optional", True, True), ("no", True, True)]
)
def test_clients_show_a_certificate_as_the_rule_says(
    certified: Authority, port: int, start: Start, rule: str, without: bool, with_one: bool
) -> None:
    start("--tls-port", str(port), *certified.options("--tls-auth-clients", rule))
    for options, expected in (({}, without), (certified.client_certificate(), with_one)):
        assert answers(client(port, certified, **options)) == expected
    stranger = Authority(certified.folder, trustme.CA())
    if rule != "no":
        assert not answers(client(port, certified, **stranger.client_certificate()))


def answers(inside: valkey.Valkey) -> bool:
    try:
        with inside:
            return bool(inside.ping())
    except (valkey.ConnectionError, OSError):
        return False


@pytest.mark.parametrize(
    ("versions", "spoken"), [("TLSv1.2", "TLSv1.2"), ("TLSv1.3", "TLSv1.3"), ("TLSv1.2 TLSv1.3", "TLSv1.3")]
)
def test_the_versions_of_tls_are_those_that_the_settings_name(
    certified: Authority, port: int, start: Start, versions: str, spoken: str
) -> None:
    start("--tls-port", str(port), "--tls-protocols", versions, *certified.options("--tls-auth-clients", "no"))
    context = ssl.create_default_context(cafile=certified.file)
    with inside_tls(context, port) as inside:
        assert inside.version() == spoken
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    if versions == "TLSv1.3":
        with pytest.raises(ssl.SSLError), inside_tls(context, port):
            pass


@contextlib.contextmanager
def inside_tls(context: ssl.SSLContext, port: int) -> Iterator[ssl.SSLSocket]:
    with (
        socket.create_connection(("127.0.0.1", port)) as bare,
        context.wrap_socket(bare, server_hostname="127.0.0.1") as inside,
    ):
        yield inside


def serial(certified: Authority, port: int) -> object:
    """The serial number of the certificate that new connections are shown."""
    context = ssl.create_default_context(cafile=certified.file)
    with inside_tls(context, port) as inside:
        shown = inside.getpeercert()
    assert shown is not None
    return shown["serialNumber"]


def test_certificates_are_replaced_without_a_restart(certified: Authority, port: int, start: Start) -> None:
    server = start("--tls-port", str(port), *certified.options("--tls-auth-clients", "no"))
    first = serial(certified, port)
    with client(port, certified) as old, server.connect() as connection:
        old.set("before", "1")
        certified.certify()
        server.process.send_signal(signal.SIGHUP)
        assert server.says("SIGHUP: nothing to apply has changed")
        second = serial(certified, port)
        assert second != first
        assert old.get("before") == b"1", "a connection that there is stays"
        certified.certify(name="other")
        (certified.folder / "server.key").write_bytes((certified.folder / "other.key").read_bytes())
        told = connection.command("CONFIG", "RELOAD")
        assert isinstance(told, Failure)
        assert b"server.crt" in told.text
        assert serial(certified, port) == second, "a key of another certificate changes nothing"
        both = [f"{certified.folder}/other.{end}" for end in ("crt", "key")]
        assert isinstance(connection.command("CONFIG", "SET", "tls-key-file", "/nonexistent"), Failure)
        assert connection.command("CONFIG", "SET", "tls-cert-file", both[0], "tls-key-file", both[1]) == OK
        assert serial(certified, port) not in (first, second)


def test_whoever_speaks_no_tls_is_refused_counted_and_logged(certified: Authority, port: int, start: Start) -> None:
    server = start("--tls-port", str(port), *certified.options("--tls-auth-clients", "no"))
    with Connection(port) as stranger:
        stranger.send(b"*1\r\n$4\r\nPING\r\n")
        assert stranger.socket.recv(100)[:1] == b"\x15", "an alert"
    with server.connect() as connection:
        # A stranger has its alert before the server counts it.
        until(lambda: info(connection, "stats", "refused_tls_handshakes") == 1)
    assert server.says("did not agree with the server on TLS")


def test_a_server_may_listen_with_tls_only(certified: Authority, port: int) -> None:
    command = [str(servers.snugly_binary()), "serve", "--port", "off", "--tls-port", str(port)]
    command += certified.options("--tls-auth-clients", "no")
    with servers.running("snugly", command, port, lambda port: answers(client(port, certified))) as server:
        assert server.says("redis-cli --tls -p")
        with client(port, certified) as inside:
            assert inside.config_get("port") == {"port": "off"}


@pytest.mark.parametrize(
    ("lacking", "told"),
    [
        ("--tls-key-file", "tls-cert-file and tls-key-file"),
        ("--tls-ca-cert-file", "tls-auth-clients to no"),
    ],
)
def test_what_is_lacking_for_tls_is_named(certified: Authority, lacking: str, told: str) -> None:
    options = certified.options()
    place = options.index(lacking)
    del options[place : place + 2]
    command = [str(servers.snugly_binary()), "serve", "--port", "0", "--tls-port", "0", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert told in done.stderr


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="there is no redis-cli here")
def test_redis_cli_and_our_own_tools_speak_tls(certified: Authority, port: int, start: Start) -> None:
    start("--tls-port", str(port), *certified.options("--tls-auth-clients", "no"))
    command = ["redis-cli", "--tls", "--cacert", certified.file, "-p", str(port), "PING"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "PONG\n"


@dataclass
class AtPath:
    """A server that listens at a path as well."""

    server: Server
    path: Path

    def connect(self) -> valkey.Valkey:
        return valkey.Valkey(unix_socket_path=str(self.path))


@pytest.fixture
def at_path(tmp_path: Path, start: Start) -> Callable[..., AtPath]:
    def begin(*options: str) -> AtPath:
        path = tmp_path / "socket"
        return AtPath(start("--unix-socket", str(path), *options), path)

    return begin


def test_a_client_on_this_machine_connects_to_a_path(at_path: Callable[..., AtPath]) -> None:
    served = at_path("--unix-socket-permissions", "700")
    with served.connect() as inside:
        large = os.urandom(3_000_000)
        inside.set("large", large)
        assert inside.get("large") == large
        assert stat.S_IMODE(served.path.stat().st_mode) == 0o700
        (shown,) = [entry for entry in inside.client_list() if entry["cmd"] == "client|list"]
        assert shown["addr"] == f"{served.path}:0"
    served.server.process.send_signal(signal.SIGTERM)
    served.server.process.wait(60)
    assert not served.path.exists(), "an orderly end leaves no socket"


def test_a_socket_that_a_killed_server_left_is_replaced_and_nothing_else(
    at_path: Callable[..., AtPath], tmp_path: Path
) -> None:
    first = at_path()
    command = [str(servers.snugly_binary()), "serve", "--port", "0", "--unix-socket", str(first.path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "is another server running there?" in done.stderr
    first.server.process.kill()
    first.server.process.wait(60)
    assert first.path.exists()
    with at_path().connect() as inside:
        assert inside.ping()
    file = tmp_path / "file"
    file.write_text("mine")
    done = subprocess.run([*command[:-1], str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no socket" in done.stderr
    assert file.read_text() == "mine"


@contextlib.contextmanager
def admitted(server: Server) -> Iterator[Connection]:
    """A connection that is answered, once those that were closed before have left their places."""
    deadline = time.monotonic() + 60
    while True:
        with server.connect() as connection:
            if connection.command("PING") == Simple(b"PONG"):
                yield connection
                return
        assert time.monotonic() < deadline


def test_an_address_has_no_more_connections_than_the_setting_says(start: Start) -> None:
    server = start("--max-clients-per-address", "2")
    with admitted(server) as first, admitted(server):
        with server.connect() as third:
            assert third.read() == Failure(b"ERR max number of clients reached")
        assert first.command("CONFIG", "SET", "max-clients-per-address", 3) == OK
        with admitted(server):
            pass


def test_the_tools_read_inside_tls_as_a_user(certified: Authority, port: int, start: Start) -> None:
    server = start("--tls-port", str(port), *certified.options("--tls-auth-clients", "no"))
    with server.connect() as connection:
        connection.command("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@read", "+dictionary", "+ping")
        connection.command("SET", "key", "value")
    url = f"snuglys://reader:secret@127.0.0.1:{port}"
    for words, told in [
        (["decode", "--url", url, "key"], "value"),
        (["dictionaries", "--url", url, "list"], "no dictionaries yet"),
        (["dictionaries", "list", "--url", url], "no dictionaries yet"),
        (["ping", url], "answers"),
    ]:
        command = [str(servers.snugly_binary()), *words, "--ca-file", certified.file]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert told in done.stdout
        untrusted = subprocess.run(command[:-2], capture_output=True, text=True, timeout=60, check=False)
        assert (untrusted.returncode, "ertificate" in untrusted.stderr) == (1, True)
