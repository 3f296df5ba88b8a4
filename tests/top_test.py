"""`snugly top`: what it tells of a server, and what it makes of a terminal."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
import waiting
from alike import learn_users, user
from servers import Server
from tested import Start

pytestmark = pytest.mark.snugly_only

ENTERED, LEFT = b"\x1b[?1049h", b"\x1b[?1049l"
# Seconds, of which a busy machine has enough.
PATIENCE = 120.0


def command(url: str, *options: str) -> list[str]:
    return [str(servers.snugly_binary()), "top", url, *options]


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "REDISCLI_AUTH")}
    return {**kept, "TERM": "xterm-256color", **changes}


def look(url: str, *options: str, **changes: str) -> subprocess.CompletedProcess[bytes]:
    """A frame as text, since the output is no terminal."""
    line = command(url, "--interval", "0.1", *options)
    return subprocess.run(line, check=False, capture_output=True, timeout=PATIENCE, env=environment(**changes))


def printed(url: str, *options: str, **changes: str) -> str:
    done = look(url, *options, **changes)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def url(server: Server) -> str:
    return f"redis://127.0.0.1:{server.port}"


def numbers(frame: str, name: str) -> list[str]:
    """The words after the name, of the first row that has it."""
    [found, *_] = re.findall(rf"(?:^|\s){re.escape(name)} {{2,}}(.*)", frame)
    return re.split(r" {2,}", found.strip())


def test_numbers_are_those_of_the_traffic(start: Start) -> None:
    server = start("--max-memory", "64mb")
    with server.connect() as connection:
        for number in range(20):
            connection.command("SET", f"key:{number}", b"text " * 200)
        for number in range(30):
            connection.command("GET", f"key:{number}")
        connection.command("LPUSH", "list", "a", "b")
        connection.command("EXPIRE", "list", 1000)
        frame = printed(url(server), "--once")
    assert re.search(r"^ snugly top  127\.0\.0\.1:\d+  snugly \S+, up \d+ s +rates over 0\.1 s$", frame.splitlines()[0])
    assert numbers(frame, "reads")[1] == "30"
    assert numbers(frame, "writes")[1] == "21"
    assert numbers(frame, "lists")[1] == "1"
    assert numbers(frame, "found")[1] == "66.7 %"
    assert re.search(r" stored +21  1 expire\b", frame)
    assert numbers(frame, "limit")[0] == "64.00 MiB"
    assert re.search(r"By codec.*\n.*\n lz4 +20 +19\.53 KiB", frame)


def test_what_was_learned_is_shown() -> None:
    with servers.snugly("--background-cpu-percent", "100") as server:
        with server.connect() as connection:
            learn_users(connection)
            for number in range(300):
                connection.command("SET", f"k\u00e4se:{number}", user(number))
        waiting.until(lambda: "k\u00e4se:*" in printed(url(server), COLUMNS="160"))
        frame = printed(url(server), COLUMNS="160")
    assert re.search(r"^ user:\*.* new values +10,\d{3} ", frame, re.MULTILINE)
    assert "\x1b" not in frame


def test_a_valkey_is_shown_as_far_as_it_tells(peer: Server) -> None:
    with peer.connect() as connection:
        connection.command("SET", "key", "value")
        frame = printed(url(peer), "--once")
    assert re.search(r"  Valkey \d+\.\d+\.\d+, up ", frame)
    assert numbers(frame, "writes")[0] != "-"
    assert numbers(frame, "process")[0].endswith("iB")
    for unknown in ("By codec", "By pattern", "Dictionaries", "Values written", "Learning", "Disk"):
        assert unknown not in frame


def test_a_disk_is_shown_where_there_is_one(start: Start, tmp_path: Path) -> None:
    server = start("--storage", str(tmp_path))
    frame = printed(url(server))
    assert "─ Disk ─" in frame
    assert numbers(frame, "commits per s")


def test_a_wrong_password_is_told_and_not_tried_again(start: Start) -> None:
    server = start("--password", "secret")
    right = f"redis://:secret@127.0.0.1:{server.port}"
    assert "snugly top" in printed(right)
    assert "snugly top" in printed(url(server), REDISCLI_AUTH="secret")
    for told, done in [
        ("check user and password", look(right.replace("secret", "other"))),
        ("it wants a password", look(url(server))),
    ]:
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.decode().startswith(f"snugly: cannot connect to 127.0.0.1:{server.port}: ")
        assert told in done.stderr.decode()
        assert b"other" not in done.stderr


def test_no_server_is_told_with_what_to_check() -> None:
    with servers.reserved_port() as port:
        done = look(f"redis://127.0.0.1:{port}")
    assert (done.returncode, done.stdout) == (1, b"")
    assert "check host and port" in done.stderr.decode()


@pytest.mark.parametrize("interval", ["0", "-1", "soon", "nan", "1e300"])
def test_an_interval_that_cannot_be_is_refused(interval: str) -> None:
    line = command("redis://127.0.0.1:1", f"--interval={interval}")
    done = subprocess.run(line, check=False, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--interval" in done.stderr


class Screen:
    """The program in a terminal of its own, and what that shows."""

    PARTS = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[2J|\x1b\[[0-9;?]*[A-Za-z]|\x1b[^\[]|[^\x1b]")

    def __init__(self, ours: int, process: subprocess.Popen[bytes], modes: list[object]) -> None:
        self.ours, self.process, self.modes = ours, process, modes
        self.written = b""
        self.rows: dict[int, dict[int, str]] = {}
        self.row = self.column = 1
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        self.unread = ""

    def read(self) -> bytes:
        """Whatever has been written since."""
        ready, _, _ = select.select([self.ours], [], [], 0.05)
        fresh = os.read(self.ours, 1 << 16) if ready else b""
        self.written += fresh
        self.unread += self.decoder.decode(fresh)
        end = 0
        while part := self.PARTS.match(self.unread, end):
            end = part.end()
            self.draw(part)
        self.unread = self.unread[end:]
        return fresh

    def draw(self, part: re.Match[str]) -> None:
        if part[1]:
            self.row, self.column = int(part[1]), int(part[2])
        elif part[0] == "\x1b[2J":
            self.rows.clear()
        elif part[0].isprintable():
            self.rows.setdefault(self.row, {})[self.column] = part[0]
            self.column += 1

    def text(self) -> str:
        """What the screen shows, without styles."""
        rows = sorted(self.rows.items())
        return "\n".join("".join(cells.get(at, " ") for at in range(1, max(cells) + 1)) for _, cells in rows)

    def await_text(self, text: str) -> None:
        """Waits until the screen shows this."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.text():
            assert time.monotonic() < deadline, self.text()
            self.read()

    def press(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def end(self) -> int:
        """The exit code, when everything has been shown and the terminal is as it was."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None or self.read():
            assert time.monotonic() < deadline
            self.read()
        assert ENTERED in self.written
        assert LEFT in self.written.rpartition(ENTERED)[2]
        assert b"\x1b[?25h" in self.written, "the cursor is back"
        assert termios.tcgetattr(self.ours) == self.modes
        return self.process.returncode


@contextlib.contextmanager
def screen(url: str, *options: str, **changes: str) -> Iterator[Screen]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    modes: list[object] = termios.tcgetattr(ours)
    process = subprocess.Popen(
        command(url, "--interval", "0.1", *options),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(**changes),
        start_new_session=True,
    )
    try:
        shown = Screen(ours, process, modes)
        yield shown
    finally:
        process.kill()
        process.wait()
        os.close(theirs)
        os.close(ours)


@pytest.mark.slow
@pytest.mark.parametrize("key", [b"q", b"\x1b", b"\x03"], ids=["q", "Esc", "Ctrl-C"])
def test_a_key_ends_it_and_the_terminal_is_as_it_was(server: Server, key: bytes) -> None:
    with screen(url(server)) as shown:
        shown.await_text("answers")
        shown.press(key)
        assert shown.end() == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_the_terminal_is_as_it_was(server: Server, number: signal.Signals) -> None:
    with screen(url(server)) as shown:
        shown.await_text("answers")
        shown.process.send_signal(number)
        assert shown.end() == -number


@pytest.mark.slow
def test_keys_change_what_is_shown(server: Server) -> None:
    with screen(url(server)) as shown:
        shown.await_text("answers")
        for key, told in [
            (b"2", "By codec"),
            (b"3", "Learning"),
            (b"\t", "Commands"),
            (b"?", "Help"),
            (b"?p", "paused"),
        ]:
            shown.press(key)
            shown.await_text(told)
        shown.press(b"q")
        assert shown.end() == 0


@pytest.mark.slow
def test_a_larger_screen_shows_more(server: Server) -> None:
    with screen(url(server)) as shown:
        shown.await_text("answers")
        shown.resize(200, 60)
        shown.await_text("By pattern of keys")
        shown.press(b"q")
        assert shown.end() == 0


@pytest.mark.slow
def test_colours_are_left_out_where_they_are_not_wanted(server: Server) -> None:
    coloured = re.compile(rb"\x1b\[[0-9;]*(?:3[0-7]|38;5;\d+)[;m]")
    for changes, is_coloured in [({}, True), ({"NO_COLOR": "1"}, False)]:
        with screen(url(server), **changes) as shown:
            shown.await_text("? help")
            assert bool(coloured.search(shown.written)) == is_coloured
            shown.press(b"q")
            shown.end()


@pytest.mark.slow
def test_a_server_that_was_started_again_is_found_again() -> None:
    with servers.reserved_port() as port:
        line = [str(servers.snugly_binary()), "serve", "--port", str(port)]
        with contextlib.ExitStack() as stack:
            with servers.running("snugly", line, port) as server:
                shown = stack.enter_context(screen(url(server)))
                shown.await_text("answers")
            shown.await_text("no answer for")
            stack.enter_context(servers.running("snugly", line, port))
            shown.await_text("answers")
            shown.press(b"q")
            assert shown.end() == 0
