"""The values that are measured with: generated ones, and those of files. Knows no server and no client."""

from __future__ import annotations

import json
import random
import re
import subprocess
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

KINDS = ("json", "html", "csv", "session", "tickets", "random")
"""Kinds that can be generated; all but the last by the snugly program."""


@dataclass(frozen=True)
class Corpus:
    """Values of one kind."""

    name: str
    """Without blanks."""
    values: tuple[bytes, ...]
    training: tuple[bytes, ...] = ()
    """Other ones, for those who learn before they are measured."""

    @property
    def mean_bytes(self) -> float:
        return sum(map(len, self.values)) / len(self.values)


def value(line: str) -> bytes:
    """The value of a line: the string if the line is a JSON string, the line itself otherwise."""
    line = line.rstrip("\n")
    return str(json.loads(line)).encode() if line.startswith('"') else line.encode()


def read_lines(path: Path, most: int | None) -> list[bytes]:
    """The values of one file, one a line."""
    with path.open(encoding="utf-8") as lines:
        return [value(line) for line in islice(lines, most)]


def generated(program: str, kind: str, size: int, count: int) -> list[bytes]:
    """Values that the program makes up: unique, of about `size` bytes, and as compressible as real ones."""
    command = [program, "bench", "values", "--kind", kind, "--size", str(size), "--count", str(count)]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [value(line) for line in lines]


def generated_corpus(program: str, kind: str, size: int, count: int) -> Corpus:
    """As `generated`, and random bytes too; where a kind has no record as small as `size`, the beginnings of some."""
    if kind == "random":
        source = random.Random(size)
        values = [source.randbytes(size) for _ in range(count)]
    else:
        values = generated(program, kind, size, count)
        if sum(map(len, values)) > 1.5 * size * count:
            values = [value[:size] for value in values]
    return Corpus(f"{kind}:{size}", tuple(values))


def file_corpus(path: Path, most: int) -> Corpus:
    """At most so many values of a `.jsonl` file, one a line, or of a folder, where each file is one.

    Exits where there is nothing to read.
    """
    if path.is_dir():
        values = [file.read_bytes() for file in islice(sorted(filter(Path.is_file, path.iterdir())), most)]
    elif path.is_file():
        values = read_lines(path, most)
    else:
        raise SystemExit(f"there is no file or folder {path}: give one with values, one a line or one a file")
    values = [value for value in values if value]
    if not values:
        raise SystemExit(f"{path} has no values: give a file with one value a line, or a folder with one in each file")
    return Corpus(re.sub(r"[\s=]+", "-", path.stem), tuple(values))
