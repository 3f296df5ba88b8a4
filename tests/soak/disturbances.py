"""The table of disturbances: what is done, to which servers, and how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from soak import keepers, strangers
from soak.scene import Scene


@dataclass(frozen=True)
class Disturbance:
    """A row of the table: what is done, to servers of which situations, and every how many seconds, on the average."""

    name: str
    do: Callable[[Scene], None]
    every: float
    to: tuple[str, ...] = ("evicting", "keeping", "full disk")
    # Done once, until the soak ends.
    lasts: bool = False


DISTURBANCES = (
    Disturbance("slow readers", strangers.slow_reader, every=15, to=("keeping",)),
    Disturbance("stopped readers", strangers.stopped_readers, every=10),
    Disturbance("half requests", strangers.half_requests, every=4),
    Disturbance("idle connections", strangers.idle_connections, every=5, to=("keeping",), lasts=True),
    Disturbance("a full disk", keepers.full_disk, every=15, to=("full disk",)),
    Disturbance("new certificates", keepers.certificates, every=12),
    Disturbance("configuration files", keepers.configuration_file, every=8),
    Disturbance("live settings", keepers.live_settings, every=5),
    Disturbance("limits of memory", keepers.memory_limits, every=10, to=("evicting",)),
    Disturbance("background saves", keepers.background_save, every=20, to=("evicting", "keeping")),
    Disturbance("training", keepers.train, every=15),
    Disturbance("kills", keepers.kills, every=5),
    Disturbance("pauses", keepers.pauses, every=10),
    Disturbance("observers", keepers.observers, every=5),
    Disturbance("other databases", keepers.other_databases, every=10, to=("evicting", "keeping")),
)
