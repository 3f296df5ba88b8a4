"""`report`: redraws the report of a run from the files that it has written."""

from __future__ import annotations

import argparse
from pathlib import Path

from snugly_bench.report import clients, sizes
from snugly_bench.report.record import load

REPORTS = {"clients": clients.write, "sizes": sizes.write}


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="snugly_bench report", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the results, as given to --output")
    arguments = parser.parse_args(words)
    found = [name for name in REPORTS if (arguments.folder / f"{name}.json").is_file()]
    if not found:
        raise SystemExit(f"{arguments.folder} has no results of {' or '.join(REPORTS)}: give what --output was")
    for name in found:
        for path in REPORTS[name](arguments.folder, *load(arguments.folder, name)):
            print(f"Written: {path}")
