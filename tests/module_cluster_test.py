"""Valkey Cluster with the module: slots that move and primaries that fail under traffic, nodes without the module, and
the errors of a cluster beside those of one without it.

The gate's part takes ten seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest

import servers
import valkey_module
from cluster_traffic import TAGS, Traffic, slot_of, traffic, until_each_has_worked
from info import info
from module_clusters import (
    OK,
    Found,
    close_slot,
    cluster,
    contents,
    emptied,
    held,
    keys_in,
    migrate,
    migrations,
    move_keys,
    move_slot_by_keys,
    open_slot,
    owners,
    replicas_take_over,
    stored,
    until_followed,
    until_known,
    until_state,
)
from nodes import ask
from plays import each_protocol_at_length, request
from replicas import until_caught_up
from resp import Argument, Failure
from servers import Server
from valkey_module import ENVELOPE, TEXT, VALUES, restored, text
from waiting import until

pytestmark = pytest.mark.snugly_only
DATABASES = ("--cluster-databases", "4")
# Soon notices that a node is gone.
WATCHFUL = ("--cluster-node-timeout", "2000")


@pytest.fixture(scope="module")
def plain() -> Iterator[Server]:
    """A server without the module that belongs to no cluster."""
    with servers.valkey() as server:
        yield server


@pytest.fixture(scope="module")
def three() -> Iterator[list[Server]]:
    with cluster(3, 0, *DATABASES) as nodes:
        yield nodes


@pytest.fixture
def nodes(three: list[Server]) -> list[Server]:
    emptied(three)
    return three


# Errors and replies, byte for byte.

# {b} is the first node's, {c} the second's.
BEFORE = """
MSET {b}1 TEXT {b}2 OTHER {b}w1 TEXT {b}w2 OTHER {b}n NUMBER {b}e ENVELOPE {b}s small {b}d small | RPUSH {b}list 2 1
MSET {c}1 TEXT {c}2 OTHER
"""
LINES = """
GET {b}1 | GET {b}e | GET {b}none | GET | STRLEN {b}1 | STRLEN {b}1 x | APPEND {b}1 x | APPEND {b}1 | GETRANGE {b}1 0 9
SETRANGE {b}1 3 xyz | SETBIT {b}1 9 1 | GETBIT {b}1 9 | BITCOUNT {b}1 | BITPOS {b}1 1 | BITFIELD {b}1 GET u8 0
BITFIELD_RO {b}1 GET u8 0 | INCRBYFLOAT {b}n 1 | SUBSTR {b}1 0 3 | DUMP {b}1 | GETSET {b}1 TEXT | GETEX {b}1 EX 1000
SET {b}1 OTHER GET | SET {b}1 TEXT IFEQ OTHER | DELIFEQ {b}1 x | SET {b}new TEXT | GETDEL {b}new | SET {b}1 TEXT FOO
MGET {b}1 {b}2 {b}none | MGET {b}1 {c}1 | MGET a b c d e f g h i j k | MGET {b}1 1 2 3 4 5 6 7 8 9 10 | MGET
MSET {b}1 TEXT {b}2 OTHER | MSET {b}1 TEXT {c}1 OTHER | MSETNX {b}1 x {b}2 y | MSETNX {b}1 x {c}2 y | MSET {b}1
MSETEX 2 {b}1 TEXT {b}2 OTHER EX 1000 | MSETEX 2 {b}1 TEXT {c}2 OTHER | MSETEX 3 {b}1 TEXT | COPY {b}1 {b}3 REPLACE
COPY {b}1 {c}3 | RENAME {b}3 {b}4 | RENAME {b}4 {c}4 | SETEX {b}5 1000 TEXT | SETNX {b}5 x | INCR {b}1 | PFCOUNT {b}1
BITOP AND {b}d {b}1 {b}2 | GET {b}d | BITOP NOT {c}d {b}1 | BITOP OR {b}d {b}1 {c}1 | BITOP XOR {b}d none
BITOP FOO {b}d {b}1 | MGET {b}2 {b}w1 | APPEND {b}2 x | STRLEN {b}2 | SETRANGE {b}2 0 x | LCS {b}2 {b}w1 LEN
GETRANGE {b}w1 0 9 | BITOP OR {b}2 {b}w1 {b}2 | GET {b}2 | GETEX {b}2 PERSIST | SET {b}2 OTHER GET
LCS {b}1 {b}2 LEN | LCS {b}1 {c}1 LEN | LCS {b}1 {b}none | LCS {b}1
SORT {b}list | SORT {b}list BY {b}w* ALPHA | SORT {b}list BY {b}w* ALPHA GET {b}w* GET # | SORT {b}list BY w*
SORT {b}list GET w* | SORT {b}list BY nosort GET {c}w*
SORT_RO {b}list GET {b}w* | SORT_RO {b}list GET {c}w* | SORT {b}1 | SORT
SORT {b}list BY {c}w* LIMIT 0 1 | SORT {b}list GET {b}w*->f | SORT {b}none BY w* | SORT none{b}
MULTI | GET {b}1 | APPEND {b}1 x | MGET {b}1 {b}2 | EXEC | MULTI | GET {b}1 | GET {c}1 | EXEC | MULTI | GET {c}1
APPEND {b}1 x | MGET {b}1 {c}1 | EXEC | MULTI | STRLEN {c}2 | SORT {b}list GET {c}w* | DISCARD
EVAL "return redis.call('GET', KEYS[1])" 1 {b}1 | EVAL "return redis.call('GET', KEYS[1])" 2 {b}1 {c}1
EVAL "return redis.call('GET', '{b}1')" 0 | EVAL "return redis.call('GET', '{c}1')" 1 {b}1
EVAL "return redis.call('APPEND', '{c}1', 'x')" 1 {b}1 | EVAL "return redis.pcall('GET', '{a}1')" 1 {b}1
EVAL "return redis.call('BITCOUNT', '{b}1')" 0
EVAL "return redis.call('SORT', KEYS[1], 'GET', '{b}w*')" 1 {b}list
EVAL "return redis.call('SORT', KEYS[1], 'GET', '{c}w*')" 1 {b}list
EVAL_RO "return redis.call('GET', KEYS[1])" 1 {b}1 | EVAL "return redis.call('APPEND', KEYS[1], 'x')" 1 {b}2
EVAL "return redis.call('GET', KEYS[1])" 1 {b}2 | EVAL "return redis.call('GETRANGE', KEYS[1], 0, 9)" 1 {b}w1
ASKING | GET {b}1 | ASKING | GET {c}1 | READONLY | GET {b}1
GET {c}1 | MGET {c}1 {c}2 | MGET {b}1 {c}1 | APPEND {c}1 x | READWRITE | GET {c}1 | CLUSTER KEYSLOT {b}1
COMMAND GETKEYS GET {b}1 | COMMAND GETKEYS SORT {b}list BY w* STORE x | SELECT 1 | GET {b}1 | SELECT 0 | SSUBSCRIBE {c}1
"""  # fmt: skip
CROSSING: list[list[Argument]] = [
    ["EVAL", f"#!lua {flags}\nredis.call('SET', '{{b}}x', ARGV[1]) return redis.call('GET', '{key}')", 0, TEXT]
    for flags in ("", "flags=allow-cross-slot-keys")
    for key in ("{b}1", "{b}x", "{bc}1", "{c}1")
]
USERS = {"everybody": "~* +@all", "limited": "~{b}* ~a ~{c}1 +@all -getset -lcs"}


def lines_of(text: str) -> list[list[Argument]]:
    return [request(line, VALUES)[1] for line in text.strip().replace("\n", " | ").split(" | ")]


def without_ports(reply: bytes, nodes: Sequence[Server]) -> bytes:
    """A reply that says which node it names and not where it is."""
    for number, node in enumerate(nodes):
        reply = re.sub(rb"\b%d\b" % node.port, b"node-%d" % number, reply)
    return reply


def answers(
    nodes: Sequence[Server], number: int, protocol: int, rules: str, lines: list[list[Argument]]
) -> list[bytes]:
    """What one of the nodes answers to a user who has these rights."""
    node = nodes[number]
    assert ask(node, "ACL", "SETUSER", "somebody", "reset", "on", "nopass", "&*", *rules.split(" ")) == OK
    with node.connect(protocol) as client:
        assert client.command("AUTH", "somebody", "x") == OK
        return [without_ports(client.command_raw(*line), nodes) for line in lines]


def assert_alike(
    ours: Sequence[Server], theirs: Sequence[Server], numbers: Sequence[int], protocol: int, first: str | None = None
) -> None:
    """The nodes of these numbers answer alike to every line, whoever sends it, also with another one before it."""
    lines: list[list[Argument]] = [*lines_of(LINES), *CROSSING]
    if first:
        lines = [[first] if at == 0 else line for line in lines for at in range(2)]
    for number in numbers:
        for user, rules in USERS.items():
            replies = [answers(nodes, number, protocol, rules, lines) for nodes in (ours, theirs)]
            different = [
                (number, user, *(str(each)[:200] for each in (line, our_reply, their_reply)))
                for line, our_reply, their_reply in zip(lines, *replies, strict=True)
                if our_reply != their_reply
            ]
            assert not different, "\n".join(map(str, different))


def fill(nodes: Sequence[Server]) -> None:
    emptied(nodes)
    for line in lines_of(BEFORE):
        assert not all(isinstance(ask(node, *line), Failure) for node in nodes), line


@pytest.fixture(scope="module")
def three_without_it() -> Iterator[list[Server]]:
    with cluster(3, 0, *DATABASES, with_module=()) as nodes:
        yield nodes


@each_protocol_at_length
def test_each_node_answers_as_one_without_the_module(
    nodes: list[Server], three_without_it: list[Server], protocol: int
) -> None:
    for each in (nodes, three_without_it):
        fill(each)
    assert_alike(nodes, three_without_it, range(3), protocol)


@each_protocol_at_length
def test_both_ends_of_a_slot_that_moves_key_by_key_answer_as_without_the_module(
    nodes: list[Server], three_without_it: list[Server], protocol: int
) -> None:
    slot = slot_of(b"b")
    for each in (nodes, three_without_it):
        fill(each)
        open_slot(slot, each[0], each[1])
        move_keys(each[0], each[1], [b"{b}2", b"{b}w1", b"{b}n", b"{b}e"])
    assert_alike(nodes, three_without_it, (0, 1), protocol)
    assert_alike(nodes, three_without_it, [1], protocol, "ASKING")
    for each in (nodes, three_without_it):
        move_keys(each[0], each[1], keys_in(each[0], slot))
        close_slot(slot, each, each[1])
        # And back, as the next test expects it.
        open_slot(slot, each[1], each[0])
        move_keys(each[1], each[0], keys_in(each[1], slot))
        close_slot(slot, each, each[0])


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "3"])
def test_replicas_answer_as_those_without_the_module(threads: str) -> None:
    options = ("--io-threads", threads)
    with cluster(1, 1, *options) as ours, cluster(1, 1, *options, with_module=()) as theirs:
        for each in (ours, theirs):
            fill(each[:1])
            with each[0].connect() as primary, each[1].connect() as replica:
                until_caught_up(primary, replica)
        for first in (None, "READONLY"):
            assert_alike(ours, theirs, [1], 2, first)
        assert_alike(ours, theirs, [0], 2)


SORT_ELSEWHERE = "SORT {b}list GET {b}w* STORE {c}sorted"
SORT_HERE = "SORT {b}list GET {b}w* STORE {b}sorted"


def test_a_sort_across_slots_is_refused_and_disturbs_nobody() -> None:
    with cluster(1) as nodes, nodes[0].connect() as client, nodes[0].connect() as other:
        fill(nodes)
        for line in (SORT_ELSEWHERE, f'EVAL "return redis.call({", ".join(map(repr, SORT_ELSEWHERE.split()))})" 0'):
            reply = client.command(*request(line)[1])
            assert isinstance(reply, Failure)
            assert reply.text.startswith(b"CROSSSLOT Keys in request don't hash to the same slot")
            assert other.command("APPEND", "{b}1", "x") == len(TEXT) + 1
            assert other.command("SET", "{b}1", TEXT) == OK


@pytest.mark.xfail(strict=True, reason="the server refuses the call of the original, and says so in other words")
def test_a_sort_is_tried_again_while_its_slot_moves(nodes: list[Server]) -> None:
    fill(nodes)
    slot = slot_of(b"b")
    for _ in move_slot_by_keys(slot, nodes, nodes[0], nodes[1]):
        move_keys(nodes[0], nodes[1], keys_in(nodes[0], slot))
        told = [ask(nodes[0], *request(SORT_HERE)[1])]
        with nodes[1].connect() as client:
            client.command("ASKING")
            told.append(client.command(*request(SORT_HERE)[1]))
    # And back, as the next test expects it.
    migrate(nodes, nodes[1], nodes[0], slot, slot)
    assert [reply.text.split()[0] for reply in told if isinstance(reply, Failure)] == [b"ASK", b"TRYAGAIN"]


def test_a_client_is_not_taken_for_a_node_whatever_it_says(nodes: list[Server]) -> None:
    with nodes[0].connect() as client:
        client.command("SET", "{b}1", TEXT)
        assert isinstance(client.command("CLUSTER", "SYNCSLOTS", "no such word"), Failure)
        assert client.command("GET", "{b}1") == TEXT
        client.command("SET", "{b}1", ENVELOPE)
        assert ask(nodes[0], "GET", "{b}1") == ENVELOPE


# Slots that move key by key.


def test_no_value_is_wrong_while_a_slot_moves_key_by_key(nodes: list[Server], plain: Server) -> None:
    slot = slot_of(TAGS[0])
    with traffic(nodes, alone=True) as clients:
        until_each_has_worked(clients)
        for source, target in ((nodes[0], nodes[1]), (nodes[1], nodes[0])):
            for _ in move_slot_by_keys(slot, nodes, source, target):
                until_each_has_worked(clients)
            until_each_has_worked(clients)
    assert_stored_once(clients, nodes, plain)


def assert_stored_once(clients: Sequence[Traffic], nodes: Sequence[Server], plain: Server) -> None:
    """What is stored is what clients have written, or an envelope of it, and never an envelope of an envelope."""
    found: Found = {}
    for node in nodes:
        for tag in TAGS:
            found.update(stored(node, slot_of(tag), plain) if owners(node, slot_of(tag))[0] == node.port else {})
    for client in clients:
        for key, values in client.may.items():
            value, _ = found[key]
            assert isinstance(value, bytes)
            assert restored(value) in values, key


# Slots that move at once.


def put_bulk(node: Server, tag: bytes, count: int) -> dict[bytes, bytes]:
    values = {b"{%b} bulk %d" % (tag, number): text(400 + number, number) for number in range(count)}
    with node.connect() as connection:
        for key, value in values.items():
            assert connection.command("SET", key, value) == OK
    return values


@pytest.mark.parametrize(("turns", "database"), [(1, 0), pytest.param(20, 3, marks=pytest.mark.slow)])
def test_no_value_is_wrong_while_slots_move_at_once(
    nodes: list[Server], plain: Server, turns: int, database: int
) -> None:
    """In one database: Valkey 9.1.2 puts what is written meanwhile into another one, where there are several."""
    slot = slot_of(TAGS[0])
    bulk = put_bulk(nodes[0], TAGS[0], 300)
    before = stored(nodes[0], slot, plain)
    with traffic(nodes, database=database) as clients:
        until_each_has_worked(clients)
        for source, target in ((nodes[0], nodes[1]), (nodes[1], nodes[2]), (nodes[2], nodes[0])) * turns:
            migrate(nodes, source, target, slot, slot + 10)
            until_each_has_worked(clients)
            assert keys_in(source, slot) == []
    after = stored(nodes[0], slot, plain)
    assert {key: after[key] for key in bulk} == {key: before[key] for key in bulk}
    assert contents(nodes[0], list(bulk)) == {key: (value, False) for key, value in bulk.items()}
    if database == 0:
        assert_stored_once(clients, nodes, plain)


# Values that are there when the slot begins to move, and what is done to them before it has moved.
VALUES_BEFORE = {f"{{b}}{name}": value for name, value in VALUES.items()} | {
    "{b}twice": valkey_module.enveloped(ENVELOPE),
    "{b}damaged within": valkey_module.enveloped(VALUES["DAMAGED"]),
}
CHANGES = """
APPEND {b}TEXT x | APPEND {b}TEXT OTHER | SETRANGE {b}OTHER 3 xyz | SETRANGE {b}BIG 60000 TEXT | SETBIT {b}EVEN 9 1
APPEND {b}SHORT TEXT | APPEND {b}ENVELOPE x | SETRANGE {b}ENVELOPE_LZ4 0 abc | APPEND {b}UNKNOWN TEXT
BITFIELD {b}NUMBER2 SET u8 16 65 INCRBY u8 0 1 | INCRBYFLOAT {b}NUMBER 1 | GETSET {b}DIGITS TEXT | GETDEL {b}TURNED
APPEND {b}HEADER REST | GETEX {b}REST PXAT 4102444800000 | SET {b}new1 TEXT EXAT 4102444800 | APPEND {b}new1 x
SET {b}new2 ENVELOPE | MSET {b}new3 ENVELOPE_LZ4 {b}new4 small {b}new5 TEXT | COPY {b}new2 {b}new6
BITOP NOT {b}not {b}new3 | BITOP XOR {b}xor {b}new5 {b}new2 | RENAME {b}new5 {b}new7 | SET {b}new7 OTHER IFEQ TEXT
RPUSH {b}list 2 3 | SORT {b}list GET {b}new* STORE {b}sorted | DELIFEQ {b}new4 small | SETNX {b}new8 DAMAGED
EVAL "redis.call('SET', KEYS[1], ARGV[1]) redis.call('APPEND', KEYS[1], 'x')" 1 {b}script TEXT
MULTI | SET {b}multi TEXT | APPEND {b}multi TEXT | SETRANGE {b}multi 0 z | APPEND {b}TEXT z | EXEC
PSETEX {b}gone 1 TEXT | APPEND {b}empty ENVELOPE
"""


def test_each_change_arrives_that_is_made_while_a_slot_moves(nodes: list[Server], plain: Server) -> None:
    """Every kind of change, of every kind of value, beside a server that does the same and stays alone."""
    slot = slot_of(b"b")
    source, target = nodes[0], nodes[1]
    with servers.valkey() as alone:
        for key, value in VALUES_BEFORE.items():
            assert ask(source, "SET", key, value) == ask(alone, "SET", key, value) == OK
        untouched = stored(source, slot, plain)
        with held(source, target, slot):
            with source.connect() as ours, alone.connect() as theirs:
                for line in lines_of(CHANGES):
                    assert ours.command(*line) == theirs.command(*line), line
            until(lambda: ask(source, "EXISTS", "{b}gone") == 0)
            before = stored(source, slot, plain)
        until_state(source, b"success")
        until_known(nodes, slot, target)
        assert stored(target, slot, plain) == before
        expected = contents(alone, keys_in_all(alone))
        assert contents(target, keys_in(target, slot)) == expected
        # These have two layers, and nothing has put a third around them.
        assert before[b"{b}twice"] == untouched[b"{b}twice"] != (VALUES_BEFORE["{b}twice"], False)
        assert expected[b"{b}twice"] == (VALUES_BEFORE["{b}twice"], False)
    migrate(nodes, target, source, slot, slot)
    assert contents(source, keys_in(source, slot)) == expected


def keys_in_all(node: Server) -> list[bytes]:
    keys = ask(node, "KEYS", "*")
    assert isinstance(keys, list)
    return sorted(key for key in keys if isinstance(key, bytes))


def test_what_is_compressed_in_the_background_while_a_slot_moves_arrives(nodes: list[Server]) -> None:
    slot = slot_of(TAGS[0])
    source, target = nodes[0], nodes[1]
    ask(source, "CONFIG", "SET", "snugly.compression", "no")
    bulk = put_bulk(source, TAGS[0], 50)
    for key in bulk:
        payload = ask(source, "DUMP", key)
        assert isinstance(payload, bytes)
        assert ask(source, "RESTORE", key, 0, payload, "REPLACE", "IDLETIME", 1000) == OK
    before = compressed_in_background(source)
    with held(source, target, slot):
        ask(source, "CONFIG", "SET", "snugly.background-cpu-percent", 100, "snugly.compression", "yes")
        until(lambda: compressed_in_background(source) >= before + len(bulk))
        ask(source, "CONFIG", "SET", "snugly.background-cpu-percent", 0)
        for key in list(bulk)[::2]:
            assert ask(source, "APPEND", key, TEXT) == len(bulk[key] + TEXT)
            bulk[key] += TEXT
    until_state(source, b"success")
    until_known(nodes, slot, target)
    assert contents(target, list(bulk)) == {key: (value, False) for key, value in bulk.items()}
    migrate(nodes, target, source, slot, slot)


def compressed_in_background(node: Server) -> int:
    with node.connect() as connection:
        return info(connection, "snugly", "snugly_background_compressed_strings")


def test_a_slot_that_does_not_move_after_all_stays_as_it_is(nodes: list[Server], plain: Server) -> None:
    slot = slot_of(TAGS[0])
    bulk = put_bulk(nodes[0], TAGS[0], 50)
    with traffic(nodes, tags=TAGS[:1]) as clients:
        with held(nodes[0], nodes[1], slot):
            until_each_has_worked(clients)
            assert ask(nodes[0], "CLUSTER", "CANCELSLOTMIGRATIONS") == OK
        until_each_has_worked(clients)
    until(lambda: keys_in(nodes[1], slot) == [])
    assert contents(nodes[0], list(bulk)) == {key: (value, False) for key, value in bulk.items()}
    assert_stored_once(clients, nodes, plain)


@pytest.mark.slow
def test_replicas_and_files_have_what_a_slot_has_brought() -> None:
    with cluster(2, 1, "--appendonly", "yes") as nodes, servers.valkey() as plain:
        slot = slot_of(TAGS[0])
        bulk = put_bulk(nodes[0], TAGS[0], 300)
        with traffic(nodes) as clients:
            until_each_has_worked(clients)
            # Compresses in the background, too, on both sides.
            for node in nodes:
                ask(node, "CONFIG", "SET", "snugly.background-cpu-percent", 100)
            for source, target in ((nodes[0], nodes[1]), (nodes[1], nodes[0]), (nodes[0], nodes[1])):
                migrate(nodes, source, target, slot, slot)
                until_each_has_worked(clients)
        primary, replica = nodes[1], nodes[3]
        with primary.connect() as theirs, replica.connect() as ours:
            until_caught_up(theirs, ours)
        assert_stored_once(clients, nodes[:2], plain)
        before = contents(primary, keys_in(primary, slot))
        assert {key: before[key] for key in bulk} == {key: (value, False) for key, value in bulk.items()}
        with replica.connect() as reader:
            reader.command("READONLY")
            assert {key: reader.command("GET", key) for key in before} == {
                key: value for key, (value, _) in before.items()
            }
        for node in (primary, replica):
            assert ask(node, "DEBUG", "LOADAOF") == OK
        assert contents(primary, keys_in(primary, slot)) == before


@pytest.mark.slow
def test_no_value_is_wrong_when_a_node_is_killed_that_takes_slots_over() -> None:
    with cluster(3, 0, *WATCHFUL, "--cluster-require-full-coverage", "no") as nodes:
        slot = slot_of(TAGS[0])
        bulk = put_bulk(nodes[0], TAGS[0], 300)
        with traffic(nodes[:1], tags=TAGS[:1]) as clients:
            with held(nodes[0], nodes[2], slot):
                until_each_has_worked(clients)
                nodes[2].process.kill()
                until(lambda: migrations(nodes[0])[0][b"state"] == b"failed")
            until_each_has_worked(clients)
        assert contents(nodes[0], list(bulk)) == {key: (value, False) for key, value in bulk.items()}


# Failovers.


def read_from_replicas(clients: Sequence[Traffic], nodes: Sequence[Server]) -> int:
    """Reads each key from each node that is there: what comes has been written some time. Returns how many came."""
    found = 0
    for node in nodes:
        with suppress(OSError, EOFError), node.connect() as reader:
            reader.command("READONLY")
            for client in clients:
                for key, values in list(client.ever.items()):
                    value = reader.command("GET", key)
                    if isinstance(value, bytes):
                        assert value in set(values), (node.port, key, value)
                        found += 1
                    assert value is None or isinstance(value, bytes | Failure)
    return found


@pytest.mark.slow
def test_no_value_is_wrong_when_replicas_take_over() -> None:
    """First since they are told to, then since a primary is killed."""
    with cluster(3, 1, *WATCHFUL) as nodes, traffic(nodes, waits=True) as clients:
        until_each_has_worked(clients)
        read = read_from_replicas(clients, nodes)
        for alive in replicas_take_over(nodes, clients):
            read += read_from_replicas(clients, alive)
        # A slot moves to what was a replica.
        migrate(alive, nodes[0], nodes[5], slot_of(TAGS[0]), slot_of(TAGS[0]))
        until_each_has_worked(clients)
        assert read > 100
        assert any(client.unsure for client in clients)


# Nodes without the module.


def restored_all(found: Found) -> Found:
    return {
        key: (restored(value) if isinstance(value, bytes) else value, expires)
        for key, (value, expires) in found.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("way", ["at once", "key by key"])
def test_slots_move_between_nodes_with_the_module_and_without_it(plain: Server, way: str) -> None:
    slot = slot_of(TAGS[0])
    with cluster(with_module=(1, 2)) as nodes:
        stock, ours = nodes[0], nodes[1]
        for key, value in VALUES_BEFORE.items():
            assert ask(stock, "SET", key, value) == OK
        bulk = put_bulk(stock, TAGS[0], 300)
        kept = [key.encode() for key in VALUES_BEFORE] + list(bulk)
        before = contents(stock, kept)
        with traffic(nodes, is_mixed=True, alone=way == "key by key") as clients:
            until_each_has_worked(clients)
            for source, target in ((stock, ours), (ours, stock), (stock, ours)):
                if way == "at once":
                    migrate(nodes, source, target, slot, slot)
                else:
                    for _ in move_slot_by_keys(slot, nodes, source, target):
                        until_each_has_worked(clients)
                until_each_has_worked(clients)
                found = stored(target, slot, plain)
                assert {key: found[key] for key in kept} == before
                damaged = {b"{b}DAMAGED", b"{b}UNKNOWN"}
                read = contents(target, [key for key in kept if key not in damaged])
                expected = {key: before[key] for key in read}
                assert read == (restored_all(expected) if target is ours else expected)


@pytest.mark.slow
def test_the_module_is_loaded_while_a_slot_moves_to_the_server() -> None:
    with cluster(2, 0, "--enable-module-command", "yes", with_module=[0]) as nodes:
        source, target = nodes
        slot = slot_of(b"b")
        assert ask(source, "SET", "{b}before", TEXT) == OK
        with held(source, target, slot):
            assert ask(target, "MODULE", "LOAD", str(valkey_module.library())) == OK
            assert ask(source, "MSET", "{b}after", TEXT, "{b}e", ENVELOPE) == OK
            assert ask(source, "APPEND", "{b}before", "x") == len(TEXT) + 1
        until_state(source, b"success")
        until_known(nodes, slot, target)
        assert ask(target, "MGET", "{b}before", "{b}after", "{b}e") == [TEXT + b"x", TEXT, ENVELOPE]


@pytest.mark.slow
def test_a_cluster_is_upgraded_node_by_node() -> None:
    """A replica with the module takes over from a primary without it, and gives back."""
    with cluster(1, 2, *WATCHFUL, with_module=(1,)) as nodes:
        stock, ours, other = nodes
        bulk = put_bulk(stock, TAGS[0], 100)
        assert ask(stock, "SET", "{b}e", ENVELOPE) == OK
        with traffic(nodes, is_mixed=True, waits=True) as clients:
            until_each_has_worked(clients)
            for primary, successor in ((stock, ours), (ours, stock), (stock, ours), (ours, other)):
                assert ask(successor, "CLUSTER", "FAILOVER") == OK
                until_followed(successor, primary)
                until_each_has_worked(clients)
                assert contents(successor, list(bulk)) == {key: (value, False) for key, value in bulk.items()}
                assert ask(successor, "GET", "{b}e") == (text(600, 3) if successor is ours else ENVELOPE)
        for node in (stock, ours):
            with other.connect() as followed, node.connect() as replica:
                until_caught_up(followed, replica)
                replica.command("READONLY")
                for client in clients:
                    for key, values in client.may.items():
                        value = replica.command("GET", key)
                        assert isinstance(value, bytes)
                        assert (value if node is ours else restored(value)) in values
                assert replica.command("GET", "{b}e") == (text(600, 3) if node is ours else ENVELOPE)
