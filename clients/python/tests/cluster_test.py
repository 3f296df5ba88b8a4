"""Clusters: keys in many slots, and commands that are sent again."""

from __future__ import annotations

from typing import Any

import pytest
from valkey.crc import key_slot

import snugly
from kinds import KINDS, Driver, Kind, connected, gated
from nodes import ask, identity
from servers import Server

PAGE = b"<html><body><p>hello</p></body></html>" * 60
clusters = pytest.mark.parametrize("kind", gated(kind for kind in KINDS if kind.cluster))


@clusters
def test_keys_of_many_slots_are_written_and_read_together(kind: Kind, cluster: list[Server]) -> None:
    with connected(kind, cluster[0].port) as client:
        pages = {f"page {number}": PAGE + str(number).encode() for number in range(50)}
        client("mset_nonatomic", pages)
        assert client("mget_nonatomic", list(pages)) == list(pages.values())
        assert client("mget_nonatomic", ["page 7", "none"]) == [pages["page 7"], None]
        counted = snugly.statistics(client.client)
        assert (counted["encoded_values_zstd"], counted["decoded_values_zstd"]) == (50, 51)


def encoded_once(client: Driver, before: int) -> None:
    assert snugly.statistics(client.client)["encoded_values_zstd"] == before + 1


@clusters
def test_a_redirected_command_is_encoded_once_and_restored_once(kind: Kind, own_cluster: list[Server]) -> None:
    """A value that was wrapped in a second envelope would be read back wrongly under `wrap`."""
    here, there = own_cluster
    wrap = snugly.CompressionConfiguration(existing_envelopes=snugly.ExistingEnvelopes.WRAP)
    with connected(kind, here.port, wrap) as client:
        for count, key in enumerate(("a", "b", "c")):
            slot = key_slot(key.encode())
            source, target = (here, there) if slot < 8192 else (there, here)
            client("set", key, PAGE)
            # ASK: the slot is on its way, and a key that is not here any more is asked for there.
            ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", identity(source))
            ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", identity(target))
            ask(source, "MIGRATE", "127.0.0.1", target.port, key, 0, 5000)
            assert client("get", key) == PAGE
            assert client.batch(("get", key)) == [PAGE]
            before = snugly.statistics(client.client)["encoded_values_zstd"]
            if count % 2:
                client.batch(("set", key, PAGE + b"!"))
            else:
                client("set", key, PAGE + b"!")
            encoded_once(client, before)
            # MOVED: the slot has arrived.
            for node in (target, source):
                ask(node, "CLUSTER", "SETSLOT", slot, "NODE", identity(target))
            before = snugly.statistics(client.client)["encoded_values_zstd"]
            if count % 2:
                client("set", key, PAGE + b"?")
            else:
                assert client.batch(("set", key, PAGE + b"?"), ("get", key)) == [True, PAGE + b"?"]
            encoded_once(client, before)
            assert client("get", key) == PAGE + b"?"
            assert client.batch(("get", key)) == [PAGE + b"?"]


def test_a_node_of_a_cluster_compresses_too(cluster: list[Server]) -> None:
    client: Any = snugly.ValkeyCluster(host="127.0.0.1", port=cluster[0].port, compression=True)
    client.set("k", PAGE)
    node = client.get_valkey_connection(client.get_node_from_key("k"))
    assert node.get("k") == PAGE
    client.close()
