"""Training by clients: dictionaries that they publish, and the best encoding of each kind of keys."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import glide_sync
import pytest
import valkey
from glide_shared import CompressionConfiguration as GlideCompression
from hypothesis import given, settings
from hypothesis import strategies as st

import snugly
import snugly.asyncio
from kinds import KINDS, Connect, Driver, Kind, connected, gated
from managing import READER, REFRESH, all_threads, own_server
from published import (
    PAGES,
    PREFIX,
    USERS,
    WITH_DICTIONARY,
    WITH_LZ4_AND_DICTIONARY,
    dictionary_key,
    page,
    publish,
    sender,
    user,
)
from servers import Server
from snugly import CompressionBackend, CompressionConfiguration, Goal
from snugly.dictionaries import learning as learning_module
from snugly.dictionaries.learning import Learning
from waiting import until

TRAINER = CompressionConfiguration(dictionary="auto", dictionary_refresh=REFRESH)
CATALOGUE_KEY, LOCK_KEY = f"{PREFIX}:dicts", f"{PREFIX}:dicts:lock"
KIND = {kind.name: kind for kind in KINDS}
Write = Callable[[int], Any]


def choosing(goal: Goal = Goal.BALANCED, **options: Any) -> CompressionConfiguration:
    return CompressionConfiguration(backend=CompressionBackend.AUTO, goal=goal, dictionary_refresh=REFRESH, **options)


def write_until(write: Write, condition: Callable[[], bool]) -> None:
    """Writes on, each time something else, until the condition holds."""
    numbers = itertools.count()

    def holds() -> bool:
        for _ in range(200):
            write(next(numbers))
        return condition()

    until(holds)


def writing(client: Any, make: Callable[[int], bytes] = user, kind: str = "user") -> Write:
    return lambda number: client.set(f"{kind}:{number}", make(number))


def catalogue(plain: Any) -> Any:
    document = plain.get(CATALOGUE_KEY)
    return json.loads(document) if document is not None else {"active": [], "dictionaries": []}


def patterns(plain: Any) -> list[str]:
    return [row["pattern"] for row in catalogue(plain)["active"]]


def used(
    client: Any, plain: Any, make: Callable[[int], bytes] = user, start: bytes = WITH_DICTIONARY
) -> Callable[[], bool]:
    """Returns whether values are written with a dictionary by now, or as else they should start."""

    def is_so() -> bool:
        client.set("user:0", make(0))
        return bytes(plain.get("user:0")).startswith(start)

    return is_so


def decided(client: Any, key: str) -> bool:
    return snugly.explain(client, key).pattern is not None


def noise(number: int) -> bytes:
    return random.Random(number).randbytes(300)


def article(number: int) -> bytes:
    """Text of some kilobytes that any codec compresses well."""
    return b" ".join(user(number + each) for each in range(20))


def program(port: int, body: str) -> subprocess.Popen[bytes]:
    """Another process, with a client that trains."""
    lines = [
        "import itertools, os, sys",
        f"sys.path[:0] = {sys.path!r}",
        "import snugly",
        "from published import user",
        f"settings = snugly.CompressionConfiguration(dictionary='auto', dictionary_refresh={REFRESH})",
        f"client = snugly.Valkey(port={port}, compression=settings)",
        body,
    ]
    return subprocess.Popen([sys.executable, "-c", "\n".join(lines)])


# Dictionaries.


def test_every_kind_of_client_trains_a_dictionary_and_uses_it(kind: Kind, connect: Connect, plain: Driver) -> None:
    writer = connect(TRAINER)

    def write(number: int) -> None:
        commands = [("set", f"user:{{a}}{number}:{each}", user(number * 200 + each)) for each in range(200)]
        writer.batch(*commands, **({"transaction": False} if kind.transactions else {}))

    numbers = itertools.count()

    def is_used() -> bool:
        write(next(numbers))
        writer("set", "user:{a}0:0", user(1))
        return bytes(plain("get", "user:{a}0:0")).startswith(WITH_DICTIONARY)

    until(is_used)
    document = json.loads(plain("get", CATALOGUE_KEY))
    assert len(document["active"]) == 1
    (entry,) = document["dictionaries"]
    assert entry["ratio_after"] < 0.9 * entry["ratio_before"]
    assert snugly.statistics(writer.client)["dictionaries_published"] == 1
    reader = connect(READER)
    assert reader("get", "user:{a}0:0") == writer("get", "user:{a}0:0")


def test_who_writes_lz4_trains_for_lz4() -> None:
    lz4 = replace(TRAINER, backend=CompressionBackend.LZ4)
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=lz4) as client:
        write_until(writing(client), used(client, plain, start=WITH_LZ4_AND_DICTIONARY))
        (entry,) = catalogue(plain)["dictionaries"]
        assert entry["ratio_after"] < 0.9 * entry["ratio_before"]
        assert client.get("user:0") == user(0)


@pytest.mark.slow
def test_two_who_train_at_once_publish_one_dictionary_for_each_kind_of_keys() -> None:
    with own_server() as (server, plain):
        body = (
            "for number in range(60_000):\n"
            "    client.set(f'user:{sys.argv[0]}{number}', user(number))\n"
            "    if number % 1000 == 0: client.set(f'other:{number}', user(number) * 3)"
        )
        processes = [program(server.port, body.replace("{sys.argv[0]}", name)) for name in ("1", "2")]
        assert [process.wait(180) for process in processes] == [0, 0]
        document = catalogue(plain)
        assert [row["pattern"] for row in document["active"]].count("user:*") == 1
        assert len(patterns(plain)) == len(set(patterns(plain)))
        with snugly.Valkey(port=server.port, compression=READER) as reader:
            for number in range(60_000 - 1000, 60_000):
                assert reader.mget(f"user:1{number}", f"user:2{number}") == [user(number)] * 2
            assert plain.get("user:159999").startswith(WITH_DICTIONARY)


@pytest.mark.slow
def test_a_trainer_that_is_killed_with_the_lock_holds_up_the_others_until_it_expires() -> None:
    with own_server() as (server, plain):
        killed = program(
            server.port,
            "import signal\n"
            "import snugly.dictionaries.learning as learning\n"
            "def die():\n    os.kill(os.getpid(), signal.SIGKILL)\n    yield\n"
            "learning.server_time = die\n"
            "for number in itertools.count(): client.set(f'user:{number}', user(number))",
        )
        assert killed.wait(120) < 0
        assert plain.exists(LOCK_KEY)
        assert not plain.exists(CATALOGUE_KEY)
        with snugly.Valkey(port=server.port, compression=TRAINER) as client:
            write_until(writing(client), lambda: patterns(plain) == ["user:*"])
            # The publisher releases the lock, before it expires.
            until(lambda: "cmdstat_del" in plain.info("commandstats"))


def test_a_lock_that_another_holds_is_left_alone() -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=TRAINER) as client:
        plain.set(LOCK_KEY, b"another", ex=100)
        learning = client._snugly_compressor.manager._maintenance._learning
        write_until(writing(client), lambda: bool(learning._unpublished))
        commands = plain.info("commandstats")["cmdstat_set"]["calls"]
        until(lambda: plain.info("commandstats")["cmdstat_set"]["calls"] > commands + 2)
        assert plain.get(LOCK_KEY) == b"another"
        assert not plain.exists(CATALOGUE_KEY)
        plain.delete(LOCK_KEY)
        until(lambda: patterns(plain) == ["user:*"])


def test_what_was_published_meanwhile_and_is_as_good_is_not_replaced() -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=TRAINER) as client:
        plain.set(LOCK_KEY, b"another", ex=100)
        learning = client._snugly_compressor.manager._maintenance._learning
        write_until(writing(client), lambda: bool(learning._unpublished))
        publish(sender(plain), ("user:*", USERS), at=time.time())
        plain.delete(LOCK_KEY)
        until(lambda: not learning._unpublished)
        assert [row["id"] for row in catalogue(plain)["active"]] == [USERS.id]


def test_who_is_overtaken_while_publishing_leaves_no_dictionary_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=TRAINER) as client:
        server_time = learning_module.server_time

        def overtaken() -> Any:
            publish(sender(plain), ("user:*", USERS), at=time.time())
            return (yield from server_time())

        monkeypatch.setattr(learning_module, "server_time", overtaken)
        learning = client._snugly_compressor.manager._maintenance._learning
        write_until(writing(client), lambda: bool(plain.exists(CATALOGUE_KEY)))
        until(lambda: not learning._unpublished and not plain.exists(LOCK_KEY))
        assert patterns(plain) == ["user:*"]
        assert plain.keys(f"{PREFIX}:dict:*") == [dictionary_key(USERS).encode()]


def test_a_catalogue_of_a_newer_version_is_not_overwritten(caplog: Any) -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=TRAINER) as client:
        plain.set(CATALOGUE_KEY, b'{"version": 2}')
        write_until(writing(client), lambda: "is not published" in caplog.text)
        assert plain.get(CATALOGUE_KEY) == b'{"version": 2}'


def test_what_was_learned_is_published_when_the_catalogue_is_right_again(caplog: Any) -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=TRAINER) as client:
        plain.set(CATALOGUE_KEY, b'{"version": 2}')
        write_until(writing(client), lambda: "is not published" in caplog.text)
        publish(sender(plain), ("page:*", PAGES))
        until(lambda: "user:*" in patterns(plain))
        assert len(caplog.records) == 2, "one for what it writes with and one for what it publishes"


def test_what_cannot_be_published_is_tried_again_with_one_warning(caplog: Any) -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=TRAINER) as client:
        plain.lpush(CATALOGUE_KEY, "no catalogue")
        write_until(writing(client), lambda: "are not published yet" in caplog.text)
        locks = plain.info("commandstats")["cmdstat_set"]["calls"]
        until(lambda: plain.info("commandstats")["cmdstat_set"]["calls"] > locks + 2)
        assert len(caplog.records) == 1
        until(lambda: plain.info("commandstats").get("cmdstat_del", {"calls": 0})["calls"] > 2)
        plain.delete(CATALOGUE_KEY)
        until(lambda: patterns(plain) == ["user:*"])


def test_a_dictionary_that_nobody_has_any_more_is_replaced() -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=TRAINER) as client:
        row = {"pattern": "user:*", "id": USERS.id}
        entry = {**row, "published_at": int(time.time()), "ratio_after": 0.01}
        plain.set(CATALOGUE_KEY, json.dumps({"version": 1, "active": [row], "dictionaries": [entry]}))
        write_until(writing(client), used(client, plain))
        (row,) = catalogue(plain)["active"]
        assert row["id"] != USERS.id
        assert [entry["id"] for entry in catalogue(plain)["dictionaries"]] == [USERS.id, row["id"]]


@pytest.mark.slow
def test_what_was_learned_before_all_was_deleted_is_not_published() -> None:
    # The publisher is to be the first to see it.
    trainer = CompressionConfiguration(dictionary="auto", dictionary_refresh=86_400)
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=trainer) as client:
        plain.mset({CATALOGUE_KEY: b'{"version": 1}', LOCK_KEY: b"another"})
        learning = client._snugly_compressor.manager._maintenance._learning
        learning._manager.interval = REFRESH

        def write(number: int) -> None:
            client.set(f"user:{number}", user(number))
            client.set(f"page:{number}", page(number))

        write_until(write, lambda: len(learning._unpublished) == 2 and learning._manager.is_known)
        plain.flushall()
        until(lambda: not learning._unpublished)
        until(lambda: not plain.exists(LOCK_KEY))
        assert not plain.exists(CATALOGUE_KEY)


@pytest.mark.slow
def test_when_all_is_deleted_the_client_learns_anew() -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=TRAINER) as client:
        write_until(writing(client), lambda: patterns(plain) == ["user:*"])
        write_until(writing(client), used(client, plain))
        plain.flushall()
        write_until(writing(client, page), lambda: patterns(plain) == ["user:*"])
        write_until(writing(client, page), used(client, plain, page))
        (row,) = catalogue(plain)["active"]
        assert b"Article" in plain.get(f"{PREFIX}:dict:{row['id']}")
        assert client.get("user:0") == page(0)


@pytest.mark.slow
def test_values_that_have_changed_get_another_dictionary() -> None:
    configuration = CompressionConfiguration(dictionary="auto", dictionary_refresh=REFRESH, dictionary_memory=1 << 20)

    def has_article() -> bool:
        return any(b"Article" in plain.get(f"{PREFIX}:dict:{row['id']}") for row in catalogue(plain)["dictionaries"])

    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=configuration) as client:
        write_until(writing(client), used(client, plain))
        write_until(writing(client), lambda: snugly.statistics(client)["encoded_values_zstd_dictionary"] > 20_000)
        write_until(writing(client, page), has_article)
        assert patterns(plain) == ["user:*"]


def test_values_of_excluded_keys_are_in_no_dictionary() -> None:
    configuration = CompressionConfiguration(
        dictionary="auto", dictionary_refresh=REFRESH, dictionary_exclude=("session:*", "*:{private}")
    )

    def secret(number: int) -> bytes:
        return user(number).replace(b"customer", b"very secret")

    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=configuration) as client:

        def write(number: int) -> None:
            client.mset({f"session:{number}": secret(number), f"user:{number}:{{private}}": secret(number)})
            client.set(f"user:{number}", user(number))

        write_until(write, used(client, plain))
        write_until(write, lambda: int(snugly.statistics(client)["encoded_values_zstd_dictionary"]) > 2000)
        assert patterns(plain) == ["user:*"]
        for row in catalogue(plain)["dictionaries"]:
            assert b"secret" not in plain.get(f"{PREFIX}:dict:{row['id']}")
        assert bytes(plain.get("session:0")).startswith(b"\0\1\2\0\1")
        assert client.get("user:0:{private}") == secret(0)


@pytest.mark.parametrize("name", gated(["snugly", "snugly-asyncio", "redis-py"]))
def test_without_permission_nothing_is_trained_and_everything_else_works(name: str, caplog: Any) -> None:
    with own_server() as (server, plain), ExitStack() as stack:
        acl: tuple[Any, ...] = ("ACL", "SETUSER")
        plain.execute_command(*acl, "limited", "on", ">secret", "~user:*", "+@all")
        plain.execute_command(*acl, "reader", "on", ">secret", "~user:*", "%R~{snugly}:*", "+@all")
        caplog.set_level(logging.WARNING)
        for who, warning in (
            ("limited", "dictionaries are off, since the keys"),
            ("reader", "no dictionaries are trained, since they may not be published"),
        ):
            client = stack.enter_context(connected(KIND[name], server.port, TRAINER, username=who, password="secret"))

            def write(number: int, client: Driver = client) -> None:
                client("set", f"user:{number}", user(number))
                assert client("get", f"user:{number}") == user(number)

            def is_so(warning: str = warning) -> bool:
                return any(warning in record.getMessage() for record in caplog.records)

            write_until(write, is_so)
            for number in range(1000):
                write(number)
            assert sum(warning in record.getMessage() for record in caplog.records) == 1
            if who == "limited":
                assert len(caplog.records) == 1
        assert not plain.exists(CATALOGUE_KEY, LOCK_KEY)


@pytest.mark.slow
@pytest.mark.parametrize("name", gated(["snugly", "snugly-asyncio", "redis-py"]))
def test_what_may_not_be_published_is_once_the_permission_is_there(name: str, caplog: Any) -> None:
    with own_server() as (server, plain):
        acl: tuple[Any, ...] = ("ACL", "SETUSER", "writer", "on", ">secret", "+@all")
        plain.execute_command(*acl, "~user:*", "%R~{snugly}:*")
        with connected(KIND[name], server.port, TRAINER, username="writer", password="secret") as client:

            def write(number: int, client: Driver = client) -> None:
                client("set", f"user:{number}", user(number))

            write_until(write, lambda: "they may not be published" in caplog.text)
            plain.execute_command(*acl, "~*")
            write_until(write, lambda: "user:*" in patterns(plain))


@pytest.mark.slow
def test_where_the_server_may_evict_dictionaries_there_is_one_warning(caplog: Any) -> None:
    with (
        own_server("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") as (server, plain),
        snugly.Valkey(port=server.port, compression=TRAINER) as client,
    ):
        write_until(writing(client), lambda: "user:*" in patterns(plain))
        write_until(writing(client, page, "page"), lambda: "page:*" in patterns(plain))
    (record,) = caplog.records
    assert record.getMessage().startswith("maxmemory-policy is allkeys-lru, so the server may evict dictionaries")


# Threads, event loops and processes.


@contextmanager
def held_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Training that takes until the second event is set; the first says that it has begun."""
    begun, go_on = threading.Event(), threading.Event()
    step = Learning._step

    def slow(learning: Learning) -> Any:
        begun.set()
        assert go_on.wait(120), "nothing else ran meanwhile"
        return step(learning)

    monkeypatch.setattr(Learning, "_step", slow)
    try:
        yield begun, go_on
    finally:
        go_on.set()


