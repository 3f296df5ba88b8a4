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
from snugly_bench.clients.peers import base_of
from snugly_bench.clients.plan import BACKENDS, Extent, bases
from snugly_bench.clients.target import Target, target
from snugly_bench.clients.versions import installed_version
from snugly_bench.machine import machine
from snugly_bench.report.record import About, save
from snugly_bench.results import Results
from snugly_bench.servers.peers import BUILT_SNUGLY


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `clients` and `sizes` both have."""
    extents = parser.add_mutually_exclusive_group()
    extents.add_argument("--quick", action="store_true", help="about two minutes in all, and no verdicts")
    extents.add_argument("--smoke", action="store_true", help="tiny numbers, to see that everything runs")
    parser.add_argument("--rounds", type=positive, help="rounds, in which all are measured in turn")
    parser.add_argument("--seconds", type=duration, help="duration of each measurement")
    parser.add_argument("--iterations", type=positive, help="operations after which a measurement ends earlier")
    parser.add_argument("--values", type=positive, help="number of values of each corpus")
    parser.add_argument(
        "--backends", type=chosen_of(BACKENDS), default=BACKENDS, help="backends (default: none,lz4,zstd)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="server of --no-server (default: %(default)s)")
    parser.add_argument("--port", type=int, default=6379, help="its port (default: %(default)s)")
    parser.add_argument(
        "--no-server",
        action="store_true",
        help="start no server, and measure the one at --host and --port; its other keys are left alone, but its "
        "memory is correct only if nothing else writes to it",
    )
    parser.add_argument("--own-clients", action="store_true", help="give each task a client object of its own")
    parser.add_argument(
        "--program",
        default=BUILT_SNUGLY,
        help="program that generates values (default: %(default)s)",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("bench-results"), help="folder for the results (default: %(default)s)"
    )


def extent(arguments: argparse.Namespace, full: Extent, quick: Extent, smoke: Extent) -> Extent:
    """The requested extent, on top of the meaning of --quick and --smoke."""
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


def is_rough(arguments: argparse.Namespace) -> bool:
    """Whether too little is measured to conclude anything."""
    return bool(arguments.quick or arguments.smoke)


def installed(names: tuple[str, ...]) -> dict[str, str]:
    """The versions of those peers that are installed; says which are not, and exits if none is."""
    found = {}
    for name in names:
        version = installed_version(name)
        if version is None:
            print(f"Without {name}: its package is not installed.", file=sys.stderr)
        else:
            found[name] = version
    if not found:
        raise SystemExit("none of these clients is installed: pip install --requirement bench/requirements.txt")
    return found


def allow_many_connections() -> None:
    """Raises the limit of open files as far as it goes: a pool has a connection for each task."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def about(
    benchmark: str, words: list[str], versions: dict[str, str], asked: Extent, rough: bool, server: Target
) -> About:
    """The facts that the report of this run has."""
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
        rough=rough,
    )


def measure(
    arguments: argparse.Namespace, asked: run.Asked, describe: Callable[[Target], About]
) -> tuple[About, Results]:
    """Measures on the server that the arguments name, and writes what the report can be drawn from again."""
    results = Results("", bases(asked.contenders, base_of(asked.peers)))
    with target(arguments.host, arguments.port, not arguments.no_server) as server:
        described = describe(server)
        run.run(asked, server, results)
    save(arguments.output, described, results)
    return described, results
