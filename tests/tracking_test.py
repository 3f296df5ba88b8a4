"""Client-side caching: whoever keeps copies of what it reads is told when they are out of date."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import valkey
from redis.cache import CacheConfig
from redis.connection import CacheProxyConnection

from comparison import seeds
from resp import Argument, Connection, Failure, Items, Map, Other, Reply, Simple, encode, parse
from servers import Server
from tested import Start
from threads import in_threads
from waiting import until

OK = Simple(b"OK")
CHANNEL = b"__redis__:invalidate"

each_protocol = pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])


def invalidated(*keys: bytes) -> Items:
    return Items(b">", [b"invalidate", list(keys)])


def run(connection: Connection, *requests: list[str]) -> list[bytes]:
    """All that is sent before these requests are answered, but for what may follow the last of them."""
    connection.send(b"".join(encode(*request) for request in (*requests, ["ECHO", "done"])))
    seen = []
    while (reply := connection.read_raw()) != b"$4\r\ndone\r\n":
        seen.append(reply)
    return seen


def messages(connection: Connection) -> list[bytes]:
    """The messages that were sent before this was called: they may come behind the answer to one request."""
    return run(connection) + run(connection)


# The same, step by step, on this server and on valkey-server.

MODES: list[list[str]] = [
    [],
    ["NOLOOP"],
    ["OPTIN"],
    ["OPTOUT", "NOLOOP"],
    ["BCAST"],
    ["BCAST", "NOLOOP", "PREFIX", "u:"],
    ["BCAST", "PREFIX", "u:", "PREFIX", "v:"],
]
KEYS = ["a", "b", "u:1", "u:2", "v:1"]
# The year 2100: what is left of a time would differ with how long the servers take.
FAR = 4_102_444_800


def random_request(rng: random.Random) -> list[str]:
    key, other = rng.choice(KEYS), rng.choice(KEYS)
    reads = [
        *[f"GET {key}", f"MGET {key} {other}", f"STRLEN {key}", f"EXISTS {key} {other}", f"TYPE {key}"],
        *["DBSIZE", f"TOUCH {key}", f"EXPIRETIME {key}"],
    ]
    writes = [
        *[f"SET {key} 1", f"SET {key} 2 GET", f"INCR {key}", f"APPEND {key} 1", f"MSET {key} 1 {other} 2"],
        *[f"DEL {key} {other}", f"GETDEL {key}", f"EXPIREAT {key} {FAR}", f"PERSIST {key}", f"GETEX {key} EXAT {FAR}"],
        *["FLUSHALL", "FLUSHDB", f"SETNX {key} 1", f"GETEX {key}"],
    ]
    others = [
        *[f"SELECT {rng.randrange(2)}", "PING", "CLIENT CACHING YES", "CLIENT CACHING NO", "CLIENT TRACKINGINFO"],
        *["NOSUCH", "GET"],
    ]
    return rng.choice(rng.choices([reads, writes, others], [5, 3, 2])[0]).split()


def random_requests(rng: random.Random) -> list[list[str]]:
    requests = [random_request(rng) for _ in range(rng.randrange(1, 5))]
    return [["MULTI"], *requests, ["EXEC"]] if rng.random() < 0.3 else requests


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("redirect", ["itself", "resp3", "resp2"])
def test_messages_are_those_of_valkey_and_where_they_are(
    server: Server, peer: Server, redirect: str, seed: int
) -> None:
    streams = [list(play(target, redirect, random.Random(seed))) for target in (server, peer)]
    for ours, theirs in zip(*streams, strict=True):
        assert ours == theirs


def play(target: Server, redirect: str, rng: random.Random) -> Iterator[object]:
    """The messages to one client that caches, and changes keys too, while another one changes them."""
    # valkey-server sends a null in the version that the client speaks, whatever the listener speaks.
    protocol = 2 if redirect == "resp2" else 3
    with target.connect(protocol) as client, target.connect() as other, target.connect(protocol) as listener:
        other.command("FLUSHALL")
        mode: list[Argument] = list(rng.choice(MODES))
        if redirect != "itself":
            identity = listener.command("CLIENT", "ID")
            assert isinstance(identity, int)
            mode += ["REDIRECT", identity]
        if redirect == "resp2":
            listener.command("SUBSCRIBE", CHANNEL)
        assert client.command("CLIENT", "TRACKING", "ON", *mode) == OK
        for _ in range(25):
            requests = random_requests(rng)
            if rng.random() < 0.5:
                yield requests, without_identities(run(client, *requests))
            else:
                yield requests, run(other, *requests)
            yield "client", messages(client)
            if redirect == "resp2":
                yield "listener", messages_of_listener(listener)
            else:
                yield "listener", messages(listener)


def messages_of_listener(listener: Connection) -> list[bytes]:
    """As `messages`, of a client that may not send ECHO."""
    listener.send(encode("PING") * 2)
    pong = b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"
    seen = [listener.read_raw()]
    while seen.count(pong) < 2:
        seen.append(listener.read_raw())
    return [reply for reply in seen if reply != pong]


def without_identities(replies: list[bytes]) -> list[bytes]:
    """TRACKINGINFO names the client to which messages are redirected."""
    return [reply for reply in replies if b"redirect" not in reply]


# Special cases.


def test_an_idle_client_is_told_wherever_it_is_served(server: Server) -> None:
    clients = [server.connect(3) for _ in range(12)]
    for client in clients:
        assert client.command("CLIENT", "TRACKING", "ON") == OK
        assert client.command("GET", "key") is None
    with server.connect() as writer:
        writer.command("SET", "key", 1)
    for client in clients:
        assert client.read() == invalidated(b"key")
        client.close()


def test_a_broadcast_does_not_come_between_the_answers_to_requests_that_take_long(server: Server) -> None:
    with server.connect(3) as client:
        client.command("RPUSH", "list", *range(200_000))
        assert client.command("CLIENT", "TRACKING", "ON", "BCAST") == OK
        seen = run(client, ["SET", "key", "1"], *[["LPOS", "list", "absent"]] * 30, ["PING"])
        assert seen == [b"+OK\r\n", *[b"_\r\n"] * 30, b"+PONG\r\n"]
        assert client.read() == invalidated(b"key")


def test_a_key_that_expires_is_told(server: Server) -> None:
    with server.connect(3) as reader, server.connect(3) as listener:
        assert listener.command("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "k") == OK
        assert reader.command("CLIENT", "TRACKING", "ON") == OK
        # In a transaction, so that it is read before its time has come, however slow the machine is.
        for command in (["MULTI"], ["SET", "key", 1, "PX", 200], ["GET", "key"]):
            reader.command(*command)
        assert reader.command("EXEC") == [OK, b"1"]
        assert listener.read() == invalidated(b"key")
        assert listener.read() == invalidated(b"key")
        assert reader.read() == invalidated(b"key")


def test_a_key_that_is_evicted_is_told(start: Start) -> None:
    server = start(memory="20mb", policy="allkeys-random")
    with server.connect(3) as reader, server.connect() as writer:
        assert reader.command("CLIENT", "TRACKING", "ON") == OK
        reader.command("SET", "key", 1)
        reader.command("GET", "key")
        for number in range(100_000):
            writer.command("SET", f"other:{number}", random.randbytes(2000))
            if number % 100 == 0 and not writer.command("EXISTS", "key"):
                break
        assert reader.read() == invalidated(b"key")


def test_without_resp3_or_a_redirection_nothing_is_told(server: Server) -> None:
    with server.connect(2) as client:
        assert client.command("CLIENT", "TRACKING", "ON") == OK
        client.command("GET", "key")
        client.command("SET", "key", 1)
        assert messages(client) == []


def test_a_client_is_told_that_nobody_listens_any_more(server: Server) -> None:
    with server.connect(3) as client:
        with server.connect(2) as listener:
            listener.command("SUBSCRIBE", CHANNEL)
            with server.connect() as other:
                identity = number_of(other, "pubsub")
            assert client.command("CLIENT", "TRACKING", "ON", "REDIRECT", identity) == OK
            client.command("GET", "key")
            client.command("SET", "key", 1)
            assert listener.read() == [b"message", CHANNEL, [b"key"]]
        with server.connect() as other:
            until(lambda: not number_of(other, "pubsub"))
        client.command("GET", "key")
        client.command("SET", "key", 1)
        assert client.read() == Items(b">", [b"tracking-redir-broken", identity])
        text = client.command("CLIENT", "INFO")
        assert isinstance(text, Other)
        assert b" flags=tR " in text.text
        assert b" redir=%d " % identity in text.text


def number_of(connection: Connection, kind: str) -> int:
    """The number of the only client of a type; 0 for none."""
    text = connection.command("CLIENT", "LIST", "TYPE", kind)
    assert isinstance(text, bytes)
    return int(text.split(b" ")[0].removeprefix(b"id=") or 0)


@pytest.mark.snugly_only
def test_a_client_that_does_not_read_its_messages_is_disconnected(server: Server) -> None:
    with server.connect(3) as sleeper, server.connect() as writer:
        identity = sleeper.command("CLIENT", "ID")
        assert isinstance(identity, int)
        assert sleeper.command("CLIENT", "TRACKING", "ON", "BCAST") == OK
        for number in range(4000):
            writer.command("SET", f"{number:06}" + "k" * 60_000, 1)
            writer.command("DEL", f"{number:06}" + "k" * 60_000)
            if writer.command("CLIENT", "LIST", "ID", identity) == b"":
                break
        else:
            pytest.fail("240 MB of messages were kept for a client that does not read them")
        assert server.says("closed a connection that does not take its messages")


def stats(connection: Connection) -> dict[bytes, int]:
    fields: dict[bytes, int] = {}
    for section in ("stats", "clients"):
        text = connection.command("INFO", section)
        assert isinstance(text, bytes)
        for line in text.split(b"\r\n"):
            if line.startswith(b"tracking_"):
                name, value = line.split(b":")
                fields[name.removeprefix(b"tracking_")] = int(value)
    return fields


def test_what_is_remembered_is_counted_and_forgotten(server: Server) -> None:
    with server.connect() as observer:
        until(lambda: not any(stats(observer).values()))
        with server.connect(3) as one, server.connect(3) as two, server.connect(3) as three:
            for client in (one, two):
                client.command("CLIENT", "TRACKING", "ON")
                client.command("MGET", "a", "b")
            three.command("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x", "PREFIX", "y")
            counted = {b"clients": 3, b"total_keys": 2, b"total_items": 4, b"total_prefixes": 2}
            assert stats(observer) == counted
            observer.command("SET", "a", 1)
            assert stats(observer) == {**counted, b"total_keys": 1, b"total_items": 2}
            three.command("CLIENT", "TRACKING", "OFF")
            assert stats(observer) == {b"clients": 2, b"total_keys": 1, b"total_items": 2, b"total_prefixes": 0}
            observer.command("FLUSHALL")
            assert stats(observer) == {b"clients": 2, b"total_keys": 0, b"total_items": 0, b"total_prefixes": 0}
        until(lambda: not stats(observer)[b"clients"])


def test_a_full_table_forgets_keys_and_tells_so(start: Start) -> None:
    server = start("--tracking-table-max-keys", "10")
    with server.connect(3) as client, server.connect() as observer:
        client.command("CLIENT", "TRACKING", "ON")
        client.send(b"".join(encode("GET", f"key:{number}") for number in range(100)))
        told = messages(client)
        assert told.count(b"_\r\n") == 100
        # valkey-server makes room before a request, not behind it.
        assert 89 <= len(told) - 100 <= 90
        assert stats(observer)[b"total_keys"] in (10, 11)


def test_a_lower_limit_forgets_keys_at_once(server: Server) -> None:
    with server.connect(3) as client, server.connect() as observer:
        try:
            client.command("CLIENT", "TRACKING", "ON")
            client.send(b"".join(encode("GET", f"key:{number}") for number in range(500)))
            messages(client)
            assert stats(observer)[b"total_keys"] == 500
            observer.command("CONFIG", "SET", "tracking-table-max-keys", 10)
            until(lambda: stats(observer)[b"total_keys"] == 10)
            assert len(messages(client)) == 490
        finally:
            observer.command("CONFIG", "SET", "tracking-table-max-keys", 1_000_000)


@pytest.mark.parametrize("mode", [[], ["BCAST"]], ids=["keys", "prefixes"])
def test_a_round_trip_brings_the_news_of_all_that_was_answered_before(server: Server, mode: list[str]) -> None:
    with server.connect(3) as client, server.connect() as writer:
        client.command("CLIENT", "TRACKING", "ON", *mode)
        for number in range(1_000):
            client.command("GET", "key")
            assert writer.command("SET", "key", number) == OK
            client.send(encode("PING"))
            assert [client.read(), client.read()] == [invalidated(b"key"), Simple(b"PONG")]


@pytest.mark.snugly_only
def test_long_keys_and_short_lived_clients_do_not_fill_the_table(start: Start) -> None:
    server = start("--tracking-table-max-keys", "100")
    with server.connect(3) as client, server.connect() as observer:
        client.command("CLIENT", "TRACKING", "ON")
        for number in range(20):
            client.send(encode("GET", f"{number}" + "k" * 10_000))
        messages(client)
        assert 1 <= stats(observer)[b"total_keys"] <= 5
        for _ in range(200):
            with server.connect(3) as passing:
                passing.command("CLIENT", "TRACKING", "ON")
                passing.command("GET", "key")
        until(lambda: stats(observer)[b"total_items"] < 50)


@pytest.mark.snugly_only
def test_prefixes_are_bounded(server: Server) -> None:
    with server.connect(3) as client:
        prefixes = [part for number in range(1025) for part in ("PREFIX", f"{number:04}")]
        reply = client.command("CLIENT", "TRACKING", "ON", "BCAST", *prefixes)
        assert reply == Failure(b"ERR a client can track at most 1024 prefixes")
        reply = client.command("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "k" * 70_000)
        assert reply == Failure(b"ERR the prefix has 70000 bytes, a key at most 65536 (max-key-bytes)")


def test_copies_are_as_the_server_is_once_all_messages_are_read(server: Server) -> None:
    """Threads change keys and read them into copies at the same time; no copy stays that is out of date."""
    names = [f"key:{number}" for number in range(30)]
    written = threading.Event()

    def write() -> None:
        with server.connect() as connection:
            for number in range(1500):
                name = random.choice(names)
                change = random.choice([f"SET {name} {number}", f"DEL {name}", f"MSET {name} 1 key:1 2"])
                connection.command(*change.split())

    def write_all() -> None:
        try:
            in_threads(write, write, write)
        finally:
            written.set()

    def keep_copies(*mode: str) -> None:
        with server.connect(3) as connection, server.connect() as other:
            connection.command("CLIENT", "TRACKING", "ON", *mode)
            copies: dict[str, Reply] = {}

            def take(reply: Reply) -> bool:
                """Whether it is a message, and not what was asked for."""
                if not isinstance(reply, Items):
                    return False
                (_, changed) = reply.items
                assert isinstance(changed, list)
                for name in changed:
                    assert isinstance(name, bytes)
                    copies.pop(name.decode(), None)
                return True

            while not written.is_set():
                name = random.choice(names)
                connection.send(encode("GET", name))
                while take(reply := connection.read()):
                    pass
                copies[name] = reply
            for message in messages(connection):
                assert take(parse(message)[0])
            assert copies == {name: other.command("GET", name) for name in copies}

    in_threads(write_all, keep_copies, keep_copies, lambda: keep_copies("BCAST", "PREFIX", "key:"))


def test_redis_py_with_its_cache(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps copies only for servers that call themselves Redis 7.4 or later; these two attributes let it do so."""
    with server.connect(3) as connection:
        greeting = connection.command("HELLO")
    assert isinstance(greeting, Map)
    name = greeting.pairs[0][1]
    assert isinstance(name, bytes)
    monkeypatch.setattr(CacheProxyConnection, "DEFAULT_SERVER_NAME", name.decode())
    monkeypatch.setattr(CacheProxyConnection, "MIN_ALLOWED_VERSION", "0.0.1")
    with (
        redis.Redis(port=server.port, protocol=3, cache_config=CacheConfig()) as client,
        redis.Redis(port=server.port) as other,
    ):
        check_cache(client, other, server)