@pytest.mark.parametrize("make", [snugly.asyncio.Valkey, lambda **options: KIND["redis-py-asyncio"].make(**options)])
def test_an_event_loop_goes_on_while_something_is_trained(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(server: Server, plain: Any) -> None:
        client = make(host="127.0.0.1", port=server.port, compression=TRAINER)
        with held_up(monkeypatch) as (begun, go_on):
            number = 0
            while not begun.is_set():
                number += 1
                await client.set(f"user:{number}", user(number))
            for number in range(1000):
                await client.set(f"user:{number}", user(number))
                assert await client.get(f"user:{number}") == user(number)
            go_on.set()
        while patterns(plain) != ["user:*"]:
            number += 1
            await client.set(f"user:{number}", user(number))
        await client.aclose()

    with own_server() as (server, plain):
        asyncio.run(asyncio.wait_for(main(server, plain), 180))


@pytest.mark.slow
def test_a_client_that_is_closed_while_it_trains_ends_and_learns_when_it_is_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    until(lambda: not all_threads())
    with own_server() as (server, plain):
        client = snugly.Valkey(port=server.port, compression=TRAINER)
        with held_up(monkeypatch) as (begun, go_on):
            write_until(writing(client), begun.is_set)
            client.close()  # type: ignore[no-untyped-call]
            assert len(all_threads()) == 1
            go_on.set()
            until(lambda: not all_threads())
        write_until(writing(client), lambda: patterns(plain) == ["user:*"])
        client.close()  # type: ignore[no-untyped-call]

        async def main() -> None:
            with held_up(monkeypatch) as (begun, go_on):
                async with snugly.asyncio.Valkey(port=server.port, compression=choosing()) as client:
                    while not begun.is_set():
                        await client.set("user:1", user(1))
                assert len(asyncio.all_tasks()) == 1
                go_on.set()

        asyncio.run(main())


@pytest.mark.slow
def test_a_thread_waits_for_what_the_one_before_it_is_still_doing(monkeypatch: pytest.MonkeyPatch) -> None:
    until(lambda: not all_threads())
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=TRAINER) as client:
        with held_up(monkeypatch) as (begun, go_on):
            write_until(writing(client), begun.is_set)
            begun.clear()
            client.close()
            write_until(writing(client), lambda: len(all_threads()) == 2)
            assert not begun.wait(1), "both learn at once"
            go_on.set()
            until(lambda: len(all_threads()) == 1)
        write_until(writing(client), lambda: patterns(plain) == ["user:*"])


