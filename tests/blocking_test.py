"""Clients that wait for lists: who gets what and when, beside valkey-server, and with many threads at once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import servers
from info import info
from resp import Connection, Reply, Simple, encode
from servers import Server
from threads import in_threads
from waiting import until

# `a: REQUEST` sends and reads the reply; `a> REQUEST` sends and waits until one client more is blocked; `a| REQUEST`
# only sends; `a?` reads a reply; `a.` goes away. IDA is the number of the connection `a`.
SCENARIOS = {
    "a push serves who waits": "a> BLPOP k 0 / b: RPUSH k 1 2 / a? / b: LRANGE k 0 -1",
    "an element that is there is taken at once": "a: RPUSH k 1 / a: BLPOP no k 0 / a: RPUSH k 1 / a: BRPOPLPUSH k k 0",
    "first come, first served": "a> BLPOP k 0 / b> BRPOP k 0 / c: RPUSH k 1 2 3 / a? / b? / c: LRANGE k 0 -1",
    "the first key that has a list": "a> BLPOP k1 k2 0 / b: MULTI / b: RPUSH k2 x / b: RPUSH k1 y / b: EXEC / a?",
    "a transaction is over first": "a> BLPOP k 0 / b: MULTI / b: RPUSH k x / b: DEL k / b: EXEC / b: RPUSH k y / a?",
    "no wait in a transaction": "a: MULTI / a: BLPOP k 0 / a: BLMOVE k l LEFT LEFT 0 / a: BLMPOP 0 1 k LEFT / a: EXEC",
    "several elements": "a> BLMPOP 0 2 k l RIGHT COUNT 2 / b: RPUSH l 1 2 3 / a? / b: LRANGE l 0 -1",
    "one serves another": "a> BLMOVE k l LEFT RIGHT 0 / b> BLPOP l 0 / c: RPUSH k 1 / a? / b? / c: EXISTS k l",
    "around one list": "a> BLMOVE k k LEFT RIGHT 0 / b: RPUSH k 1 2 3 / a? / b: LRANGE k 0 -1",
    "a target that is no list": "b: SET l x / a> BRPOPLPUSH k l 0 / b: RPUSH k 1 / a? / b: LLEN k",
    "a key that becomes a string": "a> BLPOP k 0 / b: SET k x / b: DEL k / b: LPUSH k y / a?",
    "an earlier key that becomes a string": "a> BLPOP k1 k2 0 / b: SET k1 x / b: RPUSH k2 y / a? / b: LLEN k2",
    "a renamed key": "a> BLPOP k 0 / b: RPUSH o x / b: RENAME o k / a? / b: EXISTS k",
    "a copied key": "a> BLPOP k 0 / b: RPUSH o x / b: COPY o k / a? / b: EXISTS o k",
    "a moved key": "a: SELECT 1 / a> BLPOP k 0 / b: RPUSH k x / b: MOVE k 1 / a?",
    "exchanged databases": "a: SELECT 1 / a> BLPOP k 0 / b: RPUSH k x / b: SWAPDB 0 1 / a?",
    "another database": "a: SELECT 1 / a> BLPOP k 0 / b: RPUSH k x / b: LLEN k / c: SELECT 1 / c: RPUSH k y / a?",
    "its time is over": "a: BLPOP k 0.01 / a: BLMOVE k l LEFT LEFT 0.01 / a: BLMPOP 0.01 1 k LEFT",
    "requests behind it wait": "a| PING / a> BLPOP k 0 / a| PING after / a? / b: RPUSH k 1 / a? / a?",
    "without replies": "a| CLIENT REPLY SKIP / a> BLPOP k 0 / a| PING / b: RPUSH k 1 / a? / b: LLEN k",
    "unblocked": "a> BLPOP k 0 / b: CLIENT UNBLOCK IDA / a? / b: CLIENT UNBLOCK IDA / b: RPUSH k 1 / b: LLEN k",
    "refused": "a> BLMOVE k l LEFT LEFT 0 / b: CLIENT UNBLOCK IDA ERROR / a? / b: RPUSH k 1 / b: LLEN k",
    "killed": "a> BLPOP k 0 / b: CLIENT KILL ID IDA / b: RPUSH k 1 / b: LLEN k",
    "gone": "a> BLPOP k 0 / a. / b: RPUSH k 1 / b: LLEN k",
    "reset behind it": "a> BLPOP k 0 / a| RESET / b: RPUSH k 1 / a? / a?",
    "watched": "c: WATCH k / a> BLPOP k 0 / b: RPUSH k 1 / a? / c: MULTI / c: PING / c: EXEC",
    "a paused server": "a> BLPOP k 0 / b: CLIENT PAUSE 50 / b: RPUSH k 1 / a?",
    "a timeout that is none": "a: BLPOP k -1 / a: BLPOP k x / a: BLMOVE k l LEFT LEFT 1e400 / a: BLMPOP nan 1 k LEFT",
    "a flush and a push": "a> BLPOP k 0 / b: FLUSHALL / b: RPUSH k 1 / a?",
}


class Scene:
    """Connections by their letters, to one server."""

    def __init__(self, server: Server, protocol: int, stack: contextlib.ExitStack) -> None:
        self.server, self.protocol, self.stack = server, protocol, stack
        self.connections: dict[str, Connection] = {}
        self.observer = stack.enter_context(server.connect())
        self.observer.command("FLUSHALL")

    def connection(self, letter: str) -> Connection:
        if letter not in self.connections:
            self.connections[letter] = self.stack.enter_context(self.server.connect(protocol=self.protocol))
        return self.connections[letter]

    def blocked(self) -> int:
        return info(self.observer, "clients", "blocked_clients")

    def play(self, steps: str) -> list[bytes]:
        replies = []
        number = b"%d" % self.number_of_a() if "IDA" in steps else b""
        for step in steps.split(" / "):
            connection, kind, words = self.connection(step[0]), step[1], step[2:].encode().split()
            request = encode(*[number if word == b"IDA" else word for word in words])
            before = self.blocked()
            if kind == ".":
                connection.socket.close()
                self.until_blocked(before - 1)
            if kind in ":>|":
                connection.send(request)
            if kind == ">":
                self.until_blocked(before + 1)
            if kind in ":?":
                replies.append(connection.read_raw())
        return replies

    def until_blocked(self, clients: int) -> None:
        until(lambda: self.blocked() == clients)

    def number_of_a(self) -> int:
        number = self.connection("a").command("CLIENT", "ID")
        assert isinstance(number, int)
        return number


def played(server: Server, protocol: int, steps: str) -> list[bytes]:
    with contextlib.ExitStack() as stack:
        return Scene(server, protocol, stack).play(steps)


@pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_who_waits_is_answered_as_by_valkey(server: Server, peer: Server, protocol: int, name: str) -> None:
    assert played(server, protocol, SCENARIOS[name]) == played(peer, protocol, SCENARIOS[name])


def test_a_caching_client_is_told_of_what_is_served(server: Server, peer: Server) -> None:
    steps = "c: CLIENT TRACKING ON BCAST / a> BLPOP k 0 / b: RPUSH k 1 / a? / c?"
    assert played(server, 3, steps) == played(peer, 3, steps)


def test_a_client_that_waits_is_shown_as_blocked(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        scene = Scene(server, 2, stack)
        scene.play("a> BLPOP k l 0")
        listed = scene.observer.command("CLIENT", "LIST")
        assert isinstance(listed, bytes)
        assert [b" flags=b " in line for line in listed.splitlines() if b" cmd=blpop " in line] == [True]
        assert info(scene.observer, "clients", "total_blocking_keys") == 2
        scene.play("b: RPUSH l 1 / a?")
        assert (scene.blocked(), info(scene.observer, "clients", "total_blocking_keys")) == (0, 0)


def test_every_element_goes_to_one_client(server: Server) -> None:
    """Threads push, and move what they wait for from queue to queue: nothing is lost, doubled, or left lying."""
    count, lock = 400, threading.Lock()
    # Nobody stops because nothing came for a while, but because those before have, who may be slow.
    produced, moved = threading.Event(), threading.Event()
    got: list[bytes] = []

    def produce(name: int) -> None:
        with server.connect() as connection:
            for number in range(count):
                connection.command("RPUSH" if number % 2 else "LPUSH", f"in{number % 3}", f"{name}:{number}")

    def move(queue: int) -> None:
        with server.connect() as connection:
            is_last = False
            while connection.command("BLMOVE", f"in{queue}", "out", "LEFT", "RIGHT", "0.2") is not None or not is_last:
                is_last = produced.is_set()

    def consume() -> None:
        with server.connect() as connection:
            is_last = False
            while isinstance(reply := connection.command("BLPOP", "none", "out", "0.2"), list) or not is_last:
                is_last = moved.is_set()
                if isinstance(reply, list):
                    assert isinstance(reply[1], bytes)
                    with lock:
                        got.append(reply[1])

    def and_then(event: threading.Event, *jobs: Callable[[], None]) -> Callable[[], None]:
        """Does these jobs at once, and sets the event."""

        def do() -> None:
            try:
                in_threads(*jobs)
            finally:
                event.set()

        return do

    in_threads(
        and_then(produced, *[partial(produce, name) for name in range(3)]),
        and_then(moved, *[partial(move, queue) for queue in (0, 1, 2, 0)]),
        *[consume for _ in range(4)],
    )
    assert sorted(got) == sorted(b"%d:%d" % (name, number) for name in range(3) for number in range(count))


@pytest.mark.snugly_only
def test_what_a_served_client_is_told_is_on_disk(tmp_path: Path) -> None:
    with (
        servers.snugly("--storage", str(tmp_path / "store"), "--durability", "fsync") as server,
        contextlib.ExitStack() as stack,
    ):
        scene = Scene(server, 2, stack)
        assert scene.play("a> BLPOP k 0 / b: RPUSH k 1 / a?") == [b":1\r\n", b"*2\r\n$1\r\nk\r\n$1\r\n1\r\n"]


def test_replies_come_to_whoever_speaks_the_other_protocol(server: Server) -> None:
    with server.connect() as old, server.connect(protocol=3) as new, server.connect() as author:
        old.send(encode("BLMOVE", "k", "l", "LEFT", "LEFT", "0"))
        new.send(encode("BLPOP", "l", "0"))
        until(lambda: info(author, "clients", "blocked_clients") == 2)
        expected: list[Reply] = [1, b"x", [b"l", b"x"]]
        assert [author.command("RPUSH", "k", "x"), old.read(), new.read()] == expected
        assert author.command("PING") == Simple(b"PONG")
