"""What the module costs and saves in valkey-server: `make bench-module`.

Starts valkey-server (the environment variable SNUGLY_VALKEY_SERVER or the PATH) as it comes, and the same with the
module, and measures the processor time of requests, the memory of values, the bytes that a replica and the
append-only file get, and the memory that is copied while a child saves. With --control neither has the module: by
how much the ratios then differ from 1 tells how exact they are.
"""

from __future__ import annotations

import argparse
import os
import textwrap
from pathlib import Path

import valkey

from snugly_bench.arguments import chosen_of, duration, measuring, parse_with_rounds, positive
from snugly_bench.corpora import Corpus, generated
from snugly_bench.machine import machine
from snugly_bench.module.measure import MOST_BYTES, Scale, measure_log, measure_memory, measure_time, time_metric
from snugly_bench.module.peers import Pair, pair
from snugly_bench.module.requests import PIPELINE, all_loads
from snugly_bench.module.saving import measure_saving
from snugly_bench.module.verdict import MOST_COPIED, MOST_LOGGED, MOST_MEMORY, report_bytes, report_time
from snugly_bench.results import Results, write_report
from snugly_bench.servers.compare import check_cores
from snugly_bench.servers.demo import GENERATED, read_folder
from snugly_bench.servers.info import allocator
from snugly_bench.servers.loads import LOAD_CORE, WIDTH
from snugly_bench.servers.peers import find_snugly, start
from snugly_bench.splits import Split, split

PARTS = ("processor", "memory", "log", "saving")
ROUNDS = 5
JSON_VALUES, QUICK_JSON_VALUES = 12_500, 250
"""For processor time; a fifth of them is only learned from."""
GENERATED_VALUES, QUICK_GENERATED_VALUES = 5_000, 250
"""Different ones in each set, for memory."""
SETTLE_SECONDS, QUICK_SETTLE_SECONDS = 3.0, 0.1
THREADED_CONNECTIONS = 16
"""One connection keeps one thread busy."""


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = measuring("module", __doc__)
    parser.add_argument("--module", type=Path, help="library of the module")
    parser.add_argument("--control", action="store_true", help="measure two servers without the module")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="setting of the module, as codec=lz4; repeatable",
    )
    parser.add_argument("--only", type=chosen_of(PARTS), default=PARTS, help=f"parts to run, of {','.join(PARTS)}")
    parser.add_argument(
        "--rounds", type=positive, help=f"rounds of processor time (default: {ROUNDS}, or 1 with --quick)"
    )
    parser.add_argument("--io-threads", type=positive, default=1, help="threads of each server (default: %(default)s)")
    parser.add_argument(
        "--connections",
        type=positive,
        help=f"connections that ask at the same time (default: 1, or {THREADED_CONNECTIONS} with more threads)",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("SNUGLY_DATA"),
        help="folder of .jsonl files for memory and log (default: the environment variable SNUGLY_DATA, else generated "
        "values)",
    )
    parser.add_argument(
        "--settle",
        type=duration,
        help="seconds after the first writes for what the module may learn from them (default: "
        f"{SETTLE_SECONDS}, or {QUICK_SETTLE_SECONDS} with --quick)",
    )
    arguments = parse_with_rounds(parser, words, ROUNDS)
    if arguments.control:
        arguments.module, arguments.set = None, []
    elif arguments.module is None:
        parser.error("there is nothing to measure: give the library with --module, or --control")
    return arguments


def scale(arguments: argparse.Namespace) -> Scale:
    quick = arguments.quick
    settle = arguments.settle or (QUICK_SETTLE_SECONDS if quick else SETTLE_SECONDS)
    return Scale(
        rounds=arguments.rounds,
        requests={1: 200, PIPELINE: 320} if quick else {1: 30_000, PIPELINE: 240_000},
        turns=2 if quick else 40,
        connections=arguments.connections or (1 if arguments.io_threads == 1 else THREADED_CONNECTIONS),
        values=1_000 if quick else 100_000,
        logged=500 if quick else 20_000,
        settle=settle if arguments.module else 0.0,
        steady=0.05 if quick else 0.5,
    )


def sets_of_values(program: str, data: Path | None, count: int) -> list[Split]:
    """Of each file or kind, in two parts: one to learn from, and one that is measured."""
    if data is not None:
        sets = read_folder(data, None)
    else:
        sets = {f"{kind}-{size}": generated(program, kind, size, count) for kind, size in GENERATED.items()}
    return [split(Corpus(name, tuple(values))) for name, values in sets.items()]


