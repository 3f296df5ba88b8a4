"""Events of keys: the messages of snugly and of valkey-server for the same commands, in their order."""

from __future__ import annotations

import contextlib
import random
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import memcached
import servers
from resp import Argument, Connection, Failure, Reply, Simple, encode
from servers import Server
from tested import Start
from threads import in_threads
from waiting import until

# All classes, also those that A does not have.
EVERYTHING = "KEAmn"

# Commands of one client, in a server without keys. `SLEEP` waits for milliseconds, and `RESTORE` gets a payload behind
# the time: of a string, or of a list if its key is `list`.
TABLE = """
SET a 1
SET a 1 | SET a 2
SET a 1 EX 100 | SET a 2 KEEPTTL | SET a 3
SET a 1 PXAT 1
SET a 1 | SET a 2 PXAT 1
SET a 1 NX | SET a 2 NX | SET b 1 XX
SET a 1 IFEQ 1 | SET a 1 | SET a 2 IFEQ 1
SET a 1 GET | SET a 2 GET EX 100
SET b 1 XX GET
LPUSH a x | SET a 1 GET | SET a 1
SETNX a 1 | SETNX a 1
SETEX a 10 1 | PSETEX a 10000 1 | SETEX a 0 1
GETSET a 1 | GETSET a 2
MSET a 1 b 2 a 3
MSETNX a 1 b 2 | MSETNX c 1 a 2
MSETEX 2 a 1 b 2 EX 100 | MSETEX 1 a 2 KEEPTTL
SET a 1 | GETEX a | GETEX a EX 100 | GETEX a PERSIST | GETEX a PERSIST
SET a 1 | GETEX a PXAT 1
GETEX a | GETEX a PERSIST
SET a 1 | GETDEL a | GETDEL a
SET a 1 | DELIFEQ a 2 | DELIFEQ a 1 | DELIFEQ a 1
APPEND a x | APPEND a ''
INCR a | DECR a | INCRBY a 5 | DECRBY a 2 | INCRBYFLOAT a 1.5 | INCR a
SETRANGE a 2 x | SETRANGE a 0 '' | SETRANGE b 0 ''
SETBIT a 1 1 | SETBIT a 1 1 | SETBIT a 1 0 | SETBIT a 100 0
BITFIELD a SET u8 0 5 GET u8 0 INCRBY u8 0 1
BITFIELD a GET u8 0 | BITFIELD_RO a GET u8 0
BITFIELD a INCRBY u2 0 1 OVERFLOW FAIL INCRBY u2 0 9
SET a x | BITOP NOT b a | BITOP AND b nope | BITOP AND b nope
GET a | GETRANGE a 0 1 | MGET a b | STRLEN a | GETBIT a 1 | BITCOUNT a | BITPOS a 1 | LCS a b
EXISTS a b | TTL a | PTTL a | EXPIRETIME a | PEXPIRETIME a | TYPE a | TOUCH a b | DUMP a | OBJECT ENCODING a
LLEN a | LRANGE a 0 1 | LINDEX a 0 | LPOS a x | SORT a | SORT_RO a
SET a 1 | SET b 1 | DEL a b c a
SET a 1 | UNLINK a | UNLINK a
SET a 1 | EXPIRE a 100 | PEXPIRE a 1000 | EXPIREAT a 4102444800 | PERSIST a | PERSIST a | EXPIRE a -1
SET a 1 | PEXPIREAT a 4102444800000 | PEXPIREAT a 1
SET a 1 | EXPIRE a 100 XX | EXPIRE a 100 NX | EXPIRE a 50 GT | EXPIRE a 50 LT
EXPIRE a 100 | PERSIST a
SET a 1 | RENAME a b
SET a 1 | SET b 2 | RENAME a b
SET a 1 EX 100 | RENAME a b | RENAME b b
RENAME a b
SET a 1 | RENAMENX a b | SET a 1 | RENAMENX a b
LPUSH a x | SET b 1 | RENAME a b
SET a 1 | COPY a b | COPY a b | COPY a b REPLACE | COPY a c DB 1
COPY a b
SET a 1 EX 100 | COPY a b
SET a 1 | MOVE a 1 | SET a 1 | MOVE a 1 | MOVE b 1
SELECT 3 | SET a 1 | MOVE a 0
LPUSH a x | RPUSH a y z | LPUSHX a w | RPUSHX a v | LPUSHX b x
LPUSH a x y z | LPOP a | LPOP a 2 | LPOP a | RPOP a 2
LPUSH a x y z | RPOP a 0 | RPOP a | LMPOP 2 b a LEFT COUNT 5
LPUSH a x y z | LMPOP 1 a RIGHT
LPUSH a x y | LSET a 0 z | LSET a 0 z | LSET a 9 z | LINSERT a BEFORE z w | LINSERT a AFTER nope w | LINSERT b AFTER a a
LPUSH a x y x | LREM a 0 nope | LREM a 1 x | LREM a 0 x | LREM a 0 y
LPUSH a x y z | LTRIM a 0 -1 | LTRIM a 0 0 | LTRIM a 5 6 | LTRIM a 0 1
LPUSH a x y | LMOVE a b LEFT RIGHT | LMOVE a b RIGHT LEFT | LMOVE a b LEFT LEFT
LPUSH a x y | LMOVE a a LEFT RIGHT | RPOPLPUSH a a | RPOPLPUSH a b | RPOPLPUSH c b
LPUSH a x | LMOVE a a LEFT RIGHT | LMOVE a a LEFT LEFT | LMOVE a a RIGHT RIGHT
LPUSH a 3 1 2 | SORT a STORE b | SORT a STORE b | SORT c STORE b | SORT c STORE b
LPUSH a 3 1 | SORT a STORE a
LPUSH a 3 1 | SORT a BY nosort GET x_*
LPUSH a x | BLPOP a 1
LPUSH a x y | BRPOP b a 1
LPUSH a x y | BLMOVE a b LEFT RIGHT 1 | BRPOPLPUSH a b 1
LPUSH a x y | BLMPOP 1 1 a LEFT
BLPOP a 0.01
RESTORE a 0 | RESTORE a 0 | RESTORE a 100000 | RESTORE list 0
SET a 1 | RESTORE a 0 REPLACE | RESTORE list 0 REPLACE
RESTORE a 1 ABSTTL
SET a 1 | RESTORE a 1 REPLACE ABSTTL
SET a 1 | FLUSHDB | SET a 1 | FLUSHALL
SET a 1 | SWAPDB 0 1 | SWAPDB 0 1
MULTI | SET a 1 | LPUSH b x | LPOP b | EXEC
SET a 1 | WATCH a | SET a 2 | MULTI | SET a 3 | EXEC
MULTI | SET a 1 | INCR b | LPOP a | DISCARD
MULTI | BLPOP a 0 | LPUSH a x | BLPOP a 0 | EXEC
SET a 1 PX 1 | SLEEP 10 | GET a
SET a 1 PX 1 | SLEEP 10 | SET a 2
SET a 1 PX 1 | SLEEP 10 | DEL a
SET a 1 PX 1 | SLEEP 10 | LPUSH a x
SET a 1 PX 1 | SLEEP 10 | RENAME a b
SET a 1 PX 1 | SET b 2 | SLEEP 10 | RENAMENX b a
SET a 1 | LPUSH a x | LPOP a | LMOVE a b LEFT LEFT
LPUSH a x | INCR a | GET a | APPEND a x | SETBIT a 1 1 | SETRANGE a 1 x
SET a x | INCR a
""".strip().splitlines()


