"""Valkey with the module: dictionaries that it learns, keeps, hands to replicas and files, and gives up."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

import envelope
import servers
import valkey_module
from info import info, word
from module_dictionaries import (
    BUSY,
    after_a_round,
    assert_filled,
    backend,
    enveloped,
    fill,
    give,
    learned,
    libraries,
    listed,
    trained,
    until_after_rounds,
    until_learned,
    until_loaded,
    user,
)
from replicas import until_caught_up, until_up
from resp import Argument, Connection, Failure, Simple, encode
from servers import Server
from valkey_module import TEXT
from waiting import until

pytestmark = pytest.mark.snugly_only
OK = Simple(b"OK")
CODECS = {"lz4": {0x81, 0x82}, "zstd": {0x81}}
PRIMARY = ("--repl-diskless-sync-delay", "0")
APPENDING = ("--appendonly", "yes", "--appendfsync", "always")


@pytest.fixture
def server() -> Iterator[Server]:
    with valkey_module.serving(*BUSY, "--enable-module-command", "yes") as server:
        yield server


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    with server.connect() as connection:
        yield connection


# Learning.


@pytest.mark.parametrize("codec", CODECS)
def test_a_dictionary_is_learned_from_what_is_written(codec: str) -> None:
    with valkey_module.serving(*BUSY, "--snugly.codec", codec) as server, server.connect() as connection:
        until_learned(connection)
        assert set(listed(connection).values()) == {b"user:*"}
        connection.command("SET", "user:x", user(7))
        assert backend(connection, "user:x") in CODECS[codec]
        connection.command("SET", "other", TEXT)
        assert backend(connection, "other") not in {0x81, 0x82}
        assert connection.command("MGET", "user:x", "other") == [user(7), TEXT]


@pytest.mark.slow
def test_a_dictionary_is_learned_from_strings_that_are_there(tmp_path: Path) -> None:
    """They are compressed with it, too."""
    options = ("--dir", str(tmp_path))
    count = 3_000
    with servers.valkey(*options) as stock, stock.connect() as connection:
        fill(connection, count)
        assert connection.command("SAVE") == OK
    with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
        until_loaded(connection)
        until(lambda: learned(connection) > 0)
        keys = [f"user:{number}" for number in range(0, count, 100)]
        until(lambda: all(backend(connection, key) in {0x81, 0x82} for key in keys))
        assert_filled(connection, count)


def test_nothing_is_learned_where_nothing_may_be_used() -> None:
    for options in (("--snugly.fleet", "mixed"), ("--snugly.dictionary-memory", "0"), ("--snugly.compression", "no")):
        with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
            fill(connection, 3_000)
            if "no" not in options:
                told = connection.command("SNUGLY.DICTIONARY", "IMPORT", "user:*", trained())
                assert isinstance(told, Failure)
            assert listed(connection) == {}
            assert libraries(connection) == []


# Reading and writing.


@pytest.mark.parametrize("codec", CODECS)
def test_every_command_reads_and_changes_what_needs_a_dictionary(codec: str) -> None:
    with valkey_module.serving(*BUSY, "--snugly.codec", codec) as server, server.connect() as connection:
        give(connection)
        value = user(1)
        fill(connection, 3)
        assert backend(connection, "user:1") in CODECS[codec]
        assert connection.command("STRLEN", "user:1") == len(value)
        assert connection.command("GETRANGE", "user:1", 10, 30) == value[10:31]
        assert connection.command("APPEND", "user:1", "!") == len(value) + 1
        assert connection.command("GET", "user:1") == value + b"!"
        assert connection.command("SET", "user:1", value, "GET") == value + b"!"
        assert connection.command("SET", "user:1", value, "IFEQ", value) == OK
        assert connection.command("GETEX", "user:1", "EX", 1000) == value
        assert connection.command("COPY", "user:1", "user:5") == 1
        assert connection.command("RENAME", "user:5", "other") == OK
        assert connection.command("GETDEL", "other") == value
        payload = connection.command("DUMP", "user:1")
        assert isinstance(payload, bytes)
        assert connection.command("RESTORE", "user:6", 0, payload) == OK
        assert connection.command("GET", "user:6") == value
        assert connection.command("MULTI") == OK
        connection.command("SET", "user:2", user(9))
        connection.command("GET", "user:2")
        assert connection.command("EXEC") == [OK, user(9)]
        script = "redis.call('SET', 'user:3', ARGV[1]) return redis.call('GET', 'user:3')"
        assert connection.command("EVAL", script, 0, user(3)) == user(3)
        assert backend(connection, "user:3") in CODECS[codec]


@pytest.mark.parametrize("kind", [0x81, 0x82])
def test_clients_own_envelopes_come_back_as_they_were(connection: Connection, kind: int) -> None:
    """With the same dictionary, and with one that only they have."""
    give(connection)
    for dictionary in (trained(), trained(1)):
        own = enveloped(b"".join(map(user, range(5))), dictionary, kind)
        for key in ("user:1", "other"):
            connection.command("SET", key, own)
            assert connection.command("GET", key) == own
            assert connection.command("STRLEN", key) == len(own)


def test_a_shorter_threshold_counts_where_there_is_a_dictionary(connection: Connection) -> None:
    short = user(1)[:200]
    connection.command("SET", "user:1", short)
    assert backend(connection, "user:1") is None
    give(connection)
    connection.command("SET", "user:1", short)
    assert backend(connection, "user:1") in {0x81, 0x82}
    assert connection.command("GET", "user:1") == short


def test_what_is_there_is_compressed_with_a_dictionary_that_comes_later(connection: Connection) -> None:
    for number in range(50):
        connection.command("SET", f"user:{number}", user(number) * 2)
        payload = connection.command("DUMP", f"user:{number}")
        assert isinstance(payload, bytes)
        connection.command("RESTORE", f"user:{number}", 0, payload, "REPLACE", "IDLETIME", 20)
    after_a_round(connection)
    assert all(backend(connection, f"user:{number}") == 0x02 for number in range(50))
    give(connection)
    until(lambda: all(backend(connection, f"user:{number}") in {0x81, 0x82} for number in range(50)))
    for number in range(50):
        assert connection.command("GET", f"user:{number}") == user(number) * 2


# Where they are kept.


def test_nothing_that_empties_a_server_takes_a_dictionary_away(connection: Connection) -> None:
    identity = give(connection)
    fill(connection)
    own = "#!lua name=mine\nserver.register_function('mine', function() return 7 end)"
    assert connection.command("FUNCTION", "LOAD", own) == b"mine"
    kept = [b"snugly_dictionaries", b"snugly_dictionary_%d" % identity]
    assert libraries(connection) == [b"mine", *kept]
    for request in (
        ["FUNCTION", "DELETE", f"snugly_dictionary_{identity}"],
        ["FUNCTION", "DELETE", "snugly_dictionaries"],
        ["FUNCTION", "FLUSH", "SYNC"],
        ["FUNCTION", "FLUSH", "ASYNC"],
    ):
        assert connection.command(*request) == OK
        until(lambda: set(libraries(connection)) >= set(kept))
        assert_filled(connection)
    assert connection.command("MULTI") == OK
    connection.command("FUNCTION", "FLUSH")
    connection.command("GET", "user:1")
    assert connection.command("EXEC") == [OK, user(1)]
    until(lambda: libraries(connection) == kept)
    connection.command("FLUSHALL")
    fill(connection)
    assert backend(connection, "user:1") in {0x81, 0x82}
    assert listed(connection) == {identity: b"user:*"}


@pytest.mark.parametrize("preamble", ["yes", "no"])
@pytest.mark.parametrize("file", ["RDB", "AOF", "AOF rewritten"])
def test_values_are_read_after_a_restart(tmp_path: Path, file: str, preamble: str) -> None:
    options = ["--dir", str(tmp_path), "--aof-use-rdb-preamble", preamble, *(() if file == "RDB" else APPENDING)]
    with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
        identity = give(connection)
        fill(connection)
        if file == "RDB":
            assert connection.command("SAVE") == OK
        if file == "AOF rewritten":
            connection.command("BGREWRITEAOF")
            until(lambda: info(connection, "persistence", "aof_rewrite_in_progress") == 0)
            assert info(connection, "persistence", "aof_base_size") > 0
        assert connection.command("SET", "user:200", user(200)) == OK
        if file == "RDB":
            assert connection.command("SAVE") == OK
        server.process.kill()
        server.process.wait()
    with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
        until_loaded(connection)
        assert_filled(connection, 201)
        assert listed(connection) == {identity: b"user:*"}
        connection.command("SET", "user:201", user(201))
        assert backend(connection, "user:201") in {0x81, 0x82}


def test_a_server_that_is_killed_after_its_functions_were_flushed_reads_its_values(tmp_path: Path) -> None:
    options = ("--dir", str(tmp_path), *APPENDING)
    for request in (["FUNCTION", "FLUSH"], ["FUNCTION", "DELETE", "snugly_dictionary_{}"]):
        with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
            identity = give(connection)
            fill(connection)
            assert connection.command(*(part.format(identity) for part in request)) == OK
            server.process.kill()
            server.process.wait()
        with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
            until_loaded(connection)
            assert_filled(connection)
            connection.command("FLUSHALL")


def killed(server: Server) -> None:
    server.process.kill()
    server.process.wait()


@pytest.mark.parametrize("request_", [["FUNCTION", "FLUSH"], ["FUNCTION", "DELETE", "snugly_dictionary_{}"]])
def test_a_file_that_is_written_right_behind_a_flush_has_the_dictionaries(tmp_path: Path, request_: list[str]) -> None:
    options = ("--dir", str(tmp_path))
    with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
        identity = give(connection)
        fill(connection)
        flush = [part.format(identity) for part in request_]
        connection.send(encode(*flush) + encode("SAVE"))
        assert [connection.read(), connection.read()] == [OK, OK]
        killed(server)
    with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
        until_loaded(connection)
        assert_filled(connection)


@pytest.mark.slow
def test_a_file_that_needs_a_dictionary_which_memory_does_not_is_read_after_a_flush(tmp_path: Path) -> None:
    """The append-only file has strings as they were written, until it is rewritten."""
    options = ("--dir", str(tmp_path), *APPENDING)
    with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
        identity = give(connection)
        fill(connection, 20)
        connection.command("SNUGLY.DICTIONARY", "FORGET", identity)
        until_after_rounds(
            connection, lambda: all(backend(connection, f"user:{number}") not in {0x81, 0x82} for number in range(20))
        )
        for _ in range(4):
            after_a_round(connection)
        assert listed(connection) == {identity: None}
        assert connection.command("FUNCTION", "FLUSH") == OK
        killed(server)
    with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
        until_loaded(connection)
        assert_filled(connection, 20)
        for number in range(20):
            connection.command("SET", f"user:{number}", user(number))
        connection.command("BGREWRITEAOF")
        until(lambda: info(connection, "persistence", "aof_rewrite_in_progress") == 0)
        # That was too early: only now it is seen that nothing in memory needs it.
        for _ in range(3):
            after_a_round(connection)
        assert listed(connection) == {identity: None}
        connection.command("BGREWRITEAOF")
        until(lambda: info(connection, "persistence", "aof_rewrite_in_progress") == 0)
        until_after_rounds(connection, lambda: listed(connection) == {})
        assert_filled(connection, 20)


def test_nothing_is_told_while_writes_are_paused(tmp_path: Path) -> None:
    """The server would end."""
    options = ("--dir", str(tmp_path), *APPENDING)
    with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
        identity = give(connection)
        fill(connection)
        assert connection.command("CLIENT", "PAUSE", 600_000, "WRITE") == OK
        assert connection.command("CONFIG", "SET", "snugly.fleet", "mixed") == OK
        for request in (["FORGET", identity], ["IMPORT", "x:*", trained(1)]):
            told = connection.command("SNUGLY.DICTIONARY", *request)
            assert isinstance(told, Failure)
            assert b"paused" in told.text
        assert connection.command("SNUGLY.RESTORE") == OK
        assert_filled(connection)
        assert connection.command("CLIENT", "UNPAUSE") == OK
        until(lambda: word(connection, "snugly", "snugly_state") == "restored")
        assert_filled(connection)


def test_a_library_that_cannot_be_added_is_not_tried_all_the_time(server: Server, connection: Connection) -> None:
    identity = give(connection)
    name = f"snugly_dictionary_{identity}"
    fill(connection, 5)
    code = f"#!lua name=other\nserver.register_function('{name}', function() return 7 end)"
    assert connection.command("MULTI") == OK
    connection.command("FUNCTION", "DELETE", name)
    connection.command("FUNCTION", "LOAD", code)
    assert connection.command("EXEC") == [OK, b"other"]
    for _ in range(20):
        assert_filled(connection, 5)
    until(lambda: "could not keep the dictionary" in server.output())
    assert server.output().count("could not keep the dictionary") < 5
    assert connection.command("FUNCTION", "DELETE", "other") == OK
    until(lambda: name.encode() in libraries(connection))


@pytest.mark.parametrize("reload", ["RELOAD", "LOADAOF"])
def test_values_are_read_after_a_reload(tmp_path: Path, reload: str) -> None:
    with (
        valkey_module.serving(*BUSY, "--dir", str(tmp_path), *APPENDING) as server,
        server.connect() as connection,
    ):
        give(connection)
        fill(connection)
        assert connection.command("DEBUG", reload) == OK
        assert_filled(connection)


def test_what_is_no_dictionary_is_left_alone(server: Server, connection: Connection) -> None:
    code = "#!lua name={0}\n-- {1}\nserver.register_function('{0}', function() return 7 end)"
    for name, line in (
        ("snugly_dictionary_40000", "AAAA"),
        ("snugly_dictionaries", "40000 Kg=="),
        ("snugly_dictionary_x", ""),
    ):
        assert connection.command("FUNCTION", "LOAD", code.format(name, line)) == name.encode()
    connection.command("SET", "k", user(1) * 3)
    assert connection.command("GET", "k") == user(1) * 3
    assert listed(connection) == {}
    assert server.says("cannot use the library snugly_dictionary_40000")
    give(connection)
    fill(connection)
    assert_filled(connection)


def test_a_server_without_the_module_loads_the_file_and_gives_envelopes(tmp_path: Path) -> None:
    options = ("--dir", str(tmp_path))
    with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
        identity = give(connection)
        fill(connection)
        assert connection.command("SAVE") == OK
    with servers.valkey(*options) as stock, stock.connect() as connection:
        until_loaded(connection)
        for number in range(200):
            stored = connection.command("GET", f"user:{number}")
            assert isinstance(stored, bytes)
            assert envelope.decode(stored, dictionaries={identity: trained()}) == user(number)
        assert connection.command("SAVE") == OK
    with valkey_module.serving(*BUSY, *options) as server, server.connect() as connection:
        until_loaded(connection)
        assert_filled(connection)


# Replicas.


def test_replicas_have_the_dictionaries_of_their_primary() -> None:
    """Those of before they came, and those that come later; also when they become primaries."""
    with valkey_module.serving(*BUSY, *PRIMARY) as primary, primary.connect() as client:
        first = give(client)
        fill(client)
        with (
            valkey_module.serving(*BUSY, "--replicaof", f"127.0.0.1 {primary.port}") as replica,
            replica.connect() as reader,
        ):
            until_up(reader)
            assert_filled(reader)
            second = give(client, "more:*", trained(1))
            for number in range(100):
                client.command("SET", f"more:{number}", user(number))
            assert client.command("MULTI") == OK
            client.command("SET", "more:100", user(100))
            client.command("EXEC")
            until_caught_up(client, reader)
            for number in range(101):
                assert reader.command("GET", f"more:{number}") == user(number)
            assert listed(reader) == listed(client) == {first: b"user:*", second: b"more:*"}
            assert reader.command("SNUGLY.DIGEST") == client.command("SNUGLY.DIGEST")
            for request in (["FORGET", first], ["IMPORT", "x:*", trained()]):
                told = reader.command("SNUGLY.DICTIONARY", *request)
                assert isinstance(told, Failure)
                assert told.text.startswith(b"READONLY")
            primary.process.kill()
            assert reader.command("REPLICAOF", "NO", "ONE") == OK
            assert_filled(reader)
            fill(reader)
            assert backend(reader, "user:1") in {0x81, 0x82}


def test_a_replica_reads_what_comes_right_behind_a_dictionary() -> None:
    with (
        valkey_module.serving(*BUSY, *PRIMARY) as primary,
        valkey_module.serving("--replicaof", f"127.0.0.1 {primary.port}") as replica,
        primary.connect() as client,
        replica.connect() as reader,
    ):
        until_up(reader)
        for number in range(20):
            give(client, dictionary=trained(number % 3))
            client.command("SET", "user:1", user(number))
            until_caught_up(client, reader)
            assert reader.command("GET", "user:1") == user(number)
            assert backend(reader, "user:1") in {0x81, 0x82}


def test_a_replica_keeps_a_dictionary_that_its_primary_has() -> None:
    """Also if no string of its own needs it: the primary may still send one."""
    with (
        valkey_module.serving(*BUSY, *PRIMARY) as primary,
        valkey_module.serving(*BUSY, "--replicaof", f"127.0.0.1 {primary.port}") as replica,
        primary.connect() as client,
        replica.connect() as reader,
        primary.connect() as other,
    ):
        until_up(reader)
        identity = give(client)
        assert other.command("MULTI") == OK
        other.command("SET", "user:1", user(1))
        assert client.command("SNUGLY.DICTIONARY", "FORGET", identity) == OK
        until_caught_up(client, reader)
        for _ in range(4):
            after_a_round(reader)
        assert other.command("EXEC") == [OK]
        until_caught_up(client, reader)
        assert reader.command("GET", "user:1") == user(1)
        # It keeps it as well while its own strings need it, and its primary's do not.
        assert reader.command("CONFIG", "SET", "snugly.background-cpu-percent", 0) == OK
        client.command("SET", "user:1", user(1))
        until_after_rounds(client, lambda: listed(client) == {})
        client.command("FUNCTION", "FLUSH")
        until_caught_up(client, reader)
        assert identity in listed(reader)
        until(lambda: b"snugly_dictionary_%d" % identity in libraries(reader))
        assert reader.command("CONFIG", "SET", "snugly.background-cpu-percent", 100) == OK
        until_after_rounds(reader, lambda: listed(reader) == {})
        assert libraries(reader) == []


# The end of a dictionary.


def test_a_dictionary_that_is_forgotten_goes_when_no_value_needs_it(connection: Connection) -> None:
    identity = give(connection)
    fill(connection)
    assert connection.command("SNUGLY.DICTIONARY", "FORGET", identity) == OK
    assert listed(connection) == {identity: None}
    connection.command("SET", "user:x", user(7))
    assert backend(connection, "user:x") not in {0x81, 0x82}
    for _ in range(4):
        after_a_round(connection)
    assert listed(connection) == {identity: None}, "values that were just written still need it"
    assert_filled(connection)
    for number in range(200):
        connection.command("SET", f"user:{number}", user(number))
    until_after_rounds(connection, lambda: listed(connection) == {})
    assert libraries(connection) == []
    assert_filled(connection)
    assert isinstance(connection.command("SNUGLY.DICTIONARY", "EXPORT", identity), Failure)


@pytest.mark.slow
def test_values_that_stay_get_another_form_when_their_dictionary_is_not_wanted(connection: Connection) -> None:
    give(connection)
    fill(connection)
    for number in range(200):
        connection.command("COPY", f"user:{number}", f"kept:{number}")
    assert connection.command("CONFIG", "SET", "snugly.fleet", "mixed") == OK
    # Strings that were just used are left alone for ten seconds.
    until_after_rounds(connection, lambda: listed(connection) == {})
    assert libraries(connection) == []
    for number in range(200):
        assert backend(connection, f"kept:{number}") not in {0x81, 0x82}
        assert connection.command("GET", f"kept:{number}") == user(number)


def test_a_dictionary_stays_while_a_transaction_may_need_it(server: Server, connection: Connection) -> None:
    identity = give(connection)
    with server.connect() as other:
        assert other.command("MULTI") == OK
        other.command("SET", "user:1", user(1))
        connection.command("SNUGLY.DICTIONARY", "FORGET", identity)
        for _ in range(4):
            after_a_round(connection)
        assert listed(connection) == {identity: None}
        assert other.command("EXEC") == [OK]
        assert other.command("GET", "user:1") == user(1)


def test_everything_can_be_made_plain_again_and_the_module_unloaded(connection: Connection) -> None:
    give(connection)
    fill(connection)
    assert connection.command("SNUGLY.RESTORE") == OK
    until(lambda: word(connection, "snugly", "snugly_state") == "restored")
    assert libraries(connection) == []
    assert connection.command("MODULE", "UNLOAD", "snugly") == OK
    assert_filled(connection)


def test_values_move_to_a_server_that_lacks_the_dictionary(connection: Connection) -> None:
    give(connection)
    fill(connection, 6)
    with valkey_module.serving() as target, target.connect() as there:
        where = ("127.0.0.1", target.port)
        assert connection.command("MIGRATE", *where, "user:0", 0, 60_000) == OK
        assert connection.command("MIGRATE", *where, "", 0, 60_000, "KEYS", "user:1", "user:2") == OK
        assert connection.command("MIGRATE", *where, "user:3", 0, 60_000, "COPY") == OK
        assert connection.command("MULTI") == OK
        connection.command("MIGRATE", *where, "", 0, 60_000, "KEYS", "user:4")
        assert connection.command("EXEC") == [OK]
        script = "return redis.call('MIGRATE', '127.0.0.1', ARGV[1], KEYS[1], 0, 60000)"
        assert connection.command("EVAL", script, 1, "user:5", target.port) == OK
        assert_filled(there, 6)
        assert connection.command("GET", "user:3") == user(3)
        connection.command("SELECT", 3)
        connection.command("SET", "user:7", user(7))
        assert connection.command("EVAL", script, 1, "user:7", target.port) == OK
        assert there.command("GET", "user:7") == user(7)


def test_published_dictionaries_are_keys_for_clients_of_a_node_without_the_module() -> None:
    with (
        valkey_module.serving(*BUSY, *PRIMARY, "--snugly.publish-dictionaries", "yes") as primary,
        servers.valkey("--replicaof", f"127.0.0.1 {primary.port}") as stock,
        primary.connect() as client,
        stock.connect() as reader,
    ):
        until_up(reader)
        identity = give(client, "*")
        key = f"{{snugly}}:dict:{identity}"
        fill(client, 5)
        until(lambda: reader.command("GET", key) == trained())
        until_caught_up(client, reader)
        for number in range(5):
            stored = reader.command("GET", f"user:{number}")
            assert isinstance(stored, bytes)
            assert envelope.decode(stored, dictionaries={identity: trained()}) == user(number)
        # They are stored as they are, whatever they look like.
        assert client.command("CONFIG", "SET", "snugly.min-bytes", 128) == OK
        assert client.command("SET", "{snugly}:dict:40000", trained()) == OK
        after_a_round(client)
        for each in (key, "{snugly}:dict:40000"):
            assert backend(client, each) is None
        assert client.command("SELECT", 3) == OK
        client.command("FLUSHALL")
        until(lambda: reader.command("EXISTS", key) == 1)
        assert client.command("SNUGLY.DICTIONARY", "FORGET", identity) == OK
        until_after_rounds(client, lambda: listed(client) == {})
        until(lambda: reader.command("EXISTS", key) == 0)


def test_dictionaries_are_not_published_unless_that_is_wanted(connection: Connection) -> None:
    give(connection)
    fill(connection, 5)
    for _ in range(3):
        after_a_round(connection)
    assert connection.command("KEYS", "{snugly}*") == []


# Commands of operators.


def test_dictionaries_go_from_one_server_to_another(connection: Connection) -> None:
    identity = give(connection)
    exported = connection.command("SNUGLY.DICTIONARY", "EXPORT", identity)
    assert exported == trained()
    with valkey_module.serving(*BUSY) as other, other.connect() as there:
        assert isinstance(exported, bytes)
        give(there, "a:*", exported)
        give(there, "b:*", exported)
        assert len(listed(there)) == 1
        there.command("SET", "b:1", user(1))
        assert backend(there, "b:1") in {0x81, 0x82}


def test_what_is_wrong_is_said(connection: Connection) -> None:
    damaged = bytearray(trained())
    damaged[-1] ^= 1
    wrong: list[tuple[list[Argument], str]] = [
        (["IMPORT", "user:*", "text"], "not a zstd dictionary"),
        (["IMPORT", "user:*", bytes(damaged)], "says that its ID is"),
        (["IMPORT", "user:*"], "syntax"),
        (["EXPORT", 7], "no such dictionary"),
        (["FORGET", "x"], "no such dictionary"),
        (["LIST", "x"], "syntax"),
        ([], "syntax"),
    ]
    for arguments, words in wrong:
        told = connection.command("SNUGLY.DICTIONARY", *arguments)
        assert isinstance(told, Failure)
        assert words.encode() in told.text
    assert listed(connection) == {}


def test_dictionaries_are_counted(connection: Connection) -> None:
    give(connection)
    fill(connection, 5)
    assert_filled(connection, 5)
    assert info(connection, "snugly", "snugly_dictionaries") == 1
    assert info(connection, "snugly", "snugly_dictionaries_chosen") == 1
    assert info(connection, "snugly", "snugly_dictionary_hits") == 5
    assert info(connection, "snugly", "snugly_dictionary_memory_bytes") > len(trained())


def test_the_most_precise_pattern_decides(connection: Connection) -> None:
    rest, users = give(connection, "*", trained(1)), give(connection, "user:*")
    assert listed(connection) == {rest: b"*", users: b"user:*"}
    for key, value in itertools.product(("user:1", "x"), (user(1), user(2))):
        connection.command("SET", key, value)
        assert connection.command("GET", key) == value
