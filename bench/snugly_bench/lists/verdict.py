"""Targets for lists, and the tables of the measurements."""

from __future__ import annotations

from snugly_bench.lists.choices import BASES, DICTIONARY, LZ4, LZF, NONE, RIVALS, ZSTD
from snugly_bench.lists.measure import ANONYMOUS, GIVEN, P50, P99, TESTS, USED, memory_workload, workload
from snugly_bench.results import Aim, Results, judge, table
from snugly_bench.servers.loads import CPU, RATE
from snugly_bench.servers.peers import VALKEY

OF_OWN = {
    0.97: ("lindex-fixed", "lrange-fixed", "lpush", "rpop", "fill-rpush", "fill-lpush"),
    0.75: ("lindex-random", "lrange-random"),
    0.85: ("lset-fixed", "lset-random"),
}
"""The least share of requests that lz4 is to answer of those without compression; it may take as much more time."""
OF_LZF = {1.6: ("lindex-fixed", "lindex-random"), 2.2: ("lrange-fixed", "lrange-random")}
"""Required requests a second, as a multiple of Valkey with LZF."""
SMALLER = {
    "varied": {LZ4: 1.05, ZSTD: 0.75, DICTIONARY: 0.6},
    "repetitive": {LZ4: 0.9, ZSTD: 0.75, DICTIONARY: 0.75},
}
"""The most memory that each may take of what Valkey with LZF takes."""


def aims(data: str) -> tuple[Aim, ...]:
    def named(tests: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(workload(test, data) for test in tests)

    filled = (memory_workload(data),)
    return (
        *(Aim(LZ4, RATE, "least", least, NONE, named(tests)) for least, tests in OF_OWN.items()),
        *(Aim(LZ4, CPU, "most", 1 / least, NONE, named(tests)) for least, tests in OF_OWN.items()),
        *(Aim(LZ4, RATE, "least", least, LZF, named(tests)) for least, tests in OF_LZF.items()),
        Aim(NONE, RATE, "least", 1.0, VALKEY, named(tuple(TESTS))),
        *(Aim(NONE, metric, "most", 1.0, VALKEY, filled) for metric in (USED, ANONYMOUS)),
        *(
            Aim(server, metric, "most", most, LZF, filled)
            for server, most in SMALLER[data].items()
            for metric in (USED, ANONYMOUS)
        ),
    )


def compared(results: Results, workload: str, server: str, metric: str) -> list[str]:
    """A measurement, and its ratios to the same server without compression and to its rival."""
    ratios = [
        "" if other == server else results.ratio(workload, server, metric, other).show()
        for other in (BASES[server], RIVALS.get(server, server))
    ]
    return [results.spread(workload, server, metric).show(2 if metric == CPU else 0), *ratios]


def report(results: Results, data: str) -> str:
    """The tables of one kind of elements."""
    own, rival = "of its own uncompressed", "of valkey's"
    header = ["operation", "server", RATE, own, rival, CPU, own, rival, P50, P99, "aim"]
    rows = [
        [
            found.removesuffix(f", {data}"),
            server,
            *compared(results, found, server, RATE),
            *compared(results, found, server, CPU),
            *(results.spread(found, server, metric).show(0) for metric in (P50, P99)),
            judge(aims(data), results, found, server),
        ]
        for found, server in results.rows()
        if found != memory_workload(data)
    ]
    return f"""## Elements that are {data}

{table(header, rows, texts=(0, 1, 10))}

{report_memory(results, data)}
"""


def report_memory(results: Results, data: str) -> str:
    own, rival = "of its own uncompressed", "of valkey's"
    header = ["server", GIVEN, USED, "of given", own, rival, ANONYMOUS, "of given", own, rival, "aim"]
    filled = memory_workload(data)

    def beside_given(server: str, metric: str) -> list[str]:
        given, taken = (results.spread(filled, server, each).median for each in (GIVEN, metric))
        shown, *ratios = compared(results, filled, server, metric)
        return [shown, f"{taken / given:.3f}", *ratios]

    rows = [
        [
            server,
            results.spread(filled, server, GIVEN).show(0),
            *beside_given(server, USED),
            *beside_given(server, ANONYMOUS),
            judge(aims(data), results, filled, server),
        ]
        for found, server in results.rows()
        if found == filled
    ]
    return table(header, rows, texts=(0, 10))
