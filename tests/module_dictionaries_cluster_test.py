"""Valkey Cluster with the module: all nodes read what one of them has compressed with a dictionary.

The gate's part takes some seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest

import servers
import valkey_module
from cluster_traffic import TAGS, slot_of, traffic, until_each_has_worked
from info import info
from module_clusters import (
    OK,
    cluster,
    contents,
    is_primary,
    joining,
    migrate,
    move_slot_by_keys,
    owners,
    replicas_take_over,
)
from module_dictionaries import (
    after_a_round,
    backend,
    enveloped,
    give,
    libraries,
    listed,
    trained,
    until_after_rounds,
    user,
)
from nodes import ask
from nodes import identity as identity_of
from resp import Connection, Failure, Reply, encode
from servers import Server
from valkey_module import LEAST
from waiting import until

pytestmark = pytest.mark.snugly_only
WITH_DICTIONARY = {0x81, 0x82}
# Compresses what it may, and in the background as fast as it can.
SETTINGS = ("--snugly.min-bytes", str(LEAST), "--snugly.background-cpu-percent", "100")
WATCHFUL = ("--cluster-node-timeout", "2000")
B = slot_of(b"b")


@pytest.fixture(scope="module")
def three() -> Iterator[list[Server]]:
    with cluster(3, settings=SETTINGS) as nodes:
        yield nodes


@pytest.fixture
def nodes(three: list[Server]) -> list[Server]:
    for node in three:
        assert ask(node, "FLUSHALL") == OK
    return three


def chosen(node: Server) -> dict[int, bytes | None]:
    with node.connect() as connection:
        return listed(connection)


def give_all(nodes: Sequence[Server], pattern: str = "*", dictionary: bytes | None = None) -> int:
    """Lets one node have a dictionary, and waits until all use it."""
    with nodes[0].connect() as connection:
        identity = give(connection, pattern, dictionary)
    until(lambda: all(chosen(node).get(identity) == pattern.encode() for node in nodes))
    return identity


def forget_all(nodes: Sequence[Server], identity: int) -> None:
    assert ask(nodes[0], "SNUGLY.DICTIONARY", "FORGET", identity) == OK
    until(lambda: all(chosen(node).get(identity) is None for node in nodes))


def put(node: Server, count: int = 100, tag: str = "b") -> dict[bytes, bytes]:
    """Values in one slot that need a dictionary, where there is one."""
    values = {f"{{{tag}}} user {number}".encode(): user(number) for number in range(count)}
    with node.connect() as connection:
        for key, value in values.items():
            assert connection.command("SET", key, value) == OK
    return values


def stored_as(node: Server, key: str) -> int | None:
    with node.connect() as connection:
        return backend(connection, key)


def plain(values: dict[bytes, bytes]) -> dict[bytes, tuple[Reply, bool]]:
    return {key: (value, False) for key, value in values.items()}


def until_gone(connection: Connection) -> None:
    until_after_rounds(connection, lambda: listed(connection) == {})


def owner(nodes: Sequence[Server], slot: int = B) -> Server:
    (port, *_) = owners(nodes[0], slot)
    return next(node for node in nodes if node.port == port)


def others(nodes: Sequence[Server], node: Server) -> list[Server]:
    return [other for other in nodes if other is not node]


def test_a_dictionary_of_one_primary_is_used_by_all(nodes: list[Server]) -> None:
    identity = give_all(nodes)
    for tag in TAGS[:3]:
        source = owner(nodes, slot_of(tag))
        values = put(source, 3, tag.decode())
        assert contents(source, list(values)) == plain(values)
        assert stored_as(source, f"{{{tag.decode()}}} user 1") in WITH_DICTIONARY
    forget_all(nodes, identity)
    for node in nodes:
        assert ask(node, "FLUSHALL") == OK
        with node.connect() as connection:
            # Others that still have it do not keep it alive.
            until_gone(connection)
            assert libraries(connection) == []


def test_a_value_is_read_where_its_slot_has_gone(nodes: list[Server]) -> None:
    identity = give_all(nodes)
    source = owner(nodes)
    values = put(source)
    for target in others(nodes, source):
        migrate(nodes, source, target, B, B)
        assert contents(target, list(values)) == plain(values)
        assert stored_as(target, "{b} user 1") in WITH_DICTIONARY
        source = target
    target = others(nodes, source)[0]
    for _ in move_slot_by_keys(B, nodes, source, target):
        pass
    assert contents(target, list(values)) == plain(values)
    # Keys that move by themselves may go to any server, and need no dictionary.
    assert stored_as(target, "{b} user 1") not in WITH_DICTIONARY
    forget_all(nodes, identity)


def test_a_node_that_joins_later_has_the_dictionaries(nodes: list[Server]) -> None:
    identity = give_all(nodes)
    source = owner(nodes)
    values = put(source)
    with joining(nodes, "--loadmodule", str(valkey_module.library()), *SETTINGS) as late:
        every = [*nodes, late]
        until(lambda: chosen(late) == {identity: b"*"} and is_primary(late))
        migrate(every, source, late, B, B)
        assert contents(late, list(values)) == plain(values)
        migrate(every, late, source, B, B)
        for node in nodes:
            assert ask(node, "CLUSTER", "FORGET", identity_of(late)) == OK
    forget_all(nodes, identity)


def test_none_is_used_while_a_primary_is_without_the_module() -> None:
    """It is used as soon as that one has it, too."""
    with cluster(3, 0, "--enable-module-command", "yes", with_module=(0, 1), settings=SETTINGS) as nodes:
        with nodes[0].connect() as connection:
            identity = give(connection, "*")
            until(lambda: chosen(nodes[1]) == {identity: None})
            for _ in range(3):
                after_a_round(connection)
        source = owner(nodes)
        put(source, 3)
        if source is not nodes[2]:
            assert stored_as(source, "{b} user 1") not in WITH_DICTIONARY
        assert chosen(nodes[0]) == {identity: None}
        assert ask(nodes[2], "MODULE", "LOAD", str(valkey_module.library())) == OK
        until(lambda: all(chosen(node) == {identity: b"*"} for node in nodes))


def restored_from(node: Server, key: str, value: bytes) -> None:
    """Puts bytes at a key as they are."""
    with servers.valkey() as other:
        assert ask(other, "SET", key, value) == OK
        payload = ask(other, "DUMP", key)
        assert isinstance(payload, bytes)
    assert ask(node, "RESTORE", key, 0, payload, "REPLACE") == OK


def until_not_tried_again(connection: Connection, *words: str) -> Reply:
    """The reply that comes after any that says to try again."""
    replies: list[Reply] = []

    def is_final() -> bool:
        reply = connection.command(*words)
        replies.append(reply)
        return not (isinstance(reply, Failure) and reply.text.startswith(b"TRYAGAIN"))

    until(is_final)
    return replies[-1]


def test_a_dictionary_that_is_missing_is_fetched_when_a_value_needs_it(nodes: list[Server]) -> None:
    """It is at another node that has told nobody."""
    dictionary, value = trained(2), b"".join(map(user, range(5)))
    source = owner(nodes)
    holder = others(nodes, source)[0]
    tag = next(tag.decode() for tag in TAGS if owner(nodes, slot_of(tag)) is holder)
    with servers.valkey("--loadmodule", str(valkey_module.library())) as alone, alone.connect() as connection:
        identity = give(connection, "*", dictionary)
        dump = connection.command("FUNCTION", "DUMP")
    restored_from(holder, f"{{{tag}}} user", enveloped(value, dictionary, 0x82))
    with holder.connect() as connection:
        assert isinstance(dump, bytes)
        assert connection.command("FUNCTION", "RESTORE", dump, "REPLACE") == OK
        until(lambda: identity in listed(connection))
        assert connection.command("SNUGLY.DICTIONARY", "FORGET", identity) == OK
    assert identity not in chosen(source)
    for kind in (0x81, 0x82):
        restored_from(source, "{b} user", enveloped(value, dictionary, kind))
        with source.connect() as connection:
            assert until_not_tried_again(connection, "GET", "{b} user") == value
            assert connection.command("STRLEN", "{b} user") == len(value)
            assert connection.command("APPEND", "{b} user", "x") == len(value) + 1
    assert identity in chosen(source)


def test_a_value_whose_dictionary_nobody_has_is_a_clients_own(nodes: list[Server]) -> None:
    source = owner(nodes)
    own = enveloped(b"".join(map(user, range(5))), trained(3), 0x82)
    assert len(own) > LEAST
    restored_from(source, "{b} own", own)
    with source.connect() as connection:
        assert until_not_tried_again(connection, "GET", "{b} own") == own
        assert connection.command("APPEND", "{b} own", "x") == len(own) + 1


def test_a_dictionary_is_forgotten_while_its_values_move(nodes: list[Server]) -> None:
    identity = give_all(nodes)
    source = owner(nodes)
    values = put(source)
    forget_all(nodes, identity)
    target, *_ = rest = others(nodes, source)
    for node in rest:
        with node.connect() as connection:
            until_gone(connection)
    migrate(nodes, source, target, B, B)
    assert contents(target, list(values)) == plain(values)
    assert chosen(target)[identity] is None
    migrate(nodes, target, source, B, B)


def test_a_node_whose_writes_are_paused_gets_a_dictionary_later() -> None:
    """It must tell neither its file nor its replicas anything until then, or it would end."""
    with cluster(2, 0, "--appendonly", "yes", settings=SETTINGS) as nodes:
        assert ask(nodes[1], "CLIENT", "PAUSE", 1_000, "WRITE") == OK
        identity = give_all(nodes)
        assert chosen(nodes[1]) == {identity: b"*"}


def test_a_dictionary_that_comes_while_a_script_runs_does_not_disturb_it(nodes: list[Server]) -> None:
    source = nodes[1]
    endless = (
        "#!lua name=endless\nserver.register_function{{function_name='endless', callback={}, flags={{'no-writes'}}}}"
    )
    assert ask(source, "CONFIG", "SET", "busy-reply-threshold", 100) == OK
    assert ask(source, "FUNCTION", "LOAD", endless.format("function() while true do end end")) == b"endless"
    with source.connect() as connection, source.connect() as other:
        connection.send(encode("FCALL", "endless", 0))
        until(lambda: isinstance(other.command("PING"), Failure))
        with nodes[0].connect() as giver:
            identity = give(giver, "*", trained(3))
            until(lambda: chosen(nodes[2]).get(identity, b"") is None)
        assert other.command("FUNCTION", "KILL") == OK
        assert isinstance(connection.read(), Failure)
    until(lambda: all(chosen(node).get(identity) == b"*" for node in nodes))
    assert ask(source, "FUNCTION", "DELETE", "endless") == OK
    forget_all(nodes, identity)


# Under traffic.


def restored_with_dictionaries(nodes: Sequence[Server]) -> int:
    """How many values were read that need one."""
    total = 0
    for node in nodes:
        with node.connect() as connection:
            total += info(connection, "snugly", "snugly_dictionary_hits")
    return total


@pytest.mark.slow
@pytest.mark.parametrize("way", ["at once", "key by key"])
def test_no_value_is_wrong_while_slots_move_and_dictionaries_come_and_go(nodes: list[Server], way: str) -> None:
    with traffic(nodes, alone=way == "key by key") as clients:
        until_each_has_worked(clients)
        before = 0
        for turn in range(6):
            identity = give_all(nodes, "*", trained(turn % 3))
            until_each_has_worked(clients)
            source = owner(nodes, slot_of(TAGS[0]))
            target = others(nodes, source)[turn % 2]
            if way == "at once":
                migrate(nodes, source, target, slot_of(TAGS[0]), slot_of(TAGS[0]))
            else:
                for _ in move_slot_by_keys(slot_of(TAGS[0]), nodes, source, target):
                    until_each_has_worked(clients)
            until_each_has_worked(clients)
            assert restored_with_dictionaries(nodes) > before
            before = restored_with_dictionaries(nodes)
            if turn % 2:
                forget_all(nodes, identity)


@pytest.mark.slow
def test_no_value_is_wrong_when_replicas_take_over_with_dictionaries() -> None:
    """Six nodes: since replicas are told to, and since a primary is killed; then a slot moves to what was a replica."""
    with cluster(3, 1, *WATCHFUL, settings=SETTINGS) as nodes, traffic(nodes, waits=True) as clients:
        give_all(nodes)
        until_each_has_worked(clients)
        *_, alive = replicas_take_over(nodes, clients)
        give_all(alive, "*", trained(1))
        until_each_has_worked(clients)
        migrate(alive, nodes[0], nodes[5], slot_of(TAGS[0]), slot_of(TAGS[0]))
        until_each_has_worked(clients)


def failing(node: Server) -> bool:
    """Whether it takes another node to be gone."""
    told = ask(node, "CLUSTER", "NODES")
    assert isinstance(told, bytes)
    return b"fail" in told.replace(b"nofailover", b"")


@pytest.mark.slow
def test_a_node_that_was_away_reads_what_was_compressed_meanwhile() -> None:
    """It is stopped while a dictionary is agreed on, and then gets values with it."""
    options = ("--cluster-require-full-coverage", "no", *WATCHFUL)
    with ExitStack() as stack:
        nodes = stack.enter_context(cluster(3, 0, *options, settings=SETTINGS))
        source = owner(nodes)
        away, stays = others(nodes, source)
        away.process.send_signal(19)
        try:
            with source.connect() as connection:
                identity = give(connection, "*")
            until(lambda: all(chosen(node).get(identity) == b"*" for node in (source, stays)))
            values = put(source)
        finally:
            away.process.send_signal(18)
        until(lambda: chosen(away) == {identity: b"*"})
        until(lambda: all(is_primary(node) and not failing(node) for node in nodes))
        migrate(nodes, source, away, B, B)
        assert contents(away, list(values)) == plain(values)
