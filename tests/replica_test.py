"""snugly as the replica of a Valkey or Redis server: it has the same strings and lists, and shows no part of them."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import comparison
import random_commands
import servers
from memcached import Client
from random_commands import Command
from replicas import Line, contents, following, primary, replication, until_caught_up, until_equal, until_up
from resp import Connection, Failure, Simple
from servers import Server
from waiting import until

pytestmark = pytest.mark.snugly_only

KINDS = ["valkey", "redis"]
OK = Simple(b"OK")
READ_ONLY = Failure(b"READONLY You can't write against a read only replica.")


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest) -> Iterator[Server]:
    with primary(request.param) as server:
        yield server


def fill(connection: Connection) -> None:
    """Keys of several databases, lengths and lifetimes."""
    for database in (0, 3, 15):
        connection.command("SELECT", database)
        for number in range(200):
            connection.command("SET", f"key:{number}", f"{database}:{number}," * (number * 7 % 500))
        connection.command("SET", "counted", database * 1_000)
        connection.command("SET", "short", "lived", "PX", 3_600_000)
        connection.command("RPUSH", "list", *range(300), "x" * 10_000, *["y" * 100] * 100)
        connection.command("EXPIRE", "list", 7_200)
    connection.command("SELECT", 0)


@pytest.mark.parametrize("diskless", ["yes", "no"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_keys_are_loaded_and_each_change_follows(kind: str, diskless: str) -> None:
    with primary(kind, "--repl-diskless-sync", diskless) as source, source.connect() as theirs:
        fill(theirs)
        with following(source.port) as replica:
            until_equal(source, replica)
            theirs.command("SELECT", 3)
            theirs.command("APPEND", "counted", "7")
            theirs.command("MULTI")
            theirs.command("INCRBY", "counted", 5)
            theirs.command("LPOP", "list", 250)
            theirs.command("EXEC")
            theirs.command("SWAPDB", 0, 15)
            theirs.command("SELECT", 15)
            theirs.command("FLUSHDB")
            theirs.command("SET", "gone", "soon", "PX", 1)
            theirs.command("MOVE", "gone", 3)
            until_equal(source, replica)
            with replica.connect() as ours:
                ours.command("SELECT", 3)
                assert ours.command("GET", "counted") == b"30012"
                assert replication(ours)["replica_full_syncs"] == "1"


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 20))])
def test_random_commands_leave_the_same_strings_and_lists(source: Server, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    # One in two keeps everything on disk, and next to nothing in memory.
    options = ["--storage", str(tmp_path), "--durability", "none", "--max-memory", "1"] if seed % 2 else []
    with (
        Line(source.port) as line,
        following(line.port, *options) as replica,
        replica.connect() as ours,
    ):
        until_up(ours)
        for _ in range(3):
            commands = [each for each in random_commands.sequence(rng, 1_000) if can_follow(each)]
            comparison.run(source, 2, [command for each in commands for command in among_others(rng, each)])
            line.cut()
            until_equal(source, replica)
        assert "panicked" not in replica.output()


def can_follow(command: Command) -> bool:
    """Whether a command needs nothing that only the primary has, such as members of a set for SORT, or the expiry of a
    hash for KEEPTTL. Redis takes payloads of a version 0, a BITFIELD that fails leaves zeros there, and Valkey passes
    MSETEX with two expiries on as one that it would refuse itself."""
    words = [word.upper() for word in command]
    expiries = sum(word in (b"EX", b"PX", b"EXAT", b"PXAT") for word in words)
    is_odd = not {b"RESTORE", b"KEEPTTL", b"FAIL"}.isdisjoint(words) or expiries > 1
    return not is_odd and not {b"SORT", b"STORE"} <= set(words)


def among_others(rng: random.Random, command: Command) -> list[Command]:
    """A command, and now and then one that snugly does not have, of a key that either may have."""
    key, other = random_commands.key(rng), random_commands.key(rng)
    others: list[Command] = [
        [b"HSET", key, b"field", b"value"],
        [b"SADD", key, b"1", b"2"],
        [b"ZADD", key, b"1", b"member"],
        [b"SUNIONSTORE", key, b"set", other],
        [b"RENAME", b"set", key],
        [b"COPY", b"set", key, b"REPLACE"],
        [b"DEL", key],
        [b"EXPIRE", key, b"1000"],
        [b"PUBLISH", b"channel", b"message"],
        [b"EVAL", b"redis.call('set', KEYS[1], 'x') redis.call('hset', KEYS[2], 'f', 'v')", b"2", key, b"hash"],
        [b"SADD", b"set", b"member"],
    ]
    return [rng.choice(others), command] if rng.random() < 0.2 else [command]


def test_messages_of_the_primary_reach_subscribers_of_the_replica(source: Server) -> None:
    with source.connect() as theirs, following(source.port) as replica, replica.connect() as ours:
        until_up(ours)
        ours.command("SUBSCRIBE", "channel")
        theirs.command("PUBLISH", "channel", "first")
        theirs.command("MULTI")
        theirs.command("PUBLISH", "channel", "second")
        theirs.command("EXEC")
        assert [ours.read() for _ in range(2)] == [[b"message", b"channel", text] for text in (b"first", b"second")]
        with replica.connect() as other:
            until_caught_up(theirs, other)
            assert replication(other)["replica_skipped_commands"] == "0"


def test_what_there_is_not_here_is_counted_told_once_and_leaves_nothing_old(source: Server) -> None:
    with source.connect() as theirs:
        theirs.command("HSET", "hash", "field", "value")
        theirs.command("SADD", "set", "member")
        theirs.command("SET", "string", "kept")
        with following(source.port) as replica, replica.connect() as ours:
            until_up(ours)
            assert replication(ours)["replica_skipped_keys"] == "2"
            for name in ("stored", "renamed", "copied", "counted"):
                theirs.command("SET", name, "old")
            for number in range(5):
                theirs.command("HSET", "hash", "field", number)
            theirs.command("SUNIONSTORE", "stored", "set")
            theirs.command("COPY", "hash", "copied", "REPLACE")
            theirs.command("RENAME", "hash", "renamed")
            theirs.command("EXPIRE", "renamed", 100)
            theirs.command("DEL", "counted")
            theirs.command("PFADD", "counted", "a", "b")
            theirs.command("MULTI")
            theirs.command("SADD", "set", "other")
            theirs.command("APPEND", "string", "!")
            theirs.command("EXEC")
            until_caught_up(theirs, ours)
            assert ours.command("GET", "string") == b"kept!"
            names = ("hash", "stored", "renamed", "copied", "counted")
            assert [ours.command("EXISTS", name) for name in names] == [0] * len(names)
            # Five of HSET, and one each of SUNIONSTORE, COPY, RENAME, PFADD and SADD.
            assert replication(ours)["replica_skipped_commands"] == "10"
            assert replica.says('command="SADD"')
            output = replica.output()
            assert output.count('command="HSET"') == 1
            assert output.count('kind="hash" keys=1') == 1


def test_a_link_that_is_to_stop_ends_at_what_there_is_not_and_goes_on_when_that_may_be_skipped(source: Server) -> None:
    with (
        source.connect() as theirs,
        following(source.port, "--replica-unsupported", "stop") as replica,
        replica.connect() as ours,
    ):
        until_up(ours)
        theirs.command("SET", "before", "1")
        theirs.command("HSET", "hash", "field", "value")
        theirs.command("SET", "behind", "1")
        until(lambda: "HSET" in replication(ours)["replica_error"])
        assert replication(ours)["master_link_status"] == "down"
        assert [ours.command("GET", name) for name in ("before", "behind")] == [b"1", None]
        assert ours.command("SET", "x", "y") == READ_ONLY
        assert ours.command("CONFIG", "SET", "replica-unsupported", "skip") == OK
        until_caught_up(theirs, ours)
        assert ours.command("GET", "behind") == b"1"
        assert replication(ours)["replica_full_syncs"] == "1"


def test_keys_that_are_too_long_here_are_left_out_and_leave_nothing_old(source: Server) -> None:
    long = "k" * 2_000
    with source.connect() as theirs:
        theirs.command("SET", long, "1")
        theirs.command("SET", "big", "x" * (3 << 20))
        theirs.command("SET", "growing", "x" * (1 << 20))
        options = ("--max-key-bytes", "1kb", "--max-value-bytes", "1mb")
        with following(source.port, *options) as replica, replica.connect() as ours:
            until_up(ours)
            assert replication(ours)["replica_skipped_keys"] == "2"
            theirs.command("SET", "small", "old")
            theirs.command("SET", "small", "x" * (3 << 20))
            theirs.command("APPEND", "growing", "x")
            theirs.command("SET", long, "2")
            theirs.command("SET", "last", "1")
            until_caught_up(theirs, ours)
            assert [ours.command("GET", key) for key in ("small", "growing", "big")] == [None] * 3
            assert ours.command("GET", "last") == b"1"


def test_writes_of_clients_are_refused_and_change_nothing(source: Server) -> None:
    with source.connect() as theirs:
        theirs.command("SET", "key", "value")
        with following(source.port) as replica, replica.connect() as ours:
            until_up(ours)
            for command in (["SET", "key", "x"], ["DEL", "key"], ["FLUSHALL"], ["BLPOP", "list", 0]):
                assert ours.command(*command) == READ_ONLY
            ours.command("MULTI")
            assert ours.command("SET", "key", "x") == READ_ONLY
            assert ours.command("EXEC") == Failure(b"EXECABORT Transaction discarded because of previous errors.")
            assert ours.command("GET", "key") == b"value"
            assert contents(theirs) == contents(ours)
            assert ours.command("CONFIG", "SET", "replica-read-only", "no") == OK
            assert ours.command("SET", "own", "x") == OK
            assert replication(ours)["slave_read_only"] == "0"


def test_a_takeover_keeps_everything_and_takes_writes_at_once(source: Server) -> None:
    with source.connect() as theirs:
        fill(theirs)
        with following(source.port) as replica, replica.connect() as ours:
            until_equal(source, replica)
            before = contents(ours)
            ours.command("SELECT", 0)
            assert ours.command("REPLICAOF", "NO", "ONE") == OK
            assert ours.command("SET", "own", "1") == OK
            assert ours.command("ROLE") == [b"master", 0, []]
            assert ours.command("CONFIG", "GET", "replicaof") == [b"replicaof", b""]
            theirs.command("SET", "theirs", "1")
            until(lambda: replication(theirs)["connected_slaves"] == "0")
            assert contents(ours) == {**before, (0, b"own"): (b"string", b"1", -1)}


def test_a_server_follows_another_one_when_it_is_told_to(source: Server) -> None:
    with source.connect() as theirs, servers.snugly() as replica, replica.connect() as ours:
        theirs.command("SET", "key", "theirs")
        ours.command("SET", "key", "ours")
        ours.command("SET", "own", "1")
        with replica.connect() as waiting:
            waiting.command("CLIENT", "SETNAME", "waiting")
            waiting.send(b"BLPOP list 0\r\n")
            until(lambda: b"flags=b" in told_of(ours, "waiting"))
            assert ours.command("SLAVEOF", "127.0.0.1", source.port) == OK
            assert waiting.read_raw().startswith(b"-UNBLOCKED force unblock")
        until_up(ours)
        assert ours.command("GET", "key") == b"theirs"
        assert ours.command("EXISTS", "own") == 0
        role = ours.command("ROLE")
        assert isinstance(role, list)
        assert role[:4] == [b"slave", b"127.0.0.1", source.port, b"connected"]
        again = ours.command("REPLICAOF", "127.0.0.1", source.port)
        assert again == Simple(b"OK Already connected to specified primary")
        for wrong in (["127.0.0.1", 0], ["127.0.0.1", "x"], ["", 1], ["127.0.0.1", 65_536]):
            assert isinstance(ours.command("REPLICAOF", *wrong), Failure)
        assert "slave" in replication(ours)["role"]


def told_of(connection: Connection, name: str) -> bytes:
    """The line of CLIENT LIST about the client of this name."""
    text = connection.command("CLIENT", "LIST")
    assert isinstance(text, bytes)
    return next((line for line in text.split(b"\n") if f"name={name}".encode() in line), b"")


def test_a_password_and_a_user_are_given_and_their_absence_is_told(source: Server) -> None:
    with source.connect() as theirs, servers.snugly() as replica, replica.connect() as ours:
        theirs.command("SET", "key", "value")
        theirs.command("ACL", "SETUSER", "replica", "on", ">sesame", "+psync", "+replconf", "+ping")
        theirs.command("CONFIG", "SET", "requirepass", "open-up")
        ours.command("REPLICAOF", "127.0.0.1", source.port)
        until(lambda: "set primary-auth" in replication(ours)["replica_error"])
        ours.command("CONFIG", "SET", "primaryauth", "wrong")
        until(lambda: "does not take the password" in replication(ours)["replica_error"])
        ours.command("CONFIG", "SET", "masteruser", "replica", "masterauth", "sesame")
        until_up(ours)
        assert ours.command("GET", "key") == b"value"
        ours.command("REPLICAOF", "NO", "ONE")
        ours.command("CONFIG", "SET", "primaryuser", "", "primaryauth", "open-up")
        ours.command("REPLICAOF", "127.0.0.1", source.port)
        until_up(ours)
        assert all(secret not in replica.output() for secret in ("sesame", "open-up"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_sees_what_was_there_or_a_refusal_or_all_of_what_comes(kind: str) -> None:
    """The primary's keys are all of one generation; so is what a reader finds, in one transaction."""
    keys = [f"key:{number}" for number in range(3_000)]
    with primary(kind) as source, source.connect() as theirs, following(source.port) as replica:
        generations = itertools.count()

        def write() -> None:
            generation = next(generations)
            theirs.command("MSET", *(part for key in keys for part in (key, f"{generation}:{key}" * 20)))

        write()
        with replica.connect() as ours:
            until_up(ours)
            until_caught_up(theirs, ours)
            ended, seen, wrong = threading.Event(), set(), []

            def read() -> None:
                with replica.connect() as reader:
                    while not ended.is_set():
                        values = reader.command("MGET", *keys)
                        if isinstance(values, list):
                            found = {value.split(b":")[0] if isinstance(value, bytes) else value for value in values}
                            seen.update(found)
                            if len(found) != 1:
                                wrong.append(found)
                        elif isinstance(values, Failure):
                            seen.add(values.text.split()[0])

            reader = threading.Thread(target=read)
            reader.start()
            try:
                for _ in range(5):
                    ours.command("REPLICAOF", "NO", "ONE")
                    write()
                    ours.command("REPLICAOF", "127.0.0.1", source.port)
                    until_up(ours)
            finally:
                ended.set()
                reader.join()
            assert not wrong
            assert seen <= {b"LOADING", *(b"%d" % number for number in range(6))}
            assert {b"5"} <= {ours.command("GET", key).split(b":")[0] for key in keys}  # type: ignore[union-attr]


