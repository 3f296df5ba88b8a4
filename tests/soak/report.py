"""Prints how a soak goes: a line every ten seconds, and a summary at its end. It only adds up."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from soak.instances import MB
from soak.links import DIALECTS
from soak.plan import Event
from soak.watch import Watch
from soak.writer import Writer


@dataclass
class Report:
    """A soak in figures: writers, watches, the events that are done, and the number of keys read back at the end."""

    writers: Sequence[Writer]
    watches: Sequence[Watch]
    done: list[tuple[Event, list[str]]] = field(default_factory=list)
    audited: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)

    def by_dialect(self) -> Counter[str]:
        return sum((Counter({w.dialect.name: w.asked.total()}) for w in self.writers), Counter())

    def by_load(self) -> Counter[str]:
        return sum((w.asked for w in self.writers), Counter())

    def counts(self) -> Counter[str]:
        return sum((w.ledger.counts for w in self.writers), Counter())

    def lost(self) -> int:
        return sum(writer.lost for writer in self.writers)

    def missing(self, planned: Iterable[Event]) -> list[str]:
        """Parts of a soak that did not happen: one that does nothing finds nothing."""
        done = {event.disturbance.name for event, _ in self.done}
        happened = {
            **{f"requests of {dialect.name}": self.by_dialect()[dialect.name] > 0 for dialect in DIALECTS},
            **{load: self.by_load()[load] > 0 for load in {load.name for w in self.writers for load in w.loads}},
            **{name: name in done for name in {event.disturbance.name for event in planned}},
        }
        for watch in self.watches:
            situation = watch.instance.situation
            mine = [w for w in self.writers if w.at is watch.instance.at]
            if situation.evicts:
                happened["eviction"] = watch.most["evicted_keys"] > 0
            if situation.fills:
                happened["refused writes"] = any(w.ledger.counts["refused"] for w in mine)
        return [f"{name} did not happen" for name, there in happened.items() if not there]

    def line(self) -> str:
        counts = self.counts()
        parts = [
            f"{time.monotonic() - self.began:5.0f} s",
            f"{self.by_dialect().total():,} requests ({listed(self.by_dialect())})",
            f"{hits(self.watches)} of reads hit",
            f"{counts['refused']:,} refused",
            f"{self.lost():,} connections ended",
            f"{len(self.done):,} disturbances",
        ]
        parts += [memory(watch) for watch in self.watches if watch.latest]
        return "; ".join(parts)

    def summary(self) -> str:
        counts, events = self.counts(), Counter(event.disturbance.name for event, _ in self.done)
        told = {event.disturbance.name: words[-1] for event, words in self.done if words}
        lines = [
            "requests by protocol: " + listed(self.by_dialect()),
            "requests by load: " + listed(self.by_load()),
            f"replies: {counts['as known']:,} as known, {counts['gone']:,} of keys that were evicted, "
            f"{counts['refused']:,} refused as expected, {counts['unanswered']:,} unanswered by "
            f"{self.lost():,} connections that were ended",
            "disturbances: "
            + ", ".join(
                f"{name} {count}" + (f" ({told[name]})" if name in told else "") for name, count in events.items()
            ),
            "keys read back at the end: " + listed(self.audited),
        ]
        for watch in self.watches:
            most = watch.most
            lines.append(
                f"{watch.instance.name}: dataset {most['used_memory_dataset'] / MB:.1f} of "
                f"{watch.instance.situation.max_memory / MB:.0f} MB at most, used {most['used_memory'] / MB:.0f} MB, "
                f"resident {most['used_memory_rss'] / MB:.0f} MB, {most['connected_clients']:,} connections, "
                f"{most['evicted_keys']:,} keys evicted, {most['expired_keys']:,} expired, {most['rdb_saves']} saves, "
                f"{most['dictionaries']} dictionaries, {most['recompressed_records']:,} values recompressed, "
                f"{watch.pings:,} PINGs, the slowest of {watch.longest_ping:.2f} s"
            )
        return "\n".join(lines)


def listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def hits(watches: Sequence[Watch]) -> str:
    found = sum(watch.latest.get("keyspace_hits", 0) for watch in watches)
    asked = found + sum(watch.latest.get("keyspace_misses", 0) for watch in watches)
    return f"{100 * found / asked:.0f} %" if asked else "none"


def memory(watch: Watch) -> str:
    latest = watch.latest
    return (
        f"{watch.instance.name}: {latest['connected_clients']:,} connections, dataset "
        f"{latest['used_memory_dataset'] / MB:.1f}, used {latest['used_memory'] / MB:.0f}, resident "
        f"{latest['used_memory_rss'] / MB:.0f} MB"
    )
