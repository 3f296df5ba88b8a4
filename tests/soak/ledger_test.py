"""Replies that a ledger takes for right and for wrong: a soak sees nothing that its ledgers do not see."""

from __future__ import annotations

import time

import pytest

from resp import Simple, encode
from soak.ledger import CLOCK_SECONDS, Ledger, Outcome, Step, Wrong, read
from soak.values import is_made, value

OK = Simple(b"OK")
KEYS = {"string": 3, "list": 1, "expiring": 1, "pair": 2}


def keeping() -> Ledger:
    return Ledger("writer", KEYS)


def evicting() -> Ledger:
    return Ledger("writer", KEYS, evicts=True)


def write(key: str, version: int) -> Step:
    return Step(encode("SET", key, value(key, version)), (Outcome(OK, {key: version}),))


def settle(ledger: Ledger, step: Step, reply: object) -> None:
    ledger.settle(step, reply, time.time(), time.time())


def test_a_value_that_was_written_is_right_and_an_older_one_and_another_keys_are_wrong() -> None:
    ledger = keeping()
    key, other, _ = ledger.names["string"]
    for version in (1, 2):
        settle(ledger, write(key, version), OK)
    settle(ledger, read(key, ledger.state(key)), value(key, 2))
    for wrong in (value(key, 1), value(other, 2), value(key, 2)[:-1], None):
        with pytest.raises(Wrong, match="should be"):
            settle(ledger, read(key, ledger.state(key)), wrong)


def test_a_key_may_be_gone_only_where_the_server_evicts() -> None:
    for ledger in (keeping(), evicting()):
        key = ledger.names["string"][0]
        settle(ledger, write(key, 1), OK)
        if ledger.evicts:
            settle(ledger, read(key, 1), None)
            assert ledger.state(key) is None
            with pytest.raises(Wrong):
                settle(ledger, read(key, ledger.state(key)), value(key, 1))
        else:
            with pytest.raises(Wrong):
                settle(ledger, read(key, 1), None)


def test_a_refused_write_leaves_the_old_value_or_the_new_one_until_the_key_is_read() -> None:
    for there in (1, 2):
        ledger = keeping()
        key = ledger.names["string"][0]
        settle(ledger, write(key, 1), OK)
        ledger.refuse(write(key, 2))
        (reading,) = ledger.readings_of_unclear()
        with pytest.raises(Wrong):
            settle(ledger, reading, None)
        settle(ledger, reading, value(key, there))
        assert ledger.state(key) == there
        assert not ledger.unclear


def test_a_write_whose_reply_never_came_has_happened_or_not_and_its_key_is_not_used_again() -> None:
    ledger = keeping()
    key = ledger.names["string"][0]
    settle(ledger, write(key, 1), OK)
    ledger.lose([write(key, 2)])
    assert key not in ledger.names["string"]
    assert len(ledger.names["string"]) == KEYS["string"]
    (doubt,) = ledger.doubts
    for version in (1, 2):
        ledger.judge(doubt, {key: value(key, version)})
    for wrong in (value(key, 3), None):
        with pytest.raises(Wrong, match="none of the 2 ways"):
            ledger.judge(doubt, {key: wrong})


def test_a_transaction_whose_reply_never_came_has_happened_as_a_whole_or_not_at_all() -> None:
    ledger = keeping()
    one, other = ledger.names["pair"]
    for key in (one, other):
        settle(ledger, write(key, 1), OK)
    ledger.lose([Step(b"", (Outcome([OK, OK], {one: 2, other: 2}),))])
    (doubt,) = ledger.doubts
    ledger.judge(doubt, {one: value(one, 1), other: value(other, 1)})
    ledger.judge(doubt, {one: value(one, 2), other: value(other, 2)})
    with pytest.raises(Wrong):
        ledger.judge(doubt, {one: value(one, 2), other: value(other, 1)})


def test_where_writes_are_refused_each_of_a_transaction_may_have_happened_alone() -> None:
    ledger = Ledger("writer", KEYS, refuses=True)
    one, other = ledger.names["pair"]
    for key in (one, other):
        settle(ledger, write(key, 1), OK)
    ledger.lose([Step(b"", (Outcome([OK, OK], {one: 2, other: 2}),))])
    (doubt,) = ledger.doubts
    ledger.judge(doubt, {one: value(one, 2), other: value(other, 1)})
    with pytest.raises(Wrong):
        ledger.judge(doubt, {one: None, other: value(other, 1)})


def test_a_refused_write_that_takes_the_old_value_away_leaves_nothing_too() -> None:
    ledger = Ledger("writer", KEYS, refuses=True)
    key = ledger.names["string"][0]
    settle(ledger, write(key, 1), OK)
    ledger.refuse(Step(b"", (Outcome(b"STORED", {key: 2}),), clears=True))
    settle(ledger, ledger.readings_of_unclear()[0], None)
    assert ledger.state(key) is None


@pytest.mark.parametrize(("seconds_left", "there"), [(60.0, True), (-60.0, False)])
def test_a_key_that_expires_is_there_until_its_deadline_and_not_behind_it(seconds_left: float, there: bool) -> None:
    ledger = keeping()
    key = ledger.names["expiring"][0]
    state = 1, int((time.time() + seconds_left) * 1000)
    assert abs(seconds_left) > CLOCK_SECONDS
    right, wrong = (value(key, 1), None) if there else (None, value(key, 1))
    settle(ledger, read(key, state), right)
    with pytest.raises(Wrong, match="at this time"):
        settle(ledger, read(key, state), wrong)


def test_an_element_that_is_lost_or_moved_is_wrong() -> None:
    ledger = keeping()
    key = ledger.names["list"][0]
    elements = [value(key, version) for version in (1, 2, 3)]
    settle(ledger, read(key, (1, 2, 3)), elements)
    for wrong in (elements[:2], elements[::-1], []):
        with pytest.raises(Wrong):
            settle(ledger, read(key, (1, 2, 3)), wrong)


def test_a_value_is_known_for_its_keys_or_nobodys() -> None:
    assert is_made("string:a:1", value("string:a:1", 7))
    assert not is_made("string:a:1", value("string:a:2", 7))
    assert not is_made("string:a:1", value("string:a:1", 7)[:-1])
