"""A plugin for pytest that gives valkey-py's own tests this package's clients, with compression on.

Every value that may be compressed is: also the shortest, and those that are envelopes already.
"""

from __future__ import annotations

import inspect
import os
from typing import Any

import pytest
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


class Transport:
    """The transport of clients that are made from now on."""

    native = True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves the native transport out where mocks are put in the place of nodes, which it does not ask: what is only to
    be seen by a mock (CLUSTER DELSLOTS) would reach the cluster. Such tests are known by their source."""
    source = inspect.getsource(item.function) if isinstance(item, pytest.Function) else ""
    Transport.native = os.environ["SUITE"] != "cluster" or not ("mock" in source or "patch" in source)


def compressing(plain: Any) -> Any:
    """The class with compression by default, under its own name."""

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        plain.__init__(self, *args, **{"compression": CONFIGURATION, "native": Transport.native, **options})

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
        client = compressing(getattr(ours, name))
        setattr(getattr(package, module), name, client)
        setattr(package, name, client)