@pytest.mark.slow
def test_a_process_that_ends_while_it_trains_ends_well() -> None:
    with own_server() as (server, _):
        body = "for number in range({count}): client.set(f'user:{{number}}', user(number))"
        for count in (400, 2000, 8000):
            assert program(server.port, body.format(count=count)).wait(120) == 0


@pytest.mark.slow
def test_forked_processes_learn_on_their_own_whatever_the_parent_is_doing() -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=TRAINER) as client:
        children = []
        for number in range(10):
            for each in range(300):
                client.set(f"parent:{number * 300 + each}", user(each))
            child = os.fork()
            if child == 0:
                kind = "child" + "abcdefghij"[number]
                code = 1
                try:
                    write_until(writing(client, kind=kind), partial(is_published, server, f"{kind}:*"))
                    code = 0 if client.get(f"{kind}:1") == user(1) else 2
                finally:
                    os._exit(code)
            children.append(child)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 10
        write_until(writing(client, kind="parent"), lambda: "parent:*" in patterns(plain))


def is_published(server: Server, pattern: str) -> bool:
    with valkey.Valkey(port=server.port) as plain:
        return pattern in patterns(plain)


# The best encoding of each kind of keys.


@pytest.mark.slow
def test_every_kind_of_client_chooses_for_each_kind_of_keys(connect: Connect, plain: Driver) -> None:
    client = connect(choosing(Goal.MEMORY))

    def write(number: int) -> None:
        client("set", f"article:{number}", article(number))
        client("set", f"noise:{number}", noise(number))

    def both() -> bool:
        return decided(client.client, "article:1") and decided(client.client, "noise:1")

    write_until(write, both)
    assert snugly.explain(client.client, "article:1").codec == "zstd"
    assert snugly.explain(client.client, "noise:1").codec == "none"
    write(1)
    assert bytes(plain("get", "article:1")).startswith(b"\0\1\2\0\1")
    assert plain("get", "noise:1") == noise(1)
    assert (client("get", "article:1"), client("get", "noise:1")) == (article(1), noise(1))
    assert not plain("exists", CATALOGUE_KEY)


