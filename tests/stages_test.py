"""The runner of the gate's stages: what it counts, leaves out, and in which order it starts them."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import stages
from stages import RUNS, Run, Stage, counts
from waiting import until

MAKEFILE = (Path(__file__).parent.parent / "Makefile").read_text()


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.1s\n", (3, 0, 1)),
        ("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured\n" * 2, (4, 2, 0)),
        ("1 failed, 20 passed, 3 skipped, 4 deselected in 1.50s\n", (20, 1, 3)),
        ("98 passed in 488.97s (0:08:08)\n", (98, 0, 0)),
        ("=== 98 passed, 2 warnings in 4.97s ===\n", (98, 0, 0)),
        ("--- PASS: TestA (0.0s)\n    --- PASS: TestA/b (0.0s)\n--- SKIP: TestC\n--- FAIL: TestD\n", (2, 1, 1)),
        ("[INFO] Tests run: 5, Failures: 1, Errors: 1, Skipped: 1, Time elapsed: 2 s -- in a.B\n", (0, 0, 0)),
        ("[\x1b[1;32mINFO\x1b[m] Tests run: 5, Failures: 1, Errors: 1, Skipped: 1\n", (2, 2, 1)),
        ("said 3 passed of nothing\n", (0, 0, 0)),
    ],
)
def test_tests_are_counted_by_what_each_runner_prints(output: str, expected: tuple[int, int, int]) -> None:
    assert tuple(counts(output)[outcome] for outcome in ("passed", "failed", "skipped")) == expected


@pytest.mark.parametrize("name", RUNS)
def test_every_stage_is_a_target_and_needs_what_comes_before_it(name: str) -> None:
    before: set[str] = set()
    for stage in RUNS[name]:
        assert re.search(rf"^{stage.target}:", MAKEFILE, re.M), stage.target
        assert set(stage.needs) <= before
        before.add(stage.target)


def test_what_needs_a_failed_stage_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run("gate", [Stage("test", needs=("build",))], failed=["build"])
    run.run()
    assert run.failed == ["build", "test"]
    assert "test: not run, since build failed" in capsys.readouterr().out


def test_what_lacks_a_program_is_left_out_and_told() -> None:
    run = Run("gate", [Stage("a", programs=("no-such-program",)), Stage("b")])
    run.leave_out()
    assert [stage.target for stage in run.waiting] == ["b"]
    assert "there is no no-such-program here: a was left out" in run.left_out


def test_a_stage_waits_for_what_it_needs_and_one_that_is_alone_for_all() -> None:
    first, second, alone = Stage("a"), Stage("b", needs=("a",)), Stage("c", alone=True)
    run = Run("gate", [first, second, alone])
    assert [run.may_start(stage) for stage in (first, second, alone)] == [True, False, True]
    run.waiting = [second]
    assert run.may_start(second)


def test_a_stage_that_fails_is_shown_and_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Makefile").write_text("good:\n\t@echo 2 passed in 1.0s\nbad:\n\t@echo what is wrong; exit 1\n")
    monkeypatch.setattr(stages, "ROOT", tmp_path)
    monkeypatch.setattr(stages, "LOGS", tmp_path / "logs")
    run = Run("gate", [Stage("good"), Stage("bad")])
    run.run()
    run.conclude()
    out = capsys.readouterr().out
    assert run.failed == ["bad"]
    for line in ("bad: FAILED after", "what is wrong", "good: 2 passed, 0 failed, 0 skipped", "gate: "):
        assert line in out


STAGES = """
import sys
from pathlib import Path
import stages
stages.ROOT = stages.LOGS = Path(sys.argv[1])
stages.STOP_SECONDS = 1.0
stages.RUNS = {"gate": (stages.Stage("waits"),)}
sys.exit(stages.main(["gate"]))
"""


def is_running(process: int) -> bool:
    """Whether a process is there that has not ended; what nobody has waited for counts as ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_ends_what_its_stages_have_started(tmp_path: Path, number: signal.Signals) -> None:
    # Both processes ignore the signal that a stage is to end by.
    (tmp_path / "Makefile").write_text("waits:\n\t@trap '' TERM; sleep 1000 & echo $$! > inner; mv inner ready; wait\n")
    command = [sys.executable, "-c", STAGES, str(tmp_path)]
    run = subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
    until((tmp_path / "ready").exists)
    inner = int((tmp_path / "ready").read_text())
    assert is_running(inner)
    run.send_signal(number)
    assert run.stdout is not None
    assert run.stdout.readline() == "waits: begins\n"
    assert run.stdout.readline() == f"{number.name}: ends what is running\n"
    # One who is impatient tells it again.
    run.send_signal(number)
    run.communicate()
    assert run.returncode == 128 + number
    until(lambda: not is_running(inner))
