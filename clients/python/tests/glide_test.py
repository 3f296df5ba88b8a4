"""Values that a real Valkey GLIDE writes and this package reads, and the other way round.

GLIDE is there twice, `glide` for asyncio and `glide_sync`, and both are asked.
"""

from __future__ import annotations

import asyncio
import bz2
import gzip
import inspect
import lzma
import random
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from typing import Any

import glide
import glide_shared
import glide_sync
import lz4.block
import pytest
import zstandard

import snugly
from rules import noise
from servers import Server
from snugly import CompressionConfiguration, ExistingEnvelopes, OnUndecodable, ValueType

pytestmark = pytest.mark.slow

IS_BEFORE_2_6 = tuple(map(int, version("valkey-glide").split(".")[:2])) < (2, 6)
LEVELS = {"zstd": [None, -131072, -7, 1, 3, 22], "lz4": [None, -128, -1, 0, 1, 12]}
KIB, MIB = 1 << 10, 1 << 20
SIZES = [0, 1, 31, 32, 63, 64, 65, 127, 128, 1884, 4 * KIB - 1, 4 * KIB, 16 * KIB, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1]
JSON = b'{"name": "value", "tags": ["cache", "cached", "caching"], "id": 7}'
MAGIC = b"\x00\x01\x02"
ENVELOPE = snugly.codec.encode(JSON * 10)


