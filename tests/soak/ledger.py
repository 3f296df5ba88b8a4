"""A ledger of what one writer has written, which judges every reply.

It knows states of keys and replies that are right in them; it knows no protocol. Each key has one writer, so a reply
is either one that the ledger expects or a fault. Where the server evicts, a key may be gone, and never wrong. Where a
write was refused, or its connection ended before the reply, the ledger says which states there may be.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from resp import Reply, encode
from soak.values import State, kind, reading

# Seconds between the clock of a ledger and that of a server, at most: a server looks at its clock a thousand times a
# second, and either may be held up in between.
CLOCK_SECONDS = 0.25


class Wrong(Exception):
    """A server did what it must not do; the message says what, to which key, and what was expected."""


@dataclass(frozen=True)
class Outcome:
    """A right reply, and the states that keys are in behind it."""

    reply: object
    states: dict[str, State] = field(default_factory=dict)
    # Unix times in seconds: a reply that came before `since`, or to a request that was sent behind `until`, is wrong.
    since: float = -math.inf
    until: float = math.inf


@dataclass(frozen=True)
class Step:
    """Requests that belong together, and the right replies to them; of several requests, a list of their replies."""

    request: bytes
    outcomes: tuple[Outcome, ...]
    # Replies that are right if the server has evicted a key.
    gone: tuple[Outcome, ...] = ()
    replies: int = 1
    # A read is never refused.
    writes: bool = True
    # A refusal may take the key away: memcached lets nobody take an old value for one that was not stored.
    clears: bool = False

    def touched(self) -> set[str]:
        return {key for outcome in (*self.outcomes, *self.gone) for key in outcome.states}


@dataclass(frozen=True)
class Doubt:
    """The states of some keys of which one holds: the keys are not used any more."""

    worlds: tuple[dict[str, State], ...]


def outcomes_of_reading(key: str, state: State) -> tuple[Outcome, ...]:
    """Right replies to reading a key whole in a state: of a key that expires, nothing behind its deadline."""
    there = reading(key, state)[1]
    if kind(key) != "expiring" or not isinstance(state, tuple):
        return (Outcome(there, {key: state}),)
    deadline = state[1] / 1000
    return (
        Outcome(there, {key: state}, until=deadline + CLOCK_SECONDS),
        Outcome(None, {key: None}, since=deadline - CLOCK_SECONDS),
    )


def read(key: str, *states: State) -> Step:
    """Reads a key whole, which is in one of these states."""
    request, _ = reading(key, None)
    right = tuple(outcome for state in states for outcome in outcomes_of_reading(key, state))
    return Step(encode(*request), right, gone=outcomes_of_reading(key, None), writes=False)


class Ledger:
    """The keys of one writer, by their kinds, and the states that they are in.

    A name is never used again once a connection has ended in the middle of a write to it: what the server has read of
    it may take effect later.
    """

    def __init__(self, writer: str, keys: dict[str, int], evicts: bool = False, refuses: bool = False) -> None:
        self.writer, self.evicts, self.refuses = writer, evicts, refuses
        self.numbers = itertools.count()
        self.versions = itertools.count(1)
        self.known: dict[str, State] = {}
        # Keys to which a write was refused, and the states that they may be in.
        self.unclear: dict[str, set[State]] = {}
        self.doubts: list[Doubt] = []
        self.counts: Counter[str] = Counter()
        self.names = {kind: [self.new_name(kind) for _ in range(count)] for kind, count in keys.items()}

    def new_name(self, kind: str) -> str:
        return f"{kind}:{self.writer}:{next(self.numbers)}"

    def version(self) -> int:
        return next(self.versions)

    def pick(self, rng: random.Random, kind: str, count: int = 1) -> list[str]:
        """Different keys of a kind, whose states are known; fewer if there are no more."""
        drawn = rng.sample(self.names[kind], min(count, len(self.names[kind])))
        return [key for key in drawn if key not in self.unclear]

    def state(self, key: str) -> State:
        return self.known.get(key)

    def settle(self, step: Step, reply: object, sent: float, received: float) -> None:
        """Takes a reply to account, which came at a Unix time to a request that was sent at another.

        Raises Wrong if it is none of those that are right.
        """
        usual, gone = ([o for o in of if o.reply == reply] for of in (step.outcomes, step.gone if self.evicts else ()))
        fitting = [o for o in (*usual, *gone) if sent <= o.until and received >= o.since]
        if not fitting:
            raise Wrong(self._complaint(step, reply))
        self.counts["as known" if fitting[0] in usual else "gone"] += 1
        for key, state in fitting[0].states.items():
            self.unclear.pop(key, None)
            self.known[key] = state

    def _complaint(self, step: Step, reply: object) -> str:
        expected = " or ".join(short(outcome.reply) for outcome in (*step.outcomes, *step.gone[: int(self.evicts)]))
        late = " at this time" if any(o.reply == reply for o in step.outcomes) else ""
        return f"{short(step.request)} was answered {short(reply)}{late}, and should be {expected}"

    def refuse(self, step: Step) -> None:
        """Notes that a write was refused: each of its keys is as before or as it would be."""
        self.counts["refused"] += 1
        for key in step.touched():
            self.unclear[key] = self._after_refusal(step, key)

    def lose(self, steps: Iterable[Step]) -> None:
        """Notes that a connection ended before these steps were answered: none of their keys is used again."""
        for step in steps:
            self.counts["unanswered"] += 1
            if keys := step.touched():
                self.doubts.append(Doubt(tuple(self._worlds(step))))
            for key in keys:
                self.retire(key)

    def _worlds(self, step: Step) -> Iterator[dict[str, State]]:
        """Everything that may have come of a step whose reply is not known."""
        if self.refuses:
            # Each of its writes may have been refused.
            states = {key: self._after_refusal(step, key) for key in step.touched()}
            yield from (dict(zip(states, world, strict=True)) for world in itertools.product(*states.values()))
            return
        before = {key: self.state(key) for key in step.touched()}
        yield before
        for outcome in (*step.outcomes, *(step.gone if self.evicts else ())):
            yield {**before, **outcome.states}

    def _after_refusal(self, step: Step, key: str) -> set[State]:
        after = {outcome.states[key] for outcome in step.outcomes if key in outcome.states}
        return {self.state(key), *after, *([None] if step.clears else [])}

    def leave(self, key: str, state: State) -> None:
        """Notes the state of a key that is not used again."""
        self.doubts.append(Doubt(({key: state},)))
        self.retire(key)

    def retire(self, key: str) -> None:
        """Puts a new name into the place of a key, which nothing is known of any more."""
        self.known.pop(key, None)
        self.unclear.pop(key, None)
        names = self.names[kind(key)]
        names[names.index(key)] = self.new_name(kind(key))

    def readings_of_unclear(self) -> list[Step]:
        """Steps that read every key to which a write was refused."""
        return [read(key, *states) for key, states in self.unclear.items()]

    def readings(self) -> list[Step]:
        """Steps that read every key but those in doubt."""
        known = [read(key, state) for key, state in self.known.items() if key not in self.unclear]
        return known + self.readings_of_unclear()

    def judge(self, doubt: Doubt, replies: dict[str, Reply]) -> None:
        """Raises Wrong if the keys, as they were read, are in none of the states that there may be."""
        for world in doubt.worlds:
            if all(self._may_be(key, state, replies[key]) for key, state in world.items()):
                return
        told = "; ".join(f"{key} is {short(reply)}" for key, reply in replies.items())
        raise Wrong(f"{told}, which is none of the {len(doubt.worlds)} ways that it may have been left")

    def _may_be(self, key: str, state: State, reply: Reply) -> bool:
        right = [outcome.reply for outcome in outcomes_of_reading(key, state)]
        return reply in right or (self.evicts and reply == reading(key, None)[1])


def short(told: object) -> str:
    """The beginning of what was sent or answered, for people."""
    text = repr(told)
    return text if len(text) <= 200 else f"{text[:160]}... ({len(text)} characters)"
