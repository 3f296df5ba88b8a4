"""`sizes`: savings and costs of compression for values from 38 bytes to 16 KiB, by type, with advice.

One client library writes and reads generated values of every type and size with every backend, in batches. Types whose
smallest record is longer than a size are represented by the beginnings of records.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import product

from snugly_bench.arguments import chosen_of, numbers
from snugly_bench.clients import run
from snugly_bench.clients.options import (
    about,
    add_common_options,
    allow_many_connections,
    extent,
    installed,
    is_rough,
    measure,
)
from snugly_bench.clients.peers import BASE, OURS, PEERS
from snugly_bench.clients.plan import NONE, Cell, Extent, contenders
from snugly_bench.clients.versions import peer as named
from snugly_bench.clients.versions import peer_name
from snugly_bench.corpora import KINDS, generated_corpus
from snugly_bench.report import sizes as report
from snugly_bench.servers.peers import find_snugly

SIZES = (38, 100, 200, 460, 950, 1900, 4096, 16384)
FEW_SIZES = (38, 1900)
"""With --smoke."""
FULL = Extent((1,), (10,), (20,), rounds=3, seconds=0.5, values=4_000)
QUICK = Extent((1,), (10,), (20,), rounds=1, seconds=0.1, values=1_000)
SMOKE = Extent((1,), (2,), (5,), rounds=1, seconds=0.03, values=60)


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="snugly_bench sizes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peer", type=peer_name, help=f"client library (default: {OURS} if it is installed, else {BASE})"
    )
    parser.add_argument("--sizes", type=numbers, help=f"bytes of values (default: {','.join(map(str, SIZES))})")
    parser.add_argument("--kinds", type=chosen_of(KINDS), default=KINDS, help=f"kinds (default: {','.join(KINDS)})")
    add_common_options(parser)
    arguments = parser.parse_args(words)
    if NONE not in arguments.backends:
        parser.error(f"--backends must have {NONE}, which the others are compared with")
    return arguments


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    allow_many_connections()
    found = extent(arguments, FULL, QUICK, SMOKE)
    peer = arguments.peer or (OURS if PEERS[OURS].version() else BASE)
    versions = installed((peer,))
    sizes = arguments.sizes or (FEW_SIZES if arguments.smoke else SIZES)
    generator = find_snugly(arguments.program)
    data = [generated_corpus(generator, kind, size, found.values) for kind, size in product(arguments.kinds, sizes)]
    asked = run.Asked(
        contenders=contenders({peer: named(peer).backends}, arguments.backends),
        corpora=data,
        timed=data,
        cells=[Cell(found.processes[0], found.clients[0], found.batches[0])],
        rounds=found.rounds,
        seconds=found.seconds,
        iterations=arguments.iterations,
        own=arguments.own_clients,
    )
    described, results = measure(arguments, asked, partial(about, "sizes", words, versions, found, is_rough(arguments)))
    paths = report.write(arguments.output, described, results)
    print(report.text(described, results))
    for path in paths:
        print(f"Written: {path}")
