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

# By suite: the module, the class, and its arguments beside the configuration.
CLASSES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "server": ("client", "Valkey", {"native": False}),
    "cluster": ("cluster", "ValkeyCluster", {}),
}


def compressing(plain: Any, **defaults: Any) -> Any:
    """The class with compression and these arguments by default, under its own name."""

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        plain.__init__(self, *args, **{"compression": CONFIGURATION, **defaults, **options})

    def from_url(own: Any, *args: Any, **options: Any) -> Any:
        return plain.from_url.__func__(own, *args, **{**defaults, **options})

    return type(plain.__name__, (plain,), {"__init__": __init__, "from_url": classmethod(from_url)})


def pytest_configure() -> None:
    """Before any test module is imported.

    Tests for one server are given our `Valkey` and those for clusters our `ValkeyCluster`. There `Valkey` stays what it
    is, since tests put mocks into it in order to have them in a cluster's nodes. Others put mocks in the place of
    connections, so that `Valkey` is used without the native transport, which has its own.
    """
    library: Any = valkey
    module, name, options = CLASSES[os.environ["SUITE"]]
    for package, ours in ((library, snugly), (library.asyncio, snugly.asyncio)):
        client = compressing(getattr(ours, name), **options)
        setattr(getattr(package, module), name, client)
        setattr(package, name, client)