@dataclass
class Told:
    """A listener to all events of a server."""

    connection: Connection

    def all(self) -> list[tuple[bytes, bytes]]:
        """The channels and texts of the messages so far."""
        self.connection.send(encode("PING", "end"))
        told = []
        while (message := self.connection.read()) != [b"pong", b"end"]:
            told.append(channel_and_text(message))
        return told

    def next(self) -> tuple[bytes, bytes]:
        return channel_and_text(self.connection.read())


def channel_and_text(message: Reply) -> tuple[bytes, bytes]:
    assert isinstance(message, list), message
    _, _, channel, text = message
    assert isinstance(channel, bytes)
    assert isinstance(text, bytes)
    return channel, text


@contextlib.contextmanager
def listening(server: Server, classes: str = EVERYTHING) -> Iterator[tuple[Connection, Told]]:
    """A client of an empty server, and a listener to what its commands do."""
    with server.connect() as client, server.connect() as listener:
        client.command("FLUSHALL")
        assert client.command("CONFIG", "SET", "notify-keyspace-events", classes) == Simple(b"OK")
        try:
            listener.command("PSUBSCRIBE", "__key*__:*")
            yield client, Told(listener)
        finally:
            client.command("CONFIG", "SET", "notify-keyspace-events", "")
            client.command("FLUSHALL")


