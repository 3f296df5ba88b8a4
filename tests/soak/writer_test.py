"""Replies that a writer takes for expected errors, and for faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from resp import Failure, Simple, encode
from soak.ledger import Ledger, Outcome, Step, Wrong
from soak.links import DIALECTS, Addresses
from soak.writer import Writer

NOWHERE = Addresses(0, 0, 0, Path(), "")
REFUSED = Failure(b"MISCONF there is no room left on the disk or in max-disk")
OTHER = Failure(b"ERR an error that nobody expects")


class Answering:
    """A link to a server that gives one answer to everything."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def send(self, data: bytes) -> None:
        pass

    def receive(self) -> object:
        return self.answer

    def refusal(self, reply: object) -> bytes | None:
        return reply.text if isinstance(reply, Failure) else None

    def only(self) -> tuple[str | int, ...]:
        return ()

    def close(self) -> None:
        pass


def writer(answer: object, *refusals: bytes) -> Writer:
    ledger = Ledger("writer", {"string": 1}, refuses=bool(refusals))
    made = Writer(DIALECTS[0], NOWHERE, ledger, (), refusals, "seed")
    made.link = Answering(answer)
    return made


def write(key: str) -> Step:
    return Step(encode("SET", key, "x"), (Outcome(Simple(b"OK"), {key: 1}),))


def read(key: str) -> Step:
    return Step(encode("GET", key), (Outcome(None, {key: None}),), writes=False)


def test_an_error_that_its_server_may_give_is_counted_and_its_key_is_unclear() -> None:
    one = writer(REFUSED, b"MISCONF there is no room left")
    (key,) = one.ledger.names["string"]
    one.perform("strings", [write(key)])
    assert one.ledger.counts["refused"] == 1
    assert one.ledger.unclear == {key: {None, 1}}


@pytest.mark.parametrize(
    ("answer", "refusals"), [(REFUSED, ()), (OTHER, (b"MISCONF there is no room left",))], ids=["here", "anywhere"]
)
def test_an_error_that_is_not_expected_is_a_fault(answer: Failure, refusals: tuple[bytes, ...]) -> None:
    one = writer(answer, *refusals)
    (key,) = one.ledger.names["string"]
    with pytest.raises(Wrong, match="not expected here"):
        one.perform("strings", [write(key)])


def test_a_read_is_never_refused() -> None:
    one = writer(REFUSED, b"MISCONF there is no room left")
    (key,) = one.ledger.names["string"]
    with pytest.raises(Wrong, match="should be None"):
        one.perform("strings", [read(key)])
