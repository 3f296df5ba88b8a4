"""Envelopes without a client: the shared vectors, and what `snugly.codec` promises."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import servers
import snugly
from rules import Rule, expand
from snugly import CompressionConfiguration, _native, codec
from threads import in_threads

VECTORS = servers.ROOT / "spec" / "vectors"
ENVELOPES = json.loads((VECTORS / "envelopes.json").read_text())
LZ4_DICTIONARY = json.loads((VECTORS / "lz4_dictionary.json").read_text())
WRITERS = json.loads((VECTORS / "writers.json").read_text())
PAGE = b"<html><body><p>hello</p></body></html>" * 60


def by_name(cases: list[Rule]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in cases])


@by_name([*ENVELOPES["cases"], *LZ4_DICTIONARY["cases"]])
def test_a_reader_finds_what_the_vector_says(case: Rule) -> None:
    stored = expand(case["envelope"])
    known = {**LZ4_DICTIONARY["dictionaries"], **ENVELOPES["dictionaries"]}
    cache = [known[name] for name in case.get("dictionaries", [])]
    reader = codec.Codec(CompressionConfiguration(**case.get("options", {})))
    for each in cache:
        dictionary = snugly.Dictionary(expand(each["bytes"]))
        assert dictionary.id == each["id"]
        reader.dictionaries.hold(dictionary.native, 0.0)
    if case["expect"] == "error":
        with pytest.raises(snugly.UndecodableError) as caught:
            reader.decode(stored, key=b"some key")
        assert caught.value.kind == case["error"]
        assert (caught.value.key, caught.value.stored) == (b"some key", stored)
        assert caught.value.backend == stored[4]
        start = f"cannot decode an envelope of {len(stored)} bytes, backend {stored[4]:02x}, at key b'some key': "
        assert str(caught.value).startswith(start)
    else:
        assert reader.decode(stored) == (expand(case["value"]) if case["expect"] == "value" else stored)


@by_name(WRITERS["cases"])
def test_a_writer_does_what_the_vector_says(case: Rule) -> None:
    options: dict[str, Any] = {**WRITERS["defaults"], **case.get("options", {})}
    options["compression_level"] = options.pop("level", None)
    configuration = CompressionConfiguration(**options)
    value = expand(case["value"])
    written: list[bytes] = []
    # A thread of its own has not seen any other value.
    in_threads(lambda: written.append(codec.Codec(configuration).encode(value)))
    if case["expect"] == "as_is":
        assert written == [value]
    else:
        assert written != [value]
        assert codec.decode(written[0]) == value


@given(value=st.binary(max_size=2000), backend=st.sampled_from(["zstd", "lz4"]), checksum=st.booleans())
def test_what_is_decoded_is_what_was_encoded(value: bytes, backend: Any, checksum: bool) -> None:
    writer = codec.Codec(CompressionConfiguration(backend=backend, checksum=checksum, existing_envelopes=wrap()))
    for each in (value, value * 50):
        assert codec.decode(writer.encode(each)) == each


def wrap() -> snugly.ExistingEnvelopes:
    return snugly.ExistingEnvelopes.WRAP


@given(stored=st.binary(max_size=300).map(lambda tail: b"\x00\x01\x02\x00" + tail))
def test_hostile_bytes_are_a_value_or_an_error(stored: bytes) -> None:
    with contextlib.suppress(snugly.UndecodableError):
        codec.decode(stored)


def test_a_value_that_stays_as_it_is_is_not_copied() -> None:
    for value in (b"", b"short", bytes(range(3, 60))):
        assert codec.encode(value) is value
        assert codec.decode(value) is value


@pytest.mark.parametrize("size", [10, 1000, 100_000, 5_000_000])
@pytest.mark.parametrize("backend", ["zstd", "lz4"])
def test_bytes_like_objects_of_any_size_are_taken(size: int, backend: Any) -> None:
    value = (PAGE * (size // len(PAGE) + 1))[:size]
    tool = codec.Codec(CompressionConfiguration(backend=backend))
    for each in (value, bytearray(value), memoryview(value), memoryview(value + value)[::2]):
        assert tool.decode(memoryview(tool.encode(each))) == bytes(each)
    for other in ("text", 7, None, [1]):
        with pytest.raises(TypeError, match="a value is bytes, bytearray or memoryview, not "):
            tool.encode(other)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            tool.decode(other)  # type: ignore[arg-type]


def test_an_envelope_can_be_looked_at_without_decoding_it() -> None:
    stored = codec.encode(PAGE)
    assert codec.inspect(stored) == codec.Envelope(backend=1, name="zstd", size=len(PAGE), dictionary=None)
    lz4 = codec.Codec(CompressionConfiguration(backend=snugly.CompressionBackend.LZ4)).encode(PAGE)
    assert codec.inspect(lz4) == codec.Envelope(backend=2, name="lz4", size=len(PAGE), dictionary=None)
    assert codec.inspect(b"\x00\x01\x02\x00\x03") == codec.Envelope(backend=3, name=None, size=None, dictionary=None)
    assert codec.inspect(PAGE) is None


def test_bytes_can_be_asked_for_instead_of_an_error() -> None:
    stored = b"\x00\x01\x02\x00\x03" + PAGE
    assert codec.Codec(CompressionConfiguration(on_undecodable=snugly.OnUndecodable.RAW)).decode(stored) == stored


def test_a_codec_counts_what_it_does() -> None:
    tool = codec.Codec(CompressionConfiguration(max_decompressed_size=1000))
    before = snugly.statistics()
    stored = tool.encode(PAGE[:900])
    tool.encode(b"short")
    tool.encode(PAGE)
    tool.encode(stored)
    tool.decode(stored)
    tool.decode(b"short")
    with pytest.raises(snugly.UndecodableError):
        tool.decode(b"\x00\x01\x02\x00\x03")
    counted = {name: count for name, count in tool.statistics().items() if count}
    assert counted == {
        "encoded_values_none": 3,
        "encoded_bytes_in_none": 5 + len(PAGE) + len(stored),
        "encoded_bytes_out_none": 5 + len(PAGE) + len(stored),
        "encoded_values_zstd": 1,
        "encoded_bytes_in_zstd": 900,
        "encoded_bytes_out_zstd": len(stored),
        "decoded_values_none": 1,
        "decoded_bytes_in_none": 5,
        "decoded_bytes_out_none": 5,
        "decoded_values_zstd": 1,
        "decoded_bytes_in_zstd": len(stored),
        "decoded_bytes_out_zstd": 900,
        "skipped_small": 1,
        "skipped_large": 1,
        "skipped_compressed": 1,
        "decode_failures": 1,
    }
    after = snugly.statistics()
    assert {name: after[name] - before[name] for name in counted} == counted


def test_the_time_that_is_spent_is_estimated() -> None:
    tool = codec.Codec()
    for _ in range(200):
        tool.decode(tool.encode(PAGE))
    assert tool.statistics()["encode_nanoseconds"] > 0
    assert tool.statistics()["decode_nanoseconds"] > 0


def test_counters_have_the_names_that_the_server_gives_them() -> None:
    with servers.snugly() as server, server.connect() as connection:
        info = connection.command("INFO", "compression")
    assert isinstance(info, bytes)
    fields = [line.partition(":")[0] for line in info.decode().splitlines()]
    own = {"dictionaries_fetched", "dictionaries_put_back", "dictionaries_published", "dictionaries_mended"}
    assert set(snugly.statistics()) - own <= {field.removeprefix("compression_") for field in fields}


def test_counters_have_the_names_and_texts_of_the_specification() -> None:
    specified = json.loads((servers.ROOT / "spec" / "data" / "counters.json").read_text())
    texts = {name: text for part in specified.values() for name, text in part.items()}
    assert {family: text for _, family, _, text in _native.counters()} == texts


def test_threads_share_a_codec() -> None:
    tool = codec.Codec()
    values = [bytes([number]) * (1000 * number * number + 100) for number in range(1, 17)]

    def work(value: bytes) -> None:
        for _ in range(50):
            assert tool.decode(tool.encode(value)) == value

    in_threads(*(lambda value=value: work(value) for value in values))
    assert tool.statistics()["encoded_values_zstd"] == 50 * len(values)
    assert tool.statistics()["encoded_bytes_in_zstd"] == 50 * sum(map(len, values))
