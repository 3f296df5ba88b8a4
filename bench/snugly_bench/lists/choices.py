"""The servers that keep lists, and what their lists are made of. Knows nothing of what is measured."""

from __future__ import annotations

from dataclasses import replace

from snugly_bench.servers.peers import CODECS, VALKEY, Peer, configured_snugly_peer, valkey_peer

DEPTH = 2
"""Nodes at each end of a list that are not compressed, where a server compresses."""
NODES = ("--list-max-listpack-size", "-2")
"""A node has 8 KiB at most."""
LZF = "valkey LZF"
NONE, LZ4, ZSTD = (f"snugly {codec}" for codec in CODECS)
DICTIONARY = f"{ZSTD} + dictionary"
BASES = {VALKEY: VALKEY, LZF: VALKEY, NONE: NONE, LZ4: NONE, ZSTD: NONE, DICTIONARY: NONE}
"""Each server's own kind without compression."""
RIVALS = {LZF: VALKEY, NONE: VALKEY, LZ4: LZF, ZSTD: LZF, DICTIONARY: LZF}
"""The Valkey that each is to be compared with; of Valkey with compression, that without."""
DATA = {"varied": "events", "repetitive": "repetitive"}
"""Elements by what reports call them, and what `snugly bench` generates."""


def peers(program: str) -> list[Peer]:
    """All of `BASES`."""
    return [
        valkey_lists(VALKEY, 0),
        valkey_lists(LZF, DEPTH),
        *(snugly_lists(program, codec) for codec in CODECS),
        snugly_lists(program, "zstd", DICTIONARY, "yes"),
    ]


def valkey_lists(name: str, depth: int) -> Peer:
    peer = valkey_peer()
    return replace(peer, name=name, command=(*peer.command, "--list-compress-depth", str(depth), *NODES))


def snugly_lists(program: str, codec: str, name: str = "", dictionaries: str = "no") -> Peer:
    compressed = ("--list-compress-codec", codec, "--list-compress-depth", str(DEPTH))
    options = ("--dictionaries", dictionaries, *compressed, *NODES)
    return configured_snugly_peer(program, name or f"snugly {codec}", options)
