"""Arguments of benchmarks: kinds of them, for argparse's `type`. Knows no benchmark."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import inf


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
