"""Aims for a compile cache on disk, and the tables. Knows nothing of how anything is measured."""

from __future__ import annotations

import textwrap

from snugly_bench.compile_cache.measure import (
    AUTO,
    DISK,
    GET_CPU,
    GET_WALL,
    GIVEN,
    LZ4,
    NONE,
    SET_CPU,
    SET_WALL,
    SMALLER,
    SUMS,
    ZSTD,
)
from snugly_bench.compile_cache.objects import COMPRESSED, OBJECTS, Objects
from snugly_bench.results import Aim, Results, judge, table
from snugly_bench.servers.loads import LOAD_CORE, SERVER_CORE, WIDTH

PUBLISHED_SMALLER = 1.68
"""Of object files of 2 MiB with zstd, in a server of this kind."""
AIMS = (
    Aim(ZSTD, SMALLER, "least", PUBLISHED_SMALLER, None, (OBJECTS,)),
    *(Aim(codec, SET_CPU, "least", 0.85, total, (OBJECTS,)) for codec, total in SUMS.items()),
    *(Aim(codec, GET_CPU, "least", 0.90, total, (OBJECTS,)) for codec, total in SUMS.items()),
    *(Aim(choice, SET_CPU, "least", 0.97, NONE, (COMPRESSED,)) for choice in (LZ4, ZSTD, AUTO)),
)
PUBLISHED = (
    "Published for a server of this kind, with files of 2 MiB on tmpfs: Set 540 MiB/s uncompressed, 356 with lz4 "
    "(0.66), 236 with zstd (0.44), Get 589 and with zstd 660 (1.12); already compressed Set 501 with zstd (0.93), and "
    "with lz4 0.97."
)


def report(results: Results) -> str:
    """A table of everything, speeds beside those of the server that does not compress."""
    of_base = f"of {results.base}'s"
    speeds = (SET_CPU, GET_CPU, SET_WALL, GET_WALL)
    beside = [word for speed in speeds for word in (speed, of_base)]
    header = ["values", "compression", GIVEN, DISK, SMALLER, *beside, "aim"]
    rows = [
        [
            kind,
            subject,
            *(
                shown(results, kind, subject, metric, decimals)
                for metric, decimals in ((GIVEN, 1), (DISK, 1), (SMALLER, 2))
            ),
            *(cell for speed in speeds for cell in compared(results, kind, subject, speed)),
            judge(AIMS, results, kind, subject),
        ]
        for kind, subject in results.rows()
    ]
    return table(header, rows, texts=(0, 1, 13))


def shown(results: Results, kind: str, subject: str, metric: str, decimals: int) -> str:
    return results.spread(kind, subject, metric).show(decimals) if results.has(kind, subject, metric) else ""


def compared(results: Results, kind: str, subject: str, metric: str) -> list[str]:
    """A speed, and its ratio to the base's; blanks for what has no such speed."""
    if not results.has(kind, subject, metric):
        return ["", ""]
    return [
        results.spread(kind, subject, metric).show(0),
        results.ratio(kind, subject, metric, results.base).show(),
    ]


def method(objects: Objects, rounds: int, max_memory: str) -> str:
    """The method, and how to read the results."""
    own = textwrap.fill(
        f"{len(objects.values):,} {objects.source}, and the same compressed by zstd before they are sent. Each server "
        f"is just started, with --storage on a fresh folder, --max-memory {max_memory}, one serving thread and no "
        f"dictionaries; all its threads are pinned to core {SERVER_CORE}, the client to core {LOAD_CORE}. Over "
        "memcached's text protocol all values are set, and got when all are on disk (of which the system may still "
        "have pages in memory); every byte is compared. Disk is disk_used_bytes of INFO. Processor time is that of the "
        "whole process, user and system, for a Set until nothing is written any more; the wall's is the client's, "
        f"which is written in Python, too. Rounds: {rounds}, the choices in turn; shown are medians (lowest to "
        "highest), and ratios are medians of each round's ratio. A bare codec is Python's zstandard or lz4 on the same "
        "values, and none + bare the speed of one after the other: what a server would have that compresses at no "
        "other cost.",
        WIDTH,
    )
    return f"{own}\n\n{textwrap.fill(PUBLISHED, WIDTH)}"
