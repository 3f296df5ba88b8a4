"""Clients of a Valkey Cluster at work, each in a thread: they write strings, and compare what they read with what they
wrote.

It knows redirections, and what a command does to a string. It knows nothing of what happens to the cluster meanwhile.
"""

from __future__ import annotations

import random
import threading
import time
from binascii import crc_hqx
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from resp import Argument, Connection, Failure, Reply, Simple, encode
from servers import Server
from valkey_module import enveloped, restored, text
from waiting import until

OK = Simple(b"OK")
QUEUED = Simple(b"QUEUED")
# Hash tags, each of which is another primary's if there are three.
TAGS = (b"b", b"c", b"a")
KEYS_OF_TAG = 3
TEXTS = [text(size, size) for size in (130, 300, 1000, 3000)]
LONGEST = 20_000
# A cluster that changes answers so for a while.
LATER = (b"TRYAGAIN", b"CLUSTERDOWN", b"LOADING", b"MASTERDOWN", b"READONLY", b"EXECABORT")
PATIENCE = 20.0
Request: TypeAlias = Sequence[Argument]


def slot_of(tag: bytes) -> int:
    return crc_hqx(tag, 0) % 16384


class Unsure(Exception):
    """A connection has ended before the reply: nobody knows whether the command has run."""


class Client:
    """Connections to all nodes, of which it uses the one that serves a hash tag."""

    def __init__(self, nodes: Sequence[Server], database: int) -> None:
        self.database = database
        self.ports = [node.port for node in nodes]
        self.homes: dict[bytes, int] = {}
        self.links: dict[int, Connection] = {}

    def close(self) -> None:
        for link in self.links.values():
            link.close()

    def call(self, tag: bytes, *requests: Request) -> list[Reply]:
        """The replies to requests that are sent at once, from the node that serves them.

        They are sent again as long as one of them is redirected, so no more than one of them may change anything.
        """
        port, is_asking = self.homes.get(tag, self.ports[0]), False
        deadline = time.monotonic() + PATIENCE
        told = b""
        while True:
            assert time.monotonic() < deadline, f"{requests!r:.300} is answered by {told!r}"
            try:
                link = self.links[port] = self.links.get(port) or self.connection(port)
            except (OSError, EOFError):
                port = self.next_to(port)
                continue
            sent = [("ASKING",), *requests] if is_asking else list(requests)
            try:
                link.send(b"".join(encode(*request) for request in sent))
                replies = [link.read() for _ in sent][len(sent) - len(requests) :]
            except (OSError, EOFError):
                self.links.pop(port).close()
                self.homes[tag] = self.next_to(port)
                raise Unsure from None
            self.homes[tag], is_asking = (self.homes.get(tag, port) if is_asking else port), False
            told = next((reply.text for reply in replies if isinstance(reply, Failure)), b"")
            kind, *words = told.split(b" ")
            if kind in (b"MOVED", b"ASK"):
                port, is_asking = int(words[1].rpartition(b":")[2]), kind == b"ASK"
            elif kind in LATER:
                port = self.homes[tag]
                time.sleep(0.002)
            else:
                return replies

    def connection(self, port: int) -> Connection:
        connection = Connection(port)
        if self.database:
            assert connection.command("SELECT", self.database) == OK
        return connection

    def next_to(self, port: int) -> int:
        """Another node, since this one is gone."""
        time.sleep(0.002)
        return self.ports[(self.ports.index(port) + 1) % len(self.ports)]


@dataclass(frozen=True)
class Step:
    """Requests that are sent at once, what the last one must answer, and the strings that they leave."""

    requests: list[Request]
    reply: Reply
    changes: dict[bytes, bytes] = field(default_factory=dict)


