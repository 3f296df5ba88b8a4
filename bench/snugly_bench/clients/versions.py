"""Versions of client libraries beside those that are installed: each in a folder of its own, where pip puts it once.

A name such as `valkey-glide==2.6.0` asks for one. Knows no server, and nothing of what is measured.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from snugly_bench.clients.peers import PEERS, Peer
from snugly_bench.clients.plan import named_version

BESIDE = ("valkey-glide==2.5.3",)
"""Versions that `clients` measures beside the installed ones by default."""
VERSION = re.compile(r"[0-9][0-9A-Za-z.]*")


def peer_name(text: str) -> str:
    """The name of a peer, for argparse's `type`."""
    library, version = named_version(text)
    if library not in PEERS or ("==" in text and not VERSION.fullmatch(version)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is none of {', '.join(PEERS)}, nor one with a version (NAME==1.2.3)"
        )
    return text


def peer_names(text: str) -> tuple[str, ...]:
    """Several, with commas between them."""
    return tuple(map(peer_name, text.split(",")))


def folder(name: str) -> Path:
    """The folder of this version: beside the packages of this Python, which it does not disturb."""
    return Path(sys.prefix, "bench-peers", name)


def peer(name: str) -> Peer:
    """The peer of this name. A process that opens another version than the installed one has nothing else of it."""
    library, version = named_version(name)
    if not version:
        return PEERS[library]
    path = str(folder(name))
    if path not in sys.path:
        sys.path.insert(0, path)
    return replace(PEERS[library], name=name)


def installed_version(name: str) -> str | None:
    """A peer as it is available, another version included, which is installed if it is missing; `None` without any."""
    library, version = named_version(name)
    if not version:
        return PEERS[library].version()
    found = lying_there(name)
    if found is None:
        install(name)
        found = lying_there(name)
    return found


def lying_there(name: str) -> str | None:
    library, _ = named_version(name)
    found = importlib.metadata.distributions(name=PEERS[library].distribution, path=[str(folder(name))])
    return next((each.version for each in found), None)


def install(name: str) -> None:
    library, version = named_version(name)
    asked = f"{PEERS[library].distribution}=={version}"
    print(f"Installing {asked} into {folder(name)}", file=sys.stderr)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder(name)), asked]
    subprocess.run(command, check=False)
