"""The plan of a soak, and what its accounts miss and find in a log."""

from __future__ import annotations

import pytest

from soak.disturbances import DISTURBANCES
from soak.instances import SITUATIONS, unexpected
from soak.plan import events
from soak.report import Report

NAMES = [situation.name for situation in SITUATIONS]


def test_the_same_seed_gives_the_same_plan_and_another_one_another() -> None:
    assert events("1", 600, NAMES) == events("1", 600, NAMES)
    assert events("1", 600, NAMES) != events("2", 600, NAMES)


def test_a_minute_has_every_disturbance_of_every_server_that_is_there() -> None:
    planned = events("1", 60, NAMES)
    assert set(planned) == {(row.name, instance) for row in DISTURBANCES for instance in row.to}
    assert all(series for series in planned.values())
    assert {instance for _, instance in events("1", 60, NAMES[:2])} == set(NAMES[:2])


def test_a_soak_in_which_nothing_happened_is_a_fault() -> None:
    planned = [event for series in events("1", 60, NAMES).values() for event in series]
    missing = Report([], []).missing(planned)
    assert "requests of resp3 tls did not happen" in missing
    assert "kills did not happen" in missing


@pytest.mark.parametrize(
    "line",
    [
        '2026-01-01T00:00:00.000000Z ERROR snugly: a thread panicked thread="worker-0"',
        "2026-01-01T00:00:00.000000Z  WARN snugly_store::disk: the store was closed with changes that are not on disk",
        "thread 'worker-0' panicked at src/main.rs:1:1:",
    ],
)
def test_a_line_that_nothing_explains_is_found_in_a_log(line: str) -> None:
    usual = "2026-01-01T00:00:00.000000Z  INFO snugly::serve: stopped"
    for situation in SITUATIONS:
        assert unexpected(situation, f"{usual}\n{line}\n{usual}\n") == [line]


def test_a_full_disk_explains_its_error_and_only_where_it_is() -> None:
    line = (
        "2026-01-01T00:00:00.000000Z ERROR snugly_store::disk::writer: changes cannot be written to disk; trying again "
        "path=/store failure=there is no room left on the disk or in max-disk"
    )
    found = {situation.name: unexpected(situation, line) for situation in SITUATIONS}
    assert found == {"evicting": [line], "keeping": [line], "full disk": []}
