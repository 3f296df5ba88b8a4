"""Runs a soak: starts servers, writers, disturbances and watches, ends them in order, and settles the accounts.

The order of the end: writers and disturbances stop; every key is read back; SIGTERM ends each server with status 0;
`snugly check` finds no fault in its store; a server on the same store has every key again.
"""

from __future__ import annotations

import contextlib
import random
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import servers
from authority import Authority
from mounts import NotMounted
from soak import instances, memcached_loads, plan, resp_loads
from soak.audit import audit, audit_saved
from soak.instances import SITUATIONS, Instance, Situation
from soak.ledger import Ledger, Wrong
from soak.links import DIALECTS, Dialect
from soak.plan import Event
from soak.report import Report
from soak.scene import Scene
from soak.strangers import idle_possible
from soak.watch import Watch
from soak.writer import Load, Writer

# Writers of each dialect that a server has.
WRITERS = 4
PROGRESS_SECONDS = 10.0
LOOK_SECONDS = 1.0

Print = Callable[[str], None]


class Failed(Exception):
    """A soak has found a fault; the message has it, the seed, and where the logs are."""


@dataclass
class Faults:
    """The faults of all threads; the first one ends the soak."""

    stop: threading.Event = field(default_factory=threading.Event)
    found: list[str] = field(default_factory=list)

    def guarded(self, who: str, work: Callable[[], None]) -> threading.Thread:
        """A thread of which whatever it raises is a fault."""

        def run() -> None:
            try:
                work()
            except Wrong as wrong:
                self.add(f"{who}: {wrong}")
            except Exception:
                self.add(f"{who}: {traceback.format_exc()}")

        return threading.Thread(target=run, name=who, daemon=True)

    def add(self, fault: str) -> None:
        self.found.append(fault)
        self.stop.set()


def soak(seconds: float, seed: str, logs: Path, tell: Print) -> None:
    """Soaks for so many seconds and tells how it goes; raises Failed if there is a fault. Logs go to a folder, and
    replace those of a soak before."""
    for log in logs.glob("*.log"):
        log.unlink()
    tell(f"seed {seed}, {seconds:.0f} s, {servers.snugly_binary()}; logs go to {logs}")
    with tempfile.TemporaryDirectory(prefix="snugly-soak-") as folder:
        root = Path(folder)
        faults, report = _soaked(seconds, seed, root, logs, tell)
    tell(report.summary())
    if faults:
        raise Failed("\n".join([f"the soak with seed {seed} has failed; logs are in {logs}", *faults]))


def _soaked(seconds: float, seed: str, root: Path, logs: Path, tell: Print) -> tuple[list[str], Report]:
    with contextlib.ExitStack() as disks:
        situations = list(_placed(disks, root, tell))
        faults = Faults()
        with contextlib.ExitStack() as stack:
            running = [
                stack.enter_context(_started(situation, root / situation.name, logs)) for situation in situations
            ]
            report = _under_load(seconds, seed, running, faults, tell)
            if not faults.found:
                _settle(running, report, faults, tell)
        if not faults.found:
            _restart(running, report, faults, logs, tell)
        return faults.found, report


def _placed(disks: contextlib.ExitStack, root: Path, tell: Print) -> Iterator[Situation]:
    """The situations that can be had here, each with a folder and a disk for its store."""
    for situation in SITUATIONS:
        folder = root / situation.name
        folder.mkdir()
        try:
            disks.enter_context(instances.disk(situation, folder / "disk"))
        except NotMounted as refusal:
            tell(f"{situation.name} is left out: {refusal}")
        else:
            yield situation


@contextlib.contextmanager
def _started(situation: Situation, folder: Path, logs: Path) -> Iterator[Instance]:
    """A running server, whose log is kept in `logs` whatever becomes of it."""
    certified = folder / "tls"
    certified.mkdir(exist_ok=True)
    with instances.running(situation, folder, Authority.founded(certified)) as instance:
        try:
            yield instance
        finally:
            logs.mkdir(parents=True, exist_ok=True)
            with (logs / f"{situation.name}.log").open("ab") as kept:
                kept.write(instance.server.log.read_bytes())


