"""What a real Valkey GLIDE writes, this package reads, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import glide_shared
import pytest
from glide_sync import GlideClient, GlideClientConfiguration, NodeAddress

import snugly
from rules import noise
from servers import Server
from snugly import CompressionConfiguration

LEVELS = {"zstd": [None, -131072, -7, 1, 3, 22], "lz4": [None, -128, -1, 0, 1, 12]}
MIB = 1 << 20


def counting(size: int) -> bytes:
    return (bytes(range(256)) * (size // 256 + 1))[:size]


def samples() -> dict[str, bytes]:
    json = b'{"name": "value", "tags": ["cache", "cached", "caching"], "id": 7}'
    made = {f"json of {size}": (json * (size // len(json) + 1))[:size] for size in (0, 1, 31, 32, 63, 64, 65, 1884)}
    made |= {f"json of {size}": (json * (size // len(json) + 1))[:size] for size in (16 << 10, 65 << 10, 3 * MIB)}
    made |= {f"counting up to {size}": counting(size) for size in (5, 64, 300, MIB)}
    made |= {f"noise of {size}": noise(7, size) for size in (64, 1000, 200_000)}
    made["text"] = ("Zürich, 🦊 and more of it; " * 40).encode()
    made["zeros"] = bytes(2 * MIB)
    made["zstd frame"] = snugly.codec.encode(json * 100)[5:]
    made["starts as the magic, then text"] = b"\x00\x01\x02" + json * 10
    return made


@contextmanager
def glide(server: Server, backend: str, level: int | None) -> Iterator[GlideClient]:
    compression = glide_shared.CompressionConfiguration(
        enabled=True, backend=glide_shared.CompressionBackend[backend.upper()], compression_level=level
    )
    address = NodeAddress("127.0.0.1", server.port)
    client = GlideClient.create(GlideClientConfiguration([address], compression=compression, request_timeout=20_000))
    yield client
    client.close()


@pytest.mark.parametrize(
    ("backend", "level"),
    [pytest.param(backend, level, id=f"{backend} {level}") for backend in LEVELS for level in LEVELS[backend]],
)
def test_each_reads_what_the_other_writes(valkey_server: Server, backend: Any, level: int | None) -> None:
    configuration = CompressionConfiguration(backend=backend, compression_level=level)
    with (
        glide(valkey_server, backend, level) as theirs,
        snugly.Valkey(port=valkey_server.port, compression=configuration) as ours,
        snugly.Valkey(port=valkey_server.port) as plain,
    ):
        compressed = 0
        for name, value in samples().items():
            ours.set("ours", value)
            assert theirs.get("ours") == value, name
            theirs.set("theirs", value)
            assert ours.get("theirs") == value, name
            ours.mset({"a": value, "b": b"short"})
            assert theirs.mget(["a", "b"]) == [value, b"short"]
            theirs.mset({"a": value, "b": b"short"})
            assert ours.pipeline().mget("a", "b").execute() == [[value, b"short"]]
            compressed += plain.get("ours") != value
        assert compressed > 0


def test_a_value_that_looks_like_an_envelope_is_read_by_glide_as_it_was_written(valkey_server: Server) -> None:
    with (
        glide(valkey_server, "zstd", None) as theirs,
        snugly.Valkey(port=valkey_server.port, compression=True) as ours,
    ):
        for value in (
            b"\x00\x01\x02\x00\x01",
            b"\x00\x01\x02\x00\x05" + b"future",
            b"\x00\x01\x02\x00\x02" + b"\xff" * 9,
        ):
            ours.set("k", value)
            assert theirs.get("k") == value
            assert ours.get("k") == value


def test_defaults_are_those_of_glide() -> None:
    theirs, ours = glide_shared.CompressionConfiguration(), CompressionConfiguration()
    assert ours.backend.upper() == theirs.backend.name
    assert (ours.compression_level, ours.min_compression_size) == (
        theirs.compression_level,
        theirs.min_compression_size,
    )