@pytest.mark.slow
def test_who_wants_speed_gets_something_faster_than_who_wants_memory(valkey_server: Server) -> None:
    explained = {}
    for goal in (Goal.SPEED, Goal.MEMORY):
        with snugly.Valkey(port=valkey_server.port, compression=choosing(goal)) as client:
            assert snugly.explain(client, "article:1").codec == "zstd", "until something is decided"
            write_until(writing(client, article, "article"), partial(decided, client, "article:1"))
            explained[goal] = snugly.explain(client, "article:1")
    fast, small = explained[Goal.SPEED], explained[Goal.MEMORY]
    assert (fast.goal, small.goal) == (Goal.SPEED, Goal.MEMORY)
    assert (fast.codec, small.codec) == ("lz4", "zstd")
    assert snugly.explain(client, "article:1").pattern == "article:*"


def test_values_that_do_not_compress_are_not_tried_any_more(valkey_server: Server) -> None:
    with snugly.Valkey(port=valkey_server.port, compression=choosing()) as client:
        write_until(writing(client, noise, "noise"), lambda: decided(client, "noise:1"))
        assert "left alone" in snugly.explain(client, "noise:1").why
        before = snugly.statistics(client)
        pipeline = client.pipeline()
        for number in range(1000):
            client.set(f"noise:{number}", noise(number))
            pipeline.set(f"noise:{number}", noise(number))
        pipeline.execute()
        after = snugly.statistics(client)
        changed = {name for name in after if after[name] != before[name]}
        assert after["encoded_values_none"] - before["encoded_values_none"] == 2000
        assert not {name for name in changed if name.startswith("skipped_")}


