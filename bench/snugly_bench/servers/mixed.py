"""Effect of disk reads on clients whose values are in memory: `make bench-mixed`.

Starts `snugly serve` on a store that is larger than its memory and that the system has not in memory either, and
measures hot GETs three times: alone, beside other clients whose keys are in memory as well, and beside the same clients
with keys that are on disk only, each requested once. The other clients take processor time from the server and from
the load generator, so compare the last two.

Every server runs on as many threads as it has by default. Nothing is pinned: a machine with a few cores to spare gives
steadier figures.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import valkey

from snugly_bench.progress import Progress
from snugly_bench.results import table
from snugly_bench.servers.generators import snugly_bench
from snugly_bench.servers.peers import BUILT_SNUGLY, CODECS, Peer, Server, find_snugly, snugly_peer, start

HOT_KEYS = 1_000
HOT_CONNECTIONS = 4
BESIDE_CONNECTIONS = 4
MEMORY_MB = 64
VALUE_BYTES = 900
HOT, WARM, COLD = "hot:", "warm:", "cold:"


@dataclass(frozen=True)
class Scale:
    """The size of the measurement."""

    cold_keys: int
    warm_keys: int
    seconds: int


FULL = Scale(cold_keys=1_000_000, warm_keys=10_000, seconds=10)
QUICK = Scale(cold_keys=5_000, warm_keys=1_000, seconds=1)


@dataclass(frozen=True)
class Result:
    """Hot GETs in one situation."""

    situation: str
    rate: float
    """A second."""
    p50: float
    """Microseconds, as p99."""
    p99: float
    beside: float
    """GETs of the clients beside, a second."""
    from_disk: float
    """Bytes that the server had the disk read, a second."""


def key(prefix: str, number: int) -> str:
    """As `snugly bench server` calls it."""
    return f"{prefix}{number:012}"


def fill(program: str, server: Server, prefix: str, keys: int) -> None:
    """Writes all keys: `snugly bench server` does before its first GET."""
    bench(program, server, prefix, keys, ["-n", "1"])


def bench(program: str, server: Server, prefix: str, keys: int, options: list[str]) -> dict[str, str]:
    named = ["--tests", "get", "--key-prefix", prefix, "-r", str(keys), "--value-size", str(VALUE_BYTES)]
    (row,) = snugly_bench(program, "server", server, [*named, "-c", str(HOT_CONNECTIONS), *options])
    return row


def forget(folder: Path) -> None:
    """Lets the system drop what it holds of files that no process has open."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Readers:
    """Clients that read keys, one after the other, until they are told to stop or there are none left."""

    def __init__(self, server: Server, keys: list[list[str]]) -> None:
        self.reads = 0
        self.exhausted = False
        self.failure: Exception | None = None
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.read, args=[server, part]) for part in keys]

    def read(self, server: Server, keys: list[str]) -> None:
        try:
            with valkey.Valkey(port=server.port) as client:
                for name in keys:
                    if self.stopping.is_set():
                        return
                    if client.get(name) is None:
                        raise RuntimeError(f"{name} is missing")
                    self.reads += 1
            self.exhausted = True
        except Exception as failure:
            self.failure = failure

    @contextmanager
    def running(self) -> Iterator[None]:
        for thread in self.threads:
            thread.start()
        try:
            yield
        finally:
            self.stopping.set()
            for thread in self.threads:
                thread.join()
        if self.failure is not None:
            raise SystemExit(f"a client beside failed: {self.failure}")


def read_bytes(server: Server) -> int:
    """Bytes that the server has had the disk read since its start."""
    lines = Path(f"/proc/{server.pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes:"))


def measure(program: str, server: Server, situation: str, keys: list[list[str]], seconds: int) -> Result:
    readers = Readers(server, keys)
    before = read_bytes(server)
    with readers.running():
        row = bench(program, server, HOT, HOT_KEYS, ["--duration", str(seconds)])
        if readers.exhausted:
            print(f"({situation}: there were too few keys for all of the time)")
    if int(row["misses"]) or int(row["errors"]):
        raise SystemExit(f"{situation}: {row['misses']} hot keys were missing, {row['errors']} requests failed")
    measured = float(row["seconds"])
    return Result(
        situation=situation,
        rate=float(row["requests_per_second"]),
        p50=float(row["p50_us"]),
        p99=float(row["p99_us"]),
        beside=readers.reads / measured,
        from_disk=(read_bytes(server) - before) / measured,
    )


def measure_all(program: str, peer: Peer, folder: Path, scale: Scale) -> list[Result]:
    with Progress(6 * scale.seconds) as progress:
        return measure_situations(program, peer, folder, scale, progress)


def measure_situations(program: str, peer: Peer, folder: Path, scale: Scale, progress: Progress) -> list[Result]:
    with progress.step(3 * scale.seconds, "filling the store"), start(peer) as server:
        fill(program, server, COLD, scale.cold_keys)
    forget(folder)
    shuffled = random.Random(1).sample(range(scale.cold_keys), scale.cold_keys)
    warm = random.Random(2).choices(range(scale.warm_keys), k=scale.cold_keys)
    beside = {
        "alone": [],
        "beside hits": split([key(WARM, number) for number in warm]),
        "beside reads from disk": split([key(COLD, number) for number in shuffled]),
    }
    results = []
    with start(peer) as server:
        fill(program, server, WARM, scale.warm_keys)
        for situation, keys in beside.items():
            with progress.step(scale.seconds, situation):
                results.append(measure(program, server, situation, keys, scale.seconds))
    return results


def split(keys: list[str]) -> list[list[str]]:
    """A part for each connection."""
    return [keys[number::BESIDE_CONNECTIONS] for number in range(BESIDE_CONNECTIONS)]


def report(results: list[Result]) -> str:
    """The results as people read them."""
    header = ["hot GETs", "a second", "p50 µs", "p99 µs", "beside a second", "MB from disk a second"]
    rows = [
        [
            result.situation,
            f"{result.rate:,.0f}",
            f"{result.p50:.1f}",
            f"{result.p99:.1f}",
            f"{result.beside:,.0f}",
            f"{result.from_disk / 1e6:.1f}",
        ]
        for result in results
    ]
    return table(header, rows, (0,))


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="snugly_bench mixed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", default=BUILT_SNUGLY, help="program to run (default: %(default)s)")
    parser.add_argument("--codec", choices=CODECS, default="zstd", help="codec of the values (default: %(default)s)")
    parser.add_argument(
        "--folder", type=Path, help="folder for the store, on a disk and not a tmpfs (default: the system's for files)"
    )
    parser.add_argument("--quick", action="store_true", help="tiny numbers, to see that everything runs")
    return parser.parse_args(words)


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    scale = QUICK if arguments.quick else FULL
    program = find_snugly(arguments.program)
    with tempfile.TemporaryDirectory(prefix="snugly-bench-", dir=arguments.folder) as folder:
        peer = snugly_peer(program, arguments.codec)
        options = ("--storage", folder, "--max-memory", f"{MEMORY_MB}mb")
        results = measure_all(program, replace(peer, command=(*peer.command, *options)), Path(folder), scale)
    print(report(results))
    print(
        f"\n{scale.cold_keys:,} values of {VALUE_BYTES} bytes on disk, {MEMORY_MB} MB of memory for values, "
        f"{HOT_CONNECTIONS} connections for hot GETs,\n{BESIDE_CONNECTIONS} beside. From disk is what the server made "
        "the disk read."
    )
