"""Targets of snugly's client beside Valkey GLIDE and beside itself, and the checks of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from snugly_bench.clients.peers import BASE, OURS, versions_of_base
from snugly_bench.clients.plan import (
    BACKENDS,
    CPU,
    LEARNED,
    LZ4,
    LZ4_DICTIONARY,
    MEMORY,
    NONE,
    RATE,
    STORED,
    VALUE,
    ZSTD,
    ZSTD_DICTIONARY,
    Contender,
    Workload,
    counterpart,
    memory_data,
    named_version,
)
from snugly_bench.results import Aim, Results, judge, table

FASTER = {(1, backend): 2.0 for backend in BACKENDS} | {(20, NONE): 1.3, (20, LZ4): 1.5, (20, ZSTD): 2.2}
"""By batch and backend: the least ratio of operations a second to those of the base with the same backend."""
FASTER_LEARNED = {
    (20, "SET", LZ4_DICTIONARY): 1.5,
    (20, "GET", LZ4_DICTIONARY): 2.0,
    (20, "SET", ZSTD_DICTIONARY): 3.0,
    (20, "GET", ZSTD_DICTIONARY): 3.0,
}
"""By batch, operation and backend: the same with a dictionary, to the base with the codec alone."""
SMALLER_LEARNED = {
    ("json-movie-pages", LZ4_DICTIONARY): 0.75,
    ("json-movies", LZ4_DICTIONARY): 0.75,
    ("json-movie-pages", ZSTD_DICTIONARY): 0.7,
    ("json-movies", ZSTD_DICTIONARY): 0.6,
}
"""By corpus and backend: the most of the bytes that the base's zstd stores, with a dictionary."""
LEANER = 0.6
"""The most of the base's processor time for an operation."""
OWN = str(Contender(OURS, NONE))
KEPT = {(1, LZ4): 0.95, (20, LZ4): 0.85, (1, ZSTD): 0.85, (20, ZSTD): 0.5}
"""By batch and backend: the least part of our own uncompressed operations a second."""


def aims(workloads: Iterable[str], base: str = BASE) -> tuple[Aim, ...]:
    """The targets that exist for some of the workloads, beside one version of the base."""
    batches: dict[int, list[str]] = {}
    found: list[Aim] = []
    for text in workloads:
        found += learned_aims(text, base)
        workload = Workload.parse(text)
        if workload is not None:
            batches.setdefault(workload.cell.batch, []).append(text)
    for batch, named in batches.items():
        asked = tuple(named)
        for backend in BACKENDS:
            ours, theirs = str(Contender(OURS, backend)), str(Contender(base, backend))
            if (batch, backend) in FASTER:
                found.append(Aim(ours, RATE, "least", FASTER[batch, backend], theirs, asked))
                found.append(Aim(ours, CPU, "most", LEANER, theirs, asked))
            if (batch, backend) in KEPT:
                found.append(Aim(ours, RATE, "least", KEPT[batch, backend], OWN, asked))
    return tuple(found)


def learned_aims(text: str, base: str) -> Iterator[Aim]:
    """Those with dictionaries, in one workload."""
    data, workload = memory_data(text), Workload.parse(text)
    for backend in LEARNED:
        ours = Contender(OURS, backend)
        if data is not None and (data, backend) in SMALLER_LEARNED:
            most = SMALLER_LEARNED[data, backend]
            yield Aim(str(ours), STORED, "most", most, str(Contender(base, ZSTD)), (text,))
        if workload is not None and (asked := (workload.cell.batch, workload.operation, backend)) in FASTER_LEARNED:
            yield Aim(str(ours), RATE, "least", FASTER_LEARNED[asked], str(counterpart(ours, base)), (text,))


def aims_in(results: Results, workloads: Iterable[str]) -> list[Aim]:
    """The targets beside every measured version of the base; targets beside ourselves appear once."""
    asked = list(workloads)
    peers = dict.fromkeys(Contender.parse(subject).peer for _, subject in results.rows())
    return list(dict.fromkeys(aim for base in versions_of_base(peers) or [BASE] for aim in aims(asked, base)))


