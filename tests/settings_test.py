"""CONFIG SET and CONFIG GET of Valkey's settings that have no effect here, beside valkey-server."""

from __future__ import annotations

import pytest

import servers
import waiting
from resp import Failure, Reply, Simple
from servers import Server
from tested import Start

pytestmark = pytest.mark.snugly_only
# Refused here with a reason, but for Valkey's default.
PROMISES = {
    "appendonly": ("yes", b"--storage and --durability"),
    "min-replicas-to-write": ("1", b"there are no replicas"),
}
VALUES = [
    "yes",
    "no",
    "NO",
    "0",
    "1",
    "7",
    "64",
    "65",
    "99",
    "100",
    "101",
    "1001",
    "-1",
    "2147483648",
    "1kb",
    "always",
    "",
]
SAVES = ["", "3600 1", "3600 1 60 10000", "60", "0 1", "60 -1", "x 1"]


def outcome(server: Server, name: str, value: str) -> tuple[Reply, Reply]:
    with server.connect() as connection:
        return connection.command("CONFIG", "SET", name, value), connection.command("CONFIG", "GET", name)


def without_effect() -> list[str]:
    """The names and aliases in the server's table."""
    source = (servers.ROOT / "crates/server/src/settings/without_effect.rs").read_text()
    return [line.split('"')[1] for line in source.splitlines() if line.startswith(("    row(", '    ("'))]


def test_settings_without_effect_take_and_show_what_valkeys_do(start: Start) -> None:
    names = without_effect()
    assert len(names) >= 50
    with servers.valkey() as peer:
        server = start()
        for name in names:
            with server.connect() as ours, peer.connect() as theirs:
                assert ours.command("CONFIG", "GET", name) == theirs.command("CONFIG", "GET", name)
            # The peer is built without an allocator that can be defragmented.
            if name.replace("slaves", "replicas") not in [*PROMISES, "activedefrag"]:
                for value in SAVES if name == "save" else VALUES:
                    told = outcome(server, name, value), outcome(peer, name, value)
                    assert told[0] == told[1], f"CONFIG SET {name} {value}"


def test_what_would_promise_something_is_refused_with_the_reason(start: Start) -> None:
    with start().connect() as connection:
        for name, (value, reason) in PROMISES.items():
            refused = connection.command("CONFIG", "SET", name, value)
            assert isinstance(refused, Failure)
            assert reason in refused.text
            shown = connection.command("CONFIG", "GET", name)
            assert isinstance(shown, list)
            default = shown[1]
            assert isinstance(default, bytes)
            assert connection.command("CONFIG", "SET", name, default) == Simple(b"OK")


def test_a_name_that_a_setting_had_before_is_taken_with_advice(start: Start) -> None:
    advice = "the setting dictionary-cpu-percent is now called background-cpu-percent"
    server = start("--dictionary-cpu-percent", "20")
    assert server.says(advice)
    with server.connect() as connection:
        assert connection.command("CONFIG", "GET", "background-cpu-percent") == [b"background-cpu-percent", b"20"]
        assert connection.command("CONFIG", "SET", "dictionary-cpu-percent", 30) == Simple(b"OK")
        for name in (b"background-cpu-percent", b"dictionary-cpu-percent"):
            assert connection.command("CONFIG", "GET", name) == [name, b"30"]
    waiting.until(lambda: server.output().count(advice) == 2)
    both = start("--background-cpu-percent", "40", "--dictionary-cpu-percent", "20")
    with both.connect() as connection:
        assert connection.command("CONFIG", "GET", "background-cpu-percent") == [b"background-cpu-percent", b"40"]


def test_the_log_says_once_that_a_setting_has_no_effect(start: Start) -> None:
    server = start()
    with server.connect() as connection:
        for value in ("10", "20", "30"):
            assert connection.command("CONFIG", "SET", "hz", value, "maxmemory-samples", 5) == Simple(b"OK")
        assert connection.command("CONFIG", "GET", "hz") == [b"hz", b"30"]
        duplicate = connection.command("CONFIG", "SET", "hz", 1, "HZ", 2)
        assert isinstance(duplicate, Failure)
    assert server.says("CONFIG SET of a setting that has no effect here was accepted")
    assert server.output().count("has no effect here") == 1
