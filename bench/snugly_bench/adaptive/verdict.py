"""Measurements of the server's own choices, beside the best of the fixed ones."""

from __future__ import annotations

from collections.abc import Callable

from snugly_bench.adaptive.choices import AUTO, BALANCED, FIXED, NONE
from snugly_bench.adaptive.measure import CPU, EACH, RATE, SAVED, STORED, WORTH
from snugly_bench.results import Aim, Results, judge, table

MIXED, INCOMPRESSIBLE = "mixed", "SET of images"
"""The workloads."""
MEASURES: dict[str, Callable[..., str]] = {SAVED: max, WORTH: max, CPU: min}
"""Measures to be best at, and whether the most or the least is best."""
AIMS = (
    Aim(BALANCED, EACH, "most", 1.01, NONE, (INCOMPRESSIBLE,)),
    Aim(BALANCED, RATE, "least", 0.99, NONE, (INCOMPRESSIBLE,)),
)


def best(results: Results, metric: str) -> str:
    """The fixed choice that is best at something, of those that compress."""
    measured = [subject for workload, subject in results.rows() if workload == MIXED]
    fixed = [subject for subject in measured if subject in FIXED and subject != NONE]
    return MEASURES[metric](fixed, key=lambda subject: results.spread(MIXED, subject, metric).median)


def report(results: Results) -> str:
    """Savings and cost of every choice, and the server's own beside the best fixed ones."""
    of_none = f"of {NONE}'s"
    header = ["choice", STORED, of_none, SAVED, CPU, of_none, RATE, WORTH]
    rows = [
        [
            subject,
            results.spread(workload, subject, STORED).show(0),
            results.ratio(workload, subject, STORED, NONE).show(),
            results.spread(workload, subject, SAVED).show(0),
            results.spread(workload, subject, CPU).show(3),
            results.ratio(workload, subject, CPU, NONE).show(),
            results.spread(workload, subject, RATE).show(0),
            results.spread(workload, subject, WORTH).show(0),
        ]
        for workload, subject in results.rows()
        if workload == MIXED
    ]
    return f"""## Mixed values

{table(header, rows, texts=(0,))}

{beside_best(results)}
"""


def beside_best(results: Results) -> str:
    rows = []
    for subject in AUTO:
        for metric in MEASURES:
            if results.has(MIXED, subject, metric):
                other = best(results, metric)
                rows.append([subject, metric, other, results.ratio(MIXED, subject, metric, other).show()])
    if not rows:
        return "This snugly does not choose by itself: there is nothing to compare with the fixed choices."
    return table(["choice", "measure", "best fixed choice", "ratio to it"], rows, texts=(0, 1, 2))


def report_incompressible(results: Results) -> str:
    """Cost of values that do not become smaller."""
    of_none = f"of {NONE}'s"
    rows = [
        [
            subject,
            results.spread(workload, subject, RATE).show(0),
            results.ratio(workload, subject, RATE, NONE).show(3),
            results.spread(workload, subject, EACH).show(2),
            results.ratio(workload, subject, EACH, NONE).show(3),
            judge(AIMS, results, workload, subject),
        ]
        for workload, subject in results.rows()
        if workload == INCOMPRESSIBLE
    ]
    return f"""## Values that cannot be compressed

{table(["choice", RATE, of_none, EACH, of_none, "aim"], rows, texts=(0, 5))}
"""
