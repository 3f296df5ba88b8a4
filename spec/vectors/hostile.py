"""Envelopes made by hand, byte by byte: what no writer writes, and what readers must survive.

Frames follow RFC 8878, section 3.1.1; LZ4 blocks https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md.
"""

from __future__ import annotations

from typing import Any

from rules import Rule

ZSTD, LZ4, DICTIONARY = 0x01, 0x02, 0x81
RAW, RLE, RESERVED = 0, 1, 3
MIB = 1 << 20


def header(backend: int) -> bytes:
    return bytes([0, 1, 2, 0, backend])


def block(kind: int, size: int, content: bytes, last: bool = True) -> bytes:
    return (last | kind << 1 | size << 3).to_bytes(3, "little") + content


def frame(*blocks: bytes, size: int | None = None, window: int = 0x00, descriptor: int = 0, identity: int = 0) -> bytes:
    """A zstd frame: `size` of 8 bytes if there is one, `window` descriptor, `identity` of a dictionary if not 0."""
    descriptor |= (0xC0 if size is not None else 0) | (3 if identity else 0)
    head = b"\x28\xb5\x2f\xfd" + bytes([descriptor])
    head += b"" if descriptor & 0x20 else bytes([window])
    head += identity.to_bytes(4, "little") if identity else b""
    head += size.to_bytes(8, "little") if size is not None else b""
    return head + b"".join(blocks)


def lz4(size: int, content: bytes) -> bytes:
    return header(LZ4) + size.to_bytes(4, "little") + content


def case(name: str, envelope: bytes | Rule, expect: Any, **options: Any) -> Rule:
    rule = {"hex": envelope.hex()} if isinstance(envelope, bytes) else envelope
    return {"name": name, "made_by": "hand", "envelope": rule, **({"options": options} if options else {}), **expect}


def value(rule: Rule) -> dict[str, Any]:
    return {"expect": "value", "value": rule}


UNTOUCHED = {"expect": "untouched"}


def error(kind: str) -> dict[str, Any]:
    return {"expect": "error", "error": kind}


HELLO = block(RAW, 5, b"hello")
HELLO_FRAME = frame(HELLO, size=5)
# Literals only: token 0x50, five bytes.
HELLO_BLOCK = b"\x50hello"
# 4 KiB of one byte, five bytes at a time: a literal, a match that overlaps itself, five last literals.
LONG_BLOCK = b"\x1fa\x01\x00" + b"\xff" * 15 + b"\xe6" + b"\x50aaaaa"
BOMB = [block(RLE, 128 << 10, b"a", last=n == 39) for n in range(40)]


def not_envelopes() -> list[Rule]:
    payload = HELLO_FRAME
    nobodys = [0x00, 0x20, 0x7F, 0xA0, 0xFF]
    unknown = [0x03, 0x1F, 0x80, 0x83, 0x9F]
    return [
        case("empty value", b"", UNTOUCHED),
        case("the magic alone", b"\x00\x01\x02", UNTOUCHED),
        case("magic and version", b"\x00\x01\x02\x00", UNTOUCHED),
        case("counting bytes", bytes(range(32)), UNTOUCHED),
        case("a zstd frame without a header", payload, UNTOUCHED),
        case("another version", b"\x00\x01\x02\x01\x01" + payload, UNTOUCHED),
        case("version 255", b"\x00\x01\x02\xff\x01" + payload, UNTOUCHED),
        case("another magic", b"\x00\x01\x03\x00\x01" + payload, UNTOUCHED),
        case("the header in the middle", b"x" + header(ZSTD) + payload, UNTOUCHED),
        *[case(f"backend {each:02x} is nobody's", header(each) + payload, UNTOUCHED) for each in nobodys],
        *[case(f"backend {each:02x} is unknown", header(each) + payload, error("unknown_backend")) for each in unknown],
    ]


