"""A minute of the soak, of which `make soak` has more: load in all protocols while servers are disturbed."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.run import soak

pytestmark = [pytest.mark.snugly_only, pytest.mark.slow]
SECONDS = 60.0


def test_a_minute_of_load_and_disturbances_leaves_no_fault(tmp_path: Path) -> None:
    soak(SECONDS, "minute", tmp_path / "logs", print)
