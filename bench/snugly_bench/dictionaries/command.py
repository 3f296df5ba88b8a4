"""Savings and costs of dictionaries learned by the server: `make bench-dictionaries`.

Each set of small values is divided: a fifth, by the hash of each value's number, is written for the server to learn
from, and the others are used to measure, except values equal to one of the former. Values come from a folder of
`.jsonl` files (`--data`; one value a line, as JSON or as a JSON string that holds it), or are generated.

saved: the bytes that lz4, zstd and zstd with dictionaries save. memory: memory of many keys in the server. speed:
requests a second and processor time. mixed: the same, p99 and memory, with reads and writes as an application makes
them. stages: memory and processor time of values as they are written, and where they stay. cold: time until a fresh
server has a dictionary. Everything is measured beside a peer in the same run, and also written to `dictionaries.md`
and `dictionaries.csv` in a folder.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from snugly_bench.arguments import chosen_of, measuring, parse_with_rounds, positive
from snugly_bench.dictionaries import cold, data, memory, mixed, saved, speed, stages
from snugly_bench.dictionaries.lessons import Lessons
from snugly_bench.machine import machine
from snugly_bench.results import Results, write_report
from snugly_bench.servers.compare import check_cores
from snugly_bench.servers.peers import find_snugly, valkey_peer, version_of
from snugly_bench.splits import Split

PARTS = ("saved", "memory", "speed", "mixed", "stages", "cold")
ROUNDS = 5
KEYS = 100_000
QUICK_KEYS = 10_000
QUICK_VALUES = 3_000


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = measuring("dictionaries", __doc__, quick="one set and tiny numbers")
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("SNUGLY_DATA"),
        help="folder of .jsonl files (default: the environment variable SNUGLY_DATA, else generated values)",
    )
    parser.add_argument("--only", type=chosen_of(PARTS), default=PARTS, help=f"parts to run, of {','.join(PARTS)}")
    parser.add_argument(
        "--every", action="store_true", help="run speed, mixed, stages and cold on all sets, not only on the largest"
    )
    parser.add_argument("--keys", type=positive, help=f"keys of memory (default: {KEYS}, or {QUICK_KEYS} with --quick)")
    parser.add_argument(
        "--rounds", type=positive, help=f"rounds of speed, mixed, stages, cold (default: {ROUNDS}, or 1 with --quick)"
    )
    arguments = parse_with_rounds(parser, words, ROUNDS)
    arguments.keys = arguments.keys or (QUICK_KEYS if arguments.quick else KEYS)
    return arguments


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    program = find_snugly(arguments.program)
    if {"speed", "mixed", "stages"} & set(arguments.only):
        check_cores()
    splits = data.read(arguments.data, program, QUICK_VALUES if arguments.quick else None)
    if arguments.quick:
        splits = [data.largest(splits)]
    lessons = Lessons()
    found, reports = measure(arguments, program, splits, lessons)
    text = "\n".join([*head(arguments, program, splits), lessons.text(), *reports])
    print(text)
    print(write_report(arguments.output, "dictionaries", text, found))


def measure(
    arguments: argparse.Namespace, program: str, splits: list[Split], lessons: Lessons
) -> tuple[list[Results], list[str]]:
    """The results of each requested part, and its report."""
    timed = splits if arguments.every else [data.largest(splits)]
    found, reports = [], []
    if "saved" in arguments.only:
        found.append(saved.measure(program, splits, arguments.keys, lessons))
        reports.append(saved.report(found[-1]))
    if "memory" in arguments.only:
        found.append(memory.measure(program, splits, arguments.keys, lessons))
        reports.append(memory.report(found[-1], arguments.keys))
    if "speed" in arguments.only:
        found.append(speed.measure(program, timed, arguments.rounds, arguments.quick, lessons))
        reports.append(speed.report(found[-1], timed, arguments.rounds))
    if "mixed" in arguments.only:
        found.append(mixed.measure(program, timed, arguments.keys, arguments.rounds, arguments.quick, lessons))
        reports.append(mixed.report(found[-1], arguments.keys, arguments.rounds))
    if "stages" in arguments.only:
        found.append(stages.measure(program, timed, arguments.keys, arguments.rounds, arguments.quick, lessons))
        reports.append(stages.report(found[-1], arguments.keys, arguments.rounds))
    if "cold" in arguments.only:
        found.append(cold.measure(program, timed, arguments.rounds, arguments.quick))
        reports.append(cold.report(found[-1], arguments.quick))
    return found, reports


def head(arguments: argparse.Namespace, program: str, splits: list[Split]) -> list[str]:
    """The text before all reports: machine, programs and values."""
    told = ["# Dictionaries that snugly has learned by itself\n"]
    told.append(f"{machine()}. {version_of(program)}; {valkey_peer().version}.\n")
    if arguments.quick:
        told.append("Measured with --quick: these figures only show that everything runs.\n")
    told.append("Learned from and measured, in values:\n")
    told += [f"- {each.name}: {len(each.training):,} and {len(each.measured):,}" for each in splits]
    return [*told, ""]
