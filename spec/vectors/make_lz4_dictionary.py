"""Makes lz4_dictionary.json again: `python spec/vectors/make_lz4_dictionary.py`, from anywhere in the checkout.

Envelopes of backend 82 by three makers: the bytes here, LZ4 in Python (`lz4.block`), and snugly's own codec. It needs
the packages of tests/requirements.txt and cargo.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lz4.block
import xxhash

import encoding
import hostile
from hostile import HELLO_BLOCK, MIB, case, error, value
from rules import Rule, expand
from values import RECORD

HERE = Path(__file__).resolve().parent
FILE = HERE / "lz4_dictionary.json"
BACKEND = 0x82
WINDOW = 64 << 10

PROFILE = '{"name": "name-#", "email": "email-6", "city": "city-7", "plan": "plan-11", "status": "new"}'
VALUES: dict[str, Rule] = {
    "letters-64": {"repeat": {"text": "a"}, "size": 64},
    "profile-92": {"count": PROFILE, "size": 92},
    "profiles-700": {"count": PROFILE, "size": 700},
    "unicode-301": {"repeat": {"text": "Füchse können über Zäune springen 🦊 "}, "size": 301},
    "binary-1000": {"join": [{"noise": 7, "size": 100}, {"repeat": {"hex": "00ff10"}, "size": 900}]},
    "zeros-70000": {"repeat": {"hex": "00"}, "size": 70_000},
}
# Values that are parts of the long dictionary, at its end and as far back as LZ4 sees.
FAR: dict[str, Rule] = {
    "record-200": {"text": expand({"count": RECORD, "size": 70_000})[-300:-100].decode()},
    "record-100": {"text": expand({"count": RECORD, "size": 70_000})[-65_500:-65_400].decode()},
}
LEVELS = [-20, 1, 9, 12]


def dictionaries() -> dict[str, Rule]:
    """One of those in envelopes.json, and one of which LZ4 does not see the start: the first with more behind it."""
    profiles = json.loads((HERE / "envelopes.json").read_text())["dictionaries"]["profiles"]
    parts = [{"hex": profiles["bytes"]["hex"][16:]}, {"count": RECORD, "size": 70_000}]
    content = expand({"join": parts})
    identity = 32768 + xxhash.xxh64(content, seed=0).intdigest() % ((1 << 31) - 32768)
    head = bytes.fromhex("37a430ec") + identity.to_bytes(4, "little")
    return {
        "profiles": profiles,
        "long": {"id": identity, "bytes": {"join": [{"hex": head.hex()}, *parts]}},
    }


def envelope(identity: int, raw: int, checksum: int, block: bytes) -> bytes:
    fields = b"".join(field.to_bytes(4, "little") for field in (identity, raw, checksum))
    return hostile.header(BACKEND) + fields + block


def xxh32(plain: bytes) -> int:
    return xxhash.xxh32(plain, seed=0).intdigest()


def copying(offset: int) -> bytes:
    """A block of 36 bytes: 20 from `offset` bytes before the value, 16 letters."""
    return b"\x0f" + offset.to_bytes(2, "little") + b"\x01\xf0\x01sixteen letters."


def by_hand(known: dict[str, Rule]) -> list[Rule]:
    profiles, long = known["profiles"]["id"], known["long"]["id"]
    plain, far = (expand(known[name]["bytes"]) for name in ("profiles", "long"))
    here: dict[str, Any] = {"dictionaries": ["profiles"]}
    corrupt, large, hello = error("corrupt"), error("too_large"), value({"text": "hello"})
    missing = error("dictionary_missing")
    checksum = xxh32(b"hello")
    reversed_checksum = int.from_bytes(checksum.to_bytes(4, "big"), "little")

    def made(identity: int = profiles, raw: int = 5, sum_of: int = checksum, block: bytes = HELLO_BLOCK) -> bytes:
        return envelope(identity, raw, sum_of, block)

    def copied(name: str, dictionary: bytes, identity: int, offset: int) -> Rule:
        start = len(dictionary) - offset
        copy = dictionary[start : start + 20] + b"sixteen letters."
        sent = envelope(identity, 36, xxh32(copy), copying(offset))
        at_hand = ["long" if identity == long else "profiles"]
        return case(name, sent, value({"hex": copy.hex()})) | {"dictionaries": at_hand}

    copy = plain[-100:-80] + b"sixteen letters."
    other = envelope(long, 36, xxh32(copy), copying(100))
    return [
        case("literals", made(), hello) | here,
        case("literals, others at hand too", made(), hello) | {"dictionaries": ["long", "profiles"]},
        case("empty value", made(raw=0, sum_of=xxh32(b""), block=b"\0"), value({"text": ""})) | here,
        copied("match at the dictionary's end", plain, profiles, 20),
        copied("match from the dictionary's header on", plain, profiles, len(plain)),
        copied("match at the start of 64 KiB", far, long, WINDOW - 1),
        case("match before the dictionary", made(raw=36, block=copying(len(plain) + 1)), corrupt) | here,
        case("match at offset 0", made(raw=36, block=copying(0)), corrupt) | here,
        case("value of exactly the limit", made(), hello, max_decompressed_size=5) | here,
        case("value of the limit and a byte", made(), large, max_decompressed_size=4) | here,
        case("wrong checksum", made(sum_of=checksum ^ 1), corrupt) | here,
        case("checksum of nothing", made(sum_of=xxh32(b"")), corrupt) | here,
        case("checksum with its bytes reversed", made(sum_of=reversed_checksum), corrupt) | here,
        case("another dictionary's ID", other, corrupt) | {"dictionaries": ["long", "profiles"]},
        case("another dictionary at hand", made(), missing) | {"dictionaries": ["long"]},
        case("none at hand", made(), missing),
        case("unknown ID", made(identity=32768), missing) | here,
        case("ID of 2^32 - 1", made(identity=(1 << 32) - 1), missing) | here,
        case("ID below 32768", made(identity=32767), corrupt) | here,
        case("ID 0", made(identity=0), corrupt) | here,
        case("claim of 4 GiB less a byte", made(raw=(1 << 32) - 1), large) | here,
        case("claim of 4 GiB less a byte, none at hand", made(raw=(1 << 32) - 1), large),
        case("claim of 400 MiB that the block cannot reach", made(raw=400 * MIB), corrupt) | here,
        case("claim of a byte more than the block can reach", made(raw=255 * 6 + 1), corrupt) | here,
        case("claim that the block cannot reach, none at hand", made(raw=255 * 6 + 1), corrupt),
        case("claim of all that the block could reach", made(raw=255 * 6), corrupt) | here,
        case("claim of a byte less than there is", made(raw=4), corrupt) | here,
        case("claim of a byte more than there is", made(raw=6), corrupt) | here,
        case("claim of nothing", made(raw=0), corrupt) | here,
        case("block and a byte", made(block=HELLO_BLOCK + b"\0"), corrupt) | here,
        case("two blocks", made(raw=10, sum_of=xxh32(b"hellohello"), block=HELLO_BLOCK * 2), corrupt) | here,
        case("literals cut off", made(block=HELLO_BLOCK[:-1]), corrupt) | here,
        case("no block", made(raw=0, sum_of=xxh32(b""), block=b""), corrupt) | here,
        case("a zstd frame", hostile.header(BACKEND) + hostile.HELLO_FRAME, corrupt) | here,
        *[each | here for each in hostile.truncated("literals", made())],
    ]


def by_python(known: dict[str, Rule]) -> Iterator[Rule]:
    maker = f"lz4 {importlib.metadata.version('lz4')} (Python)"
    modes: dict[str, dict[str, Any]] = {
        "default": {"mode": "default"},
        "fast": {"mode": "fast", "acceleration": 8},
        "high compression": {"mode": "high_compression", "compression": 9},
    }
    for name, mode in modes.items():
        for title, dictionary, rule in [("profiles-700", "profiles", VALUES["profiles-700"]), *on_long(FAR)]:
            window = expand(known[dictionary]["bytes"])[-WINDOW:]
            plain = expand(rule)
            block = lz4.block.compress(plain, store_size=False, dict=window, **mode)
            sent = envelope(known[dictionary]["id"], len(plain), xxh32(plain), block)
            yield good(f"python lz4 {name}: {title}", maker, sent, dictionary, rule)


def on_long(values: dict[str, Rule]) -> list[tuple[str, str, Rule]]:
    return [(title, "long", rule) for title, rule in values.items()]


def good(name: str, maker: str, sent: bytes, dictionary: str, rule: Rule) -> Rule:
    made = {"name": name, "made_by": maker, "envelope": {"hex": sent.hex()}, "expect": "value", "value": rule}
    return made | {"dictionaries": [dictionary]}


def by_snugly(known: dict[str, Rule]) -> Iterator[Rule]:
    jobs: list[tuple[str, str, Rule, int | None]] = []
    jobs += [(title, "profiles", rule, None) for title, rule in VALUES.items()]
    jobs += [("profiles-700", "profiles", VALUES["profiles-700"], level) for level in LEVELS]
    jobs += [(title, "long", rule, level) for title, rule in FAR.items() for level in (None, 9)]
    envelopes = encoding.snugly_encode(
        [("lz4", level, expand(known[dictionary]["bytes"]), expand(rule)) for _, dictionary, rule, level in jobs]
    )
    for (title, dictionary, rule, level), sent in zip(jobs, envelopes, strict=True):
        name = f"snugly level {'default' if level is None else level}: {title}"
        assert sent[4] == BACKEND, name
        yield good(name, "snugly", sent, dictionary, rule)


def main() -> None:
    known = dictionaries()
    cases = [*by_hand(known), *by_python(known), *by_snugly(known)]
    names = [each["name"] for each in cases]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    lines = ",\n".join("    " + json.dumps(each, ensure_ascii=False) for each in cases)
    head = json.dumps({"version": 1, "dictionaries": known}, indent=2).removesuffix("\n}")
    text = head + ',\n  "cases": [\n' + lines + "\n  ]\n}\n"
    json.loads(text)
    FILE.write_text(text)
    print(f"{len(cases)} cases, {len(text)} bytes")


if __name__ == "__main__":
    main()
