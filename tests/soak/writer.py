"""A writer: one connection, whose requests are drawn from a table of loads, in a thread of its own.

It paces, sends, has each reply judged by its ledger, and connects again when its connection is ended. It knows nothing
of what a load asks.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from soak.ledger import Ledger, Step, Wrong, short
from soak.links import Addresses, Dialect, Link, Resp, plain

# A connection that has ended, however that shows.
LOST = (OSError, EOFError)
# Batches that a writer sends in a second, at most: with a hundred writers, they and three servers of a debug build take
# three quarters of one processor.
BATCHES_PER_SECOND = 4.0
# Keys that are read back at once.
READ_AT_ONCE = 100


@dataclass(frozen=True)
class Load:
    """One kind of what a writer asks; it is drawn as often as its weight says, beside the others of its table."""

    name: str
    weight: float
    run: Callable[[Writer], None]


class Writer:
    """One writer: `ledger` has its keys, `asked` counts its requests by load."""

    def __init__(
        self,
        dialect: Dialect,
        at: Addresses,
        ledger: Ledger,
        loads: Sequence[Load],
        refusals: Sequence[bytes],
        seed: str,
    ) -> None:
        self.dialect, self.at, self.ledger, self.loads = dialect, at, ledger, loads
        # Beginnings of the errors that writes may get in this server's situation.
        self.refusals = refusals
        self.rng = random.Random(f"{seed}:{ledger.writer}")
        self.link: Link | None = None
        # A second connection, of a load that waits on one and writes on the other.
        self.waiting: Link | None = None
        self.asked: Counter[str] = Counter()
        self.lost = 0

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(self.rng.uniform(0, 2 / BATCHES_PER_SECOND)):
            self.take_turn()
        self.hang_up()

    def take_turn(self) -> None:
        (load,) = self.rng.choices(self.loads, [load.weight for load in self.loads])
        try:
            self.clear_up()
            load.run(self)
        except LOST as error:
            if isinstance(error, TimeoutError):
                raise Wrong(f"{load.name}: no reply came in time") from error
            self.lost += 1
            self.hang_up()

    def clear_up(self) -> None:
        """Reads the keys to which a write was refused, before they are written again."""
        if self.ledger.unclear:
            with contextlib.closing(Resp(plain(self.at), 2)) as link:
                read_back(link, self.ledger, self.ledger.readings_of_unclear())

    def connected(self) -> Link:
        if self.link is None:
            self.link = self.dialect.connect(self.at)
        return self.link

    def second(self) -> Link:
        if self.waiting is None:
            self.waiting = self.dialect.connect(self.at)
        return self.waiting

    def hang_up(self) -> None:
        for link in (self.link, self.waiting):
            if link is not None:
                link.close()
        self.link = self.waiting = None

    def perform(self, load: str, steps: Sequence[Step]) -> None:
        """Sends steps at once and settles their replies. Raises Wrong, or one of LOST."""
        if not steps:
            return
        link, answered = self.connected(), 0
        sent = time.time()
        try:
            link.send(b"".join(step.request for step in steps))
            for step in steps:
                replies = [link.receive() for _ in range(step.replies)]
                self.judge(link, step, replies, sent)
                answered += 1
                self.asked[load] += step.replies
        except LOST:
            self.ledger.lose(steps[answered:])
            raise

    def judge(self, link: Link, step: Step, replies: list[object], sent: float) -> None:
        errors = [text for reply in spread(replies) if (text := link.refusal(reply)) is not None]
        reply = replies[0] if step.replies == 1 else replies
        if any(outcome.reply == reply for outcome in step.outcomes) or not errors or not step.writes:
            self.ledger.settle(step, reply, sent, time.time())
            return
        for text in errors:
            if not text.startswith(tuple(self.refusals)):
                raise Wrong(f"{short(step.request)} was answered {short(text)}, which is not expected here")
        self.ledger.refuse(step)

    def expects(self, reply: object) -> bool:
        """Whether it is an error that a write may get here."""
        text = self.connected().refusal(reply)
        return text is not None and text.startswith(tuple(self.refusals))

    def only(self) -> tuple[str | int, ...]:
        """The filter of CLIENT KILL for its present connection; empty if it has none."""
        link = self.link
        # Another thread may close it meanwhile.
        with contextlib.suppress(OSError):
            return link.only() if link is not None else ()
        return ()


def read_back(link: Resp, ledger: Ledger, steps: Sequence[Step]) -> None:
    """Settles steps over RESP, whatever protocol the keys were written in. Raises Wrong."""
    for start in range(0, len(steps), READ_AT_ONCE):
        batch = steps[start : start + READ_AT_ONCE]
        sent = time.time()
        link.send(b"".join(step.request for step in batch))
        for step in batch:
            ledger.settle(step, link.connection.read(), sent, time.time())


def spread(replies: list[object]) -> list[object]:
    """The replies, and those of a transaction beside them."""
    return [part for reply in replies for part in (reply if isinstance(reply, list) else [reply])]
