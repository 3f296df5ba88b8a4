"""The measured values: small ones, of files or generated; some to learn from, the others to measure with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from snugly_bench.corpora import file_corpus, generated_corpus
from snugly_bench.splits import Split, split

SMALL_BYTES = 3000
"""Largest average size of the values of a set; dictionaries are for small ones."""
GENERATED = {"json": 900, "html": 1250, "csv": 1300, "session": 500, "tickets": 1000}
"""Generated data without a folder: the kind of value, and the approximate bytes of each."""
GENERATED_VALUES = 5_000
MOST_VALUES = 100_000


def read(folder: Path | None, program: str, most: int | None) -> list[Split]:
    """The small sets of a folder, else generated ones, of at most so many values each. Exits if there are none."""
    if folder is not None:
        found = [file_corpus(path, most or MOST_VALUES) for path in sorted(folder.glob("*.jsonl"))]
    else:
        found = [
            generated_corpus(program, kind, size, min(most or GENERATED_VALUES, GENERATED_VALUES))
            for kind, size in GENERATED.items()
        ]
    small = [split(corpus) for corpus in found if corpus.mean_bytes < SMALL_BYTES]
    if not small:
        raise SystemExit(f"{folder} has no .jsonl file with values of less than {SMALL_BYTES} bytes on average")
    return small


def largest(splits: list[Split]) -> Split:
    """The set with the most values."""
    return max(splits, key=lambda each: len(each.measured))


@contextmanager
def measured_file(values: Split) -> Iterator[Path]:
    """The measured values as a file for `snugly bench`, which is removed afterwards."""
    with TemporaryDirectory(prefix="snugly-bench-") as folder:
        path = Path(folder, "measured.jsonl")
        path.write_text("".join(json.dumps(value.decode()) + "\n" for value in values.measured))
        yield path