def repeated(part: bytes, size: int) -> bytes:
    return (part * (size // len(part) + 1))[:size]


def samples() -> dict[str, bytes]:
    made = {f"json of {size}": repeated(JSON, size) for size in (*SIZES, 3 * MIB)}
    made |= {f"counting up to {size}": repeated(bytes(range(256)), size) for size in (5, 64, 65, 300, MIB)}
    made |= {f"noise of {size}": noise(7, size) for size in (63, 64, 65, 1000, 200_000)}
    made |= {f"zeros of {size}": bytes(size) for size in (64, 65, 2 * MIB)}
    made["text"] = ("Zürich, 🦊 and more of it; " * 40).encode()
    made |= {
        "gzip": gzip.compress(JSON * 100, mtime=0),
        "zlib": zlib.compress(JSON * 100),
        "bzip2": bz2.compress(JSON * 100),
        "xz": lzma.compress(JSON * 100),
        "zstd": zstandard.compress(JSON * 100),
        "lz4 block": lz4.block.compress(JSON * 100),
    }
    made["the magic"] = MAGIC
    made["the magic, then text"] = MAGIC + JSON * 10
    made["the magic, then noise"] = MAGIC + noise(9, 500)
    made["the magic of a version that is none"] = MAGIC + b"\x01\x01" + JSON * 10
    return made


class Glide:
    """A client of GLIDE whose methods are called the same way, whether they have to be awaited or not."""

    def __init__(self, library: Any, configuration: Any) -> None:
        self._runner = asyncio.Runner()
        self._client = self._wait(library.GlideClient.create(configuration))

    def _wait(self, result: Any) -> Any:
        async def awaited() -> Any:
            return await result

        return self._runner.run(awaited()) if inspect.isawaitable(result) else result

    def __getattr__(self, method: str) -> Any:
        return lambda *args, **options: self._wait(getattr(self._client, method)(*args, **options))

    def end(self) -> None:
        self._wait(self._client.close())
        self._runner.close()


LIBRARIES = [pytest.param(glide_sync, id="glide_sync"), pytest.param(glide, id="glide")]
each_library = pytest.mark.parametrize("library", LIBRARIES)


@contextmanager
def connected(library: Any, server: Server, backend: str = "zstd", level: int | None = None) -> Iterator[Glide]:
    compression = glide_shared.CompressionConfiguration(
        enabled=True, backend=glide_shared.CompressionBackend[backend.upper()], compression_level=level
    )
    address = glide_shared.NodeAddress("127.0.0.1", server.port)
    client = Glide(
        library,
        library.GlideClientConfiguration([address], compression=compression, request_timeout=60_000),
    )
    try:
        yield client
    finally:
        client.end()


@pytest.mark.parametrize(
    ("library", "backend", "level"),
    [
        pytest.param(library.values[0], backend, level, id=f"{library.id} {backend} {level}")
        for backend in LEVELS
        for level in LEVELS[backend]
        # Both are made of the same core, so that one of them does for levels between the bounds.
        for library in (LIBRARIES if level in (None, LEVELS[backend][1], LEVELS[backend][-1]) else LIBRARIES[:1])
    ],
)
def test_each_reads_what_the_other_writes(valkey_server: Server, library: Any, backend: Any, level: int | None) -> None:
    configuration = CompressionConfiguration(backend=backend, compression_level=level)
    with (
        connected(library, valkey_server, backend, level) as theirs,
        snugly.Valkey(port=valkey_server.port, compression=configuration) as ours,
        snugly.Valkey(port=valkey_server.port) as plain,
    ):
        compressed = {"ours": 0, "theirs": 0}
        # The highest level takes as long for ten bytes as for a million, which is long.
        chosen = list(samples().items())[:: 8 if level == 22 else 1]
        for name, value in chosen:
            ours.set("ours", value)
            assert theirs.get("ours") == value, name
            theirs.set("theirs", value)
            assert ours.get("theirs") == value, name
            ours.mset({"a": value, "b": b"short"})
            assert theirs.mget(["a", "b"]) == [value, b"short"]
            theirs.mset({"a": value, "b": b"short"})
            assert ours.pipeline().mget("a", "b").execute() == [[value, b"short"]]
            for key in compressed:
                compressed[key] += plain.get(key) != value
        assert min(compressed.values()) > 0


@each_library
@pytest.mark.parametrize("backend", LEVELS)
def test_each_reads_the_large_values_of_the_other(valkey_server: Server, library: Any, backend: Any) -> None:
    """64 MiB; half of it does not shrink, so that what is stored is large as well."""
    value = repeated(JSON, 32 * MIB) + random.Random(5).randbytes(32 * MIB)
    with (
        connected(library, valkey_server, backend) as theirs,
        snugly.Valkey(port=valkey_server.port, compression=CompressionConfiguration(backend=backend)) as ours,
        snugly.Valkey(port=valkey_server.port) as plain,
    ):
        for write, read in ((theirs, ours), (ours, theirs)):
            write.set("large", value)
            assert 32 * MIB < plain.strlen("large") < 34 * MIB
            assert read.get("large") == value
        plain.delete("large")


@each_library
def test_glide_reads_what_is_written_in_pipelines_and_the_other_way_round(valkey_server: Server, library: Any) -> None:
    values = [JSON * 10, b"short", b"", MAGIC + JSON * 10]
    with (
        connected(library, valkey_server) as theirs,
        snugly.Valkey(port=valkey_server.port, compression=True) as ours,
    ):
        pipeline = ours.pipeline()
        for number, value in enumerate(values):
            pipeline.set(f"k{number}", value)
        pipeline.execute()
        batch = glide_shared.Batch(is_atomic=True)
        for number in range(len(values)):
            batch.get(f"k{number}")
        assert theirs.exec(batch, raise_on_error=True) == values
        batch = glide_shared.Batch(is_atomic=False)
        for number, value in enumerate(reversed(values)):
            batch.set(f"k{number}", value)
        theirs.exec(batch, raise_on_error=True)
        for number in range(len(values)):
            pipeline.get(f"k{number}")
        assert pipeline.execute() == values[::-1]


@each_library
def test_glide_before_2_6_cannot_read_a_batch_with_a_value_that_starts_as_its_magic(
    valkey_server: Server, library: Any
) -> None:
    """Three bytes are enough for it, where the format has more. What it returns for a single command, it raised for all
    that are in a batch."""
    value = MAGIC + b"and so on"
    with (
        connected(library, valkey_server) as theirs,
        snugly.Valkey(port=valkey_server.port, compression=True) as ours,
    ):
        for writer in (ours, theirs):
            writer.set("k", value)
            assert theirs.get("k") == ours.get("k") == ours.pipeline().get("k").execute()[0] == value
            batch = glide_shared.Batch(is_atomic=False)
            batch.get("k")
            if IS_BEFORE_2_6:
                with pytest.raises(glide_shared.RequestError, match="Unsupported compression backend"):
                    theirs.exec(batch, raise_on_error=True)
            else:
                assert theirs.exec(batch, raise_on_error=True) == [value]


@each_library
def test_a_value_that_looks_like_an_envelope_is_read_by_glide_as_it_was_written(
    valkey_server: Server, library: Any
) -> None:
    with (
        connected(library, valkey_server) as theirs,
        snugly.Valkey(port=valkey_server.port, compression=True) as ours,
    ):
        for value in (
            b"\x00\x01\x02\x00\x01",
            b"\x00\x01\x02\x00\x05" + b"future",
            b"\x00\x01\x02\x00\x02" + b"\xff" * 9,
            MAGIC + b"\x00\x01" + JSON * 10,
            MAGIC + b"\x00\x02" + JSON * 10,
            MAGIC + b"\x00\x1f" + JSON * 10,
        ):
            ours.set("k", value)
            assert theirs.get("k") == value
            assert ours.get("k") == value


@each_library
def test_an_envelope_is_its_value_for_both_unless_we_wrap_it(valkey_server: Server, library: Any) -> None:
    wrap = CompressionConfiguration(existing_envelopes=ExistingEnvelopes.WRAP)
    with (
        connected(library, valkey_server) as theirs,
        snugly.Valkey(port=valkey_server.port, compression=True) as ours,
        snugly.Valkey(port=valkey_server.port, compression=wrap) as wrapping,
    ):
        for writer in (theirs, ours):
            writer.set("k", ENVELOPE)
            assert theirs.get("k") == ours.get("k") == wrapping.get("k") == JSON * 10
        wrapping.set("k", ENVELOPE)
        assert theirs.get("k") == ours.get("k") == wrapping.get("k") == ENVELOPE


@each_library
def test_a_value_that_glide_takes_for_compressed_is_an_error_for_us_that_can_be_turned_off(
    valkey_server: Server, library: Any
) -> None:
    """GLIDE sends it as it is, as it does values that are too short, and returns as it is stored what it cannot
    restore. Whoever knows the format cannot tell such a value from one that is damaged."""
    raw = CompressionConfiguration(on_undecodable=OnUndecodable.RAW)
    with (
        connected(library, valkey_server) as theirs,
        snugly.Valkey(port=valkey_server.port, compression=True) as ours,
        snugly.Valkey(port=valkey_server.port, compression=raw) as lenient,
        snugly.Valkey(port=valkey_server.port) as plain,
    ):
        for value in (MAGIC + b"\x00\x01", MAGIC + b"\x00\x1f" + b"future", MAGIC + b"\x00\x01" + JSON * 10):
            theirs.set("k", value)
            assert plain.get("k") == theirs.get("k") == lenient.get("k") == value
            with pytest.raises(snugly.UndecodableError):
                ours.get("k")


@each_library
def test_what_cannot_be_restored_is_returned_by_glide_and_raised_by_us(valkey_server: Server, library: Any) -> None:
    with (
        connected(library, valkey_server) as theirs,
        snugly.Valkey(port=valkey_server.port, compression=True) as ours,
        snugly.Valkey(port=valkey_server.port) as plain,
    ):
        for stored in (ENVELOPE[:-1], MAGIC + b"\x00\x1f" + JSON):
            plain.set("k", stored)
            assert theirs.get("k") == stored
            with pytest.raises(snugly.UndecodableError):
                ours.get("k")


@each_library
def test_glide_refuses_to_count_and_we_do_not(valkey_server: Server, library: Any) -> None:
    with (
        connected(library, valkey_server) as theirs,
        snugly.Valkey(port=valkey_server.port, compression=True) as ours,
    ):
        theirs.set("n", "41")
        with pytest.raises(glide_shared.RequestError, match="'INCR' is incompatible with compression"):
            theirs.incr("n")
        assert ours.incr("n") == 42
        assert theirs.get("n") == b"42"


@each_library
def test_other_types_are_compressed_by_us_alone(valkey_server: Server, library: Any) -> None:
    hashes = CompressionConfiguration(value_types={ValueType.HASHES})
    with (
        connected(library, valkey_server) as theirs,
        snugly.Valkey(port=valkey_server.port, compression=hashes) as ours,
        snugly.Valkey(port=valkey_server.port) as plain,
    ):
        theirs.hset("h", {"f": JSON * 10})
        assert plain.hget("h", "f") == ours.hget("h", "f") == JSON * 10
        ours.hset("h", "f", JSON * 10)
        assert plain.hget("h", "f") == theirs.hget("h", "f") == ENVELOPE


@each_library
@pytest.mark.parametrize("backend", LEVELS)
def test_bounds_of_levels_are_those_of_glide(valkey_server: Server, library: Any, backend: Any) -> None:
    _, lowest, *_, highest = LEVELS[backend]
    assert lowest is not None
    assert highest is not None
    for level in (lowest - 1, highest + 1):
        with ExitStack() as stack, pytest.raises(glide_shared.ClosingError, match="out of valid range"):
            stack.enter_context(connected(library, valkey_server, backend, level))
        with pytest.raises(snugly.ConfigurationError, match=f"compression_level is {level}"):
            CompressionConfiguration(backend=backend, compression_level=level)


def test_defaults_are_those_of_glide() -> None:
    theirs, ours = glide_shared.CompressionConfiguration(), CompressionConfiguration()
    assert ours.backend.upper() == theirs.backend.name
    assert (ours.compression_level, ours.min_compression_size) == (
        theirs.compression_level,
        theirs.min_compression_size,
    )
    for size in (5, 6):
        for configuration in (glide_shared.CompressionConfiguration, CompressionConfiguration):
            if size == 6:
                configuration(min_compression_size=size)
                continue
            with pytest.raises((glide_shared.ConfigurationError, snugly.ConfigurationError)):
                configuration(min_compression_size=size)
