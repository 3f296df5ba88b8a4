"""Valkey with the module: how it is loaded, its settings, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
import valkey_module
from resp import Connection, Failure, Simple
from servers import Server
from valkey_module import TEXT, size_in_memory, text

pytestmark = pytest.mark.snugly_only
OK = Simple(b"OK")
DEFAULTS = {"compression": "yes", "codec": "lz4", "level": "0", "min-bytes": "256"}


def settings(connection: Connection) -> dict[str, str]:
    """Those that say how a value is compressed when it is written."""
    told = connection.command("CONFIG", "GET", "snugly.*")
    assert isinstance(told, list)
    words = [word.decode().removeprefix("snugly.") for word in told if isinstance(word, bytes)]
    told_of = dict(zip(words[::2], words[1::2], strict=True))
    return {name: told_of[name] for name in DEFAULTS}


def is_smaller(connection: Connection, value: bytes) -> bool:
    """Whether a value that is written now is stored in fewer bytes than it has."""
    assert connection.command("SET", "k", value) == OK
    assert connection.command("GET", "k") == value
    return size_in_memory(connection, "k") < len(value)


@pytest.fixture
def connection() -> Iterator[Connection]:
    options = ("--enable-module-command", "yes")
    with valkey_module.serving(*options) as server, server.connect() as connection:
        yield connection


def test_settings_have_the_defaults_that_are_documented(connection: Connection) -> None:
    assert settings(connection) == DEFAULTS


def test_settings_hold_for_what_is_written_from_then_on(connection: Connection) -> None:
    assert is_smaller(connection, TEXT)
    assert not is_smaller(connection, text(255)), "it is shorter than min-bytes"
    sizes = {}
    for codec in ("zstd", "lz4"):
        assert connection.command("CONFIG", "SET", "snugly.codec", codec) == OK
        assert is_smaller(connection, TEXT)
        sizes[codec] = size_in_memory(connection, "k")
    assert sizes["zstd"] < sizes["lz4"]
    assert connection.command("SET", "before", TEXT) == OK
    assert connection.command("CONFIG", "SET", "snugly.min-bytes", len(TEXT) + 1) == OK
    assert not is_smaller(connection, TEXT)
    assert connection.command("CONFIG", "SET", "snugly.min-bytes", len(TEXT)) == OK
    assert is_smaller(connection, TEXT)
    assert connection.command("CONFIG", "SET", "snugly.compression", "no") == OK
    assert not is_smaller(connection, TEXT)
    assert connection.command("GET", "before") == TEXT
    assert connection.command("CONFIG", "SET", "snugly.compression", "yes") == OK
    assert is_smaller(connection, TEXT)


def test_a_level_is_that_of_the_codec(connection: Connection) -> None:
    value, sizes = text(20_000), {}
    assert connection.command("CONFIG", "SET", "snugly.codec", "zstd") == OK
    for level in (-100, 0, 19):
        assert connection.command("CONFIG", "SET", "snugly.level", level) == OK
        assert is_smaller(connection, value)
        sizes[level] = size_in_memory(connection, "k")
    assert sizes[19] < sizes[0] < sizes[-100]


def test_values_of_envelopes_are_themselves_whether_compression_is_on_or_off(connection: Connection) -> None:
    value = valkey_module.ENVELOPE
    for word in ("yes", "no"):
        assert connection.command("CONFIG", "SET", "snugly.compression", word) == OK
        assert connection.command("SET", "k", value) == OK
        assert connection.command("GET", "k") == value
        assert connection.command("STRLEN", "k") == len(value)


REFUSED = [
    *[("compression", "maybe"), ("codec", "gzip"), ("codec", ""), ("level", "x"), ("level", "1.5")],
    *[("min-bytes", "127"), ("min-bytes", "0"), ("min-bytes", "-1"), ("min-bytes", "x")],
]


def test_a_value_that_is_none_is_refused_and_changes_nothing(connection: Connection) -> None:
    before = settings(connection)
    for name, value in REFUSED:
        assert isinstance(connection.command("CONFIG", "SET", f"snugly.{name}", value), Failure), (name, value)
        assert settings(connection) == before
    assert is_smaller(connection, TEXT)


def test_the_module_takes_no_arguments() -> None:
    with pytest.raises(RuntimeError, match="takes no arguments"), valkey_module.serving(arguments=["codec", "zstd"]):
        pass


@pytest.mark.parametrize(
    "option", [("--snugly.min-bytes", "127"), ("--snugly.codec", "gzip"), ("--snugly.nosuch", "1")]
)
def test_a_wrong_setting_keeps_the_server_from_starting(option: tuple[str, str]) -> None:
    with pytest.raises(RuntimeError, match="did not answer"), valkey_module.serving(*option):
        pass


def test_settings_are_written_to_the_file_and_read_from_it(tmp_path: Path) -> None:
    file = tmp_path / "valkey.conf"
    file.write_text(f"loadmodule {valkey_module.library()}\nsnugly.min-bytes 300\n")
    folder = ("--dir", str(tmp_path))
    command = [str(servers.valkey_binary()), str(file), *folder, "--bind", "127.0.0.1", "--save", ""]
    with servers.serving("valkey", command) as server, server.connect() as connection:
        assert settings(connection) == {**DEFAULTS, "min-bytes": "300"}
        assert connection.command("CONFIG", "SET", "snugly.codec", "zstd", "snugly.level", 5) == OK
        assert connection.command("CONFIG", "REWRITE") == OK
    with servers.serving("valkey", command) as server, server.connect() as connection:
        assert settings(connection) == {"compression": "yes", "codec": "zstd", "level": "5", "min-bytes": "300"}
        assert is_smaller(connection, TEXT)


def test_the_module_is_loaded_into_a_server_that_has_values_and_clients() -> None:
    with (
        servers.valkey("--enable-module-command", "yes") as server,
        server.connect() as client,
        server.connect() as transaction,
        server.connect() as watcher,
    ):
        envelope = valkey_module.ENVELOPE
        for key, value in (("small", b"small"), ("text", TEXT), ("envelope", envelope), ("number", b"12")):
            assert client.command("SET", key, value) == OK
        transaction.command("MULTI")
        transaction.command("GET", "text")
        transaction.command("SET", "new", TEXT)
        watcher.command("WATCH", "text")
        assert client.command("MODULE", "LOAD", str(valkey_module.library())) == OK
        assert client.command("MGET", "small", "text") == [b"small", TEXT]
        assert client.command("GET", "envelope") == text(600, 3), "a client that compresses had written it"
        assert client.command("INCR", "number") == 13
        assert transaction.command("EXEC") == [TEXT, OK]
        assert client.command("GET", "new") == TEXT
        watcher.command("MULTI")
        watcher.command("GET", "text")
        assert watcher.command("EXEC") == [TEXT]
        assert is_smaller(client, TEXT)


def test_scripts_and_functions_of_before_the_module_see_plain_values() -> None:
    with servers.valkey("--enable-module-command", "yes") as server, server.connect() as client:
        digest = client.command("SCRIPT", "LOAD", "return redis.call('GET', KEYS[1])")
        assert isinstance(digest, bytes)
        code = "#!lua name=f\nserver.register_function('f', function(keys) return redis.call('GET', keys[1]) end)"
        client.command("FUNCTION", "LOAD", code)
        client.command("MODULE", "LOAD", str(valkey_module.library()))
        client.command("SET", "k", TEXT)
        assert client.command("EVALSHA", digest, 1, "k") == TEXT
        assert client.command("FCALL", "f", 1, "k") == TEXT


def test_the_module_is_told_of(connection: Connection) -> None:
    modules = connection.command("MODULE", "LIST")
    assert isinstance(modules, list)
    assert any(isinstance(module, list) and module[:2] == [b"name", b"snugly"] for module in modules)
    assert connection.command("SET", "k", TEXT) == OK
    for section in ("snugly", "modules", "everything"):
        told = connection.command("INFO", section)
        assert isinstance(told, bytes)
        assert b"# snugly\r\n" in told, section
        assert b"\r\nsnugly_" in told, section


def test_the_module_is_not_unloaded(connection: Connection) -> None:
    assert connection.command("SET", "k", TEXT) == OK
    assert isinstance(connection.command("MODULE", "UNLOAD", "snugly"), Failure)
    assert connection.command("GET", "k") == TEXT


def test_commands_are_told_of_as_in_valkey(connection: Connection, peer: Server) -> None:
    names = [*["GET", "MGET", "SET", "GETEX", "GETDEL", "APPEND", "STRLEN", "BITFIELD", "SORT", "DUMP", "LCS", "BITOP"]]
    with peer.connect() as theirs:
        for request in (["COMMAND", "INFO", *names], ["COMMAND", "DOCS", *names], ["COMMAND", "GETKEYS", "MGET", "a"]):
            assert connection.command_raw(*request) == theirs.command_raw(*request)


def test_a_transaction_that_was_begun_before_the_module_is_executed_with_it() -> None:
    options = ("--enable-module-command", "yes")
    with servers.valkey(*options) as server, server.connect() as connection, server.connect() as other:
        assert other.command("MULTI") == OK
        assert connection.command("MODULE", "LOAD", str(valkey_module.library())) == OK
        other.command("GET", "k")
        assert connection.command("SET", "k", TEXT) == OK
        assert other.command("EXEC") == [TEXT]


@pytest.mark.parametrize("name", ["CONFIG", "ACL"])
def test_it_is_loaded_where_commands_are_hidden_that_it_does_without(name: str) -> None:
    with valkey_module.serving("--rename-command", name, "") as server, server.connect() as connection:
        assert is_smaller(connection, TEXT)


@pytest.mark.parametrize("name", ["GET", "CLIENT", "APPEND"])
def test_it_is_not_loaded_where_commands_are_hidden_that_it_serves(name: str) -> None:
    options = ("--rename-command", name, "hidden", "--enable-module-command", "yes")
    with servers.valkey(*options) as server, server.connect() as connection:
        assert isinstance(connection.command("MODULE", "LOAD", str(valkey_module.library())), Failure)
        assert server.says(f"snugly needs the command {name.lower()}, which rename-command hides")
        assert connection.command("PING") == Simple(b"PONG")


def test_it_is_not_loaded_where_it_could_not_tell_databases_apart() -> None:
    options = ("--databases", "65537", "--enable-module-command", "yes")
    with servers.valkey(*options) as server, server.connect() as connection:
        assert isinstance(connection.command("MODULE", "LOAD", str(valkey_module.library())), Failure)
        assert server.says("snugly works with 65536 databases at most")
