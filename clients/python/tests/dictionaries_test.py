"""Dictionaries beside the data: who writes with which, who reads, and how they stay where they are."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import glide_sync
import pytest
import valkey
from glide_shared import CompressionConfiguration as GlideCompression
from hypothesis import given
from hypothesis import strategies as st

import envelope
import servers
import snugly
import snugly.asyncio
from kinds import KINDS, Connect, Driver, Kind, connected, gated
from managing import CATALOGUE, PATIENT, READER, REFRESH, all_threads, own_server, write_until
from nodes import ask
from published import (
    PAGES,
    STORED,
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
from snugly import CompressionBackend, CompressionConfiguration, Dictionary, OnUndecodable, ValueType, codec
from threads import in_threads
from waiting import until

GIVEN = codec.Codec(CompressionConfiguration(dictionary=USERS))
KIND = {kind.name: kind for kind in KINDS}


def reads(client: Driver, key: str, value: bytes) -> bool:
    return bool(client("get", key) == value)


def is_beside(plain: Any, dictionary: Dictionary) -> bool:
    return bool(plain.get(dictionary_key(dictionary)) == dictionary.bytes)


# Every kind of client.


def test_the_first_pattern_that_matches_decides_and_anybody_reads(connect: Connect, plain: Driver) -> None:
    publish(plain, ("user:*", USERS), ("*", PAGES))
    writer = connect(CATALOGUE)
    write_until(writer, plain, "user:1", user(1))
    write_until(writer, plain, "page:1", page(1))
    for key, dictionary in (("user:1", USERS), ("page:1", PAGES)):
        header = codec.inspect(plain("get", key))
        assert header is not None
        assert header.dictionary == dictionary.id
    reader = connect(READER)
    assert reader("get", "user:1") == user(1)
    assert reader.batch(("get", "page:1"), ("get", "user:1"), ("get", "nothing")) == [page(1), user(1), None]
    reader("set", "user:1", user(2))
    assert bytes(plain("get", "user:1"))[4] == 1, "a reader's own setting is to write without"
    assert writer("get", "user:1") == user(2)


def test_lz4_uses_the_same_dictionaries(connect: Connect, plain: Driver) -> None:
    publish(plain, ("user:*", USERS))
    writer = connect(replace(CATALOGUE, backend=CompressionBackend.LZ4))
    write_until(writer, plain, "user:1", user(1), start=WITH_LZ4_AND_DICTIONARY)
    stored = bytes(plain("get", "user:1"))
    header = codec.inspect(stored)
    assert header == codec.Envelope(backend=0x82, name="lz4_dictionary", size=len(user(1)), dictionary=USERS.id)
    reader = connect(READER)
    assert reader("get", "user:1") == user(1)
    damaged = bytearray(stored)
    damaged[-1] ^= 1
    plain("set", "user:2", bytes(damaged))
    with pytest.raises(snugly.UndecodableError) as caught:
        reader("get", "user:2")
    assert (caught.value.kind, caught.value.key, caught.value.backend) == ("corrupt", b"user:2", 0x82)


def test_several_values_of_one_reply_are_waited_for(kind: Kind, connect: Connect, plain: Driver) -> None:
    publish(plain, ("user:*", USERS), ("*", PAGES))
    pages = codec.Codec(CompressionConfiguration(dictionary=PAGES))
    for number in range(3):
        plain("set", f"{{a}}user:{number}", GIVEN.encode(user(number)))
        plain("set", f"{{a}}page:{number}", pages.encode(page(number)))
    reader = connect(READER)
    keys = [f"{{a}}{name}:{number}" for number in range(3) for name in ("user", "page")]
    wanted = [make(number) for number in range(3) for make in (user, page)]
    assert reader("mget", keys) == wanted
    assert connect(READER).batch(*(("get", key) for key in keys)) == wanted
    assert snugly.statistics(reader.client)["dictionaries_fetched"] == 2
    # Clients of redis-py's asyncio clusters look for nodes in event loops of their own, and leave connections there.
    if kind.transactions and kind.name != "redis-py-asyncio-cluster":
        assert connect(READER).batch(*(("get", key) for key in keys), transaction=True) == wanted


def test_hashes_are_written_by_the_key_of_the_hash(connect: Connect, plain: Driver) -> None:
    publish(plain, ("user:*", USERS))
    types = {ValueType.STRINGS, ValueType.HASHES}
    writer = connect(CompressionConfiguration(dictionary="catalogue", dictionary_refresh=REFRESH, value_types=types))
    write_until(writer, plain, "user:1", user(1))
    writer("hset", "user:2", "page:1", user(2))
    assert bytes(plain("hget", "user:2", "page:1")).startswith(WITH_DICTIONARY)
    reader = connect(CompressionConfiguration(dictionary_refresh=REFRESH, value_types=types))
    assert reader("hgetall", "user:2") == {b"page:1": user(2)}


def test_text_is_text(connect: Connect, plain: Driver) -> None:
    publish(plain, ("user:*", USERS))
    plain("set", "user:1", STORED)
    reader = connect(READER, decode_responses=True)
    assert reader("get", "user:1") == user(1).decode()
    assert connect(READER, decode_responses=True)("mget", ["user:1"]) == [user(1).decode()]


def test_a_missing_dictionary_is_an_error_that_names_it(connect: Connect, plain: Driver) -> None:
    plain("set", "user:1", STORED)
    reader = connect(READER)
    with pytest.raises(snugly.UndecodableError, match=str(USERS.id)) as caught:
        reader("get", "user:1")
    assert (caught.value.kind, caught.value.key, caught.value.backend) == ("dictionary_missing", b"user:1", 0x81)
    result, nothing = reader.batch(("get", "user:1"), ("get", "nothing"), raise_on_error=False)
    assert isinstance(result, snugly.UndecodableError)
    assert nothing is None
    assert snugly.statistics(reader.client)["decode_failures"] == 2
    raw = connect(CompressionConfiguration(dictionary_refresh=REFRESH, on_undecodable=OnUndecodable.RAW))
    assert raw("get", "user:1") == STORED


def test_a_given_dictionary_is_used_for_every_key_and_put_beside_the_data(connect: Connect, plain: Driver) -> None:
    writer = connect(CompressionConfiguration(dictionary=USERS, dictionary_refresh=REFRESH))
    write_until(writer, plain, "{a}page:1", user(2))
    assert plain("get", dictionary_key(USERS)) == USERS.bytes, "others can have it before it is used"
    writer("mset", {"{a}user:1": user(1), "{a}page:1": user(2)})
    assert bytes(plain("get", "{a}user:1")).startswith(WITH_DICTIONARY)
    assert connect(READER)("mget", ["{a}user:1", "{a}page:1"]) == [user(1), user(2)]


@pytest.mark.parametrize("dictionary", [USERS, "catalogue", "auto"], ids=["given", "catalogue", "auto"])
def test_who_goes_back_to_no_compression_reads_with_dictionaries_and_writes_without(
    dictionary: Any, connect: Connect, plain: Driver
) -> None:
    publish(plain, ("user:*", USERS))
    plain("set", "user:1", STORED)
    client = connect(CompressionConfiguration(backend="none", dictionary=dictionary, dictionary_refresh=REFRESH))  # type: ignore[arg-type]
    assert client("get", "user:1") == user(1)
    client("set", "user:2", user(2))
    assert plain("get", "user:2") == user(2)
    assert snugly.explain(client.client, "user:2").dictionary is None


# The rules, with one kind of client.


@pytest.mark.slow
def test_a_new_dictionary_is_not_used_before_one_refresh_has_passed() -> None:
    refresh = 1.5
    with own_server() as (server, plain):
        published_at = int(time.time())
        publish(sender(plain), ("*", USERS), at=published_at)
        configuration = CompressionConfiguration(dictionary="catalogue", dictionary_refresh=refresh)
        with snugly.Valkey(port=server.port, compression=configuration) as writer:

            def is_used() -> bool:
                writer.set("user:1", user(1))
                written_by = time.time()
                used = bytes(plain.get("user:1")).startswith(WITH_DICTIONARY)
                assert not used or written_by + 0.5 >= published_at + refresh
                return used

            until(is_used)


def test_without_a_catalogue_and_with_a_broken_one_values_are_written_without(caplog: Any) -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=CATALOGUE) as writer:
        publish(sender(plain), ("*", USERS))
        write_until(Driver(lambda: writer), Driver(lambda: plain), "user:1", user(1))
        plain.set("{snugly}:dicts", b'{"version": 2}')
        write_until(Driver(lambda: writer), Driver(lambda: plain), "user:1", user(1), b"\0\1\2\0\1")
        publish(sender(plain), ("*", USERS))
        write_until(Driver(lambda: writer), Driver(lambda: plain), "user:1", user(1))
        plain.flushall()
        write_until(Driver(lambda: writer), Driver(lambda: plain), "user:1", user(1), b"\0\1\2\0\1")
    assert "version 2, and this client knows version 1" in caplog.text
    assert len(caplog.records) == 1


def test_all_who_wait_share_one_fetch() -> None:
    with own_server() as (server, plain):
        plain.set("user:1", STORED)
        with snugly.Valkey(port=server.port, compression=PATIENT) as reader:

            def read() -> None:
                assert reader.get("user:1") == user(1)

            def put_late() -> None:
                until(lambda: server_misses(plain) > 0)
                plain.set(dictionary_key(USERS), USERS.bytes)

            in_threads(put_late, *[read] * 16)
            assert snugly.statistics(reader)["dictionaries_fetched"] == 1

        async def main() -> None:
            async with snugly.asyncio.Valkey(port=server.port, compression=READER) as reader:
                assert await asyncio.gather(*(reader.get("user:1") for _ in range(20))) == [user(1)] * 20
                assert snugly.statistics(reader)["dictionaries_fetched"] == 1

        asyncio.run(main())


def server_misses(plain: Any) -> int:
    return int(plain.info("stats")["keyspace_misses"])


def test_a_client_with_one_connection_fetches_beside_it() -> None:
    with own_server() as (server, plain):
        plain.mset({"user:1": STORED, dictionary_key(USERS): USERS.bytes})
        for native in (True, False):
            with snugly.Valkey(port=server.port, compression=READER, max_connections=1, native=native) as reader:
                assert reader.pipeline().get("user:1").get("user:1").execute() == [user(1)] * 2
            with snugly.Valkey(port=server.port, compression=READER, single_connection_client=True) as reader:
                assert reader.get("user:1") == user(1)


def test_an_event_loop_goes_on_while_a_dictionary_is_waited_for() -> None:
    async def main(server: Server, plain: Any) -> None:
        async with snugly.asyncio.Valkey(port=server.port, compression=PATIENT) as reader:
            waiting = asyncio.ensure_future(reader.get("user:1"))
            while not server_misses(plain):
                assert await reader.get("other") == b"value"
            assert not waiting.done()
            plain.set(dictionary_key(USERS), USERS.bytes)
            assert await waiting == user(1)

    with own_server() as (server, plain):
        plain.mset({"user:1": STORED, "other": b"value"})
        asyncio.run(main(server, plain))


def test_that_a_dictionary_is_missing_is_remembered_for_a_while() -> None:
    # For longer than a busy machine takes for this test.
    patient = CompressionConfiguration(dictionary_refresh=86_400)
    with own_server() as (server, plain):
        plain.set("user:1", STORED)
        with snugly.Valkey(port=server.port, compression=patient) as reader:
            with pytest.raises(snugly.UndecodableError):
                reader.get("user:1")
            before = server_misses(plain)
            for _ in range(3):
                with pytest.raises(snugly.UndecodableError):
                    reader.get("user:1")
            assert server_misses(plain) == before


@pytest.mark.parametrize("wrong", [b"no dictionary", PAGES.bytes, USERS.bytes[:-1]], ids=["bytes", "other", "cut"])
def test_what_is_not_the_dictionary_is_refused(wrong: bytes) -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=READER) as reader:
        plain.mset({"user:1": STORED, dictionary_key(USERS): wrong})
        with pytest.raises(snugly.UndecodableError, match=str(USERS.id)):
            reader.get("user:1")


def test_what_is_in_use_is_put_back_and_the_catalogue_is_not() -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=CATALOGUE) as writer:
        publish(sender(plain), ("*", USERS))
        write_until(Driver(lambda: writer), Driver(lambda: plain), "user:1", user(1))
        plain.flushall()
        until(lambda: bool(plain.get(dictionary_key(USERS)) == USERS.bytes))
        assert not plain.exists("{snugly}:dicts")
        until(lambda: snugly.statistics(writer)["dictionaries_put_back"] == 1)
        plain.set("user:1", STORED)
        with snugly.Valkey(port=server.port, compression=READER) as reader:
            assert reader.get("user:1") == user(1)


def test_what_is_forgotten_does_not_come_back() -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=CATALOGUE) as writer:
        publish(sender(plain), ("*", USERS))
        write_until(Driver(lambda: writer), Driver(lambda: plain), "user:1", user(1))
        publish(sender(plain), ("page:*", PAGES), forgotten=[USERS.id])
        plain.delete(dictionary_key(USERS))
        write_until(Driver(lambda: writer), Driver(lambda: plain), "page:1", page(1))
        with pytest.raises(snugly.UndecodableError, match=str(USERS.id)):
            writer.get("user:1")
        assert not plain.exists(dictionary_key(USERS))


@pytest.mark.parametrize("name", gated(["snugly", "redis-py-asyncio"]))
def test_a_given_dictionary_that_is_forgotten_is_neither_put_back_nor_written_with(name: str) -> None:
    configuration = CompressionConfiguration(dictionary=USERS, dictionary_refresh=REFRESH)
    with own_server() as (server, plain), connected(KIND[name], server.port, configuration) as writer:
        write_until(writer, Driver(lambda: plain), "user:1", user(1))
        publish(sender(plain), ("page:*", PAGES), forgotten=[USERS.id])
        # The key is deleted last: until then it is there, and forgotten.
        write_until(writer, Driver(lambda: plain), "user:2", user(2), b"\0\1\2\0\1")
        plain.delete(dictionary_key(USERS))
        touched = plain.info("commandstats")["cmdstat_touch"]["calls"]

        def has_looked() -> bool:
            writer("set", "user:2", user(2))
            assert bytes(plain.get("user:2")).startswith(b"\0\1\2\0\1")
            return bool(plain.info("commandstats")["cmdstat_touch"]["calls"] > touched + 6)

        until(has_looked)
        assert not plain.exists(dictionary_key(USERS))
        assert writer("get", "user:1") == user(1), "who was given it still reads with it"
        publish(sender(plain), ("page:*", PAGES))
        write_until(writer, Driver(lambda: plain), "user:1", user(1))
        assert is_beside(plain, USERS)


def test_copies_in_a_folder_are_used_if_they_are_right(tmp_path: Path) -> None:
    folder = tmp_path / "dictionaries"
    configuration = CompressionConfiguration(dictionary_refresh=REFRESH, dictionary_folder=folder)
    with own_server() as (server, plain):
        plain.mset({"user:1": STORED, dictionary_key(USERS): USERS.bytes})
        with snugly.Valkey(port=server.port, compression=configuration) as reader:
            assert reader.get("user:1") == user(1)
        (copy,) = folder.iterdir()
        assert Dictionary(copy) == USERS
        plain.delete(dictionary_key(USERS))
        with snugly.Valkey(port=server.port, compression=configuration) as reader:
            assert reader.get("user:1") == user(1)
        until(lambda: not all_threads())
        plain.delete(dictionary_key(USERS))
        copy.write_bytes(b"something else")
        with (
            snugly.Valkey(port=server.port, compression=configuration) as reader,
            pytest.raises(snugly.UndecodableError),
        ):
            reader.get("user:1")


@pytest.mark.parametrize("name", gated(["snugly", "snugly-asyncio", "redis-py", "redis-py-asyncio"]))
def test_without_permission_dictionaries_are_off_with_one_warning(name: str, caplog: Any) -> None:
    with own_server() as (server, plain), ExitStack() as stack:
        publish(sender(plain), ("*", USERS))
        plain.set("user:1", STORED)
        plain.execute_command("ACL", "SETUSER", "limited", "on", ">secret", "~user:*", "+@all")
        plain.execute_command("ACL", "SETUSER", "reader", "on", ">secret", "~user:*", "%R~{snugly}:*", "+@all")
        caplog.set_level(logging.WARNING)

        def client(compression: CompressionConfiguration, who: str) -> Driver:
            made = connected(KIND[name], server.port, compression, username=who, password="secret")
            return stack.enter_context(made)

        limited = client(CATALOGUE, "limited")
        for number in range(2, 100):
            limited("set", f"user:{number}", user(number))
            assert limited("get", f"user:{number}") == user(number)
        for _ in range(2):
            with pytest.raises(snugly.UndecodableError):
                limited("get", "user:1")
        assert [record.getMessage()[:21] for record in caplog.records] == ["dictionaries are off,"]
        reader = client(READER, "reader")
        for _ in range(50):
            assert reader("get", "user:1") == user(1)
        plain.delete(dictionary_key(USERS))
        until(lambda: (reader("get", "user:1"), len(caplog.records) == 2)[1])
        assert "are not kept from eviction" in caplog.records[1].getMessage()


@pytest.mark.parametrize("name", gated(["snugly", "redis-py-asyncio"]))
def test_a_given_dictionary_that_may_not_be_put_beside_the_data_is_not_used(name: str, caplog: Any) -> None:
    with own_server() as (server, plain), ExitStack() as stack:
        plain.execute_command("ACL", "SETUSER", "limited", "on", ">secret", "~user:*", "+@all")
        plain.execute_command("ACL", "SETUSER", "reader", "on", ">secret", "~user:*", "%R~{snugly}:*", "+@all")
        configuration = CompressionConfiguration(dictionary=USERS, dictionary_refresh=REFRESH)
        for who, warning in (("limited", "dictionaries are off"), ("reader", "the server does not take them")):
            made = connected(KIND[name], server.port, configuration, username=who, password="secret")
            writer = stack.enter_context(made)

            def is_warned(writer: Driver = writer, warning: str = warning) -> bool:
                writer("set", "user:1", user(1))
                assert not bytes(plain.get("user:1")).startswith(WITH_DICTIONARY)
                return warning in caplog.text

            until(is_warned)
            assert writer("get", "user:1") == user(1)
        assert not plain.exists(dictionary_key(USERS))
        plain.set(dictionary_key(USERS), USERS.bytes)
        write_until(writer, Driver(lambda: plain), "user:1", user(1))
        plain.delete(dictionary_key(USERS))
        write_until(writer, Driver(lambda: plain), "user:1", user(1), b"\0\1\2\0\1")


@pytest.mark.parametrize("dictionary", ["catalogue", USERS], ids=["catalogue", "given"])
def test_when_permission_is_taken_away_values_are_written_without(dictionary: Any, caplog: Any) -> None:
    with own_server() as (server, plain):
        publish(sender(plain), ("*", USERS))
        acl: tuple[Any, ...] = ("ACL", "SETUSER", "writer", "on", ">secret", "+@all")
        plain.execute_command(*acl, "~*")
        configuration = CompressionConfiguration(dictionary=dictionary, dictionary_refresh=REFRESH)
        with connected(KIND["snugly"], server.port, configuration, username="writer", password="secret") as writer:
            write_until(writer, Driver(lambda: plain), "user:1", user(1))
            plain.execute_command(*acl, "resetkeys", "~user:*")
            write_until(writer, Driver(lambda: plain), "user:1", user(1), b"\0\1\2\0\1")
            until(lambda: "dictionaries are off" in caplog.text)
            assert writer("get", "user:1") == user(1)
            plain.execute_command(*acl, "~*")
            write_until(writer, Driver(lambda: plain), "user:1", user(1))


@pytest.mark.parametrize("name", gated(["snugly", "snugly-asyncio", "redis-py", "redis-py-asyncio"]))
def test_a_reader_that_gets_its_permission_back_reads_with_dictionaries(name: str) -> None:
    with own_server() as (server, plain):
        publish(sender(plain), ("*", USERS))
        plain.set("user:1", STORED)
        acl: tuple[Any, ...] = ("ACL", "SETUSER", "reader", "on", ">secret", "+@all")
        plain.execute_command(*acl, "~user:*")
        with connected(KIND[name], server.port, READER, username="reader", password="secret") as reader:
            with pytest.raises(snugly.UndecodableError):
                reader("get", "user:1")
            plain.execute_command(*acl, "~*")

            def is_read() -> bool:
                try:
                    return bool(reader("get", "user:1") == user(1))
                except snugly.UndecodableError:
                    return False

            until(is_read)


def test_while_the_catalogue_cannot_be_read_nothing_is_put_back() -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=CATALOGUE) as writer:
        publish(sender(plain), ("*", USERS))
        write_until(Driver(lambda: writer), Driver(lambda: plain), "user:1", user(1))
        plain.delete("{snugly}:dicts")
        plain.lpush("{snugly}:dicts", "no catalogue")
        plain.delete(dictionary_key(USERS))
        touched = plain.info("commandstats")["cmdstat_touch"]["calls"]
        until(lambda: plain.info("commandstats")["cmdstat_touch"]["calls"] > touched + 6)
        assert not plain.exists(dictionary_key(USERS))
        plain.delete("{snugly}:dicts")
        until(lambda: bool(plain.get(dictionary_key(USERS)) == USERS.bytes))


def test_one_dictionary_that_the_server_does_not_take_holds_up_no_other(caplog: Any) -> None:
    with own_server() as (server, plain):
        publish(sender(plain), ("user:*", USERS), ("*", PAGES))
        acl: tuple[Any, ...] = ("ACL", "SETUSER", "writer", "on", ">secret", "+@all", "resetkeys", "~*:1")
        plain.execute_command(*acl, "~{snugly}:*")
        with connected(KIND["snugly"], server.port, CATALOGUE, username="writer", password="secret") as writer:
            write_until(writer, Driver(lambda: plain), "user:1", user(1))
            write_until(writer, Driver(lambda: plain), "page:1", page(1))
            for other, lost in ((USERS, PAGES), (PAGES, USERS)):
                plain.execute_command(*acl, "%R~{snugly}:*", f"~{dictionary_key(other)}")
                plain.delete(dictionary_key(lost), dictionary_key(other))
                until(partial(is_beside, plain, other))
                assert not plain.exists(dictionary_key(lost))
                plain.execute_command(*acl, "~{snugly}:*")
                until(partial(is_beside, plain, lost))
        assert "the server does not take them" in caplog.text


def test_threads_write_with_dictionaries_and_read() -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=CATALOGUE) as client:
        publish(sender(plain), ("user:*", USERS), ("*", PAGES))
        write_until(Driver(lambda: client), Driver(lambda: plain), "user:1", user(1))

        def work(thread: int) -> None:
            for number in range(50):
                client.set(f"user:{thread}:{number}", user(number))
                pipeline = client.pipeline()
                for each in range(100):
                    pipeline.set(f"page:{thread}:{each}", page(each) * 5)
                pipeline.get(f"user:{thread}:{number}")
                assert pipeline.execute()[-1] == user(number)

        in_threads(*(lambda thread=thread: work(thread) for thread in range(8)))
        assert codec.inspect(plain.get("page:0:0")).dictionary == PAGES.id  # type: ignore[union-attr]
        counted = snugly.statistics(client)
        assert counted["encoded_values_zstd_dictionary"] >= 8 * 50 * 101
        assert counted["decode_failures"] == 0


def test_values_of_excluded_keys_are_written_without() -> None:
    with own_server() as (server, plain):
        publish(sender(plain), ("*", USERS))
        excluding: Any = {"dictionary_exclude": ("session:*", b"[ab]"), "dictionary_refresh": REFRESH}
        for dictionary in ("catalogue", USERS):
            configuration = CompressionConfiguration(dictionary=dictionary, **excluding)
            with connected(KIND["snugly"], server.port, configuration) as writer:
                write_until(writer, Driver(lambda: plain), "user:1", user(1))
                for key in ("session:1", "a"):
                    writer("set", key, user(1))
                    assert bytes(plain.get(key)).startswith(b"\0\1\2\0\1")
                    assert writer("get", key) == user(1)


# Servers that lose keys, clusters, and others' clients.


@pytest.mark.slow
def test_nothing_is_unreadable_while_the_server_evicts_and_one_client_holds_the_dictionary() -> None:
    with own_server("--maxmemory", "6mb", "--maxmemory-policy", "allkeys-lru") as (server, plain):
        refresh = 3.0
        configuration = CompressionConfiguration(dictionary=USERS, dictionary_refresh=refresh)
        # The default patience.
        reading = CompressionConfiguration(dictionary="catalogue")
        ends = time.monotonic() + 12
        read = 0

        def press() -> None:
            """Turns memory over in about a second."""
            with valkey.Valkey(port=server.port) as noise:
                number = 0
                while time.monotonic() < ends:
                    noise.mset({f"noise:{number + each}": os.urandom(20_000) for each in range(5)})
                    number += 5
                    time.sleep(0.01)

        def write_and_read() -> None:
            nonlocal read
            with snugly.Valkey(port=server.port, compression=configuration) as holder:
                number = 0
                while time.monotonic() < ends:
                    number += 1
                    holder.set("user:1", user(number))
                    with snugly.Valkey(port=server.port, compression=reading) as fresh:
                        value = fresh.get("user:1")
                        assert value in (user(number), None)
                        read += value is not None
                assert snugly.statistics(holder)["dictionaries_put_back"] > 1, "the server evicts it"

        in_threads(press, write_and_read)
        assert read > 50
        assert plain.info("stats")["evicted_keys"] > 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", gated(kind.name for kind in KINDS if kind.cluster))
def test_of_a_clusters_nodes_primaries_are_asked_also_by_who_reads_from_replicas(name: str) -> None:
    """Values are written only, or read by a command of writers, so that nobody else asks the replica."""

    def gets(node: Server) -> int:
        with valkey.Valkey(port=node.port) as client:
            calls: int = client.info("commandstats").get("cmdstat_get", {"calls": 0})["calls"]
            return calls

    with servers.valkey_cluster(1, 1) as (primary, replica), valkey.Valkey(port=primary.port) as plain:
        publish(sender(plain), ("*", USERS))
        plain.set("page:1", codec.Codec(CompressionConfiguration(dictionary=PAGES)).encode(page(1)))
        plain.set(dictionary_key(PAGES), PAGES.bytes)
        with connected(KIND[name], primary.port, CATALOGUE, read_from_replicas=True) as client:
            assert client("getex", "page:1") == page(1)
            before = gets(primary)

            def is_read_often() -> bool:
                client("set", "user:1", user(1))
                return gets(primary) > before + 5

            until(is_read_often)
        assert gets(replica) == 0


@pytest.mark.slow
def test_in_a_cluster_dictionaries_outlive_the_node_that_has_them() -> None:
    with servers.valkey_cluster(3, 1, "--cluster-node-timeout", "3000") as nodes, ExitStack() as stack:
        host: Any = {"host": "127.0.0.1", "port": nodes[0].port}
        plain = stack.enter_context(valkey.ValkeyCluster(**host))
        publish(sender(plain), ("*", USERS))
        holder: Any = snugly.ValkeyCluster(**host, compression=CATALOGUE)
        write_until(Driver(lambda: holder), Driver(lambda: plain), "user:1", user(1))
        plain.set("{b}", STORED)
        names = ("snugly-cluster", "redis-py-cluster", "snugly-asyncio-cluster", "redis-py-asyncio-cluster")
        before = [
            stack.enter_context(connected(KIND[name], nodes[0].port, READER, read_from_replicas=True)) for name in names
        ]
        for reader in before:
            reader("get", "{b}")
        node = plain.get_node_from_key(dictionary_key(USERS))
        lost = next(each for each in nodes if each.port == node.port)
        survivor = next(each for each in nodes[:3] if each is not lost)
        lost.process.kill()
        lost.process.wait()

        def is_taken_over() -> bool:
            slots: Any = ask(survivor, "CLUSTER", "SLOTS")
            info: Any = ask(survivor, "CLUSTER", "INFO")
            return b"cluster_state:ok" in info and all(primary[1] != lost.port for _, _, primary, *_ in slots)

        until(is_taken_over)
        elsewhere: Any = {"host": "127.0.0.1", "port": survivor.port}
        with valkey.ValkeyCluster(**elsewhere) as other:
            for name in names:
                other.delete(dictionary_key(USERS))
                until(lambda: bool(other.get(dictionary_key(USERS)) == USERS.bytes))
                with connected(KIND[name], survivor.port, READER) as reader:
                    reader("set", "{b}", user(3))
                    other.set("{b}", STORED)
                    assert reader("get", "{b}") == user(1)
            pages = codec.Codec(CompressionConfiguration(dictionary=PAGES))
            other.mset_nonatomic({"{b}": pages.encode(page(1)), dictionary_key(PAGES): PAGES.bytes})
            for reader in before:
                # The value's replica may be behind.
                until(partial(reads, reader, "{b}", page(1)))
        holder.close()


def test_glide_gives_the_stored_bytes() -> None:
    """Values that GLIDE does not know are handed over: dictionaries are for fleets whose readers all know them."""
    with own_server() as (server, plain):
        plain.set("user:1", STORED)
        address = glide_sync.NodeAddress("127.0.0.1", server.port)
        configuration = glide_sync.GlideClientConfiguration(
            [address], compression=GlideCompression(enabled=True), request_timeout=60_000
        )
        client = glide_sync.GlideClient.create(configuration)
        assert client.get("user:1") == STORED
        client.close()


def test_servers_of_all_kinds_keep_dictionaries(any_server: Server) -> None:
    with valkey.Valkey(port=any_server.port) as plain:
        publish(sender(plain), ("*", USERS))
        with snugly.Valkey(port=any_server.port, compression=CATALOGUE) as writer:
            write_until(Driver(lambda: writer), Driver(lambda: plain), "user:1", user(1))
            plain.delete(dictionary_key(USERS))
            until(lambda: bool(plain.get(dictionary_key(USERS)) == USERS.bytes))
            with snugly.Valkey(port=any_server.port, compression=READER) as reader:
                assert reader.get("user:1") == user(1)
        plain.flushall()


# Dictionaries without a client, and settings.


@given(values=st.lists(st.binary(max_size=300) | st.integers(0, 10**6).map(user), max_size=20), checksum=st.booleans())
def test_what_is_decoded_is_what_was_encoded_with_a_dictionary(values: list[bytes], checksum: bool) -> None:
    configuration = CompressionConfiguration(
        dictionary=USERS, checksum=checksum, existing_envelopes=snugly.ExistingEnvelopes.WRAP
    )
    writer, reader = codec.Codec(configuration), codec.Codec(configuration)
    for value in values:
        assert reader.decode(writer.encode(value)) == value


@given(st.lists(st.binary(max_size=2000), max_size=4))
def test_what_is_decoded_is_what_was_encoded_with_lz4_and_a_dictionary(values: list[bytes]) -> None:
    both = codec.Codec(CompressionConfiguration(backend=CompressionBackend.LZ4, dictionary=USERS))
    for value in (*values, *(user(len(value)) + value for value in values)):
        assert both.decode(both.encode(value)) == value


def test_another_dictionary_is_not_taken_for_the_one() -> None:
    other = codec.Codec(CompressionConfiguration(dictionary=PAGES))
    for reader in (other, codec.Codec()):
        with pytest.raises(snugly.UndecodableError, match=str(USERS.id)) as caught:
            reader.decode(STORED)
        assert caught.value.kind == "dictionary_missing"
        assert reader.statistics()["dictionary_misses"] == reader.statistics()["decode_failures"] == 1


def test_a_dictionary_is_loaded_from_bytes_and_files_and_equals_itself(tmp_path: Path) -> None:
    path = tmp_path / "users.zdict"
    path.write_bytes(USERS.bytes)
    for loaded in (
        Dictionary(USERS.bytes),
        Dictionary(memoryview(USERS.bytes)),
        Dictionary(path),
        Dictionary(str(path)),
    ):
        assert loaded == USERS
        assert (loaded.id, hash(loaded)) == (USERS.id, hash(USERS))
    assert USERS != PAGES
    assert CompressionConfiguration(dictionary=path).dictionary == USERS
    assert len(STORED) < len(codec.encode(user(1))) / 2


def test_of_too_many_dictionaries_the_one_that_was_used_least_recently_is_let_go() -> None:
    def variant(number: int) -> Dictionary:
        content = USERS.bytes[8:-4] + number.to_bytes(4, "little")
        header = USERS.bytes[:4] + envelope.dictionary_id(bytes(8) + content).to_bytes(4, "little")
        return Dictionary(header + content)

    reader = codec.Codec(CompressionConfiguration(dictionary=PAGES))
    for number in range(200):
        reader.dictionaries.hold(variant(number).native, 0.0)
        if number == 0:
            used = variant(number)
        stored = codec.Codec(CompressionConfiguration(dictionary=used)).encode(user(1))
        assert reader.decode(stored) == user(1)
    held = reader.dictionaries.held()
    assert len(held) == 129
    assert {PAGES.id, used.id, variant(199).id} <= set(held)
    assert variant(1).id not in held


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dictionary(b"nothing"), "cannot be used as a dictionary: not a zstd dictionary"),
        (lambda: Dictionary("/no/such/file"), "the dictionary /no/such/file cannot be read: No such file"),
        (lambda: Dictionary.train([b"a"] * 3), "no dictionary can be trained from these samples"),
        (lambda: Dictionary.train([], 3), "cannot train a dictionary of 3 bytes: choose 256 to 1048576"),
        (lambda: Dictionary.train([], -1), "out of range|negative"),
        (lambda: CompressionConfiguration(dictionary=7), "None, 'catalogue', 'auto', a Dictionary, or a"),  # type: ignore[arg-type]
        (lambda: CompressionConfiguration(dictionary="/no/such/file"), "/no/such/file cannot be read"),
        (lambda: CompressionConfiguration(dictionary_refresh=0.0), "from 0.1 to 86400"),
        (lambda: CompressionConfiguration(dictionary_refresh=float("nan")), "from 0.1 to 86400"),
        (lambda: CompressionConfiguration(dictionary_prefix=""), "dictionary_prefix is ''"),
        (lambda: CompressionConfiguration(dictionary_folder=7), "dictionary_folder is 7"),  # type: ignore[arg-type]
        (lambda: codec.Codec(CATALOGUE), "which only clients can read"),
        (lambda: codec.Codec(CompressionConfiguration(dictionary="auto")), "which only clients can read"),
        (lambda: codec.Codec(CompressionConfiguration(backend=CompressionBackend.AUTO)), "'auto', which is for"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_with_what_is_allowed(make: Any, message: str) -> None:
    with pytest.raises(snugly.ConfigurationError, match=message):
        make()
