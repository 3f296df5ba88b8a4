"""How the program for Java is run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import servers
from snugly_bench.java import command


def built(folder: Path) -> Path:
    """A module as Maven leaves it."""
    (folder / "target").mkdir()
    (folder / "target" / "class-path").write_text("one.jar:two.jar\n")
    return folder


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `java` that notes what it was asked for, and whether somebody listens at the port, and ends with 3."""
    log = folder / "log"
    java = folder / "java"
    java.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, socket, sys\n"
        "with socket.socket() as probe:\n"
        '    found = probe.connect_ex(("127.0.0.1", int(sys.argv[-1])))\n'
        f'pathlib.Path({str(log)!r}).write_text("\\n".join([*sys.argv[1:], "refused" if found else "listens"]))\n'
        "sys.exit(3)\n"
    )
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return log


def test_a_module_that_was_not_built_is_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="make bench-java"):
        command.main(["--module", str(tmp_path)])


def test_the_program_gets_a_server_and_all_options_that_are_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNUGLY_VALKEY_SERVER", str(servers.valkey_binary()))
    log = stand_in(tmp_path, monkeypatch)
    with pytest.raises(SystemExit) as ended:
        command.main(["--module", str(built(tmp_path)), "--minimal", "--link", "direct 1gbit"])
    assert ended.value.code == 3
    words = log.read_text().splitlines()
    assert words[0] == "-cp"
    assert words[1].endswith("/target/classes:one.jar:two.jar")
    assert words[2:6] == [command.MAIN, "--minimal", "--link", "direct 1gbit"]
    assert words[6:8] == ["--resultsFile", command.RESULTS]
    assert words[-1] == "listens"


def test_a_server_that_runs_elsewhere_is_measured_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = stand_in(tmp_path, monkeypatch)
    given = ["--module", str(built(tmp_path)), "--host", "10.0.0.5", "--port", "1", "--resultsFile", "mine.json"]
    with pytest.raises(SystemExit):
        command.main(given)
    words = log.read_text().splitlines()
    assert words[3:9] == ["--host", "10.0.0.5", "--resultsFile", "mine.json", "--port", "1"]