def _under_load(seconds: float, seed: str, running: Sequence[Instance], faults: Faults, tell: Print) -> Report:
    """Load, disturbances and watches for so many seconds, or until there is a fault."""
    of = {instance.name: _writers(instance, seed) for instance in running}
    writers = [writer for group in of.values() for writer in group]
    watches = [Watch(instance) for instance in running]
    report = Report(writers, watches)
    tell(f"{len(writers)} writers on {len(running)} servers; {idle_possible():,} idle connections, as open files allow")
    threads = [
        faults.guarded(f"{name}: {w.ledger.writer}", partial(w.run, faults.stop))
        for name, group in of.items()
        for w in group
    ]
    threads += [faults.guarded(w.instance.name, partial(_watch, w, faults.stop)) for w in watches]
    planned = plan.events(seed, seconds, of)
    for (name, instance), events in planned.items():
        place = next(each for each in running if each.name == instance)
        work = _disturber(events, place, of[instance], report, faults.stop)
        threads.append(faults.guarded(f"{instance}: {name}", work))
    try:
        for thread in threads:
            thread.start()
        _pass(seconds, report, faults.stop, tell)
    finally:
        faults.stop.set()
        for thread in threads:
            thread.join()
    if not faults.found:
        faults.found += report.missing(event for events in planned.values() for event in events)
    return report


def _pass(seconds: float, report: Report, stop: threading.Event, tell: Print) -> None:
    """Tells how it goes until the seconds are over, or the soak is stopped."""
    end = report.began + seconds
    while not stop.wait(min(PROGRESS_SECONDS, max(0.0, end - time.monotonic()))):
        tell(report.line())
        if time.monotonic() >= end:
            return


def _writers(instance: Instance, seed: str) -> list[Writer]:
    return [
        _writer(instance, dialect, f"{dialect.name.replace(' ', '-')}-{place}", seed)
        for dialect in DIALECTS
        for place in range(WRITERS)
    ]


def _writer(instance: Instance, dialect: Dialect, name: str, seed: str) -> Writer:
    evicts, small = instance.situation.evicts, instance.situation.fills
    loads: Sequence[Load]
    if dialect.speaks == "resp":
        keys, loads = dict(resp_loads.KEYS), resp_loads.LOADS
        keys["string"] = resp_loads.MORE_STRINGS if evicts else keys["string"]
    else:
        keys, loads = dict(memcached_loads.KEYS), memcached_loads.LOADS[dialect.speaks]
        keys["item"] = memcached_loads.MORE_ITEMS if evicts else keys["item"]
    if small:
        keys = {kind: max(1, count // 2) for kind, count in keys.items()} | {"pair": 10}
    ledger = Ledger(name, keys, evicts, refuses=bool(instance.situation.refusals))
    return Writer(dialect, instance.at, ledger, loads, instance.situation.refusals, f"{seed}:{instance.name}")


def _watch(watch: Watch, stop: threading.Event) -> None:
    while not stop.wait(LOOK_SECONDS):
        watch.look()


def _disturber(
    events: Sequence[Event], instance: Instance, writers: Sequence[Writer], report: Report, stop: threading.Event
) -> Callable[[], None]:
    def work() -> None:
        for event in events:
            if stop.wait(max(0.0, report.began + event.at - time.monotonic())):
                return
            scene = Scene(instance, writers, stop, random.Random(event.seed))
            event.disturbance.do(scene)
            report.done.append((event, scene.told))

    return work


def _settle(running: Sequence[Instance], report: Report, faults: Faults, tell: Print) -> None:
    """Reads everything back from servers that nobody disturbs any more, and ends them."""
    for instance, watch in zip(running, report.watches, strict=True):
        writers = [writer for writer in report.writers if writer.at is instance.at]
        lost = sum(writer.lost for writer in writers)
        try:
            if lost > instance.killed:
                raise Wrong(f"{lost} connections of writers were ended, of which {instance.killed} by CLIENT KILL")
            report.audited += audit(instance, writers, instance.name)
            watch.look()
            _end(instance)
            watch.read_log()
            if instance.situation.keeps:
                servers.check(instance.disk / "store")
            if instance.saved.exists():
                report.audited += audit_saved(instance, f"{instance.name}, saved")
        except Exception as error:
            faults.add(f"{instance.name}, at the end: {error!r}")
    tell("every key was read back" if not faults.found else "there are faults")


def _end(instance: Instance) -> None:
    process = instance.server.process
    process.send_signal(signal.SIGTERM)
    status = process.wait(servers.STOP_SECONDS)
    if status != 0:
        raise Wrong(f"SIGTERM ended the server with status {status}, and should with 0")


def _restart(running: Sequence[Instance], report: Report, faults: Faults, logs: Path, tell: Print) -> None:
    """Starts servers on the stores that others have left, which must have everything."""
    for old in running:
        if not old.situation.keeps:
            continue
        writers = [writer for writer in report.writers if writer.at is old.at]
        try:
            with _started(old.situation, old.folder, logs) as instance:
                report.audited += audit(instance, writers, f"{instance.name}, restarted")
                _end(instance)
                Watch(instance).read_log()
        except Exception as error:
            faults.add(f"{old.name}, restarted: {error!r}")
    tell("every key was read back after a restart" if not faults.found else "there are faults")
