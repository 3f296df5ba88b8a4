"""The configuration file of `snugly serve`: where it is found, what beats it, and how a running server follows it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

import servers
from resp import Connection, Failure, Simple
from servers import Server
from tested import Start

pytestmark = pytest.mark.snugly_only
OK = Simple(b"OK")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "snugly.toml"


def setting(server: Server, name: str, password: str | None = None) -> bytes:
    with server.connect() as connection:
        if password is not None:
            assert connection.command("AUTH", password) == OK
        return value(connection, name)


def value(connection: Connection, name: str) -> bytes:
    reply = connection.command("CONFIG", "GET", name)
    assert isinstance(reply, list)
    assert isinstance(reply[1], bytes)
    return reply[1]


def reload(server: Server) -> object:
    with server.connect() as connection:
        return connection.command("CONFIG", "RELOAD")


def refusal(command: list[str]) -> str:
    """What `snugly serve` says that is expected not to start."""
    program = [str(servers.snugly_binary()), "serve", *command]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    return done.stderr


def test_flags_beat_the_environment_which_beats_the_file_and_the_banner_says_so(
    file: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ('max-memory = "1gb"', "timeout = 1", 'password = "hush"', "max-clients = 10", "dictionary-cpu-percent = 7")
    file.write_text("\n".join(lines))
    monkeypatch.setenv("SNUGLY_TIMEOUT", "2")
    monkeypatch.setenv("SNUGLY_MAX_CLIENTS", "20")
    server = start("--config", str(file), "--max-clients", "30")
    with server.connect() as connection:
        assert connection.command("AUTH", "hush") == OK
        names = ("maxmemory", "timeout", "maxclients", "background-cpu-percent")
        assert [value(connection, name) for name in names] == [b"1073741824", b"2", b"30", b"7"]
        told = connection.command("INFO", "server")
        assert isinstance(told, bytes)
        assert f"config_file:{file}\r\n".encode() in told
    assert server.says(f"Settings from {file}: max-memory 1073741824, background-cpu-percent 7, password (hidden)")
    assert server.says("Settings from the environment: timeout 2")
    assert server.says("max-clients 30")
    assert server.says("the setting dictionary-cpu-percent is now called background-cpu-percent")
    assert "hush" not in server.output()


def test_the_file_is_found_in_the_users_folder(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "snugly"
    folder.mkdir()
    (folder / "snugly.toml").write_text("timeout = 77\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert setting(start(), "timeout") == b"77"
    monkeypatch.setenv("SNUGLY_CONFIG", os.devnull)
    assert setting(start(), "timeout") == b"0"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("port = 1\n\nmax-memori = 1\n", "line 3: max-memori is no setting: did you mean max-memory?"),
        ("maxmemory = 1\n", "line 1: maxmemory is called max-memory here"),
        ("timeout = -1\n", "line 1: timeout: argument must be between 0 and"),
        ("timeout = \n", "line 1: "),
        ("durability = 'fsync'\n", "--storage"),
        ("compression = 'lz4'\ncompression-level = 20\n", "12"),
    ],
)
def test_a_wrong_file_keeps_the_server_from_starting_and_says_why(file: Path, text: str, told: str) -> None:
    file.write_text(text)
    said = refusal(["--config", str(file)])
    assert told in said
    assert "panicked" not in said


def test_a_file_that_is_named_must_be_there(file: Path) -> None:
    assert str(file) in refusal(["--config", str(file)])


def test_a_signal_applies_what_may_change_and_refuses_the_rest_by_name(file: Path, start: Start) -> None:
    file.write_text("timeout = 1\n")
    server = start("--config", str(file), "--max-clients", "50")
    with server.connect() as connection:
        assert connection.command("CONFIG", "SET", "tcp-keepalive", "9") == OK
    file.write_text("timeout = 2\ndatabases = 3\nmax-clients = 70\n")
    server.process.send_signal(signal.SIGHUP)
    assert server.says("SIGHUP: applied: timeout; refused: databases (it takes a restart)")
    assert setting(server, "timeout") == b"2"
    assert setting(server, "databases") == b"16"
    assert setting(server, "maxclients") == b"50", "a flag beats the file"
    assert setting(server, "tcp-keepalive") == b"9", "CONFIG SET holds until the file says something else"
    file.write_text("timeout = 2\ntcp-keepalive = 'x'\n")
    server.process.send_signal(signal.SIGHUP)
    assert server.says("SIGHUP changed nothing: ")
    assert server.process.poll() is None


def test_a_command_reloads_the_file_and_says_what_it_refused(file: Path, start: Start) -> None:
    file.write_text("")
    server = start("--config", str(file))
    assert reload(server) == OK
    file.write_text("timeout = 3\n")
    assert reload(server) == OK
    assert setting(server, "timeout") == b"3"
    file.write_text("timeout = 4\ndatabases = 3\n")
    told = reload(server)
    assert isinstance(told, Failure)
    assert b"applied: timeout; refused: databases (it takes a restart)" in told.text
    assert setting(server, "timeout") == b"4"
    file.write_text("timeouts = 4\n")
    told = reload(server)
    assert isinstance(told, Failure)
    assert b"changed nothing" in told.text
    assert b"did you mean timeout?" in told.text


def test_a_reload_takes_a_new_password_and_never_drops_it(tmp_path: Path, file: Path, start: Start) -> None:
    secret = tmp_path / "secret"
    secret.write_text("one\n")
    file.write_text(f"password-file = '{secret}'\n")
    server = start("--config", str(file))
    with server.connect() as connection:
        assert connection.command("AUTH", "one") == OK
        secret.write_text("two\n")
        assert connection.command("CONFIG", "RELOAD") == OK
        assert connection.command("PING") == Simple(b"PONG"), "whoever has logged in stays"
        file.write_text("")
        told = connection.command("CONFIG", "RELOAD")
        assert isinstance(told, Failure)
        assert b"does not drop its password" in told.text
        assert b"two" not in told.text
    with server.connect() as connection:
        assert isinstance(connection.command("PING"), Failure)
        assert isinstance(connection.command("AUTH", "one"), Failure)
        assert connection.command("AUTH", "two") == OK


def test_a_rewritten_file_has_what_was_changed_and_starts_the_same_server(file: Path, start: Start) -> None:
    file.write_text("# Ours.\ntimeout = 1 # seconds\n")
    with start("--config", str(file)).connect() as connection:
        for change in (["timeout", "5"], ["maxmemory-policy", "allkeys-lru"], ["requirepass", 'a "b"']):
            assert connection.command("CONFIG", "SET", *change) == OK
        assert connection.command("CONFIG", "REWRITE") == OK
    text = file.read_text()
    assert "# Ours.\ntimeout = 5 # seconds\n" in text
    server = start("--config", str(file))
    assert setting(server, "maxmemory-policy", 'a "b"') == b"allkeys-lru"
    assert file.read_text() == text


def test_what_a_flag_gives_is_rewritten_with_a_warning(file: Path, start: Start) -> None:
    file.write_text("")
    server = start("--config", str(file), "--timeout", "7")
    with server.connect() as connection:
        assert connection.command("CONFIG", "SET", "timeout", "8") == OK
        assert connection.command("CONFIG", "REWRITE") == OK
    assert server.says("beats the rewritten file")
    assert file.read_text() == "timeout = 8\n"


def test_the_printed_settings_are_a_file_with_every_default(file: Path, start: Start) -> None:
    printed = subprocess.run(
        [str(servers.snugly_binary()), "settings"], capture_output=True, text=True, check=True
    ).stdout
    file.write_text(printed)
    first = start("--config", str(file))
    given = [line.removeprefix("# ") for line in printed.splitlines() if " = " in line and not line.endswith(".")]
    file.write_text("\n".join(line for line in given if not line.startswith(("port", "enable-"))))
    second = start("--config", str(file))
    with first.connect() as one, second.connect() as other:
        ours, theirs = one.command("CONFIG", "GET", "*"), other.command("CONFIG", "GET", "*")
        assert isinstance(ours, list)
        assert isinstance(theirs, list)
        differing = {name for name, mine, its in zip(ours[::2], ours[1::2], theirs[1::2], strict=True) if mine != its}
    assert differing == {b"port"}
    assert len(given) > 50