@pytest.mark.slow
def test_a_dictionary_that_is_there_is_used_where_it_is_best() -> None:
    with own_server() as (server, plain):
        publish(sender(plain), ("user:*", USERS))
        with snugly.Valkey(port=server.port, compression=choosing(Goal.MEMORY, dictionary="catalogue")) as client:

            def write(number: int) -> None:
                writing(client)(number)
                writing(client, noise, "noise")(number)

            write_until(write, lambda: decided(client, "user:1") and decided(client, "noise:1"))
            explained = snugly.explain(client, "user:1")
            assert (explained.codec, explained.dictionary) == ("zstd", USERS.id)
            assert f"with the dictionary {USERS.id}" in explained.why
            assert snugly.explain(client, "noise:1").codec == "none"
            client.set("user:1", user(1))
            assert bytes(plain.get("user:1")).startswith(WITH_DICTIONARY)
            assert client.get("user:1") == user(1)
        assert [row["id"] for row in catalogue(plain)["active"]] == [USERS.id], "nothing is trained"


@pytest.mark.slow
def test_who_chooses_and_trains_uses_what_was_trained() -> None:
    with own_server() as (server, plain):
        with snugly.Valkey(port=server.port, compression=choosing(Goal.MEMORY, dictionary="auto")) as client:
            write_until(writing(client), used(client, plain))
            explained = snugly.explain(client, "user:1")
            assert explained.dictionary in [row["id"] for row in catalogue(plain)["dictionaries"]]
        with snugly.Valkey(port=server.port, compression=READER) as reader:
            assert reader.get("user:0") == user(0)


