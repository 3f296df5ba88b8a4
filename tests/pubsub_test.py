"""Publish and subscribe: the bytes beside valkey-server, real clients, and what happens to those who do not listen."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import redis
import valkey

from info import info
from resp import Connection, Failure, Items, Reply, Simple, encode, parse
from servers import Server
from tested import Start
from threads import in_threads
from waiting import until

OK = Simple(b"OK")
MB = 1 << 20

each_protocol = pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])
each_library = pytest.mark.parametrize("library", [valkey.Valkey, redis.Redis], ids=["valkey-py", "redis-py"])


class Stage:
    """Connections of a server, of which every byte is seen: `a: SUBSCRIBE news` is what the client `a` sends."""

    def __init__(self, server: Server, protocol: int) -> None:
        self.server, self.protocol = server, protocol
        self.clients: dict[str, Connection] = {}
        self.transactions: set[str] = set()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients.values():
            client.close()

    def play(self, line: str) -> dict[str, list[bytes]]:
        """What every client is sent after a line, in order; in a transaction, only what is answered."""
        name, _, text = line.partition(": ")
        words = [word.encode().decode("unicode_escape").encode("latin-1") for word in text.split()]
        client = self.clients.setdefault(name, self.server.connect(self.protocol))
        if self.begins_or_goes_on(name, words[0]):
            seen = {name: [client.command_raw(*words)]}
        else:
            client.send(encode(*words))
            seen = {name: until_pong(client)}
        # What it has caused was sent to the others before it was answered.
        others = {other for other in self.clients if other not in {name, *self.transactions}}
        return {**seen, **{other: until_pong(self.clients[other]) for other in others}}

    def begins_or_goes_on(self, name: str, command: bytes) -> bool:
        """Returns whether a client is in a transaction behind this command."""
        if command == b"MULTI":
            self.transactions.add(name)
        elif command in (b"EXEC", b"DISCARD", b"RESET"):
            self.transactions.discard(name)
        return name in self.transactions


def until_pong(connection: Connection) -> list[bytes]:
    """Everything that is sent until a PING is answered, which works whatever the client listens to."""
    connection.send(encode("PING", "behind it"))
    seen: list[bytes] = []
    while b"\r\nbehind it\r\n" not in (raw := connection.read_raw()):
        seen.append(raw)
    return seen


def parts(message: Reply) -> list[Reply]:
    """The parts of a message in either version of the protocol."""
    items = message.items if isinstance(message, Items) else message
    assert isinstance(items, list)
    return items


PLAYS: dict[str, str] = {
    "confirmations": "a: SUBSCRIBE x y x / a: SUBSCRIBE x / a: PSUBSCRIBE x* [ / a: UNSUBSCRIBE x nothing / "
    "a: UNSUBSCRIBE / a: UNSUBSCRIBE / a: PUNSUBSCRIBE [ / a: PUNSUBSCRIBE nothing / a: PUNSUBSCRIBE / a: PUNSUBSCRIBE",
    "nothing to leave": "a: UNSUBSCRIBE / a: PUNSUBSCRIBE / a: SUNSUBSCRIBE / a: UNSUBSCRIBE a b / a: PUNSUBSCRIBE a",
    "messages": "a: SUBSCRIBE x / b: SUBSCRIBE x y / p: PUBLISH x hello / p: PUBLISH y hello / p: PUBLISH z hello / "
    "a: UNSUBSCRIBE / p: PUBLISH x again",
    "patterns": "a: PSUBSCRIBE n?ws:* / b: PSUBSCRIBE n[^e]ws:* / p: PUBLISH news:1 x / p: PUBLISH nAws:1 x / "
    "p: PUBLISH news x / p: PUBLISH NEWS:1 x / a: PUNSUBSCRIBE / p: PUBLISH news:1 x",
    "both": "a: PSUBSCRIBE x* / a: SUBSCRIBE x / b: PSUBSCRIBE * / p: PUBLISH x 1 / p: PUBLISH xy 2",
    "any bytes": r"a: SUBSCRIBE a\r\nb\x00\xff / p: PUBLISH a\r\nb\x00\xff \r\n\x00 / a: PSUBSCRIBE \xff\\* / "
    r"p: PUBLISH \xff* x / p: PUBLISH \xffa x",
    "sharded": "a: SSUBSCRIBE x y / a: SUBSCRIBE x / b: PSUBSCRIBE * / p: SPUBLISH x 1 / p: PUBLISH x 2 / "
    "p: SPUBLISH z 3 / p: PUBSUB SHARDNUMSUB x y z / p: PUBSUB NUMSUB x y / a: SUNSUBSCRIBE y / "
    "p: PUBSUB SHARDCHANNELS / p: PUBSUB SHARDCHANNELS y* / a: SUNSUBSCRIBE / a: SUNSUBSCRIBE / "
    "p: SPUBLISH x 4 / p: PUBSUB SHARDCHANNELS",
    "asking": "p: PUBSUB CHANNELS / p: PUBSUB NUMSUB / p: PUBSUB NUMPAT / a: SUBSCRIBE x / b: SUBSCRIBE x / "
    "a: PSUBSCRIBE y* / b: PSUBSCRIBE y* / a: PSUBSCRIBE z / p: PUBSUB CHANNELS / p: pubsub channels x* / "
    "p: PUBSUB CHANNELS y* / p: PUBSUB NUMSUB x y x / p: PUBSUB NUMPAT / p: PUBSUB HELP",
    "mistakes": "a: SUBSCRIBE / a: PSUBSCRIBE / a: SSUBSCRIBE / a: PUBLISH / a: PUBLISH x / a: PUBLISH x y z / "
    "a: SPUBLISH x / a: PUBSUB / a: PUBSUB NOSUCH / a: PUBSUB CHANNELS a b / a: PUBSUB SHARDCHANNELS a b / "
    "a: PUBSUB NUMPAT x / a: PUBSUB HELP x",
    "while subscribed": "a: SUBSCRIBE x / a: GET key / a: PING / a: PING x / a: PING x y / a: PUBLISH x 1 / "
    "a: PUBSUB NUMPAT / a: HELLO 9 / a: MULTI / a: DISCARD / a: NOSUCH / a: UNSUBSCRIBE / a: GET key / a: PING / "
    "a: PSUBSCRIBE x / a: ECHO x / a: RESET / a: GET key / p: PUBLISH x 1 / a: SSUBSCRIBE x / "
    "a: ECHO x / a: SUNSUBSCRIBE / a: ECHO x",
    "publishing in a transaction": "a: SUBSCRIBE x / p: MULTI / p: PUBLISH x 1 / p: SET key 1 / p: PUBLISH x 2 / "
    "p: EXEC / p: MULTI / p: PUBLISH x 3 / p: DISCARD",
    "subscribing in a transaction": "a: MULTI / a: SUBSCRIBE x y / a: PSUBSCRIBE * / a: SET key 1 / "
    "a: PUBLISH x 1 / a: UNSUBSCRIBE y / a: EXEC / p: PUBLISH x 2 / a: RESET / p: PUBLISH x 3",
    "leaving in a transaction": "a: MULTI / a: SUBSCRIBE x / a: PUBLISH x 1 / a: UNSUBSCRIBE / a: PING / "
    "a: EXEC / a: ECHO x",
    "resetting": "a: SUBSCRIBE x / a: PSUBSCRIBE y / a: SSUBSCRIBE z / a: RESET / p: PUBLISH x 1 / p: SPUBLISH z 1 / "
    "p: PUBSUB NUMPAT / p: PUBSUB NUMSUB x / a: GET key",
    "invalidations": "a: SUBSCRIBE __redis__:invalidate / p: PUBLISH __redis__:invalidate x / a: UNSUBSCRIBE",
}


@each_protocol
@pytest.mark.parametrize("name", PLAYS)
def test_every_client_is_sent_what_valkeys_clients_are(server: Server, peer: Server, protocol: int, name: str) -> None:
    with peer.connect() as connection:
        connection.command("FLUSHALL")
    with Stage(server, protocol) as ours, Stage(peer, protocol) as theirs:
        for line in PLAYS[name].split(" / "):
            assert ours.play(line) == theirs.play(line), line


def test_versions_of_the_protocol_listen_to_the_same_message(server: Server) -> None:
    with server.connect(2) as old, server.connect(3) as new, server.connect() as publisher:
        for client in (old, new):
            client.command("SUBSCRIBE", "x")
        assert publisher.command("PUBLISH", "x", "text") == 2
        assert old.read() == [b"message", b"x", b"text"]
        assert new.read() == Items(b">", [b"message", b"x", b"text"])
        new.command("HELLO", 2)
        assert publisher.command("PUBLISH", "x", "text") == 2
        assert new.read() == [b"message", b"x", b"text"]


def test_a_client_hears_itself_behind_the_answer(server: Server, peer: Server) -> None:
    requests = [
        ["SUBSCRIBE", "x"],
        ["PSUBSCRIBE", "x"],
        ["PUBLISH", "x", "1"],
        ["SET", "k", "v"],
        ["PUBLISH", "x", "2"],
    ]
    seen = []
    for tested in (server, peer):
        with tested.connect(3) as client:
            client.send(b"".join(encode(*request) for request in requests))
            seen.append(until_pong(client))
    assert seen[0] == seen[1]
    assert seen[0][2] == b":2\r\n"
    assert parse(seen[0][3])[0] == Items(b">", [b"message", b"x", b"1"])


def test_messages_come_whether_or_not_replies_are_wanted(server: Server, peer: Server) -> None:
    seen = []
    for tested in (server, peer):
        with tested.connect(3) as client, tested.connect() as publisher:
            for request in (["CLIENT", "REPLY", "OFF"], ["SUBSCRIBE", "x"], ["GET", "k"], ["PUBLISH", "x", "own"]):
                client.send(encode(*request))
            read = [client.read_raw(), client.read_raw()]
            publisher.command("PUBLISH", "x", "other")
            client.send(encode("UNSUBSCRIBE") + encode("CLIENT", "REPLY", "SKIP") + encode("SUBSCRIBE", "y"))
            seen.append(read + [client.read_raw() for _ in range(3)])
    assert seen[0] == seen[1]


def test_subscriptions_end_with_the_connection_however_it_ends(server: Server) -> None:
    with server.connect() as other:

        def listeners() -> Reply:
            return other.command("PUBSUB", "NUMSUB", "x")

        endings: list[Any] = [
            lambda client: client.close(),
            lambda client: client.command("QUIT"),
            lambda client: client.send(b"*1\r\n!\r\n"),
            lambda _: other.command("CLIENT", "KILL", "TYPE", "pubsub"),
        ]
        for end in endings:
            client = server.connect()
            client.command("SUBSCRIBE", "x")
            client.command("PSUBSCRIBE", "*")
            assert listeners() == [b"x", 1]
            end(client)
            until(lambda: listeners() == [b"x", 0] and other.command("PUBSUB", "NUMPAT") == 0)
            client.close()
        assert other.command("PUBLISH", "x", "nobody hears it") == 0


def described(connection: Connection, identity: Reply) -> dict[str, str]:
    assert isinstance(identity, int)
    text = connection.command("CLIENT", "LIST", "ID", identity)
    assert isinstance(text, bytes)
    return dict(re.findall(r" (flags|sub|psub|ssub)=(\S*)", text.decode()))


def test_subscribers_are_listed_and_counted_as_valkey_does_it(server: Server, peer: Server) -> None:
    seen = []
    for tested in (server, peer):
        with tested.connect(3) as client, tested.connect() as other:
            identity = client.command("CLIENT", "ID")
            lists = [described(other, identity)]
            for request in (["SUBSCRIBE", "a", "b"], ["PSUBSCRIBE", "a"], ["SSUBSCRIBE", "a"], ["UNSUBSCRIBE"]):
                client.send(encode(*request))
                until_pong(client)
                lists.append(described(other, identity))
            names = ["pubsub_channels", "pubsub_patterns", "pubsubshard_channels"]
            counts = [info(other, "stats", name) for name in names]
            counts.append(info(other, "clients", "pubsub_clients"))
            client.send(encode("PUNSUBSCRIBE") + encode("SUNSUBSCRIBE"))
            until_pong(client)
            seen.append((lists, counts, described(other, identity)))
    assert seen[0] == seen[1]
    assert seen[0][1] == [0, 1, 1, 1]


def test_publishing_waits_while_writes_are_paused(server: Server) -> None:
    with server.connect() as listener, server.connect() as publisher, server.connect() as other:
        listener.command("SUBSCRIBE", "x")
        assert other.command("CLIENT", "PAUSE", 600_000, "WRITE") == OK
        publisher.send(encode("PUBLISH", "x", "1"))
        until(lambda: info(other, "clients", "blocked_clients") == 1)
        assert until_pong(listener) == []
        assert other.command("CLIENT", "UNPAUSE") == OK
        assert publisher.read() == 1
        assert listener.read() == [b"message", b"x", b"1"]


# Who does not listen, and who is many.


@pytest.mark.snugly_only
@each_protocol
def test_a_subscriber_that_does_not_read_is_ended_by_its_limit_and_others_hear_everything(
    start: Start, protocol: int
) -> None:
    server = start("--client-output-buffer-limit", "normal 0 0 0 replica 0 0 0 pubsub 2mb 0 0")
    with server.connect(protocol) as fast, server.connect() as publisher, server.connect() as other:
        stopped = socket.create_connection(("127.0.0.1", server.port))
        stopped.sendall(encode("SUBSCRIBE", "x"))
        fast.command("SUBSCRIBE", "x")
        until(lambda: other.command("PUBSUB", "NUMSUB", "x") == [b"x", 2])
        count = 0
        while info(other, "stats", "client_output_buffer_limit_disconnections") == 0:
            text = b"%09d" % count + b"." * (256 << 10)
            assert publisher.command("PUBLISH", "x", text) in (1, 2)
            assert parts(fast.read()) == [b"message", b"x", text]
            count += 1
            assert count < 1000, "a client that takes nothing was sent 250 MB"
        until(lambda: other.command("PUBSUB", "NUMSUB", "x") == [b"x", 1])
        assert publisher.command("PUBLISH", "x", "1") == 1
        stopped.close()


def test_a_limit_can_be_larger_than_what_other_messages_may_take(start: Start) -> None:
    server = start("--client-output-buffer-limit", "normal 0 0 0 replica 0 0 0 pubsub 0 0 0")
    with server.connect() as slow, server.connect() as publisher:
        slow.command("SUBSCRIBE", "x")
        sent = [b"%09d" % number + b"." * MB for number in range(48)]
        for text in sent:
            assert publisher.command("PUBLISH", "x", text) == 1
        assert [slow.read() for _ in sent] == [[b"message", b"x", text] for text in sent]


@pytest.mark.slow
def test_idle_subscribers_are_not_ended_by_the_timeout(start: Start) -> None:
    server = start("--timeout", "1")
    with server.connect() as listener:
        listener.command("SUBSCRIBE", "x")
        with server.connect() as idle:
            assert idle.read_to_end() == b""
        with server.connect() as publisher:
            assert publisher.command("PUBLISH", "x", "1") == 1
        assert listener.read() == [b"message", b"x", b"1"]


PUBLISHERS, MESSAGES = 4, 400


def test_everybody_hears_each_message_once_and_all_in_the_same_order(server: Server) -> None:
    patterns, channels = [server.connect() for _ in range(3)], [server.connect(3) for _ in range(3)]
    for client in patterns:
        client.command("PSUBSCRIBE", "x*")
    for client in channels:
        client.command("SUBSCRIBE", "x")

    def publish(number: int) -> None:
        with server.connect() as publisher:
            publisher.send(b"".join(encode("PUBLISH", "x", f"{number} {at}") for at in range(MESSAGES)))
            assert [publisher.read() for _ in range(MESSAGES)] == [6] * MESSAGES

    heard: dict[int, list[Reply]] = {}

    def listen(number: int, client: Connection) -> None:
        replies = [client.read() for _ in range(PUBLISHERS * MESSAGES)]
        heard[number] = [parts(reply)[-1] for reply in replies]

    listeners = list(enumerate(patterns + channels))
    in_threads(
        *[lambda number=number: publish(number) for number in range(PUBLISHERS)],
        *[lambda number=number, client=client: listen(number, client) for number, client in listeners],
    )
    for number, client in listeners:
        assert until_pong(client) == []
        client.close()
        for publisher in range(PUBLISHERS):
            own = [text for text in heard[number] if isinstance(text, bytes) and text.startswith(b"%d " % publisher)]
            assert own == [b"%d %d" % (publisher, at) for at in range(MESSAGES)]
    for same in (patterns, channels):
        orders = [heard[number] for number, client in listeners if client in same]
        assert orders == [orders[0]] * len(same)


def test_nothing_follows_the_confirmation_of_leaving(server: Server) -> None:
    done = threading.Event()

    def publish() -> None:
        with server.connect() as publisher:
            while not done.is_set():
                publisher.send(encode("PUBLISH", "x", "text") * 50)
                for _ in range(50):
                    publisher.read()

    def come_and_go() -> None:
        try:
            with server.connect() as client, server.connect() as other:
                for _ in range(100):
                    assert client.command("SUBSCRIBE", "x") == [b"subscribe", b"x", 1]
                    reply = other.command("PUBLISH", "x", "text")
                    assert isinstance(reply, int)
                    assert reply >= 1
                    client.send(encode("UNSUBSCRIBE", "x") + encode("ECHO", "done"))
                    seen = []
                    while (reply := client.read()) != b"done":
                        seen.append(reply)
                    assert seen[-1] == [b"unsubscribe", b"x", 0]
                    assert len(seen) > 1
                    assert all(message == [b"message", b"x", b"text"] for message in seen[:-1])
        finally:
            done.set()

    in_threads(publish, publish, come_and_go)
    with server.connect() as other:
        assert other.command("PUBSUB", "CHANNELS") == []


def test_thousands_of_channels_and_hundreds_of_listeners_are_served(server: Server) -> None:
    names = [f"channel:{number}" for number in range(5000)]
    with server.connect() as client, server.connect() as other:
        client.send(encode("SUBSCRIBE", *names))
        assert [client.read() for _ in names][-1] == [b"subscribe", names[-1].encode(), len(names)]
        channels = other.command("PUBSUB", "CHANNELS", "channel:*")
        assert isinstance(channels, list)
        assert {bytes(name) for name in channels if isinstance(name, bytes)} == {name.encode() for name in names}
        others = [server.connect() for _ in range(300)]
        for listener in others:
            listener.send(encode("SUBSCRIBE", names[0]))
        for listener in others:
            listener.read()
        assert other.command("PUBLISH", names[0], "text") == len(others) + 1
        for listener in (client, *others):
            assert listener.read() == [b"message", names[0].encode(), b"text"]
        for listener in others:
            listener.close()
        client.send(encode("UNSUBSCRIBE"))
        left = [client.read() for _ in names]
        assert parts(left[-1])[2] == 0
        until(lambda: other.command("PUBSUB", "CHANNELS") == [])


# Permissions.

LIMITED = [
    *["a: ACL SETUSER u on >p ~* +@all resetchannels &n:* &m", "u: AUTH u p", "u: SUBSCRIBE n:1", "u: UNSUBSCRIBE"],
    *["u: SUBSCRIBE n:1 other", "u: SUBSCRIBE other", "u: PSUBSCRIBE n:1", "u: PSUBSCRIBE n:*", "u: PUNSUBSCRIBE"],
    *["u: PSUBSCRIBE n:* *", "u: PSUBSCRIBE *", "u: SSUBSCRIBE other", "u: SSUBSCRIBE m", "u: SUNSUBSCRIBE"],
    *["u: PUBLISH m 1", "u: PUBLISH mm 1", "u: SPUBLISH mm 1", "u: UNSUBSCRIBE other", "u: PUNSUBSCRIBE other"],
    *["u: PUBSUB CHANNELS", "u: MULTI", "u: PUBLISH other 1", "u: EXEC", "a: ACL DRYRUN u PUBLISH other 1"],
    *["a: ACL DRYRUN u PUBLISH n:1 1", "a: ACL DRYRUN u SUBSCRIBE n:1 other", "a: ACL DRYRUN u PSUBSCRIBE n:1"],
    *["a: ACL DRYRUN u UNSUBSCRIBE x", "u: MULTI", "u: PUBLISH n:1 1", "a: ACL SETUSER u resetchannels", "u: EXEC"],
    *["u: PUBLISH n:1 1", "a: ACL SETUSER u &* -publish", "u: PUBLISH n:1 1", "u: SUBSCRIBE any", "u: UNSUBSCRIBE"],
    *["a: ACL SETUSER u resetchannels +publish (+publish &s:*)", "u: PUBLISH s:1 x", "u: SUBSCRIBE s:1", "a: ACL LIST"],
    *["a: ACL DELUSER u"],
]


@each_protocol
def test_users_may_use_the_channels_that_valkeys_may(server: Server, peer: Server, protocol: int) -> None:
    with Stage(server, protocol) as ours, Stage(peer, protocol) as theirs:
        for line in LIMITED:
            if line.startswith("a: ACL DELUSER"):
                ours.clients.pop("u").close()
                theirs.clients.pop("u").close()
            assert ours.play(line) == theirs.play(line), line


@each_protocol
def test_new_users_may_use_the_channels_that_are_free_by_default(server: Server, peer: Server, protocol: int) -> None:
    steps = [
        *[
            "CONFIG GET acl-pubsub-default",
            "CONFIG SET acl-pubsub-default x",
            "CONFIG SET acl-pubsub-default allchannels",
        ],
        *["CONFIG GET acl-pubsub-default", "ACL SETUSER u", "ACL SETUSER v resetchannels (+get)", "ACL LIST"],
        *["ACL SETUSER u &a", "ACL SETUSER u resetchannels &a", "ACL SETUSER v reset", "ACL LIST"],
        *["CONFIG SET acl-pubsub-default resetchannels", "ACL SETUSER w", "ACL SETUSER v reset", "ACL LIST"],
        "ACL DELUSER u v w",
    ]
    with server.connect(protocol) as connection, peer.connect(protocol) as theirs:
        for step in steps:
            assert connection.command_raw(*step.split()) == theirs.command_raw(*step.split()), step


def test_denied_channels_are_logged_and_counted(server: Server) -> None:
    with server.connect() as admin, server.connect() as user:
        admin.command("ACL", "LOG", "RESET")
        before = info(admin, "stats", "acl_access_denied_channel")
        assert admin.command("ACL", "SETUSER", "u", "on", ">p", "+@all", "resetchannels", "&n") == OK
        user.command("AUTH", "u", "p")
        reply = user.command("SUBSCRIBE", "n", "secret")
        assert reply == Failure(b"NOPERM No permissions to access a channel")
        assert described(admin, user.command("CLIENT", "ID"))["sub"] == "0"
        entries = admin.command("ACL", "LOG")
        assert isinstance(entries, list)
        (entry,) = entries
        assert isinstance(entry, list)
        named = dict(zip(entry[::2], entry[1::2], strict=True))
        assert (named[b"reason"], named[b"object"], named[b"username"]) == (b"channel", b"secret", b"u")
        assert info(admin, "stats", "acl_access_denied_channel") == before + 1
        admin.command("ACL", "LOG", "RESET")
        admin.command("ACL", "DELUSER", "u")


def test_subscribers_whose_permission_is_taken_away_are_closed_and_no_others(server: Server) -> None:
    with server.connect() as admin, server.connect() as other:
        assert admin.command("ACL", "SETUSER", "u", "on", ">p", "+@all", "&a", "&b", "&p*") == OK
        clients = {
            name: server.connect() for name in ("SUBSCRIBE a", "SUBSCRIBE b", "PSUBSCRIBE p*", "SSUBSCRIBE a", "")
        }
        for name, client in clients.items():
            client.command("AUTH", "u", "p")
            if name:
                client.command(*name.split())
        other.command("SUBSCRIBE", "a")
        assert admin.command("ACL", "SETUSER", "u", "resetchannels", "&b", "&p1", "+get") == OK
        for name in ("SUBSCRIBE a", "PSUBSCRIBE p*", "SSUBSCRIBE a"):
            assert clients[name].read_to_end() == b"", name
        assert admin.command("PUBLISH", "b", "1") == 1
        assert clients["SUBSCRIBE b"].read() == [b"message", b"b", b"1"]
        assert clients[""].command("PING") == Simple(b"PONG")
        assert until_pong(other) == []
        for client in clients.values():
            client.close()
        admin.command("ACL", "DELUSER", "u")


@pytest.mark.snugly_only
def test_a_file_of_users_closes_subscribers_who_may_not_listen_any_more(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("user u on nopass +@all &a &b\nuser default on nopass ~* &* +@all\n")
    server = start("--acl-file", str(file))
    with server.connect() as admin, server.connect() as closed, server.connect() as kept:
        for client, channel in ((closed, "a"), (kept, "b")):
            client.command("AUTH", "u", "any")
            client.command("SUBSCRIBE", channel)
        file.write_text("user u on nopass +@all &b\nuser default on nopass ~* &* +@all\n")
        assert admin.command("ACL", "LOAD") == OK
        assert closed.read_to_end() == b""
        assert admin.command("PUBLISH", "b", "1") == 1
        assert kept.read() == [b"message", b"b", b"1"]


# Real clients.


@each_library
def test_real_clients_listen_to_channels_and_patterns(server: Server, library: Any) -> None:
    with library(port=server.port, decode_responses=True) as client, client.pubsub() as listener:
        listener.subscribe("news")
        listener.psubscribe("w*")

        def next_message() -> tuple[Any, ...]:
            message = listener.get_message(timeout=60)
            assert message is not None
            return message["type"], message["pattern"], message["channel"], message["data"]

        assert next_message() == ("subscribe", None, "news", 1)
        assert next_message() == ("psubscribe", None, "w*", 2)
        assert client.publish("news", "one") == 1
        assert client.publish("weather", "two") == 1
        assert next_message() == ("message", None, "news", "one")
        assert next_message() == ("pmessage", "w*", "weather", "two")
        assert client.pubsub_numsub("news") == [("news", 1)]
        assert (client.pubsub_channels(), client.pubsub_numpat()) == (["news"], 1)
        listener.unsubscribe()
        assert next_message() == ("unsubscribe", None, "news", 1)


@each_library
@each_protocol
def test_real_clients_listen_in_a_thread(server: Server, library: Any, protocol: int) -> None:
    heard: list[bytes] = []
    with library(port=server.port, protocol=protocol) as client, client.pubsub() as listener:
        listener.subscribe(jobs=lambda message: heard.append(message["data"]))
        thread = listener.run_in_thread(sleep_time=0.01)
        try:
            until(lambda: client.pubsub_numsub("jobs") == [(b"jobs", 1)])
            for number in range(100):
                assert client.publish("jobs", number) == 1
            until(lambda: len(heard) == 100)
        finally:
            thread.stop()
            thread.join()
    assert heard == [b"%d" % number for number in range(100)]


@pytest.mark.snugly_only
def test_a_client_that_listens_to_more_than_clients_may_hold_is_ended_and_no_other(start: Start) -> None:
    server = start("--max-memory-clients", "4mb")
    with server.connect() as other, server.connect() as greedy:
        other.command("SUBSCRIBE", "news")
        with contextlib.suppress(ConnectionError, EOFError):
            for number in range(10_000):
                greedy.command("SUBSCRIBE", f"{number}" + "x" * 1000)
            assert greedy.read_to_end() == b"", "it is ended, if it was not yet"
        with server.connect() as publisher:
            until(lambda: publisher.command("PUBSUB", "CHANNELS") == [b"news"])
            assert publisher.command("PUBLISH", "news", "text") == 1
        assert other.read() == [b"message", b"news", b"text"]