def zstd_frames() -> list[Rule]:
    z = header(ZSTD)
    hello = value({"text": "hello"})
    corrupt = error("corrupt")
    return [
        case("zstd raw block", z + HELLO_FRAME, hello),
        case("zstd raw block without a content size", z + frame(HELLO), hello),
        case("zstd single segment", z + b"\x28\xb5\x2f\xfd\x20\x05" + HELLO, hello),
        case("zstd two blocks", z + frame(block(RAW, 2, b"he", last=False), block(RAW, 3, b"llo"), size=5), hello),
        case("zstd empty value", z + frame(block(RAW, 0, b""), size=0), value({"text": ""})),
        case("zstd empty value without a content size", z + frame(block(RAW, 0, b"")), value({"text": ""})),
        case("zstd empty last block", z + frame(block(RAW, 5, b"hello", last=False), block(RAW, 0, b"")), hello),
        case(
            "zstd empty blocks before the first",
            z + frame(*[block(RAW, 0, b"", last=False)] * 40, HELLO, size=5),
            hello,
        ),
        case("zstd window of 128 MiB, value of 5 bytes", z + frame(HELLO, window=0x88), hello),
        case("zstd unused bit of the descriptor set", z + frame(HELLO, descriptor=0x10), hello),
        case(
            "zstd value of 5 MiB in 160 bytes",
            z + frame(*BOMB, window=0x88),
            value({"repeat": {"text": "a"}, "size": 5 * MIB}),
        ),
        case(
            "zstd value over the limit, claimed",
            z + frame(*BOMB, size=5 * MIB, window=0x88),
            error("too_large"),
            max_decompressed_size=MIB,
        ),
        case(
            "zstd value over the limit, not claimed",
            z + frame(*BOMB, window=0x88),
            error("too_large"),
            max_decompressed_size=MIB,
        ),
        case("zstd value of exactly the limit", z + HELLO_FRAME, hello, max_decompressed_size=5),
        case("zstd value of the limit and a byte", z + HELLO_FRAME, error("too_large"), max_decompressed_size=4),
        case(
            "zstd value of the limit and a byte, not claimed",
            z + frame(HELLO),
            error("too_large"),
            max_decompressed_size=4,
        ),
        case("zstd claim of 2^60 bytes", z + frame(HELLO, size=1 << 60), error("too_large")),
        case("zstd claim of 2^64 - 1 bytes", z + frame(HELLO, size=(1 << 64) - 1), error("too_large")),
        case("zstd claim of 400 MiB that the blocks cannot reach", z + frame(HELLO, size=400 * MIB), corrupt),
        case("zstd claim of a byte less than there is", z + frame(HELLO, size=4), corrupt),
        case("zstd claim of a byte more than there is", z + frame(HELLO, size=6), corrupt),
        case("zstd claim of nothing", z + frame(HELLO, size=0), corrupt),
        case("zstd window of 2^41 bytes", z + frame(HELLO, window=0xF8), corrupt),
        case("zstd empty payload", z, corrupt),
        case("zstd magic alone", z + b"\x28\xb5\x2f\xfd", corrupt),
        case("zstd of another magic", z + b"\x27\xb5\x2f\xfd" + HELLO_FRAME[4:], corrupt),
        case("zstd reserved bit of the descriptor set", z + frame(HELLO, descriptor=0x08), corrupt),
        case("zstd reserved block type", z + frame(block(RESERVED, 5, b"hello"), size=5), corrupt),
        case("zstd block over 128 KiB", z + frame(block(RLE, (128 << 10) + 1, b"a"), window=0x88), corrupt),
        case("zstd no last block", z + frame(block(RAW, 5, b"hello", last=False), size=5), corrupt),
        case("zstd frame and a byte", z + HELLO_FRAME + b"\x00", corrupt),
        case("zstd two frames", z + HELLO_FRAME + HELLO_FRAME, corrupt),
        case("zstd two frames without content sizes", z + frame(HELLO) + frame(HELLO), corrupt),
        case("zstd skippable frame alone", z + b"\x50\x2a\x4d\x18\x02\x00\x00\x00hi", corrupt),
        case("zstd skippable frame before", z + b"\x50\x2a\x4d\x18\x00\x00\x00\x00" + HELLO_FRAME, corrupt),
        case("zstd skippable frame behind", z + HELLO_FRAME + b"\x50\x2a\x4d\x18\x00\x00\x00\x00", corrupt),
        case("zstd frame that needs a dictionary", z + frame(HELLO, identity=40000), corrupt),
        case("zstd wrong checksum", z + frame(HELLO, size=5, descriptor=0x04) + b"\x00\x00\x00\x00", corrupt),
        case("zstd checksum cut off", z + frame(HELLO, size=5, descriptor=0x04), corrupt),
        case("zstd garbage behind a good header", z + frame(size=100) + bytes(range(200, 230)), corrupt),
        case(
            "a value that is an envelope is restored once",
            z + frame(block(RAW, 23, header(LZ4) + bytes(18))),
            value({"hex": (header(LZ4) + bytes(18)).hex()}),
        ),
    ]


def lz4_blocks() -> list[Rule]:
    corrupt = error("corrupt")
    hello = value({"text": "hello"})
    return [
        case("lz4 literals", lz4(5, HELLO_BLOCK), hello),
        case("lz4 overlapping match", lz4(4080, LONG_BLOCK), value({"repeat": {"text": "a"}, "size": 4080})),
        case("lz4 empty value", lz4(0, b"\x00"), value({"text": ""})),
        case("lz4 value of exactly the limit", lz4(5, HELLO_BLOCK), hello, max_decompressed_size=5),
        case("lz4 value of the limit and a byte", lz4(5, HELLO_BLOCK), error("too_large"), max_decompressed_size=4),
        case("lz4 claim of 4 GiB less a byte", lz4((1 << 32) - 1, HELLO_BLOCK), error("too_large")),
        case("lz4 claim of 400 MiB that the block cannot reach", lz4(400 * MIB, HELLO_BLOCK), corrupt),
        case("lz4 empty payload", header(LZ4), corrupt),
        case("lz4 length without a block", lz4(0, b""), corrupt),
        case("lz4 length cut off", header(LZ4) + b"\x05\x00\x00", corrupt),
        case("lz4 claim of a byte less than there is", lz4(4, HELLO_BLOCK), corrupt),
        case("lz4 claim of a byte more than there is", lz4(6, HELLO_BLOCK), corrupt),
        case("lz4 block and a byte", lz4(5, HELLO_BLOCK + b"\x00"), corrupt),
        case("lz4 two blocks", lz4(10, HELLO_BLOCK * 2), corrupt),
        case("lz4 match before the start", lz4(20, b"\x11ab\xff\x00\x50hello"), corrupt),
        case("lz4 match at offset 0", lz4(20, b"\x1fa\x00\x00\x00\x50hello"), corrupt),
        case("lz4 literal length that runs on", lz4(2000, b"\xf0" + b"\xff" * 8), corrupt),
        case("lz4 literals cut off", lz4(5, HELLO_BLOCK[:-1]), corrupt),
    ]


def truncated(name: str, envelope: bytes) -> list[Rule]:
    """Each proper prefix of an envelope that keeps the envelope's own header."""
    return [
        case(f"{name} cut to {size} of {len(envelope)} bytes", envelope[:size], error("corrupt"))
        for size in range(5, len(envelope))
    ]


def short_prefixes() -> list[Rule]:
    whole = header(ZSTD) + HELLO_FRAME
    return [case(f"header cut to {size} bytes", whole[:size], UNTOUCHED) for size in range(1, 5)]
