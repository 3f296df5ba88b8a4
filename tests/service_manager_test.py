"""What `snugly serve` tells a service manager in systemd's protocol; the manager is a socket here."""

from __future__ import annotations

import re
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
from resp import encode
from tested import Start

pytestmark = pytest.mark.snugly_only


class Manager:
    """The socket of a manager, and the variables that it has told so far."""

    def __init__(self, inbox: socket.socket) -> None:
        self.inbox = inbox
        self.told: list[str] = []

    def hears(self, variable: str) -> None:
        """Waits for a message that has this variable; those before it are kept as well."""
        while True:
            message = self.inbox.recv(4096).decode().splitlines()
            self.told += message
            if variable in message:
                return


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    # A socket's path has about a hundred bytes at most: fewer than those of pytest's folders.
    with (
        tempfile.TemporaryDirectory(prefix="snugly-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox,
    ):
        path = str(Path(folder) / "notify")
        inbox.bind(path)
        inbox.settimeout(servers.START_SECONDS)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        yield Manager(inbox)


def test_a_server_is_ready_once_it_listens_and_tells_where(manager: Manager, start: Start) -> None:
    server = start()
    manager.hears("READY=1")
    assert manager.told == ["READY=1", f"STATUS=listens on 127.0.0.1:{server.port}"]


def test_a_server_that_cannot_start_is_never_ready(manager: Manager) -> None:
    with pytest.raises(RuntimeError, match="No such file"), servers.snugly("--load-rdb", "/nonexistent/dump.rdb"):
        pass
    manager.inbox.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.hears("READY=1")


def test_a_reload_is_told_from_its_beginning_to_its_end(manager: Manager, start: Start) -> None:
    server = start()
    manager.hears("READY=1")
    manager.told.clear()
    server.process.send_signal(signal.SIGHUP)
    manager.hears("READY=1")
    reloading, moment, ready = manager.told
    assert (reloading, ready) == ("RELOADING=1", "READY=1")
    assert re.fullmatch(r"MONOTONIC_USEC=\d+", moment)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_end_is_told_before_the_process_ends(manager: Manager, start: Start, number: signal.Signals) -> None:
    server = start()
    manager.hears("READY=1")
    server.process.send_signal(number)
    manager.hears("STOPPING=1")
    assert server.process.wait(servers.STOP_SECONDS) == 0


def test_the_end_by_shutdown_is_told_as_well(manager: Manager, start: Start) -> None:
    server = start()
    manager.hears("READY=1")
    with server.connect() as connection:
        connection.send(encode("SHUTDOWN", "NOSAVE"))
        connection.read_to_end()
    manager.hears("STOPPING=1")
    assert server.process.wait(servers.STOP_SECONDS) == 0


def test_a_manager_with_a_watchdog_hears_that_the_server_lives(
    manager: Manager, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "500000")
    start()
    manager.hears("READY=1")
    for _ in range(3):
        manager.hears("WATCHDOG=1")


def test_without_a_watchdog_nothing_but_the_changes_is_told(manager: Manager, start: Start) -> None:
    server = start()
    manager.hears("READY=1")
    server.process.send_signal(signal.SIGTERM)
    manager.hears("STOPPING=1")
    assert "WATCHDOG=1" not in manager.told


def test_a_manager_that_is_gone_does_not_keep_the_server_from_serving(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/nonexistent/notify")
    server = start()
    assert server.says("the service manager cannot be told")