def json_values(program: str, count: int) -> Split:
    return split(Corpus("json", tuple(generated(program, "json", GENERATED["json"], count))))


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    program, extent = find_snugly(arguments.program), scale(arguments)
    peers = pair(arguments.module, arguments.set, arguments.io_threads)
    results: list[Results] = []
    reports: list[str] = []
    values = json_values(program, QUICK_JSON_VALUES if arguments.quick else JSON_VALUES)
    if "processor" in arguments.only:
        check_cores()
        loads = all_loads(values.measured)
        results.append(measure_time(peers, values, loads, extent))
        reports += [report_time(time_metric(peers), results[-1], loads, peers.subject.name), method(peers, extent)]
    sets = []
    if {"memory", "log"} & set(arguments.only):
        count = QUICK_GENERATED_VALUES if arguments.quick else GENERATED_VALUES
        sets = sets_of_values(program, arguments.data, count)
    if "memory" in arguments.only:
        results.append(measure_memory(peers, sets, extent))
        reports += [report_bytes("Memory of a value", results[-1], peers.subject.name, MOST_MEMORY), memory(extent)]
    if "log" in arguments.only:
        results.append(measure_log(peers, sets, extent))
        reports += [
            report_bytes("What a write sends and logs", results[-1], peers.subject.name, MOST_LOGGED),
            log(extent),
        ]
    if "saving" in arguments.only:
        results.append(measure_saving(peers, values, extent))
        reports += [
            report_bytes("Memory copied while a child saves", results[-1], peers.subject.name, MOST_COPIED),
            saving(extent),
        ]
    text = "\n".join([*head(arguments, peers), *reports])
    print(text)
    print(write_report(arguments.output, "module", text, results))


def head(arguments: argparse.Namespace, peers: Pair) -> list[str]:
    """The text before the tables."""
    options = [f"io-threads={arguments.io_threads}", *arguments.set]
    told = [
        f"# {peers.subject.name} beside {peers.stock.name}\n",
        f"{machine()}. {built(peers)}. {', '.join(options)}.\n",
    ]
    if arguments.quick:
        told.append("Measured with --quick: these figures only show that everything runs.\n")
    return told


def built(peers: Pair) -> str:
    with start(peers.stock) as server, valkey.Valkey(port=server.port) as client:
        return f"{peers.stock.version.partition(' sha=')[0]} with {allocator(client)}"


def method(peers: Pair, extent: Scale) -> str:
    """How time is measured, and how to read it."""
    where, what = f"on core {peers.core}", "Processor time is that of the whole process, user and system"
    if peers.core is None:
        where = f"with {peers.io_threads} threads on any core"
        what = "A thread is active when Valkey says so in INFO, not while it waits for another one in a loop"
        if len(os.sched_getaffinity(0)) <= peers.io_threads:
            what += (
                ", but while it waits for a core: there are too few for threads and load, so these ratios tell nothing"
            )
    return paragraph(
        f"Connections: {extent.connections}, from core {LOAD_CORE}; the servers run {where}. {what}. Rounds: "
        f"{extent.rounds}, with servers just started; within each the servers get the requests of a line in "
        f"{extent.turns} turns. Shown are medians (lowest to highest), and ratios are medians of each round's ratio. "
        "Every reply was compared the first time, and every value that was replaced once more at the end."
    )


def memory(extent: Scale) -> str:
    return paragraph(
        f"Bytes of a value under its key, of {extent.values:,} values or {MOST_BYTES >> 20} MiB of them; where there "
        "are fewer, they are written again under other keys. Memory is by how much it grew since the server started, "
        "with what it has learned. A fifth of the values was written before, to be learned from, and replaced. Every "
        "value was read back and compared."
    )


def log(extent: Scale) -> str:
    return paragraph(
        f"Bytes of a SET, of {extent.logged:,}, in what a replica gets and in the append-only file as it is written; "
        "what was sent before them, to learn and of what was learned, is not in it. Every value was read from the "
        "replica and compared."
    )


def saving(extent: Scale) -> str:
    return paragraph(
        "Bytes that parent and child have no longer in common at the end of a BGSAVE (`rdb_last_cow_size`), for each "
        f"of {extent.logged:,} SETs meanwhile, of JSON among {extent.values:,} values. The child is slowed down, so "
        f"that it is there for all of them. Rounds: {extent.rounds}, with a server just started."
    )


def paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH) + "\n"
