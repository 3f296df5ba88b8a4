"""Runs the stages of the gate, or of the long run before a release, side by side, and tells how it goes.

    python3 tests/stages.py gate | test | all

A stage is a target of the Makefile. This knows the order of stages and how to count tests in what they print; it knows
nothing of how anything is built or tested. It needs Python alone, since setting up .venv is a stage, too.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "target" / "stages"
# Two compile or compute, and a third one waits for servers most of its time.
AT_ONCE = 3
# Seconds between two reports of what is running.
REPORT_SECONDS = 30.0
# Seconds that stages have to end by themselves once the run is ended.
STOP_SECONDS = 10.0
# Signals that end a run.
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Lines of a failed stage's output that are shown.
SHOWN_LINES = 200


@dataclass(frozen=True)
class Stage:
    """A target of the Makefile, and what must be there or done before."""

    target: str
    needs: tuple[str, ...] = ()
    # Without one of these programs the stage is left out.
    programs: tuple[str, ...] = ()
    # Whether nothing else runs meanwhile: what measures or assumes a quiet machine.
    alone: bool = False


SET_UP = (
    Stage("set-up"),
    Stage("node-packages", programs=("npm",)),
    Stage("build", needs=("set-up",)),
)
# Those that wait most, and those that others wait for, come first.
TESTS = (
    *SET_UP,
    Stage("test-java", needs=("build",), programs=("mvn",)),
    Stage("test-python", needs=("build",)),
    Stage("test-clients", needs=("build",)),
    Stage("test-go", needs=("build",), programs=("go",)),
    Stage("test-node", needs=("build", "node-packages"), programs=("npm",)),
    Stage("test-rust", needs=("build",)),
)
LINTS = (
    Stage("lint-rust", needs=("build",)),
    Stage("lint-python", needs=("set-up",)),
    Stage("lint-go", programs=("go",)),
    Stage("lint-node", needs=("node-packages",), programs=("npm",)),
)
SLOW = (
    *SET_UP,
    Stage("lint-slow", needs=("build",)),
    Stage("deny"),
    Stage("test-rust-slow", needs=("build",)),
    Stage("test-minimal", needs=("build",)),
    Stage("test-clients-slow", needs=("build",)),
    Stage("test-python-slow", needs=("build",)),
    Stage("test-glide", needs=("build",)),
    Stage("wheel", needs=("set-up",)),
    Stage("test-packages", needs=("wheel",)),
    Stage("test-aarch64", needs=("set-up",), programs=("rustup", "qemu-aarch64-static")),
    Stage("test-parsers", needs=("build",)),
    Stage("test-go-slow", needs=("build",), programs=("go",)),
    Stage("test-java-slow", needs=("build",), programs=("mvn",)),
    Stage("test-node-slow", needs=("build", "node-packages"), programs=("npm",)),
    # In the same folders.
    Stage("package-node", needs=("test-node-slow",), programs=("npm",)),
    Stage("test-valkey-py", needs=("build",), alone=True),
    Stage("fuzz-rust", needs=("build",)),
    Stage("fuzz-go", programs=("go",)),
    Stage("fuzz-java", needs=("test-java-slow",), programs=("mvn",)),
    # In the same folders as what it needs.
    Stage("package-java", needs=("fuzz-java",), programs=("mvn",)),
    Stage("bench-smoke", needs=("build",), alone=True),
)
RUNS = {"gate": (*TESTS, *LINTS), "test": TESTS, "all": SLOW}
# Programs that tests use where they are, and skip themselves without.
PEERS = ("redis-server", "redis-cli", "memcached", "npm")

# How each runner says what became of its tests: words for passed, failed and skipped, of which the last group counts.
COUNTS = {
    "passed": (
        re.compile(r"^test result: \w+\. (\d+) passed", re.M),
        re.compile(r"^(?:=+ )?(?:.*?, )?(\d+) passed.* in [\d.]+s", re.M),
        re.compile(r"^\s*--- (PASS): ", re.M),
        re.compile(r"^\S pass (\d+)$", re.M),
    ),
    "failed": (
        re.compile(r"^test result: .*?(\d+) failed", re.M),
        re.compile(r"^(?:=+ )?(?:.*?, )?(\d+) failed.* in [\d.]+s", re.M),
        re.compile(r"^\s*--- (FAIL): ", re.M),
        re.compile(r"^\S fail (\d+)$", re.M),
    ),
    "skipped": (
        re.compile(r"^test result: .*?(\d+) ignored", re.M),
        re.compile(r"^(?:=+ )?(?:.*?, )?(\d+) skipped.* in [\d.]+s", re.M),
        re.compile(r"^\s*--- (SKIP): ", re.M),
        re.compile(r"^\S skipped (\d+)$", re.M),
    ),
}
# Maven's sum of a module; a line of a class has a time behind it.
SUREFIRE = re.compile(r"Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)\s*$", re.M)


def counts(output: str) -> dict[str, int]:
    """Tests that passed, failed and were skipped, by what their runner has printed."""
    sums = {
        outcome: sum(int(found) if found.isdigit() else 1 for pattern in patterns for found in pattern.findall(output))
        for outcome, patterns in COUNTS.items()
    }
    for ran, *others in SUREFIRE.findall(re.sub(r"\x1b\[[\d;]*m", "", output)):
        failed, broken, skipped = map(int, others)
        sums["passed"] += int(ran) - failed - broken - skipped
        sums["failed"] += failed + broken
        sums["skipped"] += skipped
    return sums


@dataclass
class Run:
    """A run of some stages: those that wait, run, have passed, have failed."""

    name: str
    waiting: list[Stage]
    began: float = field(default_factory=time.monotonic)
    running: dict[Stage, tuple[subprocess.Popen[bytes], float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    # The signal that the run ends for.
    signalled: int = 0

    def log(self, stage: Stage) -> Path:
        return LOGS / f"{stage.target}.log"

    def leave_out(self) -> None:
        """Takes out stages whose programs are not here, and whatever needs those."""
        for stage in list(self.waiting):
            missing = [program for program in stage.programs if shutil.which(program) is None]
            if missing:
                self.waiting.remove(stage)
                self.left_out.append(f"there is no {missing[0]} here: {stage.target} was left out")
        self.left_out += [
            f"there is no {peer} here: tests with it were skipped" for peer in PEERS if shutil.which(peer) is None
        ]

    def may_start(self, stage: Stage) -> bool:
        there = {other.target for other in [*self.waiting, *self.running]}
        return (
            len(self.running) < AT_ONCE
            and not there & set(stage.needs)
            and not any(other.alone for other in self.running)
            and not (stage.alone and self.running)
        )

    def start(self, stage: Stage) -> None:
        self.waiting.remove(stage)
        if broken := set(stage.needs) & set(self.failed):
            print(f"{stage.target}: not run, since {min(broken)} failed", flush=True)
            self.failed.append(stage.target)
            return
        print(f"{stage.target}: begins", flush=True)
        command = ["make", "--no-print-directory", stage.target]
        if stage not in SET_UP:
            command.append("BUILT=1")
        with self.log(stage).open("wb") as log:
            # A session of its own, so that all that it has started can be ended with it.
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.running[stage] = process, time.monotonic()

    def end(self, stage: Stage, status: int, seconds: float) -> None:
        del self.running[stage]
        self.seconds[stage.target] = seconds
        print(f"{stage.target}: {'passed' if status == 0 else 'FAILED'} after {seconds:.0f} s", flush=True)
        if status != 0:
            self.failed.append(stage.target)
            print(self.end_of_log(stage, SHOWN_LINES), flush=True)

    def end_of_log(self, stage: Stage, lines: int) -> str:
        return "\n".join(self.log(stage).read_text(errors="replace").splitlines()[-lines:])

    def run(self) -> None:
        LOGS.mkdir(parents=True, exist_ok=True)
        reported = time.monotonic()
        try:
            while (self.waiting or self.running) and not self.signalled:
                for stage in [stage for stage in self.waiting if self.may_start(stage)]:
                    if self.may_start(stage):
                        self.start(stage)
                for stage, (process, began) in list(self.running.items()):
                    if (status := process.poll()) is not None:
                        self.end(stage, status, time.monotonic() - began)
                if time.monotonic() - reported > REPORT_SECONDS:
                    reported = time.monotonic()
                    self.report()
                time.sleep(0.1)
        finally:
            self.stop()

    def note_signal(self, number: int, _frame: FrameType | None) -> None:
        """Lets the run end between two steps: in the middle of one, a process may run that is not entered yet.

        Signals that follow would break the end off, and are ignored.
        """
        for other in STOPS:
            signal.signal(other, signal.SIG_IGN)
        print(f"{signal.Signals(number).name}: ends what is running", flush=True)
        self.signalled = number

    def stop(self) -> None:
        """Ends what still runs, and everything that it has started."""
        for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, None)):
            for process, _ in self.running.values():
                # The group may be there without its first process.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            for process, _ in self.running.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(seconds)

    def report(self) -> None:
        """Prints what is running, since when, and the last line that it printed."""
        for stage, (_, began) in self.running.items():
            last = self.end_of_log(stage, 1).strip()[:100]
            print(f"  {stage.target}, {time.monotonic() - began:.0f} s: {last}", flush=True)

    def conclude(self) -> None:
        """Prints the tests of each suite, what was left out, and the time that each stage has taken."""
        for target in self.seconds:
            sums = counts((LOGS / f"{target}.log").read_text(errors="replace"))
            if any(sums.values()):
                print(f"{target}: {sums['passed']} passed, {sums['failed']} failed, {sums['skipped']} skipped")
        for line in self.left_out:
            print(line)
        parts = ", ".join(f"{target} {seconds:.0f}" for target, seconds in self.seconds.items())
        print(f"{self.name}: {time.monotonic() - self.began:.0f} s ({parts})")
        if self.failed:
            print(f"failed: {', '.join(self.failed)}; the whole output is in {LOGS.relative_to(ROOT)}/")


def main(words: Iterable[str]) -> int:
    name, *_ = [*words, ""]
    if name not in RUNS:
        print(f"usage: stages.py {' | '.join(RUNS)}", file=sys.stderr)
        return 2
    run = Run(name, list(RUNS[name]))
    run.leave_out()
    for number in STOPS:
        signal.signal(number, run.note_signal)
    run.run()
    if run.signalled:
        return 128 + run.signalled
    run.conclude()
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