def test_a_store_on_disk_is_that_of_its_primary_after_a_restart(tmp_path: Path) -> None:
    folder = str(tmp_path / "store")
    with primary("valkey") as source, source.connect() as theirs:
        fill(theirs)
        with following(source.port, "--storage", folder) as replica:
            until_equal(source, replica)
        theirs.command("SET", "while", "away")
        theirs.command("DEL", "key:7")
        with following(source.port, "--storage", folder) as replica:
            until_equal(source, replica)
            with replica.connect() as ours:
                assert ours.command("REPLICAOF", "NO", "ONE") == OK
                expected = contents(ours)
        with servers.snugly("--storage", folder) as alone, alone.connect() as ours:
            assert contents(ours) == expected
    servers.check(Path(folder))


def test_the_link_is_shown_among_the_clients_and_may_be_ended(source: Server) -> None:
    with source.connect() as theirs, following(source.port) as replica, replica.connect() as ours:
        until_up(ours)
        until(lambda: b" flags=Me " in link_of(ours))
        assert ours.command("CLIENT", "LIST", "TYPE", "primary") == link_of(ours) + b"\n"
        assert ours.command("CLIENT", "KILL", "TYPE", "master") == 1
        theirs.command("SET", "key", "value")
        until_caught_up(theirs, ours)
        assert ours.command("GET", "key") == b"value"
        assert replication(ours)["replica_resumed_links"] == "1"
        assert ours.command("CLIENT", "KILL", "TYPE", "normal") == 0


