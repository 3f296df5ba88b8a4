"""Values to learn from are never measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugly_bench.corpora import Corpus
from snugly_bench.splits import Split, is_learned_from, split

LEARNED = next(number for number in range(100) if is_learned_from(number))
VALUES = [b"value %d" % number for number in range(2000)]


def test_about_a_fifth_is_learned_from_and_it_is_the_same_each_time() -> None:
    found = split(Corpus("x", tuple(VALUES)))
    assert 0.17 < len(found.training) / len(VALUES) < 0.23
    assert found == split(Corpus("x", tuple(VALUES)))


@given(st.lists(st.binary(max_size=1), max_size=40))
def test_no_measured_value_was_learned_from_under_whatever_number(more: list[bytes]) -> None:
    values = (*VALUES, *more)
    found = split(Corpus("x", values))
    assert not set(found.training) & set(found.measured)
    assert set(found.training) | set(found.measured) == set(values)


def test_a_value_that_was_learned_from_once_is_measured_nowhere() -> None:
    repeated = VALUES[LEARNED]
    found = split(Corpus("x", (*VALUES, repeated, repeated)))
    assert repeated in found.training
    assert repeated not in found.measured


def test_a_split_that_shares_a_value_is_refused() -> None:
    with pytest.raises(ValueError, match="learned from"):
        Split("x", (b"a", b"b"), (b"c", b"b"))


def test_too_few_values_to_be_divided_are_refused() -> None:
    with pytest.raises(SystemExit, match="too few"):
        split(Corpus("x", (b"the same",) * 100))
