"""Requests of writers in RESP: a table of loads. Each makes up requests and the replies that are right for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from resp import Argument, Failure, Simple, encode
from soak.ledger import Ledger, Outcome, Step, Wrong, read, short
from soak.values import State, reading, value
from soak.writer import LOST, Load, Writer

OK, QUEUED = Simple(b"OK"), Simple(b"QUEUED")
# Lengths over which lists and drafts are cut or removed.
LIST_ELEMENTS = 200
DRAFT_PIECES = 60
# Seconds that keys live at least and at most.
LIVES = (0.2, 5.0)
# Seconds that a pop waits where the element may be evicted before it is popped.
POP_SECONDS = 30

# Keys of each writer by kind; where the server evicts, there are more strings than fit.
KEYS = {"string": 120, "counter": 10, "list": 6, "draft": 4, "pair": 20, "expiring": 30, "queue": 1, "big": 2}
MORE_STRINGS = 1_500


def step(key: str, *command: Argument, reply: object, becomes: State, gone: object = None, writes: bool = True) -> Step:
    """A command about one key; `gone` is the reply if the server has evicted the key, which is then not there."""
    return Step(encode(*command), (Outcome(reply, {key: becomes}),), (Outcome(gone, {key: None}),), writes=writes)


def read_known(ledger: Ledger, key: str) -> Step:
    return read(key, ledger.state(key))


def set_string(ledger: Ledger, key: str) -> Step:
    version = ledger.version()
    return Step(encode("SET", key, value(key, version)), (Outcome(OK, {key: version}),))


def set_anew(ledger: Ledger, key: str) -> Step:
    """SETNX, which takes a key that is not there."""
    there, version = ledger.state(key), ledger.version()
    taken = Outcome(1, {key: version})
    kept = Outcome(0, {key: there})
    return Step(encode("SETNX", key, value(key, version)), (taken if there is None else kept,), (taken,))


def exchange(ledger: Ledger, key: str) -> Step:
    there, version = ledger.state(key), ledger.version()
    replies = [Outcome(reading(key, state)[1], {key: version}) for state in (there, None)]
    return Step(encode("SET", key, value(key, version), "GET"), (replies[0],), (replies[1],))


def remove(ledger: Ledger, key: str) -> Step:
    there = int(ledger.state(key) is not None)
    return step(key, "DEL", key, reply=there, becomes=None, gone=0)


def measure(ledger: Ledger, key: str) -> Step:
    state = ledger.state(key)
    text = reading(key, state)[1]
    length = len(text) if isinstance(text, bytes) else 0
    return step(key, "STRLEN", key, reply=length, becomes=state, gone=0, writes=False)


STRINGS = (set_string, set_string, set_string, read_known, read_known, read_known, set_anew, exchange, remove, measure)


def strings(writer: Writer, count: int) -> list[Step]:
    """So many requests at once, each about a string of its own."""
    keys = writer.ledger.pick(writer.rng, "string", count)
    return [writer.rng.choice(STRINGS)(writer.ledger, key) for key in keys]


def several(writer: Writer) -> list[Step]:
    """MSET of some strings, and MGET of others."""
    ledger, keys = writer.ledger, writer.ledger.pick(writer.rng, "string", 8)
    versions = {key: ledger.version() for key in keys[:4]}
    written = [part for key, version in versions.items() for part in (key, value(key, version))]
    if not versions:
        return []
    steps = [Step(encode("MSET", *written), (Outcome(OK, dict(versions)),))]
    return steps + [read_known(ledger, key) for key in keys[4:]]


def counters(writer: Writer) -> list[Step]:
    steps = []
    for key in writer.ledger.pick(writer.rng, "counter", 4):
        added, state = writer.rng.randrange(-50, 100), writer.ledger.state(key)
        total = (state if isinstance(state, int) else 0) + added
        right, anew = Outcome(total, {key: total}), Outcome(added, {key: added})
        steps.append(Step(encode("INCRBY", key, added), (right,), (anew,)))
    return steps


def versions_in(ledger: Ledger, key: str) -> tuple[int, ...]:
    state = ledger.state(key)
    return state if isinstance(state, tuple) else ()


def push(writer: Writer, key: str) -> Step:
    ledger, there, left = writer.ledger, versions_in(writer.ledger, key), writer.rng.random() < 0.5
    added = tuple(ledger.version() for _ in range(writer.rng.randrange(1, 12)))
    new = added[::-1] if left else added
    after = new + there if left else there + new
    command = ("LPUSH" if left else "RPUSH", key, *(value(key, version) for version in added))
    return Step(encode(*command), (Outcome(len(after), {key: after}),), (Outcome(len(new), {key: new}),))


def pop(writer: Writer, key: str) -> Step:
    there, left = versions_in(writer.ledger, key), writer.rng.random() < 0.5
    taken, after = (there[:1], there[1:]) if left else (there[-1:], there[:-1])
    reply = value(key, taken[0]) if taken else None
    return step(key, "LPOP" if left else "RPOP", key, reply=reply, becomes=after or None)


def trim(writer: Writer, key: str) -> Step:
    after = versions_in(writer.ledger, key)[: LIST_ELEMENTS // 2]
    last = LIST_ELEMENTS // 2 - 1
    return step(key, "LTRIM", key, 0, last, reply=OK, becomes=after or None, gone=OK)


def read_list(writer: Writer, key: str) -> Step:
    return read_known(writer.ledger, key)


LISTS = (push, push, push, pop, read_list)


def lists(writer: Writer) -> list[Step]:
    steps = []
    for key in writer.ledger.pick(writer.rng, "list", 3):
        if len(versions_in(writer.ledger, key)) > LIST_ELEMENTS:
            steps.append(trim(writer, key))
        else:
            steps.append(writer.rng.choice(LISTS)(writer, key))
    return steps


def drafts(writer: Writer) -> list[Step]:
    """Values that grow piece by piece, and are read whole and in part."""
    steps, ledger = [], writer.ledger
    for key in ledger.pick(writer.rng, "draft", 2):
        there = versions_in(ledger, key)
        text = b"".join(value(key, version) for version in there)
        if len(there) > DRAFT_PIECES:
            steps.append(remove(ledger, key))
        elif writer.rng.random() < 0.7:
            added = ledger.version()
            piece = value(key, added)
            grown, anew = Outcome(len(text + piece), {key: (*there, added)}), Outcome(len(piece), {key: (added,)})
            steps.append(Step(encode("APPEND", key, piece), (grown,), (anew,)))
        else:
            start = writer.rng.randrange(len(text) + 1)
            command = ("GETRANGE", key, start, start + 99)
            part = text[start : start + 100]
            steps.append(step(key, *command, reply=part, becomes=there or None, gone=b"", writes=False))
    return steps


def transactions(writer: Writer) -> list[Step]:
    """Two keys that are written and read together, sometimes while one of them is watched."""
    ledger, keys = writer.ledger, writer.ledger.pick(writer.rng, "pair", 2)
    if len(keys) < 2:
        return []
    if writer.rng.random() < 0.3:
        return [read_pair(ledger, keys)]
    versions = {key: ledger.version() for key in keys}
    written = b"".join(encode("SET", key, value(key, version)) for key, version in versions.items())
    request = encode("MULTI") + written + encode("EXEC")
    replies: list[object] = [OK, QUEUED, QUEUED, [OK, OK]]
    if writer.rng.random() < 0.5:
        return [Step(request, (Outcome(replies, dict(versions)),), replies=4)]
    # A watched key that is evicted is one that has changed.
    failed = Outcome([OK, OK, QUEUED, QUEUED, None], {key: ledger.state(key) for key in keys})
    return [Step(encode("WATCH", keys[0]) + request, (Outcome([OK, *replies], dict(versions)),), (failed,), replies=5)]


def read_pair(ledger: Ledger, keys: list[str]) -> Step:
    request = encode("MULTI") + b"".join(encode("GET", key) for key in keys) + encode("EXEC")

    def outcome(states: dict[str, State]) -> Outcome:
        return Outcome([OK, QUEUED, QUEUED, [reading(key, state)[1] for key, state in states.items()]], states)

    one, other = keys
    there = {key: ledger.state(key) for key in keys}
    gone = (outcome({**there, one: None}), outcome({**there, other: None}), outcome({one: None, other: None}))
    return Step(request, (outcome(there),), gone, replies=4, writes=False)


def expiring(writer: Writer) -> list[Step]:
    """Keys with a deadline, of which the ledger knows when they must be there and when not."""
    steps, ledger = [], writer.ledger
    for key in ledger.pick(writer.rng, "expiring", 4):
        if writer.rng.random() < 0.4:
            version = ledger.version()
            deadline = int((time.time() + writer.rng.uniform(*LIVES)) * 1000)
            command = ("SET", key, value(key, version), "PXAT", deadline)
            steps.append(Step(encode(*command), (Outcome(OK, {key: (version, deadline)}),)))
        else:
            steps.append(read_known(ledger, key))
    return steps


def big(writer: Writer) -> list[Step]:
    keys = writer.ledger.pick(writer.rng, "big", 1)
    make = set_string if writer.rng.random() < 0.5 else read_known
    return [make(writer.ledger, key) for key in keys]


MISTAKES: tuple[tuple[tuple[Argument, ...], bytes], ...] = (
    (("NOSUCH", "a"), b"ERR unknown command 'NOSUCH', with args beginning with: 'a' "),
    (("GET",), b"ERR wrong number of arguments for 'get' command"),
    (("SET", "mistake", "x", "EX", "0"), b"ERR invalid expire time in 'set' command"),
    (("INCRBY", "mistake", "x"), b"ERR value is not an integer or out of range"),
    (("LRANGE", "mistake", "a", "b"), b"ERR value is not an integer or out of range"),
    (("EXEC",), b"ERR EXEC without MULTI"),
)


def mistakes(writer: Writer) -> list[Step]:
    """Requests that are refused, of which the connection goes on as if nothing was."""
    command, told = writer.rng.choice(MISTAKES)
    return [Step(encode(*command), (Outcome(Failure(told)),)), *(strings(writer, 2))]


def blocked_pops(writer: Writer) -> None:
    """An element that one connection waits for and the other pushes."""
    ledger = writer.ledger
    for queue in ledger.pick(writer.rng, "queue"):
        version = ledger.version()
        expected = [queue.encode(), value(queue, version)]
        seconds = POP_SECONDS if ledger.evicts else 0
        # Pushed and popped at once, so that it is there for a moment at most.
        pushed = Step(encode("RPUSH", queue, value(queue, version)), (Outcome(1),))
        refused = ledger.counts["refused"]
        try:
            writer.second().send(encode("BLPOP", queue, seconds))
            writer.perform("blocked pops", [pushed])
            if ledger.counts["refused"] > refused:
                # The server may take a moment to notice that nobody waits any more.
                ledger.retire(queue)
                writer.hang_up()
                return
            popped = writer.second().receive()
        except LOST:
            ledger.retire(queue)
            raise
        if popped is None and ledger.evicts:
            ledger.retire(queue)
        elif writer.expects(popped):
            # An element whose pop is refused stays where it was pushed to.
            ledger.leave(queue, (version,))
        elif popped != expected:
            raise Wrong(f"BLPOP {queue} gave {short(popped)}, and should give {short(expected)}")
        writer.asked["blocked pops"] += 1


def load(name: str, weight: float, make: Callable[[Writer], list[Step]]) -> Load:
    """A load whose requests are sent at once."""
    return Load(name, weight, lambda writer: writer.perform(name, make(writer)))


LOADS = (
    load("strings", 6, partial(strings, count=6)),
    load("pipelines", 2, partial(strings, count=60)),
    load("several", 2, several),
    load("counters", 3, counters),
    load("lists", 4, lists),
    load("drafts", 2, drafts),
    load("transactions", 3, transactions),
    load("expiries", 3, expiring),
    load("big values", 0.3, big),
    load("mistakes", 1, mistakes),
    Load("blocked pops", 2, blocked_pops),
)