@pytest.mark.slow
def test_glide_reads_what_was_chosen_without_dictionaries() -> None:
    with own_server() as (server, _):
        address = glide_sync.NodeAddress("127.0.0.1", server.port)
        configuration = glide_sync.GlideClientConfiguration(
            [address], compression=GlideCompression(enabled=True), request_timeout=60_000
        )
        glide = glide_sync.GlideClient.create(configuration)
        makers = {"user": user, "article": article, "noise": noise}
        for goal in Goal:
            with snugly.Valkey(port=server.port, compression=choosing(goal)) as client:
                for _ in range(2):
                    for kind, make in makers.items():
                        write_until(writing(client, make, kind), partial(decided, client, f"{kind}:1"))
                        for number in range(50):
                            client.set(f"{kind}:{number}", make(number))
                            assert glide.get(f"{kind}:{number}") == make(number)
        glide.close()


@pytest.mark.slow
def test_an_explanation_has_what_was_measured_and_says_why(valkey_server: Server) -> None:
    with snugly.Valkey(port=valkey_server.port, compression=choosing(Goal.SPEED)) as client:
        undecided = snugly.explain(client, "article:1")
        assert (undecided.pattern, undecided.codec, undecided.level, undecided.measured) == (None, "zstd", 3, ())
        assert undecided.why == "zstd: nothing is decided for such keys yet, or for values of this size"
        write_until(writing(client, article, "article"), lambda: decided(client, "article:1"))
        explained = snugly.explain(client, b"article:1", article(1))
        assert {measured.codec for measured in explained.measured} == {"none", "lz4", "zstd"}
        assert explained.decided_at is not None
        best = max(explained.measured, key=lambda measured: measured.worth)
        assert best.codec == explained.codec == "lz4"
        assert 0 < best.ratio < 0.6
        assert best.saved > 1000
        assert best.encode > 0 < best.decode
        assert explained.why.startswith("lz4 at level 0: of ")
        assert "the goal 'speed' gives 5 ns for a saved byte" in explained.why
        assert snugly.explain(client, "article:1", "short").codec == "none"
        assert snugly.explain(client, "article:1", bytes(40_000)).pattern is None
    with snugly.Valkey(port=valkey_server.port, compression=CompressionConfiguration(dictionary=PAGES)) as client:
        client.set("page:1", page(1))
        until(lambda: snugly.explain(client, "page:1").dictionary == PAGES.id)
        explained = snugly.explain(client, "page:1")
        assert (explained.codec, explained.level) == ("zstd", 3)
        assert explained.why == "zstd: the configuration says so"
    with snugly.Valkey(port=valkey_server.port, compression=choosing(dictionary_exclude=("article:*",))) as client:
        assert "excludes such keys" in snugly.explain(client, "article:1").why
    with pytest.raises(snugly.ConfigurationError, match="not compressed"):
        snugly.explain(valkey.Valkey(), "page:1")