def link_of(connection: Connection) -> bytes:
    text = connection.command("CLIENT", "LIST")
    assert isinstance(text, bytes)
    return next((line for line in text.split(b"\n") if b"flags=M" in line), b"")


def test_clients_that_keep_copies_and_that_watch_keys_hear_of_changes_of_the_primary(source: Server) -> None:
    with source.connect() as theirs, following(source.port) as replica, replica.connect() as ours:
        until_up(ours)
        ours.command("HELLO", 3)
        ours.command("CLIENT", "TRACKING", "ON")
        ours.command("GET", "key")
        theirs.command("SET", "key", "value")
        assert ours.read_raw() == b">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n"
        ours.command("CLIENT", "TRACKING", "OFF")
        ours.command("WATCH", "key")
        theirs.command("SET", "key", "other")
        with replica.connect() as other:
            until(lambda: other.command("GET", "key") == b"other")
        ours.command("MULTI")
        ours.command("GET", "key")
        assert ours.command("EXEC") is None


def test_memcached_clients_read_what_the_primary_has_and_may_not_write() -> None:
    with (
        primary("valkey") as source,
        source.connect() as theirs,
        servers.reserved_port() as port,
        following(source.port, "--memcached-port", str(port)) as replica,
        replica.connect() as ours,
    ):
        theirs.command("SET", "key", "value")
        until_up(ours)
        until_caught_up(theirs, ours)
        with Client(port) as cache:
            assert cache.ask(b"get key\r\n") == b"VALUE key 0 5\r\nvalue\r\nEND\r\n"
            refusal = b"SERVER_ERROR this server is a read-only replica: write to its primary\r\n"
            for request in (
                b"set key 0 0 1\r\nx",
                b"delete key",
                b"incr key 1",
                b"flush_all",
                b"touch key 5",
                b"mg key T5",
            ):
                assert cache.ask(request + b"\r\n") == refusal, request
        assert ours.command("GET", "key") == b"value"
