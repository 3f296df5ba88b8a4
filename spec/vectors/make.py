"""Makes envelopes.json again: `python spec/vectors/make.py`, from anywhere in the checkout.

Three makers: the bytes in hostile.py; a real GLIDE that writes to a real valkey-server, read back raw; and snugly's
own codec (`cargo run -p snugly-codec --example vectors`). It needs the packages of tests/requirements.txt and cargo.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path += [str(HERE), str(ROOT / "tests")]

import xxhash  # noqa: E402
import zstandard  # noqa: E402
from glide_shared import CompressionBackend, CompressionConfiguration  # noqa: E402
from glide_sync import GlideClient, GlideClientConfiguration, NodeAddress  # noqa: E402

import hostile  # noqa: E402
import servers  # noqa: E402
from encoding import snugly_encode  # noqa: E402
from rules import Rule, expand  # noqa: E402
from values import VALUES, encodings  # noqa: E402

ERRORS = {
    "unknown_backend": "the backend is one that may be, but that the reader does not know",
    "too_large": "the value is, or claims to be, longer than max_decompressed_size",
    "corrupt": "the payload is cut, damaged, followed by bytes, or does not decode to what it claims",
    "dictionary_missing": "the payload needs a dictionary that is not at hand",
}
GLIDE_BACKENDS = {"zstd": CompressionBackend.ZSTD, "lz4": CompressionBackend.LZ4}


def written(maker: str, name: str, backend: str, level: int | None, value: Rule, envelope: bytes) -> Rule:
    """The case for what a writer made of a value; a writer that left it alone makes a case too."""
    title = f"{maker.partition(' ')[0]} {backend} level {'default' if level is None else level}: {name}"
    if envelope == expand(value):
        return {"name": title, "made_by": maker, "envelope": value, "expect": "untouched"}
    return {"name": title, "made_by": maker, "envelope": {"hex": envelope.hex()}, "expect": "value", "value": value}


def glide_cases() -> Iterator[Rule]:
    maker = f"glide {importlib.metadata.version('valkey-glide-sync')}"
    with servers.valkey() as server, server.connect() as raw:
        for name, backend, level in encodings():
            compression = CompressionConfiguration(
                enabled=True, backend=GLIDE_BACKENDS[backend], compression_level=level, min_compression_size=64
            )
            address = NodeAddress("127.0.0.1", server.port)
            client = GlideClient.create(GlideClientConfiguration([address], compression=compression))
            client.set("key", expand(VALUES[name]))
            client.close()
            stored = raw.command("GET", "key")
            assert isinstance(stored, bytes)
            yield written(maker, name, backend, level, VALUES[name], stored)


def train(seed: int) -> bytes:
    """A dictionary of 1 KiB with the ID of the format: that of its content, at offset 4."""
    fields = ["name", "email", "city", "country", "status", "created_at", "plan", "language"]
    samples: list[bytes | bytearray | memoryview] = [
        json.dumps({field: f"{field}-{(number * seed + at) % 97}" for at, field in enumerate(fields)}).encode()
        for number in range(400)
    ]
    trained = bytearray(zstandard.train_dictionary(1024, samples).as_bytes())
    identity = 32768 + xxhash.xxh64(trained[8:], seed=0).intdigest() % ((1 << 31) - 32768)
    trained[4:8] = identity.to_bytes(4, "little")
    return bytes(trained)


def identity_of(dictionary: bytes) -> int:
    return int.from_bytes(dictionary[4:8], "little")


def snugly_cases(dictionaries: dict[str, bytes]) -> Iterator[Rule]:
    maker = "snugly"
    plain = list(encodings())
    jobs = [(backend, level, b"", expand(VALUES[name])) for name, backend, level in plain]
    for (name, backend, level), envelope in zip(plain, snugly_encode(jobs), strict=True):
        yield written(maker, name, backend, level, VALUES[name], envelope)
    value = {"text": '{"name": "name-5", "email": "email-6", "city": "city-7", "plan": "plan-11", "status": "new"}'}
    envelopes = snugly_encode([("zstd", None, each, expand(value)) for each in dictionaries.values()])
    for (name, _), envelope in zip(dictionaries.items(), envelopes, strict=True):
        good = written(maker, f"dictionary {name}", "zstd", None, value, envelope)
        others = sorted(dictionaries.keys() - {name})
        missing = {"made_by": maker, "envelope": good["envelope"], "expect": "error", "error": "dictionary_missing"}
        yield {**good, "dictionaries": [name]}
        yield {**good, "name": f"{good['name']}, others at hand too", "dictionaries": sorted(dictionaries)}
        yield {"name": f"{good['name']}, another at hand", **missing, "dictionaries": others}
        yield {"name": f"{good['name']}, none at hand", **missing}


def dictionary_cases(name: str, dictionary: bytes) -> Iterator[Rule]:
    """Frames by hand under backend 81."""
    here = {"dictionaries": [name]}
    head, identity = hostile.header(hostile.DICTIONARY), identity_of(dictionary)
    frame = hostile.frame(hostile.HELLO, identity=identity)
    corrupt, hello = hostile.error("corrupt"), hostile.value({"text": "hello"})
    yield hostile.case("dictionary raw block", head + frame, hello) | here
    yield hostile.case("dictionary frame and a byte", head + frame + b"\0", corrupt) | here
    yield hostile.case("dictionary frame without an ID", head + hostile.HELLO_FRAME, corrupt) | here
    yield hostile.case("dictionary frame cut before its ID", head + frame[:8], corrupt) | here
    sized = hostile.frame(hostile.HELLO, identity=identity, size=1 << 60)
    yield hostile.case("dictionary claim of 2^60 bytes", head + sized, hostile.error("too_large")) | here


def main() -> None:
    dictionaries = {"profiles": train(31), "orders": train(53)}
    short = hostile.header(hostile.ZSTD) + hostile.HELLO_FRAME
    cases = [
        *hostile.not_envelopes(),
        *hostile.short_prefixes(),
        *hostile.zstd_frames(),
        *hostile.truncated("zstd raw block", short),
        *hostile.lz4_blocks(),
        *hostile.truncated("lz4 literals and matches", hostile.lz4(4080, hostile.LONG_BLOCK)),
        *dictionary_cases("profiles", dictionaries["profiles"]),
        *glide_cases(),
        *snugly_cases(dictionaries),
    ]
    for case in [case for case in cases if case["name"].endswith("level default: letters-64")]:
        cases += hostile.truncated(case["name"], expand(case["envelope"]))
    names = [case["name"] for case in cases]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    head = {
        "version": 1,
        "errors": ERRORS,
        "dictionaries": {
            name: {"id": identity_of(each), "bytes": {"hex": each.hex()}} for name, each in dictionaries.items()
        },
    }
    lines = ",\n".join("    " + json.dumps(case, ensure_ascii=False) for case in cases)
    text = json.dumps(head, indent=2).removesuffix("\n}") + ',\n  "cases": [\n' + lines + "\n  ]\n}\n"
    json.loads(text)
    (HERE / "envelopes.json").write_text(text)
    print(f"{len(cases)} cases, {len(text)} bytes")


if __name__ == "__main__":
    main()
