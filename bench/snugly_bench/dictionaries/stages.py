"""Values in the stages of their life: memory and processor time as they are written, and once the server has encoded
what stays, with reads of a Zipf distribution going on.
"""

from __future__ import annotations

import time
from itertools import product

import valkey

from snugly_bench.dictionaries.data import measured_file
from snugly_bench.dictionaries.lessons import Lessons
from snugly_bench.dictionaries.memory import MOST_SETTLE_SECONDS, SETTLE_SECONDS
from snugly_bench.progress import Progress
from snugly_bench.results import Results, table
from snugly_bench.servers.generators import Row, snugly_bench
from snugly_bench.servers.info import info
from snugly_bench.servers.learning import key_prefix
from snugly_bench.servers.loads import CPU, LOAD_CORE, SERVER_CORE
from snugly_bench.servers.peers import (
    VALKEY,
    Server,
    auto_snugly_peer,
    dictionary_snugly_peer,
    lz4_dictionary_snugly_peer,
    start,
    valkey_peer,
)
from snugly_bench.servers.process import steady_anonymous_bytes
from snugly_bench.splits import Split

WRITTEN, STAYED, READ = "as written", "after the passes", "after the passes, read"
MOMENTS = (WRITTEN, STAYED, READ)
EACH, SECONDS, TWICE = "bytes per key", "seconds of passes", "bytes encoded again of bytes written"
GET, SET = f"GET, {CPU}", f"SET, {CPU}"
UNCHANGED_SECONDS = 25.0
"""Passes have ended when nothing was encoded for so long."""
MOST_PASSES_SECONDS = 300.0
READING_SECONDS = 45
REQUESTS = 1_000_000
QUICK_SECONDS, QUICK_REQUESTS = 1, 5_000
PIPELINED = ("-c", "50", "-P", "16", "--threads", "1")


def measure(program: str, splits: list[Split], keys: int, rounds: int, quick: bool, lessons: Lessons) -> Results:
    results = Results(VALKEY)
    peers = [
        valkey_peer(),
        dictionary_snugly_peer(program),
        lz4_dictionary_snugly_peer(program),
        auto_snugly_peer(program),
    ]
    with Progress(rounds * len(splits) * len(peers)) as progress:
        for number, values, peer in product(range(rounds), splits, peers):
            what = f"stages, round {number + 1} of {rounds}: {values.name}, {peer.name}"
            with progress.step(1, what), start(peer, SERVER_CORE) as server, lessons.given(server, values, keys):
                for moment, found in course(program, server, values, keys, quick):
                    results.add(f"{values.name}, {moment}", peer.name, found)
    return results


def course(program: str, server: Server, values: Split, keys: int, quick: bool) -> list[tuple[str, dict[str, float]]]:
    """The figures of each moment. SET comes last, since it begins the life of values anew."""
    with measured_file(values) as path:
        data = ["--data", str(path), "--key-prefix", key_prefix(values.name), "-r", str(keys), *PIPELINED]
        requests = ["-n", str(QUICK_REQUESTS if quick else REQUESTS)]
        zipf = ["--distribution", "zipf", "--filled"]

        def ask(*options: str) -> Row:
            return snugly_bench(program, "server", server, [*options, *data], LOAD_CORE)[0]

        def figures(row: Row, name: str = GET) -> dict[str, float]:
            each = steady_anonymous_bytes(server.pid, SETTLE_SECONDS, MOST_SETTLE_SECONDS) / keys
            return {EACH: each, name: float(row["server_cpu_us_per_request"])}

        written = figures(ask("--tests", "get", *requests, "--distribution", "zipf"))
        seconds = 0.0 if server.peer.name == VALKEY else wait_for_passes(server, quick)
        # Few requests, so that memory is that of values which nobody reads.
        stayed = figures(ask("--tests", "get", "-n", "1000", "--filled"))
        ask("--tests", "get", *zipf, "--duration", str(QUICK_SECONDS if quick else READING_SECONDS))
        read = figures(ask("--tests", "get", *zipf, *requests))
        read |= {TWICE: encoded_again(server)}
        written |= {SET: figures(ask("--tests", "set", *zipf, *requests), SET)[SET]}
    return [(WRITTEN, written), (STAYED, {EACH: stayed[EACH], SECONDS: seconds}), (READ, read)]


def wait_for_passes(server: Server, quick: bool) -> float:
    """Waits until the server encodes no more values again; returns the seconds until it has encoded the last."""
    unchanged = QUICK_SECONDS if quick else UNCHANGED_SECONDS
    started = since = time.monotonic()
    with valkey.Valkey(port=server.port) as client:
        before = None
        while time.monotonic() - since < unchanged and time.monotonic() - started < MOST_PASSES_SECONDS:
            tries = info(client, "compression")["recompression_tries"]
            if tries != before:
                before, since = tries, time.monotonic()
            time.sleep(0.2)
    return since - started


def encoded_again(server: Server) -> float:
    """Bytes of values that were encoded again, for each byte that was written."""
    if server.peer.name == VALKEY:
        return 0.0
    with valkey.Valkey(port=server.port) as client:
        found = info(client, "compression")
    written = sum(float(number) for name, number in found.items() if name.startswith("encoded_bytes_in_"))
    return float(found["recompression_tried_bytes"]) / max(written, 1.0)


def report(results: Results, keys: int, rounds: int) -> str:
    header = ["values", "server", EACH, "of valkey's", GET, "of valkey's", SET, "of valkey's", SECONDS, TWICE]

    def shown(workload: str, server: str, metric: str, digits: int) -> str:
        has = results.has(workload, server, metric)
        return results.spread(workload, server, metric).show(digits) if has else ""

    def ratio(workload: str, server: str, metric: str) -> str:
        has = results.has(workload, server, metric)
        return results.ratio(workload, server, metric, VALKEY).show() if has else ""

    rows = [
        [
            *row,
            *(text for metric in (EACH, GET, SET) for text in (shown(*row, metric, 2), ratio(*row, metric))),
            shown(*row, SECONDS, 0),
            shown(*row, TWICE, 2),
        ]
        for row in results.rows()
    ]
    return f"""## {keys:,} values in the stages of their life

{table(header, rows, texts=(0, 1))}

Anonymous memory of the whole process. {rounds} rounds, pipelines of 16 requests on 50 connections, keys of a Zipf
distribution. The passes run beside the requests, on the same core, within `background-cpu-percent`.
"""
