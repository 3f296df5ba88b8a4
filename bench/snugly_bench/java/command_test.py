"""Running the program for Java."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import servers
from snugly_bench.java import command


def built(folder: Path) -> Path:
    """A module as Maven leaves it."""
    (folder / "target").mkdir(parents=True)
    (folder / "target" / "class-path").write_text("one.jar:two.jar\n")
    return folder


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `java` that notes what it was asked for, and whether somebody listens at the last port, and ends with 3."""
    log = folder / "log"
    java = folder / "java"
    java.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, socket, sys\n"
        "port = int(sys.argv[-1]) if sys.argv[-1].isdigit() else 0\n"
        "with socket.socket() as probe:\n"
        '    found = probe.connect_ex(("127.0.0.1", port))\n'
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


@pytest.mark.parametrize(
    "given",
    [
        ["--host", "10.0.0.5", "--port", "1"],
        ["--port=1"],
        ["--host", "10.0.0.5"],
        ["--tls"],
        ["--tlsCa", "ca.pem"],
        ["--clusterModeEnabled"],
    ],
)
def test_a_server_that_runs_elsewhere_is_measured_as_it_is(
    given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = stand_in(tmp_path, monkeypatch)
    with pytest.raises(SystemExit):
        command.main(["--module", str(built(tmp_path)), *given, "--resultsFile", "mine.json"])
    assert log.read_text().splitlines()[3:] == [*given, "--resultsFile", "mine.json", "refused"]


def test_help_has_the_options_that_are_ours_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = stand_in(tmp_path, monkeypatch)
    with pytest.raises(SystemExit):
        command.main(["--module", str(built(tmp_path)), "--help"])
    assert "--help" in log.read_text().splitlines()
    told = capsys.readouterr().out
    assert "--tc RATE" in told
    assert command.RESULTS in told


def test_a_limited_network_of_its_own_is_not_for_servers_elsewhere(tmp_path: Path) -> None:
    for given in (["--host", "10.0.0.5"], ["--link", "direct"]):
        with pytest.raises(SystemExit, match="leave out"):
            command.main(["--module", str(built(tmp_path / given[0])), "--tc", "1gbit", *given])
