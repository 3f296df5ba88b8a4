"""Payloads of DUMP and RESTORE, made and read by hand: strings as RDB files hold them, and a footer.

It knows the format (https://valkey.io/commands/dump/, https://rdb.fnordig.de/file_format.html) and no server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

STRING = b"\x00"
# A list as a list of nodes, the second form of that.
LIST = b"\x12"
# The versions that Valkey reads are these and those before the first; between them are other servers'.
VERSIONS = (11, 80)
FOOTER = 2 + 8
REFLECTED_JONES = 0x95AC9329AC4BC9B5

# Literal bytes, or a copy: so many bytes from so far back.
Step: TypeAlias = "bytes | tuple[int, int]"


def crc64_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (REFLECTED_JONES if crc & 1 else 0)
        table.append(crc)
    return table


CRC64 = crc64_table()


def crc64(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc = CRC64[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


def payload(body: bytes, version: int = 80) -> bytes:
    """A type and a value, with their footer."""
    content = body + version.to_bytes(2, "little")
    return content + crc64(content).to_bytes(8, "little")


def length(size: int) -> bytes:
    if size < 1 << 6:
        return bytes([size])
    if size < 1 << 14:
        return (size | 1 << 14).to_bytes(2, "big")
    return b"\x80" + size.to_bytes(4, "big")


def raw(value: bytes) -> bytes:
    return STRING + length(len(value)) + value


def integer(number: int, size: int) -> bytes:
    """A number in 1, 2 or 4 bytes."""
    return STRING + bytes([0xC0 | size.bit_length() - 1]) + number.to_bytes(size, "little", signed=True)


def lzf(steps: Iterable[Step]) -> bytes:
    """A compressed string, from literal bytes (1 to 32) and copies (3 to 264 bytes from 1 to 8192 bytes back)."""
    compressed, size = b"", 0
    for step in steps:
        if isinstance(step, bytes):
            compressed += bytes([len(step) - 1]) + step
            size += len(step)
        else:
            count, back = step
            size += count
            short = min(count - 2, 7)
            more = bytes([count - 2 - 7]) if short == 7 else b""
            compressed += bytes([short << 5 | back - 1 >> 8]) + more + bytes([back - 1 & 0xFF])
    return STRING + b"\xc3" + length(len(compressed)) + length(size) + compressed


def value(dumped: bytes) -> bytes:
    """The string in a payload; AssertionError if it is not one that a server should give."""
    assert dumped[:1] == STRING
    body = body_of(dumped)
    text, end = read_string(body, 0)
    assert end == len(body)
    return text


def nodes(dumped: bytes) -> list[tuple[int, bytes]]:
    """The nodes of the list in a payload, each with its kind; AssertionError if no server should give it."""
    assert dumped[:1] == LIST
    body = body_of(dumped)
    count, at = read_length(body, 0)
    found = []
    for _ in range(count):
        kind, at = read_length(body, at)
        node, at = read_string(body, at)
        found.append((kind, node))
    assert at == len(body)
    return found


def body_of(dumped: bytes) -> bytes:
    """The bytes between type and footer."""
    assert int.from_bytes(dumped[-FOOTER:-8], "little") in VERSIONS
    assert crc64(dumped[:-8]) == int.from_bytes(dumped[-8:], "little")
    return dumped[1:-FOOTER]


def read_string(data: bytes, at: int) -> tuple[bytes, int]:
    """A string, and where it ends."""
    if data[at] >> 6 != 3:
        size, at = read_length(data, at)
        assert len(data) >= at + size
        return data[at : at + size], at + size
    if data[at] == 0xC3:
        compressed, at = read_length(data, at + 1)
        size, at = read_length(data, at)
        plain = decompressed(data[at : at + compressed])
        assert len(plain) == size
        return plain, at + compressed
    end = at + 1 + {0xC0: 1, 0xC1: 2, 0xC2: 4}[data[at]]
    return b"%d" % int.from_bytes(data[at + 1 : end], "little", signed=True), end


def read_length(data: bytes, at: int) -> tuple[int, int]:
    match data[at] >> 6:
        case 0:
            return data[at], at + 1
        case 1:
            return int.from_bytes(data[at : at + 2], "big") & 0x3FFF, at + 2
    assert data[at] == 0x80
    return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5


def decompressed(data: bytes) -> bytes:
    plain = bytearray()
    at = 0
    while at < len(data):
        first = data[at]
        at += 1
        if first < 32:
            plain += data[at : at + first + 1]
            at += first + 1
            continue
        count = (first >> 5) + 2
        if count == 9:
            count += data[at]
            at += 1
        back = ((first & 31) << 8 | data[at]) + 1
        at += 1
        for _ in range(count):
            plain.append(plain[-back])
    return bytes(plain)