def test_valkey_py_with_its_cache(server: Server) -> None:
    options: Any = {"protocol": 3, "cache_enabled": True, "single_connection_client": True}
    with valkey.Valkey(port=server.port, **options) as client, valkey.Valkey(port=server.port) as other:
        check_cache(client, other, server)


def check_cache(client: Any, other: Any, server: Server) -> None:
    """Values come from the client's own cache until somebody changes them."""
    other.mset({"a": 1, "b": 2})

    def asked() -> int:
        with server.connect() as connection:
            text = connection.command("INFO", "commandstats")
            assert isinstance(text, bytes)
            calls = [line for line in text.split(b"\r\n") if line.startswith(b"cmdstat_get:")]
            return int(calls[0].split(b"calls=")[1].split(b",")[0]) if calls else 0

    before = asked()
    assert [client.get("a") for _ in range(10)] == [b"1"] * 10
    assert asked() == before + 1
    other.set("a", 5)
    until(lambda: bool(client.get("a") == b"5"))
    before = asked()
    assert [client.get("a") for _ in range(10)] == [b"5"] * 10
    assert asked() == before
    other.flushall()
    until(lambda: client.get("a") is None)


# Words and forms.

LISTENING: list[list[str]] = [
    *[["SUBSCRIBE"], ["UNSUBSCRIBE"], ["UNSUBSCRIBE", "nothing"], ["SUBSCRIBE", CHANNEL.decode()], ["PING"]],
    *[
        ["PING", "x"],
        ["PING", "x", "y"],
        ["GET", "nothing"],
        ["GET"],
        ["NOSUCH"],
        ["MULTI"],
        ["HELLO", "9"],
        ["CLIENT", "ID", "x"],
    ],
    *[["UNSUBSCRIBE", "nothing"], ["SUBSCRIBE", CHANNEL.decode()], ["UNSUBSCRIBE"], ["PING"], ["GET", "nothing"]],
    *[
        ["SUBSCRIBE", CHANNEL.decode()],
        ["UNSUBSCRIBE", CHANNEL.decode()],
        ["SUBSCRIBE", CHANNEL.decode()],
        ["RESET"],
        ["PING"],
    ],
]
TRACKING_MISTAKES: list[str] = [
    *["x", "ON x", "ON PREFIX", "ON PREFIX a", "x PREFIX a", "OFF", "OFF BCAST", "ON REDIRECT", "ON REDIRECT x"],
    *["ON REDIRECT 0", "ON REDIRECT 999999", "ON REDIRECT -1", "ON BCAST OPTIN", "ON BCAST OPTOUT", "ON OPTIN OPTOUT"],
    *["ON OPTIN", "ON OPTOUT", "ON BCAST", "ON NOLOOP", "ON OPTOUT", "OFF", "ON BCAST PREFIX foo PREFIX fo"],
    *["ON BCAST PREFIX foo PREFIX bar", "ON BCAST PREFIX foobar", "ON BCAST PREFIX f", "ON BCAST PREFIX baz", "ON"],
    *["ON BCAST", "ON BCAST", "OFF", "ON BCAST NOLOOP", "on noloop bcast"],
]


@each_protocol
def test_listeners_may_ask_for_what_valkeys_may(server: Server, peer: Server, protocol: int) -> None:
    with server.connect(protocol) as connection, peer.connect(protocol) as theirs:
        for command in LISTENING:
            assert connection.command_raw(*command) == theirs.command_raw(*command), command


@each_protocol
def test_modes_and_mistakes_are_answered_as_valkey_answers_them(server: Server, peer: Server, protocol: int) -> None:
    with server.connect(protocol) as connection, peer.connect(protocol) as theirs:
        for mistake in TRACKING_MISTAKES:
            commands: list[list[str]] = [
                ["CLIENT", "TRACKING", *mistake.split()],
                *[["CLIENT", "CACHING", word] for word in ("YES", "NO", "maybe")],
                ["CLIENT", "TRACKINGINFO"],
                ["CLIENT", "GETREDIR"],
                ["PING"],
                ["CLIENT", "TRACKINGINFO"],
            ]
            for command in commands:
                assert connection.command_raw(*command) == theirs.command_raw(*command), (mistake, command)
