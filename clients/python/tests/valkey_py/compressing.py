"""A plugin for pytest that gives valkey-py's own tests this package's clients, with compression on.

Every value that may be compressed is: also the shortest, and those that are envelopes already.
"""

from __future__ import annotations

import os
from typing import Any

import valkey
import valkey.asyncio
import valkey.asyncio.client
import valkey.asyncio.cluster
import valkey.client
import valkey.cluster

import snugly
import snugly.asyncio

CONFIGURATION = snugly.CompressionConfiguration(
    min_compression_size=6, existing_envelopes=snugly.ExistingEnvelopes.WRAP
)

# By suite: the module and the class.
CLASSES = {"server": ("client", "Valkey"), "cluster": ("cluster", "ValkeyCluster")}
# Tests of clusters put mocks in the place of nodes, which the native transport does not ask: what is only to be seen
# by a mock (CLUSTER DELSLOTS) would reach the cluster.
NATIVE = {"server": True, "cluster": False}


def compressing(plain: Any, native: bool) -> Any:
    """The class with compression by default, under its own name."""

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        plain.__init__(self, *args, **{"compression": CONFIGURATION, "native": native, **options})

    return type(plain.__name__, (plain,), {"__init__": __init__})


def pytest_configure() -> None:
    """Before any test module is imported.

    Tests for one server are given our `Valkey` and those for clusters our `ValkeyCluster`. There `Valkey` stays what it
    is, since tests put mocks into it in order to have them in a cluster's nodes.
    """
    library: Any = valkey
    suite = os.environ["SUITE"]
    module, name = CLASSES[suite]
    for package, ours in ((library, snugly), (library.asyncio, snugly.asyncio)):
        client = compressing(getattr(ours, name), NATIVE[suite])
        setattr(getattr(package, module), name, client)
        setattr(package, name, client)
