"""Valkey with the module and several clients: transactions, WATCH, databases, pauses, client-side caching and events of
keys, beside Valkey without it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest

import keyspace_events_test
import tracking_test
import valkey_module
from comparison import seeds
from keyspace_events_test import EVERYTHING, listening
from plays import assert_alike, each, each_protocol, emptied, played, request, rows
from resp import Argument, Connection, Reply, encode
from servers import Server
from valkey_module import TEXT, VALUES, text
from waiting import until

# What is stored when a request is read or queued is not what is there when it runs.
PLAYS = rows("""
a value that is written behind a queued read:
  SET k small | MULTI | GET k | STRLEN k | APPEND k x | GET k | b: SET k TEXT | EXEC | GET k
a value that is gone behind a queued read:
  SET k TEXT | MULTI | GET k | APPEND k x | GETRANGE k 0 3 | b: SET k small | EXEC | GET k
a value of another type behind a queued read:
  SET k TEXT | MULTI | GET k | APPEND k x | b: DEL k | b: RPUSH k x | EXEC | LRANGE k 0 -1
a write and reads in one transaction:
  MULTI | SET k TEXT | GETRANGE k 0 3 | STRLEN k | INCR k | SET k 5 | INCR k | GET k | SET k TEXT GET | EXEC
a discarded transaction:
  SET k OTHER | MULTI | SET k TEXT | APPEND k x | DISCARD | GET k
wrong requests in a transaction:
  SET k OTHER | MULTI | SET k TEXT | GET | APPEND k | EXEC | GET k
WATCH and reads:
  SET k TEXT | WATCH k | b: GET k | b: GETRANGE k 0 1 | b: STRLEN k | b: BITCOUNT k | b: MGET k | b: GETEX k
  b: DUMP k | b: LCS k k LEN | b: GETBIT k 1 | b: BITFIELD_RO k GET u8 0 | b: BITFIELD k GET u8 0
  b: SORT_RO k BY k* | MULTI | GET k | EXEC
WATCH and a write of the same:
  SET k TEXT | WATCH k | b: SET k TEXT | MULTI | GET k | EXEC | GET k
WATCH and an append:
  SET k TEXT | WATCH k | b: APPEND k x | MULTI | GET k | EXEC
WATCH and an append of nothing:
  SET k TEXT | WATCH k | b: APPEND k '' | MULTI | GET k | EXEC
WATCH and writes that fail:
  SET k TEXT | WATCH k | b: INCRBYFLOAT k 1 | b: SET k OTHER NX | b: SET k OTHER IFEQ x | b: DELIFEQ k x
  b: SETRANGE k 0 '' | b: SETBIT k x 1 | b: GETEX k EX 0 | MULTI | GET k | EXEC
databases:
  SET k TEXT | SELECT 1 | SET k small | GET k | SELECT 0 | GET k | MULTI | SELECT 1 | GET k | APPEND k x
  SELECT 0 | GET k | STRLEN k | APPEND k y | EXEC | GET k | SELECT 1 | GET k
a database that is not there:
  SET k TEXT | MULTI | SELECT 1 | SET k small | SELECT 99 | GET k | EXEC | GET k | SELECT 0 | GET k
RESET:
  SET k small | SELECT 1 | SET k TEXT | RESET | GET k | STRLEN k | SELECT 1 | GET k
RESET in a transaction:
  SET k small | SELECT 1 | SET k TEXT | MULTI | GET k | RESET | GET k
HELLO:
  SELECT 1 | SET k TEXT | HELLO 9 | GET k | SELECT 0 | GET k
SWAPDB:
  SET k small | SELECT 1 | SET k TEXT | SWAPDB 0 1 | GET k | STRLEN k | SELECT 0 | GET k | STRLEN k | APPEND k x
  GET k
SWAPDB in a transaction:
  SET k small | SELECT 1 | SET k TEXT | MULTI | GET k | SWAPDB 0 1 | GET k | APPEND k x | SWAPDB 0 1 | GET k
  EXEC
MOVE and COPY:
  SET k TEXT | COPY k k DB 2 | MOVE k 1 | GET k | SELECT 1 | GET k | SELECT 2 | GET k | MOVE k 1 | GETRANGE k 0 3
FLUSHDB:
  SET k TEXT | MULTI | FLUSHDB | GET k | SET k small | GET k | EXEC | SET k TEXT | FLUSHALL | GET k
CLIENT NO-TOUCH:
  CLIENT NO-TOUCH on | SET k TEXT | GET k | STRLEN k
CLIENT REPLY:
  SET k TEXT | CLIENT REPLY ON | GET k
