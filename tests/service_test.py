"""The files that run the server as a service: the unit for systemd, and the samples of settings."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import servers

pytestmark = pytest.mark.snugly_only

PACKAGING = servers.ROOT / "packaging"
UNIT = PACKAGING / "systemd" / "snugly.service"
SOCKET = PACKAGING / "systemd" / "snugly.socket"
SETTINGS = (PACKAGING / "snugly.toml", PACKAGING / "docker" / "snugly.toml")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
def test_systemd_understands_the_units_and_finds_little_exposed(tmp_path: Path) -> None:
    unit = tmp_path / "snugly.service"
    # The program must be where the unit says.
    unit.write_text(UNIT.read_text().replace("/usr/bin/snugly", str(servers.snugly_binary())))
    socket = tmp_path / "snugly.socket"
    socket.write_text(SOCKET.read_text())
    verified = subprocess.run(["systemd-analyze", "verify", unit, socket], capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stderr
    # It tells of other units that it finds, too.
    assert "snugly" not in verified.stderr
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=20", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout


def test_the_unit_restarts_the_server_but_not_for_wrong_usage() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.read(UNIT)
    assert unit["Service"]["Restart"] == "on-failure"
    wrong = subprocess.run([servers.snugly_binary(), "serve", "--no-such-flag"], capture_output=True, check=False)
    assert unit["Service"]["RestartPreventExitStatus"].split() == [str(wrong.returncode)]


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: str(path.relative_to(PACKAGING)))
def test_every_name_and_value_in_a_sample_of_settings_is_one_of_a_flag(path: Path) -> None:
    text = path.read_text()
    # Examples that are commented out hold as well.
    text = re.sub(r"^# (?=[a-z-]+ = )", "", text, flags=re.M)
    lines: dict[str, object] = {}
    for line in text.splitlines():
        lines |= tomllib.loads(line)
    assert {"bind", "storage"} <= set(lines)
    flags = [part for name, value in lines.items() for part in (f"--{name}", str(value))]
    # It goes through all flags before it ends with the last, which does not exist.
    done = subprocess.run(
        [servers.snugly_binary(), "serve", *flags, "--no-such-flag"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "unexpected argument '--no-such-flag'" in done.stderr
