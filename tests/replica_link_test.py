"""The link of a snugly to its primary: it breaks and goes on; primaries refuse, are silent, or send anything at all."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
from memcached import Client
from replicas import Line, contents, following, primary, replication, until_caught_up, until_equal, until_up
from resp import Connection, Failure, Simple, encode
from servers import Server
from waiting import until

pytestmark = pytest.mark.snugly_only

OK = Simple(b"OK")
LOADING = Failure(b"LOADING snugly is loading the keys of its primary")
STREAM = b"0123456789abcdef0123456789abcdef01234567"
# A file of Redis 7.0 with nothing in it, and one with the string `a` and no checksum.
EMPTY = b"REDIS0010\xff" + bytes(8)
ONE_KEY = b"REDIS0010\xfe\x00\x00\x01a\x03new\xff" + bytes(8)


def error(connection: Connection) -> str:
    return replication(connection).get("replica_error", "")


@pytest.mark.parametrize("kind", ["valkey", "redis"])
def test_a_link_that_is_cut_goes_on_where_it_was_and_nothing_is_lost_or_doubled(kind: str) -> None:
    rng = random.Random(7)
    with (
        primary(kind, "--repl-backlog-size", "64mb") as source,
        Line(source.port) as line,
        source.connect() as theirs,
        following(line.port) as replica,
        replica.connect() as ours,
    ):
        until_up(ours)
        # Cut within a request as well as between two, and within a transaction.
        for number in range(40):
            commands = [
                encode("INCR", "counter"),
                encode("RPUSH", "list", number),
                encode("APPEND", "text", f"{number},"),
            ]
            commands += [encode("SELECT", number % 16), encode("MULTI"), *commands[:2], encode("EXEC")]
            commands += [encode("SET", "big", rng.randbytes(100_000)), encode("HSET", "hash", "field", number)]
            theirs.send(b"".join(commands))
            for _ in commands:
                theirs.read()
            if number % 4 == 0:
                line.most = 1_000 + rng.randrange(400_000)
                line.cut()
                until(lambda links=line.links: line.links > links)  # type: ignore[misc]
        line.most = None
        until_equal(source, replica)
        told = replication(ours)
        assert (told["replica_full_syncs"], int(told["replica_resumed_links"]) > 1) == ("1", True)
        assert b"\r\nsync_full:1\r\n" in theirs.command("INFO", "stats")  # type: ignore[operator]


def test_a_replica_of_a_primary_that_is_promoted_goes_on_with_it_where_it_was() -> None:
    with (
        primary("valkey") as old,
        old.connect() as first,
        primary("valkey", "--replicaof", f"127.0.0.1 {old.port}") as new,
        new.connect() as second,
        following(old.port) as replica,
        replica.connect() as ours,
    ):
        until(lambda: replication(second).get("master_link_status") == "up")
        until_up(ours)
        first.command("INCR", "counter")
        until_caught_up(first, ours)
        until(lambda: replication(second)["master_repl_offset"] == replication(first)["master_repl_offset"])
        second.command("REPLICAOF", "NO", "ONE")
        ours.command("REPLICAOF", "127.0.0.1", new.port)
        second.command("INCR", "counter")
        until_caught_up(second, ours)
        assert ours.command("GET", "counter") == b"2"
        assert replication(ours)["replica_resumed_links"] == "1"
        assert replication(ours)["master_replid"] == replication(second)["master_replid"]


def test_a_primary_that_goes_and_comes_back_is_followed_again() -> None:
    with servers.reserved_port() as port:
        options = ("--port", str(port))
        with following(port) as replica, replica.connect() as ours:
            until(lambda: "refused" in error(ours))
            assert replication(ours)["master_link_status"] == "down"
            for generation in (b"1", b"2"):
                with valkey_at(port, *options) as source, source.connect() as theirs:
                    theirs.command("SET", "generation", generation)
                    until_up(ours)
                    until_caught_up(theirs, ours)
                    assert ours.command("GET", "generation") == generation
                until(lambda: replication(ours)["master_link_status"] == "down")
                assert ours.command("GET", "generation") == generation


@contextlib.contextmanager
def valkey_at(port: int, *options: str) -> Iterator[Server]:
    base = [str(servers.valkey_binary()), "--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "0"]
    with servers.running("valkey", [*base, *options], port) as server:
        yield server


class FalsePrimary:
    """A port whose connections are answered like those of a primary, up to what `play` does with them."""

    def __init__(self, *said: bytes, stays: bool = True) -> None:
        self.said, self.stays = said, stays
        self.connections = 0
        self.heard = bytearray()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.open: list[socket.socket] = []
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self) -> FalsePrimary:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self.listener, *self.open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.open.append(connection)
                self.connections += 1
                threading.Thread(target=self.play, args=(connection,), daemon=True).start()

    def play(self, connection: socket.socket) -> None:
        """Answers each request with what is to be said next; the last thing that is said answers PSYNC."""
        with contextlib.suppress(OSError):
            for reply in self.said:
                self.heard += connection.recv(1 << 16)
                connection.sendall(reply)
            while self.stays and (heard := connection.recv(1 << 16)):
                self.heard += heard
            connection.close()


def with_keys(file: bytes, stream: bytes = b"", offset: int = 0, mark: bytes = b"") -> list[bytes]:
    """The replies of a primary that sends all its keys, and then its stream."""
    begin = b"$EOF:%b\r\n" % mark if mark else b"$%d\r\n" % len(file)
    full = b"+FULLRESYNC %b %d\r\n\n\n" % (STREAM, offset)
    return [b"+PONG\r\n", b"+OK\r\n", b"+OK\r\n", full + begin + file + mark + stream]


def test_keys_and_stream_come_in_one_piece_with_a_length_or_a_mark() -> None:
    for mark in (b"", b"m" * 40):
        stream = encode("SELECT", 2) + encode("SET", "b", "1") + b"\n" + encode("REPLCONF", "GETACK", "*")
        said = with_keys(ONE_KEY, stream, 100, mark)
        with FalsePrimary(*said) as source, following(source.port) as replica, replica.connect() as ours:
            until(lambda: contents(ours) == {(0, b"a"): (b"string", b"new", -1), (2, b"b"): (b"string", b"1", -1)})
            told = encode("REPLCONF", "ACK", 100 + len(stream))
            until(lambda source=source, told=told: told in source.heard)  # type: ignore[misc]
            assert replication(ours)["slave_repl_offset"] == str(100 + len(stream))


def test_a_link_that_ends_within_a_transaction_goes_on_in_front_of_it() -> None:
    """What came before it in the same breath has run, and runs no second time."""
    before = encode("SELECT", 2) + encode("INCR", "counter")
    stream = before + encode("MULTI") + encode("INCR", "counter")
    said = with_keys(ONE_KEY, stream, 100)
    with FalsePrimary(*said, stays=False) as source, following(source.port) as replica, replica.connect() as ours:
        behind = 100 + len(before)
        until(lambda: encode("PSYNC", STREAM.decode(), behind + 1) in source.heard)
        ours.command("REPLICAOF", "NO", "ONE")
        assert "panicked" not in replica.output()


def test_a_transaction_without_room_runs_as_a_whole_once_there_is_some() -> None:
    with (
        primary("valkey") as source,
        source.connect() as theirs,
        following(source.port) as replica,
        replica.connect() as ours,
    ):
        until_up(ours)
        ours.command("CONFIG", "SET", "maxmemory", "1")
        theirs.send(
            encode("DEL", "other") + encode("MULTI") + encode("INCR", "a") + encode("RPUSH", "b", 1) + encode("EXEC")
        )
        until(lambda: "of the primary failed here" in error(ours))
        ours.command("CONFIG", "SET", "maxmemory", "0")
        until_equal(source, replica)
        assert ours.command("GET", "a") == b"1"
        assert replication(ours)["replica_full_syncs"] == "1"


GARBAGE = {
    "no RESP": ([b"HTTP/1.1 200 OK\r\n\r\n"], "does not speak RESP"),
    "a line without an end": ([b"+" + b"x" * (1 << 20)], "no end"),
    "no PSYNC": ([b"+PONG\r\n", b"+OK\r\n", b"+OK\r\n", b"-ERR unknown command 'PSYNC'\r\n"], "does not know PSYNC"),
    "a wrong identity": ([b"+PONG\r\n", b"+OK\r\n", b"+OK\r\n", b"+FULLRESYNC x y\r\n"], "answers PSYNC with"),
    "no length": ([*with_keys(b"")[:3], b"+FULLRESYNC %b 0\r\n-ERR no\r\n" % STREAM], "in the place of its keys"),
    "an endless length": (
        [*with_keys(b"")[:3], b"+FULLRESYNC %b 0\r\n$18446744073709551616\r\n" % STREAM],
        "in the place",
    ),
    "no file": (with_keys(b"this is no file of keys"), "no RDB file"),
    "a closed connection": ([b"+PONG\r\n"], "the primary has closed it"),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_a_false_primary_that_sends_no_keys_does_no_harm(name: str) -> None:
    said, told = GARBAGE[name]
    with servers.snugly() as replica, replica.connect() as ours:
        ours.command("SET", "own", "kept")
        with FalsePrimary(*said, stays=name == "a line without an end") as source:
            ours.command("REPLICAOF", "127.0.0.1", source.port)
            until(lambda: told in error(ours))
            # It is tried again, and told once.
            until(lambda: source.connections > 2)
            assert ours.command("GET", "own") == b"kept"
            assert ours.command("REPLICAOF", "NO", "ONE") == OK
        assert ours.command("APPEND", "own", "!") == 5
        assert replica.says("REPLICAOF NO ONE")
        assert replica.output().count("there is no link to the primary") == 1
        assert "panicked" not in replica.output()


STREAMS = {
    "no request": (b"*1\r\n$x\r\n", "Protocol error"),
    "a huge length": (b"*2\r\n$3\r\nGET\r\n$99999999999\r\n", "Protocol error"),
    "a huge number": (b"*2147483648\r\n", "Protocol error"),
    "a database that there is not": (encode("SELECT", 99), "SELECT of the primary failed here"),
    "half of a transaction": (encode("EXEC"), "EXEC of the primary failed here"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_cannot_be_followed_ends_with_a_reason_and_keeps_what_was_there(name: str) -> None:
    stream, told = STREAMS[name]
    before = encode("SET", "b", "1")
    said = with_keys(ONE_KEY, before + stream + encode("SET", "behind", "1"))
    with FalsePrimary(*said) as source, following(source.port) as replica, replica.connect() as ours:
        until(lambda: told in error(ours))
        ours.command("REPLICAOF", "NO", "ONE")
        until(lambda: not is_loading(ours))
        assert [ours.command("GET", key) for key in ("a", "b", "behind")] == [b"new", b"1", None]
        assert "panicked" not in replica.output()


def test_a_primary_has_no_power_over_anything_but_keys() -> None:
    commands = [
        *(["CONFIG", "SET", "maxmemory", "1"], ["ACL", "SETUSER", "default", "off"], ["SHUTDOWN"], ["QUIT"]),
        *(["DEBUG", "SLEEP", "1000"], ["CLIENT", "KILL", "TYPE", "normal"], ["MONITOR"], ["REPLICAOF", "NO", "ONE"]),
        *(["BLPOP", "list", "0"], ["WAIT", "1", "0"], ["AUTH", "x"], ["RESET"], ["GET", "a"], ["POST", "/"], ["SAVE"]),
        *(["SET"], ["", ""], ["\x00\xff"], ["x" * 5_000, "y"]),
    ]
    stream = b"".join(encode(*command) for command in commands) + encode("SET", "behind", "1")
    said = with_keys(ONE_KEY, stream)
    with FalsePrimary(*said) as source, following(source.port) as replica, replica.connect() as ours:
        until(lambda: ours.command("GET", "behind") == b"1")
        assert ours.command("CONFIG", "GET", "maxmemory") == [b"maxmemory", b"0"]
        assert replication(ours)["master_link_status"] == "up"
        # BLPOP runs, and waits for nothing.
        assert replication(ours)["replica_skipped_commands"] == str(len(commands) - 1)


def test_nobody_sees_keys_of_which_others_have_not_come() -> None:
    """The transfer stands still in its middle, then breaks off."""
    with servers.snugly() as replica, replica.connect() as ours:
        ours.command("SET", "own", "1")
        half = b"REDIS0010\xfe\x00" + b"".join(b"\x00\x06k%05d\x01v" % number for number in range(20_000))
        begin = [*with_keys(b"")[:3], b"+FULLRESYNC %b 0\r\n$%d\r\n" % (STREAM, len(half) + 9) + half]
        with FalsePrimary(*begin) as source:
            ours.command("REPLICAOF", "127.0.0.1", source.port)
            until(lambda: replication(ours)["master_sync_in_progress"] == "1" and is_loading(ours))
            for command in (["GET", "own"], ["EXISTS", "k00001"], ["DBSIZE"], ["KEYS", "*"], ["SCAN", 0], ["PING"]):
                refusal = ours.command(*command)
                assert refusal == LOADING, command
            assert isinstance(ours.command("ROLE"), list)
            until(lambda: int(replication(ours)["master_sync_read_bytes"]) > 100_000)
        until(lambda: replication(ours)["master_sync_in_progress"] == "0")
        assert ours.command("GET", "own") == LOADING
        with primary("valkey") as true, true.connect() as theirs:
            theirs.command("SET", "whole", "1")
            ours.command("REPLICAOF", "127.0.0.1", true.port)
            until_up(ours)
            assert contents(ours) == {(0, b"whole"): (b"string", b"1", -1)}


def test_memcached_clients_find_nothing_and_may_not_write_while_keys_are_loaded() -> None:
    half = [*with_keys(b"")[:3], b"+FULLRESYNC %b 0\r\n$1000\r\n" % STREAM + ONE_KEY[:-9]]
    with servers.reserved_port() as port:
        options = ("--memcached-port", str(port), "--replica-read-only", "no")
        with (
            FalsePrimary(*half) as source,
            following(source.port, *options) as replica,
            replica.connect() as ours,
            Client(port) as cache,
        ):
            until(lambda: is_loading(ours))
            assert cache.ask(b"get a own\r\n") == b"END\r\n"
            refusal = b"SERVER_ERROR the server is loading the keys of its primary: try again later\r\n"
            assert cache.ask(b"set own 0 0 1\r\nx\r\nmg a v\r\nversion\r\n").startswith(2 * refusal + b"VERSION ")


def test_a_transaction_that_a_link_stopped_in_runs_once_in_the_end() -> None:
    """A part of it has run when its last command turns out to be none for this server."""
    with (
        primary("valkey") as source,
        source.connect() as theirs,
        following(source.port, "--replica-unsupported", "stop", "--max-value-bytes", "1mb") as replica,
        replica.connect() as ours,
    ):
        until_up(ours)
        requests = [["MULTI"], ["INCR", "counter"], ["SET", "big", "x" * (2 << 20)], ["INCR", "counter"], ["EXEC"]]
        for request in requests:
            theirs.command(*request)
        until(lambda: "sent SET, which fails here" in error(ours))
        ours.command("CONFIG", "SET", "replica-unsupported", "skip")
        until_caught_up(theirs, ours)
        assert [ours.command("GET", key) for key in ("counter", "big")] == [b"2", None]
        assert replication(ours)["replica_full_syncs"] == "2"


def is_loading(connection: Connection) -> bool:
    text = connection.command("INFO", "persistence")
    return isinstance(text, bytes) and b"\r\nloading:1\r\n" in text


def test_a_server_that_is_told_to_follow_no_more_while_it_loads_is_empty_and_takes_writes() -> None:
    half = [*with_keys(b"")[:3], b"+FULLRESYNC %b 0\r\n$1000\r\n" % STREAM + ONE_KEY[:-9]]
    with FalsePrimary(*half) as source, following(source.port) as replica, replica.connect() as ours:
        until(lambda: is_loading(ours))
        assert ours.command("REPLICAOF", "NO", "ONE") == OK
        until(lambda: not is_loading(ours))
        assert ours.command("DBSIZE") == 0
        assert ours.command("SET", "own", "1") == OK


def test_a_store_on_disk_that_is_half_loaded_is_not_served_after_a_kill(tmp_path: Path) -> None:
    folder = str(tmp_path / "store")
    half = b"REDIS0010\xfe\x00" + b"".join(b"\x00\x06k%05d\x01v" % number for number in range(20_000))
    begin = [*with_keys(b"")[:3], b"+FULLRESYNC %b 0\r\n$%d\r\n" % (STREAM, len(half) + 9) + half]
    with FalsePrimary(*begin) as source:
        with following(source.port, "--storage", folder, "--durability", "fsync") as replica, replica.connect() as ours:
            until(lambda: int(replication(ours).get("master_sync_read_bytes", 0)) > 100_000)
            replica.process.kill()
            replica.process.wait()
        refused = pytest.raises(RuntimeError, match="only a part of the keys of 127")
        with refused, servers.snugly("--storage", folder):
            pass
        with following(source.port, "--storage", folder) as replica, replica.connect() as ours:
            assert ours.command("GET", "k00001") == LOADING
    with primary("valkey") as true, true.connect() as theirs:
        theirs.command("SET", "whole", "1")
        with following(true.port, "--storage", folder) as replica, replica.connect() as ours:
            until_up(ours)
            assert contents(ours) == {(0, b"whole"): (b"string", b"1", -1)}
    with servers.snugly("--storage", folder) as alone, alone.connect() as ours:
        assert ours.command("GET", "whole") == b"1"


def test_a_primary_that_says_nothing_any_more_is_left_and_asked_again() -> None:
    with (
        FalsePrimary(*with_keys(ONE_KEY)) as source,
        following(source.port, "--repl-timeout", "1") as replica,
        replica.connect() as ours,
    ):
        until(lambda: "silent" in error(ours))
        until(lambda: source.connections > 1)
        # It asks for what is behind the keys, not for all of them.
        until(lambda: encode("PSYNC", STREAM.decode(), 1) in source.heard)
        until(lambda: ours.command("GET", "a") == b"new")


def test_a_primary_that_is_loading_itself_is_waited_for() -> None:
    said = [b"+PONG\r\n", b"+OK\r\n", b"+OK\r\n", b"-LOADING Valkey is loading the dataset in memory\r\n"]
    with FalsePrimary(*said) as source, following(source.port) as replica, replica.connect() as ours:
        until(lambda: "not to be followed yet: LOADING" in error(ours))
        until(lambda: source.connections > 2)
        assert ours.command("GET", "a") is None


def test_a_snugly_server_says_that_it_cannot_be_followed() -> None:
    with servers.snugly() as source, following(source.port) as replica, replica.connect() as ours:
        until(lambda: "a snugly server cannot be yet" in error(ours))


@pytest.mark.slow
def test_a_node_of_a_cluster_is_followed_with_the_keys_of_its_slots() -> None:
    with servers.valkey_cluster() as nodes:
        source = nodes[0]
        with source.connect() as theirs, following(source.port) as replica, replica.connect() as ours:
            until_up(ours)
            replies = [theirs.command("SET", f"key:{number}", number) for number in range(100)]
            until_caught_up(theirs, ours)
            assert {type(reply) for reply in replies} == {Simple, Failure}
            assert ours.command("DBSIZE") == replies.count(OK)


def test_a_write_without_room_holds_the_link_until_there_is_some_and_nothing_is_lost() -> None:
    with (
        primary("valkey") as source,
        source.connect() as theirs,
        following(source.port) as replica,
        replica.connect() as ours,
    ):
        until_up(ours)
        theirs.command("SET", "small", "1")
        until_caught_up(theirs, ours)
        ours.command("CONFIG", "SET", "maxmemory", "1")
        theirs.command("APPEND", "small", "2")
        theirs.command("APPEND", "small", "3")
        until(lambda: "APPEND of the primary failed here: OOM" in error(ours))
        # It is tried again and again, and told once.
        until(lambda: int(replication(ours)["replica_resumed_links"]) > 2)
        assert replica.says("APPEND of the primary failed here")
        assert replica.output().count("APPEND of the primary failed here") == 1
        ours.command("CONFIG", "SET", "maxmemory", "0")
        until_caught_up(theirs, ours)
        assert ours.command("GET", "small") == b"123"
        assert replication(ours)["replica_full_syncs"] == "1"


def test_more_databases_than_there_are_here_are_refused_with_what_to_do() -> None:
    with primary("valkey", "--databases", "20") as source, source.connect() as theirs:
        theirs.command("SELECT", 17)
        theirs.command("SET", "far", "away")
        with following(source.port) as replica, replica.connect() as ours:
            until(lambda: "start with --databases 18" in error(ours))
            assert ours.command("GET", "far") == LOADING


def test_the_primary_is_a_setting_that_is_kept_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "snugly.toml"
    with primary("valkey") as source, source.connect() as theirs:
        theirs.command("SET", "key", "value")
        file.write_text(f'replica-of = "127.0.0.1:{source.port}"\n')
        with servers.snugly("--config", str(file)) as replica, replica.connect() as ours:
            until_up(ours)
            ours.command("REPLICAOF", "NO", "ONE")
            assert ours.command("CONFIG", "REWRITE") == OK
            assert str(source.port) not in file.read_text()
            file.write_text(f'replica-of = "127.0.0.1:{source.port}"\nprimary-auth = ""\n')
            assert ours.command("CONFIG", "RELOAD") == OK
            until_up(ours)
            ours.command("CONFIG", "SET", "replicaof", "")
            assert ours.command("ROLE") == [b"master", 0, []]
