"""Teaches servers before they are measured, and finds out whether they went on learning from what they were measured
with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import valkey

from snugly_bench.servers.info import info
from snugly_bench.servers.learning import key_prefix, teach
from snugly_bench.servers.peers import AUTO_LEARNING, LEARNING, LZ4_LEARNING, VALKEY, Server
from snugly_bench.splits import Split


@dataclass
class Lessons:
    """All that was taught in a run."""

    warnings: list[str] = field(default_factory=list)
    """Notes that must stand beside the results."""

    def warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)

    @contextmanager
    def given(self, server: Server, values: Split, population: int) -> Iterator[None]:
        """Has a server learn from what is for that, if it is one that learns; it is measured meanwhile.

        The others get the same writes, so that they leave the same behind. Exits if the server has learned from what
        was measured though it had been told not to.
        """
        if server.peer.name == VALKEY:
            yield
            return
        lesson = teach(server, key_prefix(values.name), values.training, population)
        if server.peer.name in (LEARNING, LZ4_LEARNING, AUTO_LEARNING):
            if not lesson.is_fixed:
                self.warn(
                    "This snugly does not know `CONFIG SET dictionaries fixed`: it could learn from what was "
                    "measured; where it did, it says so here."
                )
            if not lesson.dictionaries:
                self.warn(f"Of {values.name} no dictionary was worth it.")
        yield
        with valkey.Valkey(port=server.port) as client:
            if info(client, "dictionaries")["dictionary_trainings"] == lesson.trainings:
                return
        trained = f"{server.peer.name} has learned from values of {values.name} that were measured"
        if lesson.is_fixed:
            raise SystemExit(f"{trained}, though it was told to learn nothing more: these figures would say nothing")
        self.warn(f"{trained}: what it saves there may be too much.")

    def text(self) -> str:
        """A line for each warning."""
        return "".join(f"- **{warning}**\n" for warning in self.warnings)
