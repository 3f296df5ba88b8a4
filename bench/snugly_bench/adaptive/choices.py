"""Settings of compression: fixed choices, and the server's own for each goal."""

from __future__ import annotations

import sys

from snugly_bench.servers.peers import Peer, configured_snugly_peer, start

NONE = "none"
ALONE = ("--dictionaries", "no")
FIXED = {
    NONE: ("--compression", "none", *ALONE),
    "lz4": ("--compression", "lz4", *ALONE),
    "zstd 1": ("--compression", "zstd", "--compression-level", "1", *ALONE),
    "zstd 3": ("--compression", "zstd", "--compression-level", "3", *ALONE),
    "zstd 9": ("--compression", "zstd", "--compression-level", "9", *ALONE),
    "zstd 3 with dictionaries": ("--compression", "zstd", "--compression-level", "3", "--dictionaries", "yes"),
}
AUTO = {
    f"auto {goal}": ("--compression", "auto", "--compression-goal", goal) for goal in ("memory", "balanced", "speed")
}
BALANCED = "auto balanced"
"""The server's choice where nobody sets a goal."""


def peers(program: str) -> list[Peer]:
    """All choices that the program knows; says which it refuses."""
    found = []
    for name, options in (FIXED | AUTO).items():
        peer = configured_snugly_peer(program, name, options)
        refusal = refused(peer)
        if refusal is None:
            found.append(peer)
        else:
            print(f"Without {name}: {refusal}", file=sys.stderr)
    return found


def refused(peer: Peer) -> str | None:
    """Why it does not start, if it does not."""
    try:
        with start(peer):
            return None
    except SystemExit as refusal:
        return " ".join(str(refusal).split())
