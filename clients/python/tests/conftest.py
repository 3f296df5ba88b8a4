"""Fixtures: real servers, a real cluster, and clients of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import servers
import snugly
from kinds import KINDS, Connect, Driver, Kind, connected, gated
from servers import Server


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[Server]:
    with servers.valkey() as server:
        yield server


@pytest.fixture(scope="session")
def cluster() -> Iterator[list[Server]]:
    with servers.valkey_cluster() as nodes:
        yield nodes


@pytest.fixture(scope="session", params=["valkey", "redis", "snugly"])
def any_server(request: pytest.FixtureRequest, valkey_server: Server) -> Iterator[Server]:
    """valkey-server, redis-server if it is installed, and snugly's own server."""
    if request.param == "valkey":
        yield valkey_server
        return
    with ExitStack() as stack:
        try:
            server = stack.enter_context(getattr(servers, request.param)())
        except servers.NoProgram as error:
            pytest.skip(str(error))
        yield server


@pytest.fixture
def own_cluster() -> Iterator[list[Server]]:
    """One whose slots a test may move."""
    with servers.valkey_cluster(2) as nodes:
        yield nodes


@pytest.fixture(params=gated(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    chosen: Kind = request.param
    return chosen


@pytest.fixture
def nodes(kind: Kind, valkey_server: Server, request: pytest.FixtureRequest) -> list[Server]:
    """The servers of a client of this kind."""
    return request.getfixturevalue("cluster") if kind.cluster else [valkey_server]


@pytest.fixture
def port(nodes: list[Server]) -> int:
    """Port that a client of this kind connects to; everything there is gone."""
    for node in nodes:
        with node.connect() as connection:
            connection.command("FLUSHALL")
    return nodes[0].port


@pytest.fixture
def connect(kind: Kind, port: int) -> Iterator[Connect]:
    """Makes clients of this kind: `connect(compression, **options)`."""
    with ExitStack() as stack:

        def begin(compression: snugly.Compression = True, **options: Any) -> Driver:
            return stack.enter_context(connected(kind, port, compression, **options))

        yield begin


@pytest.fixture
def client(connect: Connect) -> Driver:
    return connect()


@pytest.fixture
def plain(kind: Kind, port: int) -> Iterator[Driver]:
    """A client of the same kind that does not compress: what it reads is what is stored."""
    with connected(kind, port, False) as driver:
        yield driver
