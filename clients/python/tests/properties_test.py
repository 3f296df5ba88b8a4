"""Values read back as they were written: any value, under any configuration, by any writer and any reader.

There is one exception, which has a test of its own: a value that is a well-formed envelope, under the default setting.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import glide_shared
import glide_sync
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kinds import KINDS, Connect, Driver, connected
from servers import Server
from snugly import CompressionBackend, CompressionConfiguration, ExistingEnvelopes, Goal, codec

# Number of values, each under a configuration of its own, that all write and read.
EXAMPLES = int(os.environ.get("SNUGLY_PROPERTY_EXAMPLES", "60"))
KIND = {kind.name: kind for kind in KINDS}
WRITERS = (
    "snugly",
    "snugly-not-native",
    "snugly-asyncio",
    "snugly-asyncio-not-native",
    "valkey-py",
    "redis-py",
    "redis-py-asyncio",
)
MAGIC = b"\x00\x01\x02\x00"
WRAP, KEEP = ExistingEnvelopes.WRAP, ExistingEnvelopes.KEEP
LEVELS = {"zstd": (-131072, 22), "lz4": (-128, 12), "none": (0, 0)}
NAMED = [CompressionBackend(name) for name in LEVELS]


def plain_values() -> st.SearchStrategy[bytes]:
    repeated = st.tuples(st.binary(min_size=1, max_size=30), st.integers(1, 5000)).map(lambda pair: pair[0] * pair[1])
    return st.one_of(st.binary(max_size=400), repeated, st.text(max_size=200).map(str.encode))


def values() -> st.SearchStrategy[bytes]:
    """Also some that look like envelopes, and some that are."""
    backends = st.sampled_from([codec.Codec(CompressionConfiguration(backend=name)) for name in NAMED])
    envelopes = st.tuples(backends, plain_values()).map(lambda pair: pair[0].encode(pair[1]))
    cut = st.tuples(envelopes, st.integers(1, 20)).map(lambda pair: pair[0][: -pair[1]])
    magic = st.tuples(st.integers(1, 4), plain_values()).map(lambda pair: MAGIC[: pair[0]] + pair[1])
    return st.one_of(plain_values(), magic, envelopes, cut)


def configurations() -> st.SearchStrategy[CompressionConfiguration]:
    def levels(backend: str) -> st.SearchStrategy[int | None]:
        if backend not in LEVELS:
            return st.none()
        lowest, highest = LEVELS[backend]
        # The highest levels of zstd take a tenth of a second however short the value is.
        return st.none() | st.sampled_from([lowest, highest]) | st.integers(lowest, min(highest, 12))

    def dictionaries(backend: str) -> st.SearchStrategy[str | None]:
        return st.sampled_from([None, "catalogue", "auto"]) if backend in ("zstd", "auto") else st.none()

    return st.sampled_from(sorted(CompressionBackend)).flatmap(
        lambda backend: st.builds(
            CompressionConfiguration,
            backend=st.just(backend),
            goal=st.sampled_from(Goal),
            dictionary=dictionaries(backend),
            compression_level=levels(backend),
            min_compression_size=st.sampled_from([6, 31, 32, 64, 1000]),
            checksum=st.booleans(),
            existing_envelopes=st.sampled_from(ExistingEnvelopes),
        )
    )


def is_kept(configuration: CompressionConfiguration, value: bytes) -> bool:
    """Returns whether the value is the one exception: an envelope that is sent as it is."""
    keeps = configuration.existing_envelopes == KEEP
    named = replace(configuration, backend=CompressionBackend.ZSTD, compression_level=None, dictionary=None)
    return keeps and codec.inspect(value) is not None and codec.Codec(named).encode(value) == value


@pytest.fixture(scope="module")
def readers(valkey_server: Server) -> Iterator[list[Driver]]:
    """Clients of both libraries, with the defaults."""
    with ExitStack() as stack:
        yield [stack.enter_context(connected(KIND[name], valkey_server.port)) for name in WRITERS]


@pytest.fixture(scope="module")
def glides(valkey_server: Server) -> Iterator[dict[str, Any]]:
    """GLIDE with each of its backends."""
    address = glide_shared.NodeAddress("127.0.0.1", valkey_server.port)
    with ExitStack() as stack:
        made = {}
        for backend in glide_shared.CompressionBackend:
            compression = glide_shared.CompressionConfiguration(enabled=True, backend=backend)
            configuration = glide_sync.GlideClientConfiguration(
                [address], compression=compression, request_timeout=60_000
            )
            made[backend.name] = glide_sync.GlideClient.create(configuration)
            stack.callback(made[backend.name].close)
        yield made


def examples(count: int) -> settings:
    return settings(max_examples=count, suppress_health_check=[HealthCheck.function_scoped_fixture])


@examples(EXAMPLES // 5)
@given(configuration=configurations(), written=st.lists(values(), min_size=1, max_size=6))
def test_what_is_read_is_what_was_written_by_clients_of_each_kind(
    connect: Connect, configuration: CompressionConfiguration, written: list[bytes]
) -> None:
    writer, reader = connect(configuration), connect()
    for number, value in enumerate(value for value in written if not is_kept(configuration, value)):
        writer("set", f"k{number}", value)
        assert writer("get", f"k{number}") == value
        assert reader("get", f"k{number}") == value


@examples(EXAMPLES)
@given(configuration=configurations(), writer=st.sampled_from(WRITERS), value=values())
def test_every_client_reads_what_any_client_wrote_under_any_configuration(
    valkey_server: Server, readers: list[Driver], configuration: CompressionConfiguration, writer: str, value: bytes
) -> None:
    assume(not is_kept(configuration, value))
    with connected(KIND[writer], valkey_server.port, configuration) as client:
        client("set", "single", value)
        client.batch(("set", "batched", value))
        for reader in (client, *readers):
            assert reader("get", "single") == value
            assert reader.batch(("get", "batched"), ("mget", ["single"])) == [value, [value]]


@examples(EXAMPLES)
@given(backend=st.sampled_from(["ZSTD", "LZ4"]), value=plain_values())
def test_every_client_reads_what_glide_wrote_and_the_other_way_round(
    readers: list[Driver], glides: dict[str, Any], backend: str, value: bytes
) -> None:
    # GLIDE itself cannot be right for values that start as its magic does: glide_test.py has them.
    assume(not value.startswith(MAGIC[:3]))
    glide = glides[backend]
    glide.set("theirs", value)
    for client in readers:
        assert client("get", "theirs") == value
        client("set", "ours", value)
        assert glide.get("ours") == value


@examples(EXAMPLES)
@given(configuration=configurations(), maker=st.sampled_from(["zstd", "lz4"]), value=plain_values())
def test_a_well_formed_envelope_is_read_as_its_value_where_it_is_kept(
    valkey_server: Server, readers: list[Driver], configuration: CompressionConfiguration, maker: Any, value: bytes
) -> None:
    value += bytes(500)
    envelope = codec.Codec(CompressionConfiguration(backend=maker)).encode(value)
    expected = {KEEP: value, WRAP: envelope}[configuration.existing_envelopes]
    with connected(KIND["snugly"], valkey_server.port, configuration) as client:
        client("set", "k", envelope)
        for reader in (client, *readers):
            assert reader("get", "k") == expected
