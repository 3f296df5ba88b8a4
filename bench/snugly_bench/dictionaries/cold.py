"""Time until a fresh server has its first dictionary, and the cost of learning meanwhile."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import valkey

from snugly_bench.progress import Progress
from snugly_bench.results import Results, table
from snugly_bench.servers.info import cpu_seconds, info
from snugly_bench.servers.learning import THREAD, key_prefix, write
from snugly_bench.servers.loads import WIDTH
from snugly_bench.servers.peers import AUTO_LEARNING, Server, auto_snugly_peer, snugly_peer, start
from snugly_bench.servers.process import anonymous_bytes, thread_seconds
from snugly_bench.splits import Split

PLAIN = "snugly auto without dictionaries"
WRITES_A_SECOND = 1_000
TICK_SECONDS = 0.05
SECONDS, QUICK_SECONDS = 30, 2
FIRST, WRITTEN, FIRST_CPU, ALL_CPU, TRAININGS, GROWTH, SERVER_CPU = (
    "seconds to the first dictionary",
    "writes until then",
    "CPU seconds of learning until then",
    "CPU seconds of learning in all",
    "trainings in all",
    "most additional anonymous bytes",
    "CPU seconds of the server",
)


@dataclass(frozen=True)
class Moment:
    """Observations of a server after some writes."""

    seconds: float
    """Since the first write, as processor times are since the start of the server."""
    writes: int
    anonymous: int
    learning: float
    """Processor time of the thread that learns."""
    trainings: int
    adoptions: int


def measure(program: str, splits: list[Split], rounds: int, quick: bool) -> Results:
    """Writes to a fresh server that learns and to one that does not, in turn."""
    seconds = QUICK_SECONDS if quick else SECONDS
    results = Results(PLAIN)
    peers = [replace(snugly_peer(program, "auto"), name=PLAIN), auto_snugly_peer(program)]
    with Progress(len(splits) * rounds * len(peers) * seconds) as progress:
        for values, number in product(splits, range(rounds)):
            courses = {}
            for peer in peers:
                what = f"cold start, round {number + 1} of {rounds}: {values.name}, {peer.name}"
                with progress.step(seconds, what), start(peer) as server, valkey.Valkey(port=server.port) as client:
                    courses[peer.name] = observe(server, client, values, seconds)
                    cpu = cpu_seconds(client)
                results.add(values.name, peer.name, {SERVER_CPU: cpu})
            results.add(values.name, AUTO_LEARNING, figures(courses[AUTO_LEARNING], courses[PLAIN]))
    return results


def observe(server: Server, client: valkey.Valkey, values: Split, seconds: float) -> list[Moment]:
    """Writes steadily, and looks at the server each time; the values begin again when all were written."""
    prefix, all_of_them = key_prefix(values.name), (*values.training, *values.measured)
    batch = round(WRITES_A_SECOND * TICK_SECONDS)
    began, moments = time.monotonic(), []
    for tick in range(round(seconds / TICK_SECONDS)):
        numbers = range(tick * batch, (tick + 1) * batch)
        write(client, ((f"{prefix}{number}", all_of_them[number % len(all_of_them)]) for number in numbers))
        found = info(client, "dictionaries")
        moments.append(
            Moment(
                seconds=time.monotonic() - began,
                writes=numbers.stop,
                anonymous=anonymous_bytes(server.pid),
                learning=thread_seconds(server.pid, THREAD),
                trainings=found["dictionary_trainings"],
                adoptions=found["dictionary_adoptions"],
            )
        )
        time.sleep(max(0.0, began + (tick + 1) * TICK_SECONDS - time.monotonic()))
    return moments


def figures(learned: Sequence[Moment], plain: Sequence[Moment]) -> dict[str, float]:
    """The cost of learning; without figures of the first dictionary if there was none."""
    found = {
        ALL_CPU: learned[-1].learning,
        TRAININGS: float(learned[-1].trainings),
        GROWTH: float(max(mine.anonymous - other.anonymous for mine, other in zip(learned, plain, strict=True))),
    }
    first = next((moment for moment in learned if moment.adoptions), None)
    if first is not None:
        found |= {FIRST: first.seconds, WRITTEN: float(first.writes), FIRST_CPU: first.learning}
    return found


def report(results: Results, quick: bool) -> str:
    shown = (FIRST, WRITTEN, FIRST_CPU, ALL_CPU, TRAININGS, GROWTH)
    rows = []
    for data in dict.fromkeys(data for data, _ in results.rows()):
        cells = [
            results.spread(data, AUTO_LEARNING, metric).show(0 if metric in (WRITTEN, TRAININGS, GROWTH) else 2)
            if results.has(data, AUTO_LEARNING, metric)
            else "none"
            for metric in shown
        ]
        rows.append([data, *cells, results.ratio(data, AUTO_LEARNING, SERVER_CPU, PLAIN).show()])
    how = textwrap.fill(
        f"{WRITES_A_SECOND:,} writes a second for {QUICK_SECONDS if quick else SECONDS} seconds, under keys of one "
        "pattern, into a server just started, with the share of a processor that learning has by default; it is looked "
        f"at each {TICK_SECONDS * 1000:.0f} ms. Anonymous memory is beside that of {PLAIN} after as many writes, and "
        "what values take less with a dictionary is in it.",
        WIDTH,
    )
    return f"""## Cold start

{table(["data", *shown, f"{SERVER_CPU} of {PLAIN}'s"], rows, texts=(0,))}

{how}
"""
