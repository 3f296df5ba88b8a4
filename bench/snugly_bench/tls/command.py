"""The cost of TLS: `make bench-tls`.

Measures the processor time of GET and SET of 1 KB, of new connections, and the memory of idle ones, with TLS and
without, of snugly and of a peer: valkey-server (the environment variable SNUGLY_VALKEY_SERVER or the PATH), if it was
built with TLS, else redis-server. redis-benchmark is the load.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from snugly_bench.arguments import chosen_of, measuring, parse_with_rounds, positive
from snugly_bench.machine import machine
from snugly_bench.results import Results, write_report
from snugly_bench.servers.compare import check_cores
from snugly_bench.servers.peers import find_program, find_snugly
from snugly_bench.tls.measure import IDLE_CONNECTIONS, QUICK_IDLE, json_value, measure, measure_idle
from snugly_bench.tls.peers import Certificates, peer_with_tls, snugly_with_tls
from snugly_bench.tls.verdict import report, report_idle

PARTS = ("requests", "idle")
ROUNDS = 3


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = measuring("tls", __doc__)
    parser.add_argument("--only", type=chosen_of(PARTS), default=PARTS, help=f"parts to run, of {','.join(PARTS)}")
    parser.add_argument("--rounds", type=positive, help=f"rounds (default: {ROUNDS}, or 1 with --quick)")
    return parse_with_rounds(parser, words, ROUNDS)


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    program = find_snugly(arguments.program)
    benchmark = find_program("redis-benchmark", "it comes with Redis, in Debian as redis-tools")
    check_cores()
    with tempfile.TemporaryDirectory(prefix="snugly-bench-") as folder:
        certificates = Certificates.made_in(Path(folder))
        peers = [peer_with_tls(certificates), snugly_with_tls(program, certificates)]
        names = [each.peer.name for each in peers]
        results: list[Results] = []
        reports: list[str] = []
        if "requests" in arguments.only:
            value = json_value(program)
            results.append(measure(benchmark, peers, certificates, value, arguments.rounds, arguments.quick))
            reports.append(report(results[-1], names, arguments.rounds))
        if "idle" in arguments.only:
            results.append(measure_idle(peers, certificates, arguments.rounds, arguments.quick))
            reports.append(report_idle(results[-1], names, QUICK_IDLE if arguments.quick else IDLE_CONNECTIONS))
    versions = "; ".join(each.peer.version for each in peers)
    parts = ["# What TLS costs\n", f"{machine()}. {versions}.\n"]
    if arguments.quick:
        parts.append("Measured with --quick: these figures only show that everything runs.\n")
    text = "\n".join([*parts, *reports])
    print(text)
    print(write_report(arguments.output, "tls", text, results))
