"""Protection from clients: files, DEBUG, other people's servers; and the guards of a password."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

import servers
from resp import Connection, Failure, Simple, encode
from tested import Start
from waiting import until

pytestmark = pytest.mark.snugly_only
OK = Simple(b"OK")
NOBODY = ("--enable-debug-command", "no", "--enable-protected-configs", "no")


def refused(reply: object, words: bytes) -> bool:
    return isinstance(reply, Failure) and words in reply.text


def stat(connection: Connection, name: bytes) -> int:
    info = connection.command("INFO", "everything")
    assert isinstance(info, bytes)
    return int(info.split(name + b":")[1].split(b"\r\n")[0])


def test_which_file_save_writes_is_not_for_clients_to_say(start: Start, tmp_path: Path) -> None:
    with start(*NOBODY).connect() as connection:
        for setting, value in (("dir", str(tmp_path)), ("dbfilename", "authorized_keys")):
            reply = connection.command("CONFIG", "SET", setting, value)
            assert refused(reply, b"can't set protected config")
        reply = connection.command("CONFIG", "SET", "enable-protected-configs", "yes")
        assert refused(reply, b"can't set immutable config")


@pytest.mark.parametrize("who", ["local", "yes"])
def test_clients_that_are_allowed_to_change_protected_settings(start: Start, tmp_path: Path, who: str) -> None:
    with start("--enable-protected-configs", who).connect() as connection:
        assert connection.command("CONFIG", "SET", "dir", str(tmp_path)) == OK


def test_debug_is_for_nobody_unless_the_server_is_started_for_it(start: Start) -> None:
    with start(*NOBODY).connect() as connection:
        assert refused(connection.command("DEBUG", "SLEEP", "0"), b"ERR DEBUG command not allowed")
        assert connection.command("MULTI") == OK
        assert refused(connection.command("DEBUG", "SLEEP", "0"), b"ERR DEBUG command not allowed")
        assert refused(connection.command("EXEC"), b"EXECABORT")


def test_save_never_writes_into_the_store(start: Start, tmp_path: Path) -> None:
    store, link = tmp_path / "store", tmp_path / "link"
    server = start("--storage", str(store), "--dir", str(tmp_path))
    link.symlink_to(store)
    with server.connect() as connection:
        connection.command("SET", "a", "1")
        for folder in (store, link):
            assert connection.command("CONFIG", "SET", "dir", str(folder), "dbfilename", "data.mdb") == OK
            assert refused(connection.command("SAVE"), b"is the folder of the store")
            assert refused(connection.command("BGSAVE"), b"is the folder of the store")
        assert connection.command("CONFIG", "SET", "dir", str(tmp_path)) == OK
        assert connection.command("SAVE") == OK
    server.process.terminate()
    assert server.process.wait(60) == 0
    servers.check(store)


def test_a_saved_file_is_for_its_owner_only(start: Start, tmp_path: Path) -> None:
    with start("--dir", str(tmp_path)).connect() as connection:
        connection.command("SET", "a", "1")
        assert connection.command("SAVE") == OK
    assert (tmp_path / "dump.rdb").stat().st_mode & 0o777 == 0o600


def test_protected_mode_serves_the_same_machine_only_until_there_is_a_password(start: Start) -> None:
    addresses = servers.addresses_of_this_machine()
    if not addresses:
        pytest.skip("this machine has no address beside the loopback's")
    server = start("--bind", "0.0.0.0")
    assert server.says("there is no password")

    def answer() -> bytes:
        with socket.create_connection((addresses[0], server.port), timeout=60) as other:
            other.sendall(encode("PING"))
            return other.recv(100)

    assert answer().startswith(b"-DENIED Running in protected mode")
    with server.connect() as connection:
        assert connection.command("PING") == Simple(b"PONG")
        assert connection.command("CONFIG", "SET", "protected-mode", "no") == OK
        assert answer() == b"+PONG\r\n"
        assert connection.command("CONFIG", "SET", "protected-mode", "yes", "requirepass", "secret") == OK
        assert answer().startswith(b"-NOAUTH")


def test_a_bad_login_in_hello_undoes_none_and_grants_none(start: Start) -> None:
    with start("--password", "secret").connect() as connection:
        good, bad = ("AUTH", "default", "secret"), ("AUTH", "default", "wrong")
        assert refused(connection.command("HELLO", "3", *good, *bad), b"WRONGPASS")
        assert refused(connection.command("GET", "a"), b"NOAUTH")
        assert not isinstance(connection.command("HELLO", "2", *bad, *good), Failure)
        assert connection.command("GET", "a") is None


def test_wrong_passwords_are_counted_told_once_and_slow(start: Start) -> None:
    server = start("--password", "secret")
    with server.connect() as connection:
        before = time.monotonic()
        for _ in range(5):
            assert refused(connection.command("AUTH", "wrong"), b"WRONGPASS")
        assert time.monotonic() - before >= 0.5
        assert connection.command("AUTH", "secret") == OK
        assert stat(connection, b"acl_access_denied_auth") == 5
    assert server.output().count("wrong passwords were refused") == 1


def test_what_follows_a_password_in_the_same_packet_has_the_limits_of_those_who_are_logged_in(start: Start) -> None:
    server = start("--password", "secret")
    long = encode("SET", "a", b"x" * 100_000) + encode("MGET", *["a"] * 100)
    for login in (encode("AUTH", "secret"), encode("HELLO", "2", "AUTH", "default", "secret")):
        with Connection(server.port) as connection:
            connection.send(login + long)
            assert not isinstance(connection.read(), Failure)
            assert connection.read() == OK
            assert connection.read() == [b"x" * 100_000] * 100
    with Connection(server.port) as connection:
        connection.send(long)
        assert refused(connection.read(), b"ERR Protocol error")


def test_probes_of_http_are_told_once_and_take_no_place(start: Start) -> None:
    server = start("--max-clients", "3")
    for _ in range(20):
        with Connection(server.port) as connection:
            connection.send(b"POST / HTTP/1.1\r\n")
            assert connection.read_to_end() == b""
    with server.connect() as connection:
        until(lambda: stat(connection, b"connected_clients") == 1)
    assert server.output().count("speak HTTP") == 1


def test_a_hang_up_ends_nothing(start: Start) -> None:
    server = start()
    with server.connect() as connection:
        os.kill(server.process.pid, signal.SIGHUP)
        until(lambda: server.says("SIGHUP: nothing to apply has changed"))
        assert connection.command("PING") == Simple(b"PONG")
