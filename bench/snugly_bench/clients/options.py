"""Options that `clients` and `sizes` have in common, and what they are made into."""

from __future__ import annotations

import argparse
import resource
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from platform import python_version

from snugly_bench.arguments import chosen_of, duration, positive
from snugly_bench.clients import run
from snugly_bench.clients.peers import BASE, PEERS
from snugly_bench.clients.plan import BACKENDS, Extent, bases
from snugly_bench.clients.target import Target, target
from snugly_bench.machine import machine
from snugly_bench.report.record import About, save
from snugly_bench.results import Results


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `clients` and `sizes` both have."""
    extents = parser.add_mutually_exclusive_group()
    extents.add_argument("--quick", action="store_true", help="about two minutes in all")
    extents.add_argument("--smoke", action="store_true", help="tiny numbers, to see that everything runs")
    parser.add_argument("--rounds", type=positive, help="how often all is measured, in turn")
    parser.add_argument("--seconds", type=duration, help="of each measurement")
    parser.add_argument("--iterations", type=positive, help="operations after which a measurement ends earlier")
    parser.add_argument("--values", type=positive, help="of each corpus")
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
        default="target/release/snugly",
        help="the snugly that generates values (default: %(default)s)",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("bench-results"), help="the folder for the results (default: %(default)s)"
    )


def extent(arguments: argparse.Namespace, full: Extent, quick: Extent, smoke: Extent) -> Extent:
    """What was asked for, on top of what --quick and --smoke stand for."""
    preset = smoke if arguments.smoke else quick if arguments.quick else full
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


def allow_many_connections() -> None:
    """Raises the limit of open files as far as it goes: a pool has a connection for each task."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def about(benchmark: str, words: list[str], versions: dict[str, str], asked: Extent, server: Target) -> About:
    """What the report of this run is to tell."""
    return About(
        benchmark=benchmark,
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        machine=machine(),
        server=server.version(),
        shared=server.own,
        clients={**versions, "Python": python_version()},
        command=shlex.join(["python", "-m", "snugly_bench", benchmark, *words]),
        rounds=asked.rounds,
        seconds=asked.seconds,
        values=asked.values,
    )


def measure(
    arguments: argparse.Namespace, asked: run.Asked, describe: Callable[[Target], About]
) -> tuple[About, Results]:
    """Measures on the server that the arguments name, and writes what the report can be drawn from again."""
    base = BASE if BASE in asked.peers else asked.peers[0]
    results = Results("", bases(asked.contenders, base))
    with target(arguments.host, arguments.port, not arguments.no_server) as server:
        described = describe(server)
        run.run(asked, server, results)
    save(arguments.output, described, results)
    return described, results
