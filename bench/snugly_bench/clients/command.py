"""`clients`: client libraries, with and without compression.

Each library is driven through asyncio in processes of its own: T processes, in each of them C tasks that have one
request under way, and a request is one command or a pipeline of B. The tasks of a process share one client object, as
they do in GLIDE's own benchmark and in applications; libraries with a pool have as many connections as there are tasks.
With --own-clients every task has a client object of its own.

Before anything is timed, every value is written and read back by every contender, and compared.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from snugly_bench.arguments import numbers
from snugly_bench.clients import aims, run
from snugly_bench.clients.options import (
    about,
    add_common_options,
    allow_many_connections,
    extent,
    installed,
    is_rough,
    measure,
)
from snugly_bench.clients.peers import OURS, PEERS, has_dictionaries
from snugly_bench.clients.plan import FULL, LEARNED, QUICK, SMOKE, Workload, cells, contenders
from snugly_bench.clients.versions import BESIDE, peer, peer_names
from snugly_bench.corpora import KINDS, Corpus, file_corpus, generated_corpus
from snugly_bench.report import clients as report
from snugly_bench.report.record import About
from snugly_bench.results import Results
from snugly_bench.servers.peers import find_snugly
from snugly_bench.splits import split

DATA = ("json:1900", "html:1250", "csv:1300", "session:950")


def generated_kind(text: str) -> tuple[str, int]:
    kind, _, size = text.partition(":")
    if kind not in KINDS or not size.isdecimal() or int(size) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no KIND:BYTES, where the kind is one of {', '.join(KINDS)}")
    return kind, int(size)


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="snugly_bench clients", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peers",
        type=peer_names,
        default=(*PEERS, *BESIDE),
        help="libraries, separated by commas (default: all); NAME==VERSION is a version other than the installed one, "
        f"which pip puts into a folder of its own (default: {', '.join(BESIDE)}, too)",
    )
    parser.add_argument("--processes", type=numbers, help="numbers of processes, T (default: 1,2,4,8)")
    parser.add_argument("--clients", type=numbers, help="numbers of tasks in each process, C (default: 10,25,100,1000)")
    parser.add_argument("--batches", type=numbers, help="numbers of commands in a request, B (default: 1,5,10,20)")
    parser.add_argument("--every", action="store_true", help="all combinations of T, C and B, and speed on all data")
    parser.add_argument(
        "--generate",
        type=generated_kind,
        action="append",
        metavar="KIND:BYTES",
        help=f"generated values (default: {' '.join(DATA)}); speed is measured with the first",
    )
    parser.add_argument(
        "--data-file",
        type=Path,
        action="append",
        default=[],
        help="values of a file, one a line, or of a folder, one a file; goes before generated values",
    )
    parser.add_argument(
        "--dictionary",
        action="store_true",
        help=f"{OURS} also with a dictionary learned from a fifth of the values; only the others are measured",
    )
    add_common_options(parser)
    return parser.parse_args(words)


def corpora(arguments: argparse.Namespace, values: int) -> list[Corpus]:
    found = [file_corpus(path, values) for path in arguments.data_file]
    kinds = arguments.generate or ([] if found else [generated_kind(text) for text in DATA])
    found += [generated_corpus(find_snugly(arguments.program), kind, size, values) for kind, size in kinds]
    return [divided(corpus) for corpus in found] if arguments.dictionary else found


def divided(corpus: Corpus) -> Corpus:
    """With some values to learn from, and only others to measure."""
    parts = split(corpus)
    return Corpus(parts.name, parts.measured, parts.training)


def backends(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The contenders; says so if there are no dictionaries."""
    chosen: tuple[str, ...] = arguments.backends
    if not arguments.dictionary:
        return chosen
    if not has_dictionaries():
        print(f"Without dictionaries: no {OURS} is installed that has dictionaries.", file=sys.stderr)
        return chosen
    return (*chosen, *(learned for learned, codec in LEARNED.items() if codec in chosen))


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    allow_many_connections()
    asked_extent = extent(arguments, FULL, QUICK, SMOKE)
    versions = installed(arguments.peers)
    data = corpora(arguments, asked_extent.values)
    asked = run.Asked(
        contenders=contenders({name: peer(name).backends for name in versions}, backends(arguments)),
        corpora=data,
        timed=data if arguments.every else data[:1],
        cells=cells(asked_extent, arguments.every),
        rounds=asked_extent.rounds,
        seconds=asked_extent.seconds,
        iterations=arguments.iterations,
        own=arguments.own_clients,
    )
    described, results = measure(
        arguments, asked, partial(about, "clients", words, versions, asked_extent, is_rough(arguments))
    )
    print(summary(described, results))
    for path in report.write(arguments.output, described, results):
        print(f"Written: {path}")


def summary(described: About, results: Results) -> str:
    """The part for a terminal: the fewest processes and clients, with the smallest and the largest batch."""
    found = [workload for text, _ in results.rows() if (workload := Workload.parse(text))]
    least = min((workload.cell.processes, workload.cell.clients) for workload in found)
    batches = [workload.cell.batch for workload in found]
    shown = dict.fromkeys(
        str(workload)
        for workload in found
        if (workload.cell.processes, workload.cell.clients) == least
        and workload.cell.batch in (min(batches), max(batches))
        and workload.data == found[0].data
    )
    rough = described.rough
    return "\n\n".join(
        (
            described.text(),
            aims.ratios(results, shown, rough),
            aims.stored(results, rough),
            aims.verdict(results, rough),
        )
    )