MAKERS = st.sampled_from([user, page, noise, article])


@settings(max_examples=15)
@given(
    goal=st.sampled_from([None, *Goal]),
    dictionary=st.sampled_from([None, "catalogue", "auto"]),
    kinds=st.lists(st.tuples(MAKERS, st.integers(1, 400), st.binary(max_size=40)), min_size=1, max_size=4),
)
def test_whatever_is_learned_what_is_read_is_what_was_written(
    valkey_server: Server, goal: Goal | None, dictionary: Any, kinds: list[tuple[Any, int, bytes]]
) -> None:
    configuration = CompressionConfiguration(
        backend=CompressionBackend.AUTO if goal else CompressionBackend.ZSTD,
        goal=goal or Goal.BALANCED,
        dictionary=dictionary,
        dictionary_refresh=0.1,
        existing_envelopes=snugly.ExistingEnvelopes.WRAP,
    )
    with (
        snugly.Valkey(port=valkey_server.port, compression=configuration) as client,
        snugly.Valkey(port=valkey_server.port, compression=READER) as reader,
    ):
        for place, (make, count, tail) in enumerate(kinds):
            written = {f"kind{'abcd'[place]}:{number}": make(number) + tail for number in range(count)}
            for key, value in written.items():
                client.set(key, value)
            client.mset(written)
            assert client.mget(written) == reader.mget(written) == list(written.values())