OBJECT ENCODING:
  SET k 12 | GET k | STRLEN k | GETRANGE k 0 0 | OBJECT ENCODING k | SET k abc | GETRANGE k 0 1 | GETBIT k 1
  BITCOUNT k | LCS k k | OBJECT ENCODING k | APPEND k x | OBJECT ENCODING k | SET k TEXT | OBJECT ENCODING k
  SET k 3.5 | INCRBYFLOAT k 1 | OBJECT ENCODING k
""")
# Changes and reads of compressed values, each with what it tells.
EVENTS = """
SET k TEXT | SET k OTHER | SET k OTHER KEEPTTL | SET k small GET | SET k TEXT GET | SET k x NX | SET k TEXT XX EX 100
SET k TEXT | SET k OTHER IFEQ TEXT | SET k OTHER IFEQ TEXT | DELIFEQ k TEXT | DELIFEQ k OTHER
SETNX k TEXT | SETNX k TEXT | SETEX k 10 TEXT | PSETEX k 10000 TEXT | GETSET k OTHER | GETSET new TEXT
MSET a TEXT b OTHER a TEXT | MSETNX c TEXT d TEXT | MSETNX c TEXT e TEXT | MSETEX 2 a TEXT b OTHER EX 100
SET k TEXT | GET k | MGET k none | GETEX k | GETEX none | GETRANGE k 0 1 | GETRANGE none 0 1 | STRLEN k | STRLEN none
GET none | MGET none nope | SUBSTR none 0 1 | GETDEL none
GETSET none TEXT | GETBIT nope 1 | BITCOUNT nope | BITPOS nope 1
BITFIELD none GET u8 0 | BITFIELD_RO none GET u8 0 | LCS none nope
DUMP none | SORT none BY w* | APPEND none '' | GET none
SET k TEXT | GETEX k EX 100 | GETEX k PERSIST | GETEX k PERSIST | GETEX k PXAT 1 | GET k
SET k TEXT | GETDEL k | GETDEL k
SET k TEXT | APPEND k x | APPEND k '' | APPEND new TEXT | APPEND new ''
SET k TEXT | SETRANGE k 2 x | SETRANGE k 0 '' | SETRANGE new 0 '' | SETRANGE new 5 TEXT
SET k TEXT | SETBIT k 1 1 | SETBIT k 1 1 | SETBIT k 1 0 | SETBIT k 90000 0 | SETBIT k x 0
SET k TEXT | BITFIELD k SET u8 0 5 GET u8 0 INCRBY u8 0 1 | BITFIELD k GET u8 0 | BITFIELD k OVERFLOW FAIL INCRBY u2 0 9
SET k TEXT | BITOP NOT d k | BITOP AND d none | BITOP AND d none | BITOP OR k k d
SET k NUMBER | INCRBYFLOAT k 1 | SET k TEXT | INCRBYFLOAT k 1 | INCR k
RPUSH l 1 2 | MSET w1 TEXT w2 OTHER | SORT l BY nosort GET w* | SORT l BY w* ALPHA STORE d | SORT l GET none*
SET k TEXT | RENAME k l | COPY l m | MOVE m 1 | DEL l | SET k TEXT | EXPIRE k 100 | PERSIST k | EXPIRE k -1
SET k TEXT PX 1 | SLEEP 10 | GET k
SET k TEXT PX 1 | SLEEP 10 | APPEND k x | SET k TEXT PX 1 | SLEEP 10 | GETRANGE k 0 1
SET k TEXT PX 1 | SLEEP 10 | SET k OTHER GET
SET k TEXT PX 1 | SLEEP 10 | STRLEN k | SET k TEXT PX 1 | SLEEP 10 | GETDEL k
MULTI | SET k TEXT | GETRANGE k 0 1 | APPEND k x | GET none | EXEC
RPUSH k x | GET k | APPEND k x | SET k TEXT GET | GETDEL k | SET k TEXT
""".strip().splitlines()


# What meets a compressed value whose time has come, and that is still there.
LATE = """
GET k | MGET k | GETEX k | GETEX k EX 100 | GETEX k PERSIST | GETDEL k | GETSET k x | STRLEN k | GETRANGE k 0 3 | DUMP k
SET k x GET | SET k TEXT GET | SET k x IFEQ TEXT | SET k x NX GET | SET k x XX GET | SET k x KEEPTTL GET
DELIFEQ k TEXT
APPEND k x | APPEND k TEXT | SETRANGE k 2 x | SETRANGE k 0 '' | SETBIT k 1 1 | GETBIT k 1 | BITCOUNT k | BITPOS k 1
BITFIELD k GET u8 0 | BITFIELD k SET u8 0 1 | BITFIELD_RO k GET u8 0 | BITOP NOT d k | BITOP OR k k d | LCS k k
INCRBYFLOAT k 1 | INCR k | SORT l BY k* | SORT l GET k* STORE e | SETNX k TEXT | MSETNX k TEXT | COPY k z | RENAME k z
EVAL "return redis.call('GET', 'k')" 0 | EVAL "return redis.call('APPEND', 'k', 'x')" 0
"""


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Server, Server]]:
    """Valkey with the module and without it."""
    with valkey_module.pair() as servers:
        yield servers


@each(PLAYS)
@each_protocol
def test_clients_are_answered_as_in_valkey(pair: tuple[Server, Server], protocol: int, row: list[str]) -> None:
    assert_alike(*pair, protocol, row, VALUES)


@each_protocol
def test_a_client_that_listens_is_answered_as_in_valkey_but_for_a_name(
    pair: tuple[Server, Server], protocol: int
) -> None:
    """In RESP2 it is refused, and the server names the command of the module."""
    lines = ["SET k TEXT", "SUBSCRIBE channel", "GET k", "APPEND k x", "PING"]
    ours, theirs = (played(server, protocol, lines, VALUES) for server in pair)
    assert [reply.replace(b"'snugly.", b"'") for reply in ours] == theirs


READS = ["GET k", "STRLEN k", "GETRANGE k 0 3", "MGET k none", "GETBIT k 3", "BITCOUNT k", "LCS k k LEN", "DUMP k"]
CHANGES = ["SET k TEXT", "SET k small", "DEL k", "APPEND k x", "SWAPDB 0 1"]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("before", ["SET k TEXT", pytest.param("SET k 12", marks=pytest.mark.slow)])
def test_requests_that_wait_for_the_end_of_a_pause_see_what_is_there_then(
    pair: tuple[Server, Server], before: str, change: str
) -> None:
    """A request is read when it comes, and what is at its key may have changed when it runs."""
    ours, theirs = pair
    allowed = []
    for changes in ([], [change]):
        set_up(theirs, before)
        with theirs.connect() as client:
            for line in changes:
                client.command(*words(line))
            allowed.append([client.command(*words(line)) for line in READS])
    set_up(ours, before)
    with ours.connect() as writer, ours.connect() as admin:
        readers = [ours.connect() for _ in READS]
        for client in (writer, *readers):
            client.command("PING")
        admin.command("CLIENT", "PAUSE", 100, "ALL")
        writer.send(encode(*words(change)))
        for reader, line in zip(readers, READS, strict=True):
            reader.send(encode(*words(line)))
        for number, reader in enumerate(readers):
            assert reader.read() in [replies[number] for replies in allowed], READS[number]
            reader.close()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("before", ["SET k TEXT", pytest.param("SET k 12", marks=pytest.mark.slow)])
def test_writes_that_wait_for_the_end_of_a_pause_run_in_their_order(
    pair: tuple[Server, Server], before: str, change: str
) -> None:
    behind = ["APPEND k y", "SETRANGE k 0 zz", "BITFIELD k SET u8 0 5", "SET k OTHER GET", "GETSET k TEXT", "GETDEL k"]
    replies = []
    for server in pair:
        set_up(server, before)
        clients = [server.connect() for _ in range(len(behind) + 1)]
        with server.connect() as admin:
            admin.command("CLIENT", "PAUSE", 60_000, "WRITE")
            for client, line in zip(clients, [change, *behind], strict=True):
                identity = client.command("CLIENT", "ID")
                assert isinstance(identity, int)
                client.send(encode(*words(line)))
                until(lambda identity=identity: waits(admin, identity))  # type: ignore[misc]
            reads = [admin.command(*words(line)) for line in READS]
            admin.command("CLIENT", "UNPAUSE")
            replies.append([*reads, *(client.read() for client in clients)])
        for client in clients:
            client.close()
    assert replies[0] == replies[1]


def set_up(server: Server, line: str) -> None:
    """A value at k, and another one in the next database."""
    emptied(server)
    with server.connect() as client:
        client.command(*words(line))
        client.command("SELECT", 1)
        client.command(*words("SET k OTHER"))


def waits(admin: Connection, identity: int) -> bool:
    told = admin.command("CLIENT", "LIST", "ID", identity)
    assert isinstance(told, bytes)
    return b" flags=b " in told


def words(line: str) -> list[Argument]:
    return request(line, VALUES)[1]


# Client-side caching.


def compressible_request(rng: random.Random, usual: Callable[[random.Random], list[str]]) -> list[str]:
    """One of the usual requests, with values that are compressed; or one about a part of a value."""
    if rng.random() < 0.3:
        key, other = rng.choice(tracking_test.KEYS), rng.choice(tracking_test.KEYS)
        parts = [
            *[f"GETRANGE {key} 0 9", f"BITCOUNT {key}", f"LCS {key} {other} LEN", f"SETRANGE {key} 1 x", f"DUMP {key}"],
            *[f"BITOP NOT {key} {other}", f"SETBIT {key} 1 1", f"BITFIELD_RO {key} GET u8 0", f"GETSET {key} x"],
            *[f"SET {key} x IFEQ y", f"INCRBYFLOAT {key} 1", f"DELIFEQ {key} x", f"SORT {key} BY w* GET {other}"],
        ]
        return rng.choice(parts).split()
    name, *rest = usual(rng)
    texts = {"1": TEXT.decode(), "2": text(500, 2).decode()}
    return [name, *(rest if name == "SELECT" else [texts.get(word, word) for word in rest])]


@pytest.mark.parametrize("seed", seeds(7_000, part=2))
@pytest.mark.parametrize("redirect", ["itself", "resp3", "resp2"])
def test_caching_clients_are_told_what_valkey_tells_them(
    pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch, redirect: str, seed: int
) -> None:
    # A client that wants all changes but its own hears of those that the module makes for it.
    modes = [mode for mode in tracking_test.MODES if not {"BCAST", "NOLOOP"} <= set(mode)]
    monkeypatch.setattr(tracking_test, "MODES", modes)
    monkeypatch.setattr(
        tracking_test, "random_request", partial(compressible_request, usual=tracking_test.random_request)
    )
    streams = [list(tracking_test.play(server, redirect, random.Random(seed))) for server in pair]
    for ours, theirs in zip(*streams, strict=True):
        assert ours == theirs


# Events of keys.


def messages(server: Server, line: str) -> tuple[list[Reply], object]:
    """The replies to the requests of a line, and the messages about their keys."""
    with listening(server, EVERYTHING) as (client, told):
        replies: list[Reply] = []
        for part in line.split(" | "):
            if part.startswith("SLEEP "):
                time.sleep(int(part.removeprefix("SLEEP ")) / 1000)
            else:
                replies.append(client.command(*words(part)))
        return replies, told.all()


@pytest.mark.parametrize("line", EVENTS, ids=range(len(EVENTS)))
def test_events_are_those_of_valkey(pair: tuple[Server, Server], line: str) -> None:
    ours, theirs = (messages(server, line) for server in pair)
    assert ours == theirs


@pytest.mark.parametrize("line", LATE.strip().replace("\n", " | ").split(" | "))
def test_values_whose_time_has_come_are_gone_as_in_valkey(pair: tuple[Server, Server], line: str) -> None:
    replies = []
    for server in pair:
        with listening(server, EVERYTHING) as (client, told):
            client.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            for before in ("SET k TEXT PX 1", "SET k1 OTHER PX 1", "RPUSH l 1"):
                client.command(*words(before))
            time.sleep(0.005)
            reply = client.command(*words(line))
            after = [client.command(*words(each)) for each in ("MGET k d z", "PTTL k", "LRANGE e 0 -1", "DBSIZE")]
            replies.append([reply, after, told.all()])
            client.command("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    assert replies[0] == replies[1]


def test_events_of_values_that_are_not_compressed_are_those_of_valkey(pair: tuple[Server, Server]) -> None:
    for line in keyspace_events_test.TABLE:
        if "RESTORE" not in line:
            assert messages(pair[0], line) == messages(pair[1], line), line


@pytest.mark.slow
def test_a_pause_in_a_transaction_begins_when_that_is_executed(pair: tuple[Server, Server]) -> None:
    """And not with another client's, after which reads would be decided that wait."""
    replies = []
    for server in pair:
        emptied(server)
        with ExitStack() as stack:
            first, second, writer, reader = (stack.enter_context(server.connect()) for _ in range(4))
            for client, command in ((first, "MULTI"), (first, "CLIENT PAUSE 500"), (second, "MULTI"), (second, "EXEC")):
                client.command(*command.split())
            # The module would take the pause for one that has begun with the other's transaction.
            time.sleep(1.6)
            first.command("EXEC")
            writer.send(encode("SET", "k", TEXT))
            reader.send(encode("GET", "k"))
            replies.append([writer.read_raw(), reader.read_raw()])
    assert replies[0] == replies[1]
