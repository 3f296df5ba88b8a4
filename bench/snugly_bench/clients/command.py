"""`clients`: client libraries beside each other, with and without compression.

Each library is asked through asyncio in processes of its own: T processes, in each of them C tasks that have one
request under way, and a request is one command or a pipeline of B. The tasks of a process share one client object, as
they do in GLIDE's own benchmark and in applications; libraries with a pool have as many connections as there are tasks.
With --own-clients every task has a client object of its own.

Before anything is timed, every value is written and read back by every contender, and compared.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from snugly_bench.clients import aims, run
from snugly_bench.clients.peers import BASE, PEERS
from snugly_bench.clients.plan import BACKENDS, FULL, QUICK, SMOKE, Extent, Workload, bases, cells, contenders
from snugly_bench.clients.target import Target, target
from snugly_bench.corpora import KINDS, Corpus, file_corpus, generated_corpus
from snugly_bench.report import clients as report
from snugly_bench.report.record import About, save
from snugly_bench.results import Results

DATA = ("json:1900", "html:1250", "csv:1300", "session:950")


def numbers(text: str) -> tuple[int, ...]:
    found = tuple(int(word) for word in text.replace(",", " ").split())
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError("must be whole numbers from 1, with commas between them")
    return found


def chosen_of(allowed: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    def chosen(text: str) -> tuple[str, ...]:
        found = tuple(text.split(","))
        for word in found:
            if word not in allowed:
                raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(allowed)}")
        return found

    return chosen


def generated_kind(text: str) -> tuple[str, int]:
    kind, _, size = text.partition(":")
    if kind not in KINDS or not size.isdecimal() or int(size) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no KIND:BYTES, where the kind is one of {', '.join(KINDS)}")
    return kind, int(size)


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Those that `sizes` has too."""
    extents = parser.add_mutually_exclusive_group()
    extents.add_argument("--quick", action="store_true", help="about two minutes in all")
    extents.add_argument("--smoke", action="store_true", help="tiny numbers, to see that everything runs")
    parser.add_argument("--rounds", type=int, help="how often all is measured, in turn")
    parser.add_argument("--seconds", type=float, help="of each measurement")
    parser.add_argument("--iterations", type=int, help="operations after which a measurement ends earlier")
    parser.add_argument("--values", type=int, help="of each corpus")
    parser.add_argument("--backends", type=chosen_of(BACKENDS), default=BACKENDS, help="(default: none,lz4,zstd)")
    parser.add_argument("--host", default="127.0.0.1", help="of a server with --no-server (default: %(default)s)")
    parser.add_argument("--port", type=int, default=6379, help="of a server with --no-server (default: %(default)s)")
    parser.add_argument(
        "--no-server",
        action="store_true",
        help="start no server, and measure the one at --host and --port; what else it has is left alone, but its "
        "memory is only told right if nobody else writes",
    )
    parser.add_argument("--own-clients", action="store_true", help="a client object for each task, not one for all")
    parser.add_argument(
        "--program",
        type=Path,
        default=Path("target/release/snugly"),
        help="the snugly that generates values (default: %(default)s)",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("bench-results"), help="the folder for the results (default: %(default)s)"
    )


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="snugly_bench clients", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=chosen_of(tuple(PEERS)), default=tuple(PEERS), help="(default: all)")
    parser.add_argument("--processes", type=numbers, help="T (default: 1,2,4,8)")
    parser.add_argument("--clients", type=numbers, help="C, in each process (default: 10,25,100,1000)")
    parser.add_argument("--batches", type=numbers, help="B (default: 1,5,10,20)")
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
        help="values of a file, one a line, or of a folder, one a file; goes before what is generated",
    )
    add_common_options(parser)
    return parser.parse_args(words)


def extent(arguments: argparse.Namespace) -> Extent:
    """What was asked for, on top of what --quick and --smoke stand for."""
    preset = SMOKE if arguments.smoke else QUICK if arguments.quick else FULL
    given = ("processes", "clients", "batches", "rounds", "seconds", "values")
    asked = {name: value for name in given if (value := getattr(arguments, name, None)) is not None}
    found = replace(preset, **asked)
    if found.values // max(found.processes) < max(found.batches):
        raise SystemExit(
            f"{found.values} values are too few for {max(found.processes)} processes with batches of "
            f"{max(found.batches)}: give more --values"
        )
    return found


def installed(names: tuple[str, ...]) -> dict[str, str]:
    """The versions of those peers that are installed; says which are not, and exits if none is."""
    found = {}
    for name in names:
        version = PEERS[name].version()
        if version is None:
            print(f"Without {name}: the package {PEERS[name].distribution} is not installed.", file=sys.stderr)
        else:
            found[name] = version
    if not found:
        raise SystemExit("none of these clients is installed: pip install --requirement bench/requirements.txt")
    return found


def corpora(arguments: argparse.Namespace, values: int) -> list[Corpus]:
    found = [file_corpus(path, values) for path in arguments.data_file]
    kinds = arguments.generate or ([] if found else [generated_kind(text) for text in DATA])
    return found + [generated_corpus(program(arguments), kind, size, values) for kind, size in kinds]


def program(arguments: argparse.Namespace) -> Path:
    found = shutil.which(arguments.program)
    if found is None:
        raise SystemExit(
            f"there is no program {arguments.program} to generate values: build it with "
            "`cargo build --release --package snugly`, give it with --program, or give values with --data-file"
        )
    return Path(found)


def allow_many_connections() -> None:
    """Raises the limit of open files as far as it goes: a pool has a connection for each task."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def measure(asked: run.Asked, server: Target) -> Results:
    base = BASE if BASE in asked.peers else asked.peers[0]
    results = Results("", bases(asked.contenders, base))
    run.run(asked, server, results)
    return results


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    allow_many_connections()
    asked_extent = extent(arguments)
    versions = installed(arguments.peers)
    data = corpora(arguments, asked_extent.values)
    asked = run.Asked(
        contenders=contenders({name: PEERS[name].backends for name in versions}, arguments.backends),
        corpora=data,
        timed=data if arguments.every else data[:1],
        cells=cells(asked_extent, arguments.every),
        rounds=asked_extent.rounds,
        seconds=asked_extent.seconds,
        iterations=arguments.iterations,
        own=arguments.own_clients,
    )
    with target(arguments.host, arguments.port, not arguments.no_server) as server:
        about = About.now("clients", words, server.version(), versions, asked_extent)
        results = measure(asked, server)
    save(arguments.output, about, results)
    print(summary(about, results))
    for path in report.write(arguments.output, about, results):
        print(f"Written: {path}")


def summary(about: About, results: Results) -> str:
    """What a terminal shows: the fewest processes and clients, with the smallest and the largest batch."""
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
    return "\n\n".join((about.text(), aims.ratios(results, shown), aims.verdict(results)))
