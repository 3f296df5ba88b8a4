"""What `make install` puts into a system, and what `make uninstall` leaves."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import servers

pytestmark = pytest.mark.snugly_only


def make(target: str, destination: Path, prefix: str = "/usr") -> str:
    variables = [f"PROGRAM={servers.snugly_binary()}", f"DESTDIR={destination}", f"PREFIX={prefix}"]
    command = ["make", "--no-print-directory", "--directory", str(servers.ROOT), target, *variables]
    # Not the flags of the make that runs the tests, which are about its own targets.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def subcommands() -> list[str]:
    told = subprocess.run([servers.snugly_binary(), "--help"], capture_output=True, text=True, check=True).stdout
    return [name for name in re.findall(r"^  ([a-z]+) ", told.partition("Commands:")[2], re.M) if name != "help"]


def test_install_puts_program_pages_completions_unit_and_settings_where_systems_look(tmp_path: Path) -> None:
    make("install", tmp_path)
    installed = files(tmp_path)
    for path in (
        "usr/bin/snugly",
        "usr/share/bash-completion/completions/snugly",
        "usr/share/zsh/site-functions/_snugly",
        "usr/share/fish/vendor_completions.d/snugly.fish",
        "usr/lib/systemd/system/snugly.service",
        "usr/lib/systemd/system/snugly.socket",
        "usr/lib/sysusers.d/snugly.conf",
        "etc/snugly/snugly.toml",
        "usr/share/man/man1/snugly.1",
        *(f"usr/share/man/man1/snugly-{name}.1" for name in subcommands()),
    ):
        assert path in installed
        mode = 0o755 if path == "usr/bin/snugly" else 0o644
        assert (tmp_path / path).stat().st_mode & 0o777 == mode, path
        assert (tmp_path / path).stat().st_size > 0, path
    program = tmp_path / "usr/bin/snugly"
    assert subprocess.run([program, "--version"], capture_output=True, check=True).stdout.startswith(b"snugly ")


def test_a_unit_starts_the_program_of_its_prefix(tmp_path: Path) -> None:
    make("install", tmp_path, prefix="/opt/snugly")
    unit = (tmp_path / "opt/snugly/lib/systemd/system/snugly.service").read_text()
    assert "ExecStart=/opt/snugly/bin/snugly serve --config /etc/snugly/snugly.toml\n" in unit
    assert (tmp_path / "etc/snugly/snugly.toml").is_file()


def test_install_keeps_settings_that_are_there_and_uninstall_leaves_nothing_else(tmp_path: Path) -> None:
    make("install", tmp_path)
    settings = tmp_path / "etc/snugly/snugly.toml"
    settings.write_text("port = 7000\n")
    make("install", tmp_path)
    assert settings.read_text() == "port = 7000\n"
    make("uninstall", tmp_path)
    assert files(tmp_path) == {"etc/snugly/snugly.toml"}
