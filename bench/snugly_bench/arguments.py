"""Arguments of benchmarks: those that many have, and kinds for argparse's `type`. Knows no benchmark."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import inf
from pathlib import Path

from snugly_bench.servers.peers import BUILT_SNUGLY


def measuring(name: str, purpose: str | None, quick: str = "tiny numbers") -> argparse.ArgumentParser:
    """A parser with the options of every benchmark that starts the program and writes its results into a folder."""
    parser = argparse.ArgumentParser(
        prog=f"snugly_bench {name}", description=purpose, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", default=BUILT_SNUGLY, help="program to run (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help=f"{quick}, to see that everything runs")
    parser.add_argument(
        "--output", type=Path, default=Path("bench-results"), help="folder for the results (default: %(default)s)"
    )
    return parser


def parse_with_rounds(parser: argparse.ArgumentParser, words: list[str], usual: int) -> argparse.Namespace:
    """The arguments of a parser that has `--rounds`: as many as usual if none are given, and one with `--quick`."""
    arguments = parser.parse_args(words)
    arguments.rounds = arguments.rounds or (1 if arguments.quick else usual)
    return arguments


def numbers(text: str) -> tuple[int, ...]:
    found = tuple(int(word) for word in text.replace(",", " ").split())
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError("must be whole numbers from 1, with commas between them")
    return found


def positive(text: str) -> int:
    (number,) = numbers(text)
    return number


def duration(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < inf:
        raise argparse.ArgumentTypeError("must be more than 0")
    return seconds


def chosen_of(allowed: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    def chosen(text: str) -> tuple[str, ...]:
        found = tuple(text.split(","))
        for word in found:
            if word not in allowed:
                raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(allowed)}")
        return found

    return chosen