def run(client: Connection, line: str, payloads: dict[str, Argument]) -> list[Reply]:
    replies = []
    for text in line.split(" | "):
        words: list[Argument] = list(shlex.split(text))
        if words[0] == "SLEEP":
            time.sleep(int(words[1]) / 1000)
        else:
            if words[0] == "RESTORE":
                words.insert(3, payloads["list" if words[1] == "list" else "string"])
            replies.append(client.command(*words))
    return replies


@pytest.fixture(scope="session")
def payloads(peer: Server) -> dict[str, Argument]:
    """What DUMP makes of a string and of a list."""
    with peer.connect() as client:
        client.command("SET", "string", "value")
        client.command("RPUSH", "list", "a", "b")
        payloads: dict[str, Argument] = {}
        for name in ("string", "list"):
            payload = client.command("DUMP", name)
            assert isinstance(payload, bytes)
            payloads[name] = payload
        client.command("FLUSHALL")
        return payloads


def test_commands_are_told_as_valkey_tells_them(server: Server, peer: Server, payloads: dict[str, Argument]) -> None:
    outcomes = []
    for each in (server, peer):
        with listening(each) as (client, told):
            outcome = []
            for line in TABLE:
                replies = run(client, line, payloads)
                outcome.append((line, replies, told.all()))
                client.command("SELECT", 0)
                client.command("FLUSHALL")
            outcomes.append(outcome)
    for ours, theirs in zip(*outcomes, strict=True):
        assert ours == theirs
    assert sum(len(messages) for _, _, messages in outcomes[0]) > 400


@pytest.mark.parametrize("classes", ["K", "Kg", "E$", "Kl", "KEx", "Em", "KA", "$l", "KEn", "mn"])
def test_only_chosen_classes_are_told_on_chosen_channels(server: Server, peer: Server, classes: str) -> None:
    commands = "SET a 1 EX 100 | GET b | LPUSH c x | LPOP c | DEL a | SET a 1 PX 1 | SLEEP 10 | GET a"
    told_by = []
    for each in (server, peer):
        with listening(each, classes) as (client, told):
            run(client, commands, {})
            told_by.append(told.all())
    assert told_by[0] == told_by[1]


def test_the_setting_is_read_and_written_as_valkeys(server: Server, peer: Server) -> None:
    values = ["KEA", "A", "Kg$lshzxetmdn", "mn", "g$lsnmKE", "xetdnK", "tdmn", "Q", "KE A", "KEAmn", ""]
    outcomes = []
    for each in (server, peer):
        with each.connect() as client:
            setting = "notify-keyspace-events"
            replies = [(client.command("CONFIG", "SET", setting, value)) for value in values]
            shown = []
            for value in values:
                client.command("CONFIG", "SET", setting, value)
                shown.append(client.command("CONFIG", "GET", setting))
            outcomes.append((replies, shown))
    assert outcomes[0] == outcomes[1]
    assert any(isinstance(reply, Failure) for reply in outcomes[0][0])


@pytest.mark.parametrize(
    ("waiting", "push"),
    [
        ("BLPOP nope a 0", "RPUSH a x y"),
        ("BRPOP a 0", "RPUSH a x"),
        ("BLMOVE a b LEFT RIGHT 0", "RPUSH a x"),
        ("BRPOPLPUSH a a 0", "LPUSH a x"),
        ("BLMPOP 0 1 a LEFT COUNT 2", "RPUSH a x y z"),
    ],
)
def test_a_client_that_waited_is_told_behind_who_served_it(
    server: Server, peer: Server, waiting: str, push: str
) -> None:
    told_by = []
    for each in (server, peer):
        with listening(each) as (client, told), each.connect() as waiter:
            waiter.send(encode(*shlex.split(waiting)))
            until(lambda client=client: b"blocked_clients:1" in client.command("INFO", "clients"))  # type: ignore[misc]
            client.command(*shlex.split(push))
            waiter.read()
            told_by.append(told.all())
    assert told_by[0] == told_by[1]
    assert len(told_by[0]) > 4


