"""Aims beside valkey-server as it comes, and the tables of the measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from snugly_bench.module.measure import ANONYMOUS, GIVEN, LOGGED, REPLICATED, USED
from snugly_bench.module.requests import DEPTHS, JSON, PIPELINE, Load
from snugly_bench.module.saving import COPIED
from snugly_bench.results import Aim, Results, judge, table

MOST_TIME = {
    (f"GET of {JSON}", 1): 1.05,
    (f"SET of {JSON}", 1): 1.15,
    (f"GET of {JSON}", PIPELINE): 1.2,
    (f"SET of {JSON}", PIPELINE): 2.0,
}
"""The most time for strings that are compressed, of what they take without the module."""
MOST_TIME_OF_OTHERS = 1.02
MOST_MEMORY: dict[str, float | None] = {ANONYMOUS: 0.5, USED: None}
MOST_COPIED: dict[str, float | None] = {COPIED: 1.2}
MOST_LOGGED: dict[str, float | None] = {REPLICATED: 0.5, LOGGED: 0.5}


def most_time(load: Load, depth: int) -> float:
    return MOST_TIME.get((load.name, depth), MOST_TIME_OF_OTHERS)


def time_aims(metric: str, loads: Sequence[Load], stock: str, subject: str) -> tuple[Aim, ...]:
    return tuple(
        Aim(subject, metric, "most", most_time(load, depth), stock, (load.workload(depth),))
        for load, depth in product(loads, DEPTHS)
    )


def report_time(metric: str, results: Results, loads: Sequence[Load], subject: str) -> str:
    stock = results.base
    aims = time_aims(metric, loads, stock, subject)
    header = ["requests", stock, subject, f"of {stock}'s", "aim"]
    rows = [
        [
            workload,
            results.spread(workload, stock, metric).show(),
            results.spread(workload, subject, metric).show(),
            results.ratio(workload, subject, metric, stock).show(),
            judge(aims, results, workload, subject),
        ]
        for workload, server in results.rows()
        if server == subject
    ]
    return f"## {metric}\n\n{table(header, rows, texts=(0, 4))}\n"


def report_bytes(title: str, results: Results, subject: str, most: Mapping[str, float | None]) -> str:
    """A line for each set and metric, which has a bound or none."""
    stock = results.base
    header = ["values", GIVEN, "what", stock, subject, f"of {stock}'s", "aim"]
    rows = [
        [
            name,
            results.spread(name, subject, GIVEN).show(1),
            metric,
            results.spread(name, stock, metric).show(1),
            results.spread(name, subject, metric).show(1),
            results.ratio(name, subject, metric, stock).show(),
            judge(bytes_aims(metric, bound, stock, subject, name), results, name, subject),
        ]
        for name, server in results.rows()
        if server == subject
        for metric, bound in most.items()
    ]
    return f"## {title}\n\n{table(header, rows, texts=(0, 2, 6))}\n"


def bytes_aims(metric: str, bound: float | None, stock: str, subject: str, name: str) -> tuple[Aim, ...]:
    return () if bound is None else (Aim(subject, metric, "most", bound, stock, (name,)),)