class Traffic:
    """One client at work, on keys of its own."""

    def __init__(
        self, nodes: Sequence[Server], number: int, database: int, tags: Sequence[bytes], is_mixed: bool
    ) -> None:
        self.client = Client(nodes, database)
        self.tags = tags
        self.is_mixed = is_mixed
        """Some nodes lack the module: they give out envelopes, and cannot change a part of one."""
        self.waits = False
        """A write counts once a replica has it."""
        self.alone = False
        """Sends nothing that a slot refuses which is between two nodes: several keys, and transactions."""
        self.rounds = 0
        self.unsure = 0
        self.failure: BaseException | None = None
        self.may: dict[bytes, list[bytes]] = {}
        """Each key with the strings that it may have: more than one after a write that nobody is sure of."""
        self.ever: dict[bytes, set[bytes]] = {}
        """Each key with all strings that it had."""
        self._name = b"client%d" % number
        self._rng = random.Random(number)
        self._version = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        for tag in self.tags:
            for key in (*self._keys(tag), self._number(tag)):
                self._take(tag, self._set(key, b""))
        self._thread.start()

    def stop(self) -> None:
        """Ends the work, and reads everything once more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
            if self.failure is None:
                self._guarded(self._check_all)
            self.client.close()

    def _keys(self, tag: bytes) -> list[bytes]:
        return [b"{%b} %b %d" % (tag, self._name, number) for number in range(KEYS_OF_TAG)]

    def _number(self, tag: bytes) -> bytes:
        return b"{%b} %b number" % (tag, self._name)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:
            self.failure = failure

    def _run(self) -> None:
        while not self._stopping.is_set() and self.failure is None:
            self._guarded(self._round)
            self.rounds += 1

    def _round(self) -> None:
        tag = self._rng.choice(self.tags)
        key = self._rng.choice([*self._keys(tag), self._number(tag)])
        with suppress(Unsure):
            if len(self.may[key]) > 1:
                self._check(tag, key)
                self._take(tag, self._set(key, b""))
            elif key == self._number(tag):
                self._take(tag, self._counted(key, self.may[key][0]))
            else:
                self._take(tag, self._any(key, self.may[key][0]))
            return
        self.unsure += 1

    def _any(self, key: bytes, old: bytes) -> Step:
        makers = [self._set, self._get]
        if not self.alone:
            makers.append(self._several)
        if not self.is_mixed:
            makers += [self._part, self._append, self._exchanged, self._if_equal, self._by_script]
            makers += [] if self.alone else [self._at_once]
        if len(old) > LONGEST:
            makers = [self._set]
        return self._rng.choice(makers)(key, old)

    def _take(self, tag: bytes, step: Step) -> None:
        for key, value in step.changes.items():
            self.may.setdefault(key, []).append(value)
            self.ever.setdefault(key, set()).add(value)
        waiting: list[Request] = [("WAIT", 1, 1000)] if self.waits and step.changes else []
        replies = self.client.call(tag, *step.requests, *waiting)
        reply = replies[len(step.requests) - 1]
        sent, got, wanted = (str(each)[:300] for each in (step.requests, reply, step.reply))
        assert self._plain(reply) == step.reply, f"{self.client.homes[tag]}: {sent} gives {got}, not {wanted}"
        if not waiting or (isinstance(replies[-1], int) and replies[-1] > 0):
            self.may.update({key: [value] for key, value in step.changes.items()})
        elif step.changes:
            raise Unsure

    def _plain(self, reply: Reply) -> Reply:
        if self.is_mixed and isinstance(reply, bytes):
            return restored(reply)
        return [self._plain(each) for each in reply] if isinstance(reply, list) else reply

    def _check(self, tag: bytes, key: bytes) -> None:
        value = self._plain(self.client.call(tag, ("GET", key))[0])
        assert value in self.may[key], f"{self.client.homes[tag]}: {key!r} is {value!r}"

    def _check_all(self) -> None:
        for tag in self.tags:
            for key in (*self._keys(tag), self._number(tag)):
                self._check(tag, key)

    def _fresh(self, key: bytes) -> bytes:
        """No other key and no other version has the same: short, long, or an envelope itself."""
        self._version += 1
        stamp = b"%b in version %d; " % (key, self._version)
        kind = self._rng.randrange(6)
        if kind == 0:
            return stamp
        value = stamp + self._rng.choice(TEXTS)
        return enveloped(value, "zstd" if kind == 1 else "lz4") if kind <= 2 and not self.is_mixed else value

    # Each gives a step for a key whose string is known.

    def _set(self, key: bytes, _old: bytes) -> Step:
        value = b"%d" % self._version if key.endswith(b"number") else self._fresh(key)
        return Step([("SET", key, value)], OK, {key: value})

    def _counted(self, key: bytes, old: bytes) -> Step:
        return Step([("INCR", key)], int(old) + 1, {key: b"%d" % (int(old) + 1)})

    def _get(self, key: bytes, old: bytes) -> Step:
        start = self._rng.randrange(len(old))
        ways: list[tuple[Request, Reply]] = [
            (("GET", key), old),
            (("MGET", key, key), [old, old]),
            (("STRLEN", key), len(old)),
            (("GETRANGE", key, start, start + 200), old[start : start + 201]),
        ]
        request, reply = self._rng.choice(ways[:2] if self.is_mixed else ways)
        return Step([request], reply)

    def _several(self, key: bytes, _old: bytes) -> Step:
        siblings = [other for other in self.may if other.startswith(key[:-1]) and other[-1:].isdigit()]
        values = {other: self._fresh(other) for other in siblings}
        return Step([("MSET", *(part for pair in values.items() for part in pair))], OK, values)

    def _append(self, key: bytes, old: bytes) -> Step:
        piece = self._fresh(key)
        return Step([("APPEND", key, piece)], len(old + piece), {key: old + piece})

    def _part(self, key: bytes, old: bytes) -> Step:
        piece, start = self._fresh(key), self._rng.randrange(len(old))
        value = old[:start] + piece + old[start + len(piece) :]
        return Step([("SETRANGE", key, start, piece)], len(value), {key: value})

    def _exchanged(self, key: bytes, old: bytes) -> Step:
        value = self._fresh(key)
        return Step([("GETSET", key, value)], old, {key: value})

    def _if_equal(self, key: bytes, old: bytes) -> Step:
        value = self._fresh(key)
        return Step([("SET", key, value, "IFEQ", old)], OK, {key: value})

    def _by_script(self, key: bytes, old: bytes) -> Step:
        piece = self._fresh(key)
        code = "redis.call('APPEND', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])"
        return Step([("EVAL", code, 1, key, piece)], old + piece, {key: old + piece})

    def _at_once(self, key: bytes, old: bytes) -> Step:
        piece = self._fresh(key)
        value = old + piece
        requests: list[Request] = [("MULTI",), ("APPEND", key, piece), ("GET", key), ("EXEC",)]
        return Step(requests, [len(value), value], {key: value})


@contextmanager
def traffic(
    nodes: Sequence[Server],
    tags: Sequence[bytes] = TAGS,
    *,
    clients: int = 2,
    database: int = 0,
    is_mixed: bool = False,
    waits: bool = False,
    alone: bool = False,
) -> Iterator[list[Traffic]]:
    """Clients at work on a cluster. What one of them has read and nobody has written is raised at the end."""
    working = [Traffic(nodes, number, database, tags, is_mixed) for number in range(clients)]
    with ExitStack() as stack:
        for each in working:
            each.waits, each.alone = waits, alone
            stack.callback(each.stop)
            each.start()
        yield working
    for each in working:
        if each.failure is not None:
            raise each.failure


def until_each_has_worked(clients: Sequence[Traffic], rounds: int = 100) -> None:
    """Waits until each has done so much more; or has failed, which is raised when the traffic ends."""
    goals = [(client, client.rounds + rounds) for client in clients]
    until(lambda: all(client.rounds >= goal or client.failure is not None for client, goal in goals))
