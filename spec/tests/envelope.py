"""A second implementation of envelope.md, written from its text over other libraries than snugly's codec.

It is here to find out where the specification, the vectors and the codec disagree; nobody should use it.
"""

from __future__ import annotations

from collections.abc import Mapping

import lz4.block
import xxhash
import zstandard

ZSTD, LZ4, DICTIONARY, LZ4_DICTIONARY = 0x01, 0x02, 0x81, 0x82
FIRST_ID = 32768
WINDOW = 64 << 10
MAX_BLOCK = 128 << 10
DEFAULT_LIMIT = 512 << 20


class Undecodable(Exception):
    """An envelope that is not decoded; `kind` is one of the errors that the vectors name."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(f"{kind}: {why}")
        self.kind = kind


def corrupt(why: str) -> Undecodable:
    return Undecodable("corrupt", why)


def counts(value: bytes) -> bool:
    """Whether the value counts as an envelope, well-formed or not."""
    return len(value) >= 5 and value[:4] == b"\0\1\2\0" and (0x01 <= value[4] <= 0x1F or 0x80 <= value[4] <= 0x9F)


def well_formed(value: bytes, limit: int = DEFAULT_LIMIT) -> bool:
    if not counts(value):
        return False
    backend, payload = value[4], value[5:]
    if backend == LZ4:
        raw = int.from_bytes(payload[:4], "little")
        return len(payload) >= 4 and raw <= limit and raw <= 255 * (len(payload) - 4)
    if backend == LZ4_DICTIONARY:
        raw = int.from_bytes(payload[4:8], "little")
        named = int.from_bytes(payload[:4], "little") >= FIRST_ID
        return len(payload) > 12 and named and raw <= limit and raw <= 255 * (len(payload) - 12)
    if backend not in (ZSTD, DICTIONARY):
        return False
    try:
        parameters = frame_parameters(payload)
    except Undecodable:
        return False
    return backend == ZSTD or parameters.dict_id != 0


def frame_parameters(payload: bytes) -> zstandard.FrameParameters:
    if payload[:4] != b"\x28\xb5\x2f\xfd":
        raise corrupt("no zstd frame starts here")
    try:
        return zstandard.get_frame_parameters(payload)
    except zstandard.ZstdError as error:
        raise corrupt(str(error)) from error


def frame_reach(payload: bytes, parameters: zstandard.FrameParameters) -> int:
    """The most bytes that the one frame in `payload` can hold."""
    at = zstandard.frame_header_size(payload)
    reach, last = 0, False
    while not last:
        if at + 3 > len(payload):
            raise corrupt("cut between blocks")
        head = int.from_bytes(payload[at : at + 3], "little")
        last, kind, size = bool(head & 1), head >> 1 & 3, head >> 3
        at += 3 + (1 if kind == 1 else size)
        reach += MAX_BLOCK if kind == 2 else size
    if at + (4 if parameters.has_checksum else 0) != len(payload):
        raise corrupt("cut in a block, or bytes behind the frame")
    return reach


def decode_zstd(payload: bytes, limit: int, dictionaries: Mapping[int, bytes], needs_dictionary: bool) -> bytes:
    parameters = frame_parameters(payload)
    if needs_dictionary and parameters.dict_id == 0:
        raise corrupt("a dictionary without an ID")
    reach = frame_reach(payload, parameters)
    dictionary = None
    if needs_dictionary:
        if parameters.dict_id not in dictionaries:
            raise Undecodable("dictionary_missing", str(parameters.dict_id))
        dictionary = zstandard.ZstdCompressionDict(dictionaries[parameters.dict_id])
    claimed = parameters.content_size
    # 2^64 - 1 is how libzstd says that there is no claim; a frame whose header has eight bytes of it claims it.
    known = claimed != zstandard.CONTENTSIZE_UNKNOWN or payload[4] & 0xE0 != 0
    if known and claimed > limit:
        raise Undecodable("too_large", f"claims {claimed} bytes")
    if known and claimed > reach:
        raise corrupt(f"claims {claimed} bytes, reaches {reach}")
    room = claimed if known else min(reach, limit)
    try:
        decompressor = zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=1 << 31)
        # One byte of room more than allowed tells "too large" from "damaged" where nothing is claimed.
        value = decompressor.decompress(payload, max_output_size=room + 1, allow_extra_data=False)
    except zstandard.ZstdError as error:
        if not known and "did not decompress full frame" in str(error) and reach > limit:
            raise Undecodable("too_large", "holds more than the limit") from error
        raise corrupt(str(error)) from error
    if len(value) > limit:
        raise Undecodable("too_large", "holds more than the limit")
    # The library does not even look at the blocks of a frame that claims nothing.
    if known and (len(value) != claimed or (claimed == 0 and reach > 0)):
        raise corrupt("does not hold what it claims")
    return value


def decode_lz4(payload: bytes, limit: int) -> bytes:
    if len(payload) < 4:
        raise corrupt("no length")
    raw, block = int.from_bytes(payload[:4], "little"), payload[4:]
    if raw > limit:
        raise Undecodable("too_large", f"claims {raw} bytes")
    if raw > 255 * len(block):
        raise corrupt("claims more than the block can reach")
    try:
        value: bytes = lz4.block.decompress(block, uncompressed_size=raw)
    except (lz4.block.LZ4BlockError, ValueError) as error:
        raise corrupt(str(error)) from error
    if len(value) != raw:
        raise corrupt("does not hold what it claims")
    return value


def decode_lz4_dictionary(payload: bytes, limit: int, dictionaries: Mapping[int, bytes]) -> bytes:
    if len(payload) <= 12:
        raise corrupt("no ID, length, checksum and block")
    identity, raw, checksum = (int.from_bytes(payload[at : at + 4], "little") for at in (0, 4, 8))
    block = payload[12:]
    if identity < FIRST_ID:
        raise corrupt("an ID that is no dictionary's")
    if raw > limit:
        raise Undecodable("too_large", f"claims {raw} bytes")
    if raw > 255 * len(block):
        raise corrupt("claims more than the block can reach")
    if identity not in dictionaries:
        raise Undecodable("dictionary_missing", str(identity))
    try:
        value: bytes = lz4.block.decompress(block, uncompressed_size=raw, dict=dictionaries[identity][-WINDOW:])
    except (lz4.block.LZ4BlockError, ValueError) as error:
        raise corrupt(str(error)) from error
    if len(value) != raw:
        raise corrupt("does not hold what it claims")
    if xxhash.xxh32(value, seed=0).intdigest() != checksum:
        raise corrupt("another value than the checksum is of")
    return value


def decode(value: bytes, limit: int = DEFAULT_LIMIT, dictionaries: Mapping[int, bytes] | None = None) -> bytes | None:
    """The value in an envelope, or None if it is no envelope. Raises Undecodable."""
    if not counts(value):
        return None
    backend, payload = value[4], value[5:]
    if backend == LZ4:
        return decode_lz4(payload, limit)
    if backend in (ZSTD, DICTIONARY):
        return decode_zstd(payload, limit, dictionaries or {}, backend == DICTIONARY)
    if backend == LZ4_DICTIONARY:
        return decode_lz4_dictionary(payload, limit, dictionaries or {})
    raise Undecodable("unknown_backend", f"{backend:02x}")


def encode(value: bytes, backend: str, level: int | None, min_size: int, wrap: bool) -> bytes:
    """What a writer sends for a value."""
    if well_formed(value) and not wrap:
        return value
    must = counts(value)
    if not must and len(value) < max(min_size, 32):
        return value
    if backend == "zstd":
        made = b"\0\1\2\0\1" + zstandard.ZstdCompressor(level=3 if level is None else level).compress(value)
    else:
        made = b"\0\1\2\0\2" + lz4.block.compress(value, store_size=True)
    return made if must or len(made) < len(value) else value


def dictionary_id(dictionary: bytes) -> int:
    """The ID that a dictionary with this content must have."""
    return 32768 + xxhash.xxh64(dictionary[8:], seed=0).intdigest() % ((1 << 31) - 32768)
