"""Valkey with the module among clients that compress by themselves, and nodes without the module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import glide_shared
import glide_sync
import pytest

import envelope
import servers
import valkey_module
from replicas import until_caught_up, until_up
from resp import Simple
from servers import Server
from valkey_module import EAGER, TEXT, VALUES, text
from waiting import until

pytestmark = pytest.mark.snugly_only
OK = Simple(b"OK")
# What applications write, which no client takes for compressed.
PLAIN = {"text": TEXT, "long": text(100_000), "short": b"short", "number": b"12345", "even": VALUES["EVEN"]}
FAST = ("--repl-diskless-sync-delay", "0")


@contextmanager
def fleet(kind: str, codec: str = "lz4") -> Iterator[tuple[Server, Server]]:
    """A primary with the module, and a replica without it."""
    options = (*EAGER, "--snugly.fleet", kind, "--snugly.codec", codec)
    with ExitStack() as stack:
        primary = stack.enter_context(valkey_module.serving(*options, *FAST))
        replica = stack.enter_context(servers.valkey("--replicaof", f"127.0.0.1 {primary.port}"))
        until_up(stack.enter_context(replica.connect()))
        yield primary, replica


@contextmanager
def glide(server: Server) -> Iterator[Any]:
    """A client of GLIDE that compresses."""
    compression = glide_shared.CompressionConfiguration(enabled=True)
    address = glide_shared.NodeAddress("127.0.0.1", server.port)
    configuration = glide_sync.GlideClientConfiguration([address], compression=compression, request_timeout=60_000)
    client = glide_sync.GlideClient.create(configuration)
    try:
        yield client
    finally:
        client.close()


def promote(primary: Server, replica: Server) -> None:
    """GLIDE reads from a primary only."""
    with primary.connect() as left, replica.connect() as right:
        until_caught_up(left, right)
        assert right.command("REPLICAOF", "NO", "ONE") == OK


def put(client: Any) -> None:
    for key, value in PLAIN.items():
        client.set(key, value)


def assert_read(client: Any) -> None:
    for key, value in PLAIN.items():
        assert client.get(key) == value, key


@pytest.mark.parametrize("codec", ["lz4", pytest.param("zstd", marks=pytest.mark.slow)])
def test_clients_read_what_the_module_has_compressed_from_a_node_without_it(codec: str) -> None:
    with fleet("uniform", codec) as (primary, replica):
        with primary.connect() as writer:
            for key, value in PLAIN.items():
                assert writer.command("SET", key, value) == OK
        promote(primary, replica)
        with replica.connect() as reader:
            stored = reader.command("GET", "text")
            assert isinstance(stored, bytes)
            assert stored != envelope.decode(stored) == TEXT
        with glide(replica) as client:
            assert_read(client)


@pytest.mark.parametrize("kind", ["uniform", pytest.param("mixed", marks=pytest.mark.slow)])
def test_clients_that_compress_read_their_own_values_with_the_module(kind: str) -> None:
    with fleet(kind) as (primary, _), glide(primary) as client:
        put(client)
        assert_read(client)


def test_in_a_mixed_fleet_they_read_them_without_the_module_too() -> None:
    with fleet("mixed") as (primary, replica), glide(primary) as writer:
        put(writer)
        promote(primary, replica)
        with glide(replica) as reader:
            assert_read(reader)


def test_in_a_mixed_fleet_every_other_client_reads_them_where_the_module_is() -> None:
    with fleet("mixed") as (primary, _), glide(primary) as writer, primary.connect() as reader:
        put(writer)
        for key, value in PLAIN.items():
            # An envelope that is short stays what its client has given.
            if key != "even":
                assert reader.command("GET", key) == value
        assert reader.command("SET", "own", VALUES["ENVELOPE"]) == OK
        assert reader.command("GET", "own") == valkey_module.restored(VALUES["ENVELOPE"])


def test_clients_find_exactly_their_own_layer_when_the_module_is_gone() -> None:
    options = (*EAGER, "--enable-module-command", "yes", "--snugly.background-cpu-percent", "100")
    with valkey_module.serving(*options) as server, server.connect() as connection, glide(server) as client:
        put(client)
        assert connection.command("SNUGLY.RESTORE") == OK
        until(lambda: connection.command("MODULE", "UNLOAD", "snugly") == OK)
        assert_read(client)
