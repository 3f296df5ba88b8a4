"""Tables of servers with more values than memory. Knows nothing of how anything is measured."""

from __future__ import annotations

import textwrap

from snugly_bench.extstore.measure import (
    ANONYMOUS,
    DISK,
    DISK_MIB,
    EXPONENT,
    FROM_DISK,
    GIVEN,
    HITS,
    KEPT,
    MEMCACHED,
    MOVING,
    PER_HIT,
    SIZE,
    USED,
    Scale,
)
from snugly_bench.results import Results, table
from snugly_bench.servers.loads import CPU, LOAD_CORE, RATE, SERVER_CORE, WIDTH
from snugly_bench.servers.text_protocol import BATCH_KEYS, IN_FLIGHT

OF_BASE = "of memcached's"


def compared(results: Results, workload: str, subject: str, metric: str, decimals: int) -> list[str]:
    """A measurement and its ratio to memcached's; a blank where memcached was not there, or has put nothing on disk."""
    ratio = ""
    if all(results.samples.get((workload, MEMCACHED, metric), [0.0])):
        ratio = results.ratio(workload, subject, metric, MEMCACHED).show()
    return [results.spread(workload, subject, metric).show(decimals), ratio]


def share(results: Results, workload: str, subject: str, metric: str) -> str:
    return f"{results.spread(workload, subject, metric).median:.1%}"


def report(results: Results) -> str:
    """The table of requests, and that of what is kept at the end."""
    header = ["requests", "server", HITS, FROM_DISK, CPU, OF_BASE, PER_HIT, OF_BASE, RATE]
    rows = [
        [
            workload,
            subject,
            share(results, workload, subject, HITS),
            share(results, workload, subject, FROM_DISK),
            *compared(results, workload, subject, CPU, 2),
            *compared(results, workload, subject, PER_HIT, 2),
            results.spread(workload, subject, RATE).show(0),
        ]
        for workload, subject in results.rows()
        if workload != KEPT
    ]
    return f"{table(header, rows, texts=(0, 1))}\n\n{report_kept(results)}"


def report_kept(results: Results) -> str:
    header = ["server", GIVEN, USED, DISK, OF_BASE, ANONYMOUS, OF_BASE]
    rows = [
        [
            subject,
            results.spread(workload, subject, GIVEN).show(1),
            results.spread(workload, subject, USED).show(1),
            *compared(results, workload, subject, DISK, 1),
            *compared(results, workload, subject, ANONYMOUS, 1),
        ]
        for workload, subject in results.rows()
        if workload == KEPT
    ]
    return table(header, rows, texts=(0,))


def method(scale: Scale, memory: int) -> str:
    """The method, and how to read the results."""
    return textwrap.fill(
        f"{scale.count:,} generated JSON values of about {SIZE} B, set once, at most {scale.pace:,} a second, then "
        f"{scale.requests:,} gets each, by a "
        f"Zipf distribution (exponent {EXPONENT}) and of any value alike. Every server has {memory} MiB of memory, a "
        f"tenth of the values' bytes, and {DISK_MIB} MiB of disk; snugly evicts by allkeys-lru, and has no "
        f"dictionaries; memcached has {MOVING}, without which it loses most values in such a fill. "
        "Over memcached's text protocol, one connection, "
        f"{BATCH_KEYS} keys a get and {IN_FLIGHT} batches sent ahead; every value that comes back is compared. Each "
        f"server serves with one thread, and all of its threads are pinned to core {SERVER_CORE}, the client, which is "
        f"written in Python, to core {LOAD_CORE}. Hits of sets are those that were taken. A miss costs little: compare "
        "the processor time of a hit. From disk is what the server "
        "counts (get_extstore of memcached, disk_reads of snugly, which are lookups of keys, too). Processor time is "
        "that of the whole process, user and system, for sets until nothing is written any more. Requests a second are "
        "bounded by the pace and the client. In use is disk_used_bytes of snugly and extstore_bytes_used of memcached, "
        "disk the room that the file system gives, memory anonymous and resident, all at the end. "
        f"Rounds: {scale.rounds}, the servers in turn, freshly started; shown are medians (lowest to "
        "highest), and ratios are medians of each round's ratio.",
        WIDTH,
    )
