"""Cost of replies: dictionaries that are missing, IDs that strangers make up, and values that grow."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import pytest
import redis
import valkey

import snugly
import snugly.asyncio
from kinds import Connect, Driver
from managing import READER, REFRESH, own_server
from nodes import ask
from published import PREFIX, STORED, USERS, WITH_DICTIONARY, dictionary_key, publish, sender, user
from servers import Server
from snugly import CompressionConfiguration, OnUndecodable, codec
from snugly.missed import MissLog
from waiting import until

SETTLED = CompressionConfiguration(dictionary="catalogue", dictionary_refresh=REFRESH)


def needing(dictionary: int) -> bytes:
    """An envelope that a stranger has made: magic, a header with the ID of its dictionary, an empty block."""
    return WITH_DICTIONARY + b"\x28\xb5\x2f\xfd\x23" + dictionary.to_bytes(4, "little") + b"\x00\x01\x00\x00"


def gets_of_dictionaries(plain: Any) -> int:
    return int(plain.info("commandstats").get("cmdstat_get", {"calls": 0})["calls"])


def each_missing(reader: Driver, keys: list[str]) -> None:
    results = reader.batch(*(("get", key) for key in keys), raise_on_error=False)
    assert [result.kind for result in results] == ["dictionary_missing"] * len(keys)


@pytest.mark.slow
def test_all_that_a_pipeline_misses_is_looked_for_together(connect: Connect, plain: Driver) -> None:
    keys = [f"{{a}}{number}" for number in range(40)]
    for number, key in enumerate(keys):
        plain("set", key, needing(40_000 + number))
    reader = connect(SETTLED)
    began = time.monotonic()
    each_missing(reader, keys)
    # One after another these would take forty times as long as one.
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_an_unknown_dictionary_is_an_error_at_once_where_none_is_configured() -> None:
    with own_server() as (server, plain):
        plain.mset({str(number): needing(50_000 + number) for number in range(1000)})
        with snugly.Valkey(port=server.port, compression=True) as reader:
            before = gets_of_dictionaries(plain)
            for number in range(200):
                with pytest.raises(snugly.UndecodableError) as caught:
                    reader.get(str(number))
                assert caught.value.kind == "dictionary_missing"
            looked = gets_of_dictionaries(plain) - before - 200
            # Each look-up gets the catalogue and one dictionary.
            assert 2 <= looked <= 2 * (2 + 20), "one a second, even where this machine is slow"


@pytest.mark.slow
def test_made_up_dictionaries_cost_one_look_up_a_second_on_one_connection() -> None:
    async def main(port: int, plain: Any) -> None:
        async with snugly.asyncio.Valkey(port=port, compression=SETTLED) as reader:
            await reader.ping()
            connections = plain.info("stats")["total_connections_received"]
            missed = int(plain.info("stats")["keyspace_misses"])
            began = time.monotonic()
            read = await asyncio.gather(*(reader.get(str(number)) for number in range(500)), return_exceptions=True)
            took = time.monotonic() - began
            assert {getattr(each, "kind", None) for each in read} == {"dictionary_missing"}
            opened = plain.info("stats")["total_connections_received"] - connections
            assert opened <= 2, "one for looking, one for looking after them"
            asked = int(plain.info("stats")["keyspace_misses"]) - missed
            assert asked <= (took + 2) * 501, "one look-up a second, for all and the catalogue"

    with own_server() as (server, plain):
        plain.mset({str(number): needing(60_000 + number) for number in range(500)})
        asyncio.run(main(server.port, plain))


def test_a_dictionary_of_the_catalogue_is_waited_for_also_where_none_is_configured() -> None:
    with own_server() as (server, plain):
        publish(sender(plain), ("user:*", USERS))
        plain.set("user:1", STORED)
        plain.delete(dictionary_key(USERS))
        patient = CompressionConfiguration(dictionary_refresh=600.0)

        async def main() -> None:
            async with snugly.asyncio.Valkey(port=server.port, compression=patient) as reader:
                reading = asyncio.ensure_future(reader.get("user:1"))
                missed = plain.info("stats")["keyspace_misses"]
                while plain.info("stats")["keyspace_misses"] < missed + 2:
                    await asyncio.sleep(0.02)
                plain.set(dictionary_key(USERS), USERS.bytes)
                assert await reading == user(1)

        asyncio.run(main())


@pytest.mark.parametrize("batched", [True, False], ids=["pipeline", "one reply"])
def test_what_a_reply_expands_to_is_bounded(batched: bool, connect: Connect, plain: Driver) -> None:
    bomb = codec.encode(b"\0" * 1_000_000)
    keys = [f"{{a}}{number}" for number in range(4)]
    for key in keys:
        plain("set", key, bomb)
    bounded = connect(CompressionConfiguration(max_reply_bytes=2_500_000, on_undecodable=OnUndecodable.MISS))
    read = bounded.batch(*(("get", key) for key in keys)) if batched else bounded("mget", keys)
    assert [value and len(value) for value in read] == [1_000_000, 1_000_000, None, None]
    raising = connect(CompressionConfiguration(max_reply_bytes=2_500_000))
    with pytest.raises(snugly.UndecodableError, match="max_reply_bytes") as caught:
        raising("mget", keys)
    assert caught.value.kind == "too_large"
    assert len(connect(CompressionConfiguration(max_reply_bytes=0))("mget", keys)) == 4


@pytest.mark.parametrize("text", [True, False], ids=["text", "bytes"])
def test_what_cannot_be_read_can_be_a_miss(text: bool, connect: Connect, plain: Driver) -> None:
    plain("set", "{a}broken", codec.encode(b"x" * 500)[:-1])
    plain("set", "{a}missing", STORED)
    missing = connect(
        CompressionConfiguration(on_undecodable=OnUndecodable.MISS, dictionary_refresh=REFRESH), decode_responses=text
    )
    assert missing("get", "{a}broken") is None
    assert missing("mget", ["{a}broken", "{a}missing"]) == [None, None]
    assert missing.batch(("get", "{a}missing"), ("get", "{a}broken")) == [None, None]


def test_a_miss_is_a_warning_at_most_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    misses = MissLog(lambda: now[0])
    for second in range(130):
        now[0] = float(second)
        misses.tell(ValueError(f"number {second}"))
    assert [record.getMessage() for record in caplog.records] == [
        "a value counts as absent: number 0",
        "a value counts as absent: number 60 (59 more since the last of these warnings)",
        "a value counts as absent: number 120 (59 more since the last of these warnings)",
    ]
    assert {(record.name, record.levelname) for record in caplog.records} == {("snugly", "WARNING")}


def test_a_miss_is_told_with_its_key_and_counted(
    connect: Connect, plain: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    plain("set", "{a}broken", codec.encode(b"x" * 500)[:-1])
    missing = connect(CompressionConfiguration(on_undecodable=OnUndecodable.MISS))
    assert missing("mget", ["{a}broken", "{a}broken"]) == [None, None]
    (record,) = caplog.records
    assert "at key b'{a}broken'" in record.getMessage()
    assert snugly.statistics(missing.client)["decode_failures"] == 2


def test_a_dictionary_is_waited_for_no_longer_than_for_a_reply() -> None:
    with own_server() as (server, plain):
        publish(sender(plain), ("user:*", USERS))
        plain.set("user:1", STORED)
        plain.delete(dictionary_key(USERS))
        patient = CompressionConfiguration(dictionary_refresh=86_400.0)
        # Without the bound it would be three hours.
        reader = snugly.Valkey(port=server.port, compression=patient, socket_timeout=0.5)
        with reader, pytest.raises(snugly.UndecodableError, match="dictionary"):
            reader.get("user:1")


def until_written_with(client: Any, plain: Any) -> None:
    until(lambda: (client.set("user:1", user(1)), bytes(plain.get("user:1")).startswith(WITH_DICTIONARY))[1])


def test_what_overwrites_a_dictionary_is_noticed_and_mended() -> None:
    writing = CompressionConfiguration(dictionary=USERS, dictionary_refresh=REFRESH)
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=writing) as writer:
        until_written_with(writer, plain)
        for wrong in (b"something else", b""):
            plain.set(dictionary_key(USERS), wrong)
            until(lambda: bool(plain.get(dictionary_key(USERS)) == USERS.bytes))
        plain.delete(dictionary_key(USERS))
        plain.rpush(dictionary_key(USERS), "a list")
        until(lambda: bool(plain.type(dictionary_key(USERS)) == b"string"))
        until(lambda: snugly.statistics(writer)["dictionaries_mended"] == 3)


SLOW = CompressionConfiguration(dictionary=USERS, dictionary_refresh=600.0)
"""One whose rounds are a minute apart."""


def test_before_it_is_closed_a_writer_puts_back_what_is_gone() -> None:
    with own_server() as (server, plain):
        writer = snugly.Valkey(port=server.port, compression=SLOW)
        until_written_with(writer, plain)
        plain.flushall()
        writer.set("user:1", user(1))
        writer.close()  # type: ignore[no-untyped-call]
        assert plain.get(dictionary_key(USERS)) == USERS.bytes

        async def main() -> None:
            async with snugly.asyncio.Valkey(port=server.port, compression=SLOW) as writer:
                while not bytes(plain.get("user:1") or b"").startswith(WITH_DICTIONARY):
                    await writer.set("user:1", user(1))
                    await asyncio.sleep(0.02)
                plain.flushall()
                await writer.set("user:1", user(1))
            assert plain.get(dictionary_key(USERS)) == USERS.bytes

        plain.flushall()
        asyncio.run(main())


def test_after_a_connection_was_lost_a_writer_looks(connect: Connect, plain: Driver, nodes: list[Server]) -> None:
    def written() -> Any:
        with suppress(valkey.ConnectionError, redis.ConnectionError, valkey.exceptions.ClusterDownError):
            writer("set", "{snugly}:user", user(1))
            return plain("get", "{snugly}:user")

    writer = connect(SLOW)
    until(lambda: bytes(written() or b"").startswith(WITH_DICTIONARY))
    for node in nodes:
        ask(node, "FLUSHALL")
        ask(node, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    # The next regular look is up to fifty seconds away.
    until(lambda: bool(written() and plain("get", dictionary_key(USERS)) == USERS.bytes), seconds=30)


def test_a_connection_that_was_lost_while_nobody_asked_is_noticed_as_well() -> None:
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=SLOW) as writer:
        until_written_with(writer, plain)
        plain.flushall()
        plain.execute_command("CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")
        time.sleep(0.1)
        # The pool finds that its connection has ended, and makes another one without an error.
        writer.set("user:1", user(1))
        until(lambda: bool(plain.get(dictionary_key(USERS)) == USERS.bytes), seconds=30)


def test_dictionaries_of_several_databases_are_in_the_one_that_is_named() -> None:
    writing = CompressionConfiguration(dictionary=USERS, dictionary_refresh=REFRESH, dictionary_database=2)
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=writing) as writer:
        until_written_with(writer, plain)
        assert plain.get(dictionary_key(USERS)) is None
        plain.copy("user:1", "user:1", destination_db=1)
        reading = CompressionConfiguration(dictionary_refresh=REFRESH, dictionary_database=2)
        with snugly.Valkey(port=server.port, db=1, compression=reading) as reader:
            assert reader.get("user:1") == user(1)

        async def main() -> None:
            async with snugly.asyncio.Valkey(port=server.port, db=1, compression=reading) as reader:
                assert await reader.get("user:1") == user(1)

        asyncio.run(main())


def test_a_cluster_has_one_database(cluster: list[Any]) -> None:
    with pytest.raises(snugly.ConfigurationError, match="dictionary_database"):
        snugly.ValkeyCluster(
            host="127.0.0.1", port=cluster[0].port, compression=CompressionConfiguration(dictionary_database=1)
        )


def test_an_error_says_that_permission_was_missing() -> None:
    with own_server() as (server, plain):
        plain.set("user:1", STORED)
        plain.execute_command("ACL", "SETUSER", "limited", "on", ">secret", "~user:*", "+@all")
        options = {"username": "limited", "password": "secret", "port": server.port}
        reader = snugly.Valkey(**options, compression=READER)  # type: ignore[arg-type]
        with reader, pytest.raises(snugly.UndecodableError, match=f"the keys {PREFIX}:\\* may not be read"):
            reader.get("user:1")
