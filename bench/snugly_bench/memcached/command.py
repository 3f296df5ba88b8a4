"""snugly over memcached's protocol, beside memcached: `make bench-memcached`.

Measures requests a second and the processor time of one for values of several sizes, and the memory of small ones.
Memcached is taken from the PATH.
"""

from __future__ import annotations

import argparse

from snugly_bench.arguments import chosen_of, measuring, parse_with_rounds, positive
from snugly_bench.dictionaries.lessons import Lessons
from snugly_bench.machine import machine
from snugly_bench.memcached.measure import all_peers, measure, measure_memory, small_values
from snugly_bench.memcached.verdict import report, report_memory
from snugly_bench.results import Results, write_report
from snugly_bench.servers.compare import check_cores
from snugly_bench.servers.loads import QUICK_KEYS
from snugly_bench.servers.peers import find_snugly, memcached_peer

PARTS = ("memory", "throughput")
ROUNDS = 3
KEYS = 100_000


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = measuring("memcached", __doc__)
    parser.add_argument("--only", type=chosen_of(PARTS), default=PARTS, help=f"parts to run, of {','.join(PARTS)}")
    parser.add_argument("--rounds", type=positive, help=f"rounds of throughput (default: {ROUNDS}, or 1 with --quick)")
    return parse_with_rounds(parser, words, ROUNDS)


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    program = find_snugly(arguments.program)
    memcached = memcached_peer()
    if memcached is None:
        raise SystemExit("memcached is not installed: it is what snugly is compared with")
    check_cores()
    peers, small, lessons = all_peers(program, memcached), small_values(program), Lessons()
    results: list[Results] = []
    reports: list[str] = []
    if "memory" in arguments.only:
        keys = QUICK_KEYS if arguments.quick else KEYS
        results.append(measure_memory(program, peers, small, keys, lessons))
        reports.append(report_memory(results[-1], keys))
    if "throughput" in arguments.only:
        results.append(measure(program, peers, small, arguments.rounds, arguments.quick, lessons))
        reports.append(report(results[-1], arguments.rounds))
    versions = "; ".join(dict.fromkeys(peer.version for peer in peers.peers))
    parts = ["# snugly beside memcached\n", f"{machine()}. {versions}.\n"]
    if arguments.quick:
        parts.append("Measured with --quick: these figures only show that everything runs.\n")
    text = "\n".join([*parts, lessons.text(), *reports])
    print(text)
    print(write_report(arguments.output, "memcached", text, results))