def judged(results: Results) -> list[tuple[Aim, str, float, bool]]:
    """Every aim in every workload that it can be judged in, what was found there, and whether that meets it."""
    rows = dict.fromkeys(results.rows())
    return [
        (aim, workload, aim.found(results, workload), aim.met(results, workload))
        for aim in aims_in(results, dict.fromkeys(workload for workload, _ in rows))
        for workload in aim.workloads
        if (workload, aim.subject) in rows and (workload, aim.base) in rows
    ]


def ratios(results: Results, workloads: Iterable[str], rough: bool = False) -> str:
    """A table of operations a second and processor time beside the base, and the aims unless the run was `rough`."""
    asked = list(workloads)
    possible = (
        ()
        if rough
        else tuple(
            aim
            for aim in aims_in(results, asked)
            if all(results.has(each, str(aim.base), RATE) for each in aim.workloads)
        )
    )
    header = ["T", "C", "B", "operation", "client", RATE, "of base", CPU, "of base", "aims"]
    rows = []
    for text, subject in results.rows():
        workload = Workload.parse(text)
        if workload is None or text not in asked:
            continue
        cell, base = workload.cell, results.base_of(subject)
        rows.append(
            [
                str(cell.processes),
                str(cell.clients),
                str(cell.batch),
                workload.operation,
                subject,
                f"{results.spread(text, subject, RATE).median:,.0f}",
                ratio(results, text, subject, RATE, base),
                f"{results.spread(text, subject, CPU).median:.1f}",
                ratio(results, text, subject, CPU, base),
                judged_briefly(possible, results, text, subject),
            ]
        )
    return table(header, rows, texts=(3, 4, 9))


def stored(results: Results, rough: bool = False) -> str:
    """A table of what the server stores of a value, beside the base, and the aims unless the run was `rough`."""
    header = ["data", "client", VALUE, STORED, "of base", MEMORY, "of base", "aims"]
    rows = []
    for text, subject in results.rows():
        data, base = memory_data(text), results.base_of(subject)
        if data is None or not results.has(text, subject, STORED):
            continue
        found = [aim for aim in aims_in(results, [text]) if not rough and results.has(text, str(aim.base), STORED)]
        rows.append(
            [
                data,
                subject,
                f"{results.spread(text, subject, VALUE).median:,.0f}",
                f"{results.spread(text, subject, STORED).median:,.0f}",
                ratio(results, text, subject, STORED, base),
                f"{results.spread(text, subject, MEMORY).median:,.0f}",
                ratio(results, text, subject, MEMORY, base),
                judge(tuple(found), results, text, subject),
            ]
        )
    return table(header, rows, texts=(0, 1, 7))


def judged_briefly(found: Iterable[Aim], results: Results, workload: str, subject: str) -> str:
    """The aims of one row: the bound and whether it was met; what was found is beside it."""
    return "; ".join(
        f"{'CPU' if aim.metric == CPU else 'rate'} {'<=' if aim.at == 'most' else '>='} {aim.bound:g}"
        f"{of_whom(aim)} "
        f"{'met' if aim.met(results, workload) else 'MISSED'}"
        for aim in found
        if aim.subject == subject and workload in aim.workloads
    )


def of_whom(aim: Aim) -> str:
    """The name of the peer, if that is not the installed version of the base."""
    version = named_version(Contender.parse(str(aim.base)).peer)[1]
    return " of own none" if aim.base == OWN else f" of {version}" if version else ""


def ratio(results: Results, workload: str, subject: str, metric: str, base: str) -> str:
    if not results.has(workload, base, metric):
        return ""
    return results.ratio(workload, subject, metric, base).show()


def verdict(results: Results, rough: bool = False) -> str:
    """The number of targets that were met; a `rough` run meets and misses none."""
    if rough:
        return "A quick run shows that it works, and judges no aims: for that, leave --quick out."
    found = judged(results)
    if not found:
        return f"No aim could be judged: that takes {OURS} and {BASE}, and batches of 1 or 20."
    met = sum(1 for *_, reached in found if reached)
    return f"{met} of {len(found)} aims met; those that were missed say so."
