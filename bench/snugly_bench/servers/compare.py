"""Memory, throughput and processor time of snugly beside valkey-server and memcached: `make bench`.

Starts every server by itself, on a free port of the loopback, drives it with `snugly bench`, and prints the results
beside the targets; the same goes to `servers.md` and `servers.csv` in a folder. Valkey is taken from the
environment variable SNUGLY_VALKEY_SERVER or the PATH, memcached from the PATH.
"""

from __future__ import annotations

import argparse
import os

from snugly_bench.arguments import measuring, parse_with_rounds, positive
from snugly_bench.machine import machine
from snugly_bench.results import write_report
from snugly_bench.servers import changes, memory, persistence, throughput
from snugly_bench.servers.loads import LOAD_CORE, SERVER_CORE
from snugly_bench.servers.peers import (
    CODECS,
    Peer,
    find_program,
    find_snugly,
    memcached_peer,
    snugly_peer,
    valkey_peer,
)

PARTS = ("memory", "throughput", "persistence", "changes")
ROUNDS = 5
VALUES = 100_000
QUICK_VALUES = 2_000


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = measuring("servers", __doc__)
    parser.add_argument("--only", choices=PARTS, help="part to run")
    parser.add_argument(
        "--rounds", type=positive, help=f"rounds of all but memory (default: {ROUNDS}, or 1 with --quick)"
    )
    parser.add_argument(
        "--check-generator",
        action="store_true",
        help="compare the load generator with redis-benchmark instead, and write nothing",
    )
    return parse_with_rounds(parser, words, ROUNDS)


def check_cores() -> None:
    """Throughput needs a core for the server and one for the load generator."""
    find_program("taskset", "it pins processes to cores; install util-linux")
    needed, allowed = {SERVER_CORE, LOAD_CORE}, os.sched_getaffinity(0)
    if not needed <= allowed:
        raise SystemExit(
            f"throughput is measured on the cores {sorted(needed)}, but this process may use only {sorted(allowed)}: "
            "use --only memory, or a machine with two cores"
        )


def compare(arguments: argparse.Namespace, program: str, valkey: Peer) -> None:
    """Measures what was asked for, prints it and writes it."""
    snuglies = [snugly_peer(program, codec) for codec in CODECS]
    memcached = memcached_peer()
    versions = dict.fromkeys(peer.version for peer in (valkey, memcached, snuglies[0]) if peer)
    parts = ["# snugly beside other servers\n", f"{machine()}. {'; '.join(versions)}.\n"]
    if arguments.quick:
        parts.append("Measured with --quick: these figures only show that everything runs.\n")
    results = []
    asked = [arguments.only] if arguments.only else PARTS
    if "memory" in asked:
        values = QUICK_VALUES if arguments.quick else VALUES
        others = [memcached] if memcached else []
        results.append(memory.measure(program, [valkey, *others, *snuglies], values))
        parts.append(memory.report(results[-1], values))
        if memcached is None:
            parts.append("Without memcached, which is not installed.\n")
    if "throughput" in asked:
        results.append(throughput.measure(program, [valkey, *snuglies], arguments.rounds, arguments.quick))
        parts.append(throughput.report(results[-1], arguments.rounds))
    if "persistence" in asked:
        kept = persistence.measure(program, arguments.rounds, arguments.quick)
        results += kept
        parts.append(persistence.report(kept, arguments.rounds))
    if "changes" in asked:
        results.append(changes.measure([valkey, snugly_peer(program, "zstd")], arguments.rounds, arguments.quick))
        parts.append(changes.report(results[-1], arguments.rounds))
    text = "\n".join(parts)
    print(text)
    print(write_report(arguments.output, "servers", text, results))


def check_generator(arguments: argparse.Namespace, program: str, valkey: Peer) -> None:
    redis = find_program("redis-benchmark", "it comes with Redis, in Debian as redis-tools")
    results = throughput.check_generator(program, valkey, redis, arguments.rounds, arguments.quick)
    print(throughput.report_generator(results, arguments.rounds))


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    program = find_snugly(arguments.program)
    valkey = valkey_peer()
    if arguments.only != "memory" or arguments.check_generator:
        check_cores()
    if arguments.check_generator:
        check_generator(arguments, program, valkey)
    else:
        compare(arguments, program, valkey)
