"""More values than memory in snugly, beside memcached with external storage: `make bench-extstore`.

Both keep what memory has no room for on disk; memcached compresses nothing. There is memory for a tenth of the values.
Values are generated JSON. Memcached is taken from the PATH, and left out where it is not installed.
"""

from __future__ import annotations

import argparse

from snugly_bench.arguments import chosen_of, measuring, positive
from snugly_bench.extstore.measure import Scale, made_up, measure, memory_mib, rivals
from snugly_bench.extstore.verdict import method, report
from snugly_bench.machine import machine
from snugly_bench.results import write_report
from snugly_bench.servers.compare import check_cores
from snugly_bench.servers.peers import CODECS, find_snugly

FULL = Scale(count=1_000_000, requests=1_000_000, rounds=3, pace=30_000)
QUICK = Scale(count=20_000, requests=20_000, rounds=1, pace=30_000)
MEASURED = ("none", "zstd")


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = measuring("extstore", __doc__)
    parser.add_argument(
        "--codecs",
        type=chosen_of(CODECS),
        default=MEASURED,
        help=f"codecs of snugly, of {','.join(CODECS)} (default: {','.join(MEASURED)})",
    )
    parser.add_argument("--count", type=positive, help=f"values (default: {FULL.count}, or {QUICK.count} with --quick)")
    parser.add_argument("--requests", type=positive, help="gets of each distribution (default: as many as values)")
    parser.add_argument(
        "--rounds", type=positive, help=f"rounds (default: {FULL.rounds}, or {QUICK.rounds} with --quick)"
    )
    parser.add_argument(
        "--pace", type=positive, default=FULL.pace, help="sets a second, at most (default: %(default)s)"
    )
    return parser.parse_args(words)


def scale(arguments: argparse.Namespace) -> Scale:
    usual = QUICK if arguments.quick else FULL
    count = arguments.count or usual.count
    rounds = arguments.rounds or usual.rounds
    return Scale(count=count, requests=arguments.requests or count, rounds=rounds, pace=arguments.pace)


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    extent, program = scale(arguments), find_snugly(arguments.program)
    check_cores()
    values = made_up(program, extent.count)
    found = rivals(program, arguments.codecs, values)
    results = measure(found, values, extent)
    versions = dict.fromkeys(rival.peer.version for rival in found)
    parts = ["# More values than memory\n", f"{machine()}. {'; '.join(versions)}.\n"]
    if arguments.quick:
        parts.append("Measured with --quick: these figures only show that everything runs.\n")
    parts += [f"{report(results)}\n", method(extent, memory_mib(values)), ""]
    if len(found) == len(arguments.codecs):
        parts.append("Without memcached, which is not installed.\n")
    text = "\n".join(parts)
    print(text)
    print(write_report(arguments.output, "extstore", text, [results]))