def test_keys_that_nobody_reads_are_told_when_they_expire(server: Server, peer: Server) -> None:
    for each in (server, peer):
        with listening(each, "Ex") as (client, told):
            for number in range(20):
                client.command("SET", f"key:{number}", "value", "PX", 1 + number)
            texts = {told.next() for _ in range(20)}
            assert texts == {(b"__keyevent@0__:expired", b"key:%d" % number) for number in range(20)}
            assert told.all() == []


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random", "volatile-ttl"])
def test_keys_that_are_evicted_are_told_once(start: Start, policy: str) -> None:
    server = start(memory="8mb", policy=policy)
    with listening(server, "Ee") as (client, told):
        for number in range(4000):
            client.command("SET", f"key:{number}", random.Random(number).randbytes(4000), "EX", 1000)
        evicted = [text for channel, text in told.all() if channel == b"__keyevent@0__:evicted"]
        count = client.command("DBSIZE")
        assert isinstance(count, int)
        assert len(set(evicted)) == len(evicted) == 4000 - count
        assert evicted


def test_the_events_of_a_key_come_in_the_order_of_its_changes(server: Server) -> None:
    """Four threads change one list, whose length, as it follows from the events, never falls below nothing."""
    rounds = 300

    def change(number: int) -> None:
        with server.connect() as client:
            for _ in range(rounds):
                client.command("RPUSH", "list", number)
                client.command("LPOP", "list")

    with listening(server, "Kgl") as (_, told):
        in_threads(*(lambda number=number: change(number) for number in range(4)))
        length, events = 0, told.all()
        for _, event in events:
            if event == b"del":
                assert length == 0
            else:
                length += 1 if event == b"rpush" else -1
                assert length >= 0
        assert len(events) >= 4 * 2 * rounds


@pytest.mark.snugly_only
def test_keys_on_disk_are_told_as_those_in_memory(server_on_disk: Server, peer: Server) -> None:
    """But whether a key is new is known in memory only."""
    lines = [line for line in TABLE if "RESTORE" not in line and "SLEEP" not in line]
    outcomes = []
    for each in (server_on_disk, peer):
        with listening(each, "KEAm") as (client, told):
            outcome = []
            for line in lines:
                run(client, line, {})
                outcome.append((line, told.all()))
                client.command("SELECT", 0)
                client.command("FLUSHALL")
            outcomes.append(outcome)
    for ours, theirs in zip(*outcomes, strict=True):
        assert ours == theirs


@pytest.mark.snugly_only
def test_keys_that_expire_on_disk_are_told_once(server_on_disk: Server) -> None:
    with listening(server_on_disk, "Ex") as (client, told):
        for number in range(20):
            client.command("SET", f"key:{number}", "value", "PX", 1 + number)
        texts = {told.next() for _ in range(20)}
        assert texts == {(b"__keyevent@0__:expired", b"key:%d" % number) for number in range(20)}
        time.sleep(0.3)
        assert told.all() == []


@pytest.mark.snugly_only
def test_changes_by_memcached_clients_are_told_as_sets_and_dels() -> None:
    with servers.reserved_port() as port:
        options = ("--memcached-port", str(port), "--notify-keyspace-events", "EA")
        with servers.snugly(*options) as server, server.connect() as listener:
            listener.command("PSUBSCRIBE", "__key*__:*")
            with memcached.Client(port) as client:
                client.ask(b"set a 0 0 1\r\n1\r\nincr a 2\r\nappend a 0 0 1\r\nx\r\ndelete a\r\nget a\r\n")
            events = [(channel.rpartition(b":")[2], key) for channel, key in Told(listener).all()]
            assert events == [(b"set", b"a")] * 3 + [(b"del", b"a")]


def test_a_listener_that_does_not_read_is_disconnected_and_holds_up_nobody(start: Start) -> None:
    server = start()
    with server.connect() as client, server.connect() as listener:
        client.command("CONFIG", "SET", "client-output-buffer-limit", "pubsub 100000 0 0")
        client.command("CONFIG", "SET", "notify-keyspace-events", "KA")
        listener.command("PSUBSCRIBE", "*")
        # More than the sockets' own buffers take.
        for number in range(2000):
            assert client.command("SET", b"%d" % number * 3000, "value") == Simple(b"OK")
        assert len(listener.read_to_end()) < 2000 * 3000
