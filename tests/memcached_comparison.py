"""Sends the same requests to two servers that speak memcached's protocols, and compares the bytes of every reply.

It knows which parts of replies differ for good reasons: numbers that servers choose, and seconds.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from memcached import NOTHING, NOTHING_DONE, Cache, Client, Packet
from memcached_requests import Request

# Names, in requests, of numbers that replies have had, and the number where there was none: no write is as late.
NAME = re.compile(rb"<#(\d+)>")
NEVER_SEEN = (1 << 64) - 2
# Numbers in replies: behind the flags and the size of gets, and behind flags of meta commands: the number of a write,
# the seconds left and the seconds since the last use.
TOLD = re.compile(rb"^(?:VALUE (?P<key>\S+) \d+ \d+ (?P<gets>\d+)|(?:HD|VA|EN|NF|EX|NS)(?: \S+)*)\r$", re.M)
LETTERED = re.compile(rb"(?<= )([ctl])(\d+)(?= |\r)")
# A key in base64: what was once stored under one memcached answers so for ever, and this server as it is asked.
BASE64_KEY = re.compile(rb"(?<= )k([A-Za-z0-9+/=]+) b(?= |\r)")
# Of what is not stored, memcached tells the number 0.
NO_NUMBER = re.compile(rb"^((?:NF|NS|EX)(?: \S+)*?) c0(?= |\r)")
# An answer, with that to what stands behind every request.
ANSWER = re.compile(rb"(.*?)^MN\r\n", re.M | re.S)
# Two servers read their clocks a little apart.
SECONDS = 2


@dataclass(frozen=True)
class Number:
    """A number in a reply: `c` of a write, `t` or `l` of seconds."""

    letter: str
    key: bytes
    value: int


@dataclass
class Reply:
    """A reply with its numbers taken out."""

    content: object
    numbers: list[Number]


@dataclass
class Player:
    """One of the servers, and the numbers of writes that its replies have had, by key."""

    text: Client
    binary: Client
    seen: dict[bytes, list[int]] = field(default_factory=dict)

    def play(self, requests: list[Request]) -> list[Reply]:
        """The replies to requests that go out in one write."""
        first = requests[0].content
        if isinstance(first, Packet):
            [packet] = (request.content for request in requests)
            assert isinstance(packet, Packet)
            cas = self.number(packet.key, -packet.cas) if packet.cas < 0 else packet.cas
            replies = [of_packets(packet.key, self.binary.packets(dataclasses.replace(packet, cas=cas).request()))]
        else:
            keys = [key_of(request) for request in requests]
            self.text.send(b"".join(self.filled(*pair) + NOTHING for pair in zip(requests, keys, strict=True)))
            replies = [of_text(key, answer) for key, answer in zip(keys, self.answers(len(keys)), strict=True)]
        for number in (number for reply in replies for number in reply.numbers if number.letter == "c"):
            self.seen.setdefault(number.key, []).append(number.value)
        return replies

    def answers(self, count: int) -> list[bytes]:
        """What was answered to so many requests."""
        pending = self.text.pending
        # Counting is cheap, and a value may end with these letters.
        while pending.count(NOTHING_DONE) < count or len(ANSWER.findall(pending)) < count:
            assert self.text.receive(), f"the server closed the connection after {bytes(pending)!r}"
        return ANSWER.findall(self.text.take(len(pending)))

    def filled(self, request: Request, key: bytes) -> bytes:
        assert isinstance(request.content, bytes)
        return NAME.sub(lambda name: b"%d" % self.number(key, int(name[1])), request.content)

    def number(self, key: bytes, ago: int) -> int:
        seen = self.seen.get(key, [])
        return seen[-ago] if ago <= len(seen) else NEVER_SEEN


def key_of(request: Request) -> bytes:
    """The key of a request of text that has one, as it is when it is not in base64."""
    assert isinstance(request.content, bytes)
    words = request.content.split(b"\r\n")[0].split(b" ")[1:]
    if words[:1] and b"b" in words:
        with contextlib.suppress(ValueError):
            return base64.b64decode(words[0], validate=True)
    return words[0] if words else b""


def of_packets(key: bytes, packets: list[Packet]) -> Reply:
    numbers = [Number("c", key, packet.cas) for packet in packets if packet.cas]
    return Reply([dataclasses.replace(packet, cas=min(packet.cas, 1)) for packet in packets], numbers)


def of_text(key: bytes, reply: bytes) -> Reply:
    numbers: list[Number] = []

    def lettered(found: re.Match[bytes]) -> bytes:
        numbers.append(Number(found[1].decode(), key, int(found[2])))
        return found[1] + b"#"

    def told(line: re.Match[bytes]) -> bytes:
        if line["gets"]:
            numbers.append(Number("c", line["key"], int(line["gets"])))
            return line[0][: line.start("gets") - line.start()] + b"#\r"
        words = NO_NUMBER.sub(rb"\1", line[0])
        return LETTERED.sub(lettered, BASE64_KEY.sub(lambda key: b"k" + base64.b64decode(key[1]), words))

    return Reply(TOLD.sub(told, reply), numbers)


@dataclass
class Agreement:
    """The numbers of writes that two servers have told of each key, as pairs: they must be equal and ordered alike."""

    pairs: dict[bytes, dict[int, int]] = field(default_factory=dict)

    def holds(self, left: Reply, right: Reply) -> bool:
        if left.content != right.content or len(left.numbers) != len(right.numbers):
            return False
        return all(map(self.alike, left.numbers, right.numbers))

    def alike(self, left: Number, right: Number) -> bool:
        if left.letter != "c" or right.letter != "c":
            return left.letter == right.letter and abs(left.value - right.value) <= SECONDS
        ours, theirs = left.value, right.value
        if not ours or not theirs:
            return ours == theirs
        pairs = self.pairs.setdefault(left.key, {})
        pairs.setdefault(ours, theirs)
        return all((ours > one) - (ours < one) == (theirs > other) - (theirs < other) for one, other in pairs.items())


@dataclass(frozen=True)
class Difference:
    """The first reply that is not the same on both servers."""

    requests: list[Request]
    at: int
    replies: tuple[Reply, Reply]

    def __str__(self) -> str:
        ours, theirs = self.replies
        requests = map(str, self.requests[: self.at + 1])
        return "\n".join([*requests, f"  this server: {ours}", f"  memcached:   {theirs}"])


def compare(ours: Cache, theirs: Cache, requests: list[Request], at_once: int = 1) -> Difference | None:
    """The first difference between the replies of two servers, which are emptied."""
    agreement, at = Agreement(), 0
    with contextlib.ExitStack() as stack:
        players = []
        for cache in (ours, theirs):
            cache.empty()
            text, binary = (stack.enter_context(cache.connect()) for _ in range(2))
            players.append(Player(text, binary))
        for some in batches(requests, at_once):
            for left, right in zip(*(player.play(some) for player in players), strict=True):
                if not agreement.holds(left, right):
                    return Difference(requests, at, (left, right))
                at += 1
    return None


def batches(requests: list[Request], at_once: int) -> Iterator[list[Request]]:
    """Requests that go out in one write: those of text that need no number from a reply."""
    batch: list[Request] = []
    for request in requests:
        is_alone = isinstance(request.content, Packet) or b"<#" in request.content
        if batch and (is_alone or len(batch) == at_once):
            yield batch
            batch = []
        batch.append(request)
        if is_alone:
            yield batch
            batch = []
    if batch:
        yield batch


def shrink(ours: Cache, theirs: Cache, found: Difference, at_once: int = 1) -> Difference:
    """A difference with as few requests as leaving out parts of them, and then single ones, gets to."""
    best = found
    size = found.at
    while size > 0:
        end = best.at
        while end > 0:
            kept = best.requests[: max(0, end - size)] + best.requests[end : best.at + 1]
            smaller = compare(ours, theirs, kept, at_once)
            best = smaller or best
            end = min(end - size, best.at)
        size //= 2
    return best
