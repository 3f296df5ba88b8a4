"""What a compile cache keeps on disk, with each compression of snugly and without: `make bench-compile-cache`.

Object files of a folder (`--data`; by default what cargo built here), or made-up ones where it has none, and the same
already compressed, as sccache sends them. All servers get the same values over memcached's text protocol, in turn, in
every round, with a store on disk that is larger than their memory, and every byte that they return is compared.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from snugly_bench.arguments import measuring, positive
from snugly_bench.compile_cache.measure import MIB, measure
from snugly_bench.compile_cache.objects import COMPRESSED, OBJECTS, Objects, find, generate
from snugly_bench.compile_cache.verdict import method, report
from snugly_bench.machine import machine
from snugly_bench.results import write_report
from snugly_bench.servers.compare import check_cores
from snugly_bench.servers.peers import find_snugly, version_of

ROUNDS = 3
MOST_MIB, QUICK_MIB = 300, 4
MADE_UP_MIB = 64
"""Most of what is made up, which takes longer than reading."""
MAX_MEMORY = "64mb"
PARTS = {"objects": OBJECTS, "compressed": COMPRESSED}
"""Kinds of values by what `--only` calls them."""
BUILT = Path(os.environ.get("CARGO_TARGET_DIR") or "target")


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = measuring("compile-cache", __doc__)
    parser.add_argument(
        "--data", type=Path, default=BUILT, help="folder with object files at any depth (default: %(default)s)"
    )
    parser.add_argument(
        "--most", type=positive, help=f"MiB of files at most (default: {MOST_MIB}, or {QUICK_MIB} with --quick)"
    )
    parser.add_argument("--only", choices=tuple(PARTS), help="part to run")
    parser.add_argument("--max-memory", default=MAX_MEMORY, help="memory of each server (default: %(default)s)")
    parser.add_argument("--rounds", type=positive, help=f"rounds (default: {ROUNDS}, or 1 with --quick)")
    arguments = parser.parse_args(words)
    arguments.most = arguments.most or (QUICK_MIB if arguments.quick else MOST_MIB)
    arguments.rounds = arguments.rounds or (1 if arguments.quick else ROUNDS)
    return arguments


def objects(folder: Path, most: int) -> Objects:
    """Those of the folder, else made-up ones."""
    found = find(folder, most * MIB)
    return found if found.values else generate(min(most, MADE_UP_MIB) * MIB)


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    program = find_snugly(arguments.program)
    check_cores()
    values = objects(arguments.data, arguments.most)
    kinds = (PARTS[arguments.only],) if arguments.only else tuple(PARTS.values())
    results = measure(program, values, kinds, arguments.rounds, arguments.max_memory)
    parts = ["# Compile cache\n", f"{machine()}. {version_of(program)}.\n"]
    if arguments.quick:
        parts.append("Measured with --quick: these figures only show that everything runs.\n")
    parts += [f"{report(results)}\n", method(values, arguments.rounds, arguments.max_memory), ""]
    text = "\n".join(parts)
    print(text)
    print(write_report(arguments.output, "compile-cache", text, [results]))
