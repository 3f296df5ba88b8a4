"""Automatic compression beside each fixed choice: `make bench-adaptive`.

Half of the keys have JSON of about 900 bytes, a quarter images of 2 to 20 KB, which are compressed already, an eighth
counters, and an eighth HTML of about 6 KB, each kind under keys of a pattern of its own. All of them are written
to a server for each choice, which then gets requests until it learns nothing more. After that all servers get the same
requests in turn, in every round, and every reply is compared.

Last, only images are written, to measure the cost of attempts that gain nothing.
"""

from __future__ import annotations

import argparse
import textwrap
from dataclasses import dataclass, replace
from itertools import chain

from snugly_bench.adaptive import verdict
from snugly_bench.adaptive.choices import AUTO, BALANCED, NONE, peers
from snugly_bench.adaptive.driver import CONNECTIONS
from snugly_bench.adaptive.measure import Subject, measure, running, warm_up
from snugly_bench.adaptive.verdict import INCOMPRESSIBLE, MIXED
from snugly_bench.adaptive.workload import IMAGES, PIPELINE, Batch, Pair, mixed, pairs, writing
from snugly_bench.arguments import measuring, positive
from snugly_bench.machine import machine
from snugly_bench.progress import Progress
from snugly_bench.results import Results, write_report
from snugly_bench.servers.compare import check_cores
from snugly_bench.servers.loads import LOAD_CORE, SERVER_CORE, WIDTH
from snugly_bench.servers.peers import Peer, find_snugly, version_of

ORIENTATION = "zstd 3"
"""The other server that incompressible values are written to."""
SEED = 1


@dataclass(frozen=True)
class Scale:
    """The size of the measurement."""

    keys: int
    requests: int
    """That differ; they are sent again and again."""
    times: int
    """Repetitions in each round."""
    rounds: int
    image_times: int
    image_rounds: int
    learning_seconds: float
    """Longest time for a server to learn."""


FULL = Scale(16_000, 16_000, 10, rounds=9, image_times=3, image_rounds=201, learning_seconds=180)
QUICK = Scale(800, 800, 1, rounds=1, image_times=1, image_rounds=3, learning_seconds=3)


def percent(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError("must be from 0 to 100")
    return number


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = measuring("adaptive", __doc__)
    parser.add_argument(
        "--write-percent", type=percent, default=50, help="share of writes in the mixed requests (default: %(default)s)"
    )
    parser.add_argument("--keys", type=positive, help=f"number of keys of all kinds (default: {FULL.keys})")
    parser.add_argument("--rounds", type=positive, help=f"rounds of mixed requests (default: {FULL.rounds})")
    return parser.parse_args(words)


def scale(arguments: argparse.Namespace) -> Scale:
    asked = {name: value for name in ("keys", "rounds") if (value := getattr(arguments, name)) is not None}
    return replace(QUICK if arguments.quick else FULL, **asked)


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    extent, program = scale(arguments), find_snugly(arguments.program)
    check_cores()
    found = peers(program)
    values = pairs(program, extent.keys)
    results, restless = Results(NONE), []
    every = list(chain.from_iterable(values.values()))
    requests = mixed(every, arguments.write_percent, extent.requests, SEED)
    restless += run(found, every, requests, (extent.times, extent.rounds), extent, MIXED, results)
    writers = [peer for peer in found if peer.name in (NONE, ORIENTATION, BALANCED)]
    images = writing(values[IMAGES])
    asked = (extent.image_times, extent.image_rounds)
    restless += run(writers, values[IMAGES], images, asked, extent, INCOMPRESSIBLE, results)
    text = "\n".join(
        [*head(arguments, program, found, restless), verdict.report(results), verdict.report_incompressible(results)]
    )
    text += "\n" + method(arguments, extent) + "\n"
    print(text)
    print(write_report(arguments.output, "adaptive", text, [results]))


def run(
    found: list[Peer], values: list[Pair], requests: list[Batch], asked: tuple[int, int], extent: Scale, workload: str,
    results: Results,
) -> list[str]:  # fmt: skip
    """Warms up and measures, `asked` for so many times in so many rounds; returns who still learned when it began."""
    times, rounds = asked
    with Progress((1 + rounds) * len(found)) as progress, running(found) as subjects:
        restless = [
            f"{subject.name} still learned when {workload} was measured."
            for subject in subjects
            if not warmed_up(subject, values, requests, extent, workload, progress)
        ]
        measure(subjects, requests, times, rounds, workload, results, progress)
    return restless


def warmed_up(
    subject: Subject, values: list[Pair], requests: list[Batch], extent: Scale, workload: str, progress: Progress
) -> bool:
    with progress.step(1, f"{workload}: {subject.name} learns"):
        return warm_up(subject, values, requests, extent.learning_seconds)


def head(arguments: argparse.Namespace, program: str, found: list[Peer], restless: list[str]) -> list[str]:
    """The text before the tables."""
    told = ["# Compression that snugly chooses\n", f"{machine()}. {version_of(program)}.\n"]
    if arguments.quick:
        told.append("Measured with --quick: these figures only show that everything runs.\n")
    missing = [name for name in AUTO if name not in [peer.name for peer in found]]
    if missing:
        told.append(f"Without {', '.join(missing)}: this snugly does not start with that.\n")
    return [*told, *(f"**{each}**\n" for each in restless)]


def method(arguments: argparse.Namespace, extent: Scale) -> str:
    """The method, and how to read the results."""
    return textwrap.fill(
        f"{extent.keys:,} keys, {arguments.write_percent} % of the mixed requests writes, on {CONNECTIONS} connections "
        f"pipelined by {PIPELINE}. Each server has one serving thread and is pinned to core {SERVER_CORE}, the client "
        f"to core {LOAD_CORE}. Rounds: {extent.rounds}, and {extent.image_rounds} of images, the servers in turn "
        "within each; shown are medians (lowest to highest), and ratios are medians of each round's ratio. Stored are "
        "keys, values and dictionaries with all overhead; saved is what that is less than without compression. "
        "Processor time is that of the whole server, of all requests of a round. The best fixed choice is one that "
        "compresses.",
        WIDTH,
    )
