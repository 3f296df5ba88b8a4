"""Stored values come back unchanged, under every codec, at every size, and while the codec changes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import servers
from resp import Connection, Reply, Simple, encode
from servers import Server
from tested import Start, started, target_name

DATA = servers.ROOT.parent / "shared" / "data"
CODECS = ["none", "lz4", "zstd"]
SIZES = [0, 1, 15, 63, 64, 65, 255, 256, 257, 4095, 4096, 4097, 65_535, 65_536, 65_537, 1 << 20, (1 << 20) + 1]
LARGE_SIZES = [8 << 20, pytest.param((64 << 20) - 1, marks=pytest.mark.slow), 64 << 20]


def with_codec(codec: str) -> Iterator[Server]:
    options = ["--compression", codec, "--compression-min-bytes", "64"] if target_name() == "snugly" else []
    with started(target_name(), *options) as server:
        yield server


@pytest.fixture(scope="module", params=CODECS)
def coded(request: pytest.FixtureRequest) -> Iterator[Server]:
    yield from with_codec(request.param)


def fillings(size: int) -> dict[str, bytes]:
    """Values of one size from incompressible to empty of information."""
    rng = random.Random(size)
    noise = rng.randbytes(size)
    text = (b'{"id": %d, "name": "customer", "active": true}\n' % size) * (size // 40 + 1)
    return {
        "noise": noise,
        "zeros": bytes(size),
        "json": text[:size],
        "half noise": noise[: size // 2] + bytes(size - size // 2),
    }


def compression(connection: Connection) -> dict[str, str]:
    text = connection.command("INFO", "compression")
    assert isinstance(text, bytes)
    return dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)


@pytest.mark.parametrize("size", SIZES)
def test_a_value_comes_back_byte_for_byte(coded: Server, size: int) -> None:
    with coded.connect() as connection:
        for name, value in fillings(size).items():
            assert connection.command("SET", name, value) == Simple(b"OK")
            assert connection.command("STRLEN", name) == size
            assert connection.command("GET", name) == value, name
        values: list[Reply] = list(fillings(size).values())
        assert connection.command("MGET", *fillings(size)) == values


@pytest.mark.parametrize("size", LARGE_SIZES)
def test_a_large_value_comes_back_byte_for_byte(coded: Server, size: int) -> None:
    with coded.connect() as connection:
        for value in (bytes(size), random.Random(size).randbytes(1 << 20) * (size >> 20) + bytes(size % (1 << 20))):
            assert connection.command("SET", "large", value) == Simple(b"OK")
            assert connection.command("STRLEN", "large") == len(value)
            assert connection.command("GET", "large") == value
        connection.command("DEL", "large")


@given(value=st.binary(max_size=2000), repeated=st.integers(1, 50), suffix=st.binary(max_size=10))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_value_comes_back_whatever_is_done_to_it(coded: Server, value: bytes, repeated: int, suffix: bytes) -> None:
    whole = value * repeated
    with coded.connect() as connection:
        assert connection.command("SET", "key", whole) == Simple(b"OK")
        assert connection.command("APPEND", "key", suffix) == len(whole + suffix)
        assert connection.command("GETSET", "key", whole) == whole + suffix
        assert connection.command("SET", "key", suffix, "GET") == whole
        assert connection.command("GETDEL", "key") == suffix


def test_values_that_look_like_envelopes_are_just_values(coded: Server) -> None:
    cases = json.loads((servers.ROOT / "spec" / "vectors" / "envelopes.json").read_text())["cases"]
    values = [bytes.fromhex(case["envelope"]["hex"]) for case in cases if "hex" in case["envelope"]]
    with coded.connect() as connection:
        for number, value in enumerate(values):
            connection.send(encode("SET", f"envelope:{number}", value))
        assert {connection.read() for _ in values} == {Simple(b"OK")}
        for number, value in enumerate(values):
            assert connection.command("GET", f"envelope:{number}") == value


def data_sets() -> list[Path]:
    return sorted(DATA.glob("*.jsonl"))


def values_of(path: Path) -> list[bytes]:
    """A line is the value itself if it is a JSON object, else a JSON string that holds it."""
    lines = path.read_text().splitlines()
    return [(json.loads(line) if line.startswith('"') else line).encode() for line in lines]


@pytest.mark.skipif(not data_sets(), reason=f"no real values in {DATA}")
@pytest.mark.parametrize("path", data_sets(), ids=lambda path: path.stem)
def test_real_values_come_back_byte_for_byte(coded: Server, path: Path) -> None:
    values = values_of(path)
    with coded.connect() as connection:
        for first in range(0, len(values), 100):
            batch = list(enumerate(values[first : first + 100], first))
            connection.send(b"".join(encode("SET", f"{path.stem}:{number}", value) for number, value in batch))
            assert {connection.read() for _ in batch} == {Simple(b"OK")}
        for first in range(0, len(values), 100):
            keys = [f"{path.stem}:{number}" for number in range(first, min(first + 100, len(values)))]
            assert connection.command("MGET", *keys) == values[first : first + 100]
        connection.command("FLUSHALL")


@pytest.mark.snugly_only
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compression_is_reported(start: Start, codec: str) -> None:
    server = start("--compression", codec)
    value = b'{"id": 1, "name": "customer", "active": true}\n' * 50
    with server.connect() as connection:
        before = compression(connection)
        assert before["compression"] == codec
        assert {int(number) for name, number in before.items() if name.startswith(("encoded", "decoded"))} == {0}
        for number in range(100):
            connection.command("SET", f"key:{number}", value)
            connection.command("GET", f"key:{number}")
        connection.command("SET", "small", "x")
        after = compression(connection)
        assert int(after[f"encoded_values_{codec}"]) == 100
        assert int(after[f"encoded_bytes_in_{codec}"]) == 100 * len(value)
        assert 0 < int(after[f"encoded_bytes_out_{codec}"]) < 100 * len(value) // 4
        assert int(after[f"decoded_values_{codec}"]) == 100
        assert int(after["skipped_small"]) == 1
        assert int(after["compression_saved_bytes"]) > 75 * len(value)
        assert int(after["decode_failures"]) == int(after["encode_failures"]) == 0


@pytest.mark.snugly_only
def test_compressed_values_take_less_memory(start: Start) -> None:
    value = (b'{"id": %d, "name": "customer %d", "email": "customer%d@example.com", "active": true}' % (7, 7, 7)) * 30
    sizes = {}
    for codec in CODECS:
        with start("--compression", codec).connect() as connection:
            connection.command("SET", "key", value)
            sizes[codec] = connection.command("MEMORY", "USAGE", "key")
    none, lz4, zstd = (sizes[codec] for codec in CODECS)
    assert isinstance(none, int)
    assert isinstance(lz4, int)
    assert isinstance(zstd, int)
    assert none >= len(value) > 3 * lz4
    assert none > 3 * zstd


@pytest.mark.snugly_only
def test_a_new_codec_is_for_new_values_and_old_ones_stay_readable(start: Start) -> None:
    server = start("--compression", "none")
    value = b'{"id": 1, "name": "customer", "active": true}\n' * 50
    with server.connect() as connection, server.connect() as other:
        for codec in ["none", "zstd", "lz4", "none", "zstd"]:
            assert other.command("CONFIG", "SET", "compression", codec) == Simple(b"OK")
            assert connection.command("CONFIG", "GET", "compression") == [b"compression", codec.encode()]
            before = int(compression(connection)[f"encoded_values_{codec}"])
            assert connection.command("SET", f"by {codec}", value) == Simple(b"OK")
            assert int(compression(connection)[f"encoded_values_{codec}"]) == before + 1
            for earlier in CODECS:
                assert connection.command("GET", f"by {earlier}") in (value, None)
        assert connection.command("MGET", "by none", "by lz4", "by zstd") == [value] * 3


@pytest.mark.snugly_only
@pytest.mark.parametrize(
    ("name", "wrong", "why"),
    [
        ("compression", "brotli", "zstd"),
        ("compression-level", "99", "22"),
        ("compression-level", "fast", ""),
        ("compression-min-bytes", "-1", ""),
        ("maxmemory", "much", ""),
        ("maxmemory-policy", "fifo", ""),
    ],
)
def test_a_wrong_setting_is_refused_and_changes_nothing(server: Server, name: str, wrong: str, why: str) -> None:
    with server.connect() as connection:
        before = connection.command("CONFIG", "GET", name)
        reply = connection.command_raw("CONFIG", "SET", name, wrong).decode()
        assert reply.startswith("-ERR CONFIG SET failed")
        # Codec and level are checked together, under the codec's name.
        assert f"'{name}'" in reply or (name.startswith("compression") and "'compression'" in reply)
        assert why in reply
        assert connection.command("CONFIG", "GET", name) == before
