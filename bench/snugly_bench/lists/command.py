"""Long lists in snugly, with each codec and without, beside valkey-server with LZF and without: `make bench-lists`.

Servers that compress leave two nodes at each end of a list as they are (list-compress-depth 2); a node has 8 KiB at
most (list-max-listpack-size -2). All servers get the same requests in turn, in every round, and every element that they
return is compared with the written one. Elements are JSON events, of two kinds: varied ones differ in ids, times,
people and words, repetitive ones only in their number.
"""

from __future__ import annotations

import argparse
import textwrap
from dataclasses import fields, replace

from snugly_bench.arguments import chosen_of, measuring, positive
from snugly_bench.lists.choices import DATA, DEPTH, peers
from snugly_bench.lists.measure import Scale, measure
from snugly_bench.lists.verdict import report
from snugly_bench.machine import machine
from snugly_bench.results import write_report
from snugly_bench.servers.compare import check_cores
from snugly_bench.servers.loads import LOAD_CORE, SERVER_CORE, WIDTH
from snugly_bench.servers.peers import Peer, find_snugly

FULL = Scale(lists=200, elements=2_000, element_size=512, requests=100_000, rounds=5)
QUICK = Scale(lists=20, elements=200, element_size=512, requests=1_000, rounds=1)


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = measuring("lists", __doc__)
    parser.add_argument(
        "--data",
        type=chosen_of(tuple(DATA)),
        default=tuple(DATA),
        help=f"data sets, of {','.join(DATA)} (default: all)",
    )
    of_full = {
        "lists": "number of lists",
        "elements": "elements of each list",
        "element-size": "approximate bytes of an element",
        "requests": "requests of each test that does not populate; LRANGE gets a fifth, of whole lists a hundredth",
        "rounds": "rounds, each with freshly started servers",
    }
    for name, purpose in of_full.items():
        field = name.replace("-", "_")
        default = f"default: {getattr(FULL, field)}, or {getattr(QUICK, field)} with --quick"
        parser.add_argument(f"--{name}", type=positive, help=f"{purpose} ({default})")
    return parser.parse_args(words)


def scale(arguments: argparse.Namespace) -> Scale:
    asked = {each.name: getattr(arguments, each.name) for each in fields(Scale)}
    given = {name: value for name, value in asked.items() if value is not None}
    return replace(QUICK if arguments.quick else FULL, **given)


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    extent, program = scale(arguments), find_snugly(arguments.program)
    check_cores()
    found = peers(program)
    results = {data: measure(program, found, data, extent) for data in arguments.data}
    reports = [report(measured, data) for data, measured in results.items()]
    text = "\n".join([*head(arguments, found), *reports, method(extent), ""])
    print(text)
    print(write_report(arguments.output, "lists", text, list(results.values())))


def head(arguments: argparse.Namespace, found: list[Peer]) -> list[str]:
    """The text before the tables."""
    versions = dict.fromkeys(peer.version for peer in found)
    told = ["# Lists\n", f"{machine()}. {'; '.join(versions)}.\n"]
    if arguments.quick:
        told.append("Measured with --quick: these figures only show that everything runs.\n")
    return told


def method(extent: Scale) -> str:
    """The method, and how to read the results."""
    return textwrap.fill(
        f"{extent.lists:,} lists of {extent.elements:,} generated elements of about {extent.element_size:,} B. Where "
        f"lists are compressed, {DEPTH} nodes at each end are not. A fixed place is the same in all lists, in the "
        f"middle or, for LRANGE, from two fifths on. {extent.connections} connections, pipelined by 32 to populate, "
        "otherwise not at all. Every server serves with one thread, and all threads it has are pinned to core "
        f"{SERVER_CORE}, the load generators to core {LOAD_CORE}. Rounds: {extent.rounds}, with servers just started, "
        "asked in turn; shown are medians (lowest to highest), and ratios are medians of each round's ratio, to the "
        "same server without compression, and to Valkey, with LZF where snugly compresses. Processor time is what the "
        "server says in INFO. Memory is by how much used_memory of INFO and the process's anonymous memory grew when "
        "lists were populated by RPUSH, beside the bytes of all elements; where a dictionary is learned, once that is "
        "done. Every element that was read was compared, and all lists at the end of each round.",
        WIDTH,
    )
