"""Object files: those of a folder, made-up ones where there are none, and the same already compressed.

Knows no server and nothing of what is measured.
"""

from __future__ import annotations

import random
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import zstandard

SUFFIXES = (".o", ".rlib", ".rmeta", ".a")
LEAST_BYTES, MOST_BYTES = 4 << 10, 2 << 20
OBJECTS, COMPRESSED = "object files", "already compressed"
LEVEL = 3
"""Of zstd, where files come compressed."""
INSTRUCTIONS = 4_096
"""Of a made-up program, with their operands; a few of them are most of its code."""
ADDRESSES = 10
"""One in so many instructions has an address of its own behind it."""
PARTS = {"code": 0.45, "relocations": 0.2, "symbols": 0.1, "names": 0.15, "zeros": 0.1}
"""Shares of a made-up file."""
ENTRY_BYTES = 24
"""Of a relocation, and of a symbol, in ELF for 64 bits."""


@dataclass(frozen=True)
class Objects:
    """Files of a compiler."""

    source: str
    """For people: where they are from."""
    values: tuple[bytes, ...]

    @property
    def total_bytes(self) -> int:
        return sum(map(len, self.values))

    def compressed(self) -> tuple[bytes, ...]:
        """As a compile cache's client sends them that compresses by itself."""
        compressor = zstandard.ZstdCompressor(level=LEVEL)
        return tuple(map(compressor.compress, self.values))


def find(folder: Path, most: int) -> Objects:
    """Different files below a folder, `most` bytes of them at most, chosen by chance, the same each time."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    random.Random(1).shuffle(paths)
    # A dictionary, since cargo has the same file under several names.
    values: dict[bytes, None] = {}
    total = 0
    for path in paths:
        # A compiler may remove a file meanwhile.
        with suppress(FileNotFoundError):
            size = path.stat().st_size
            if not path.is_file() or not LEAST_BYTES <= size <= MOST_BYTES or total + size > most:
                continue
            value = path.read_bytes()
            if len(value) == size and value not in values:
                values[value] = None
                total += size
    kinds = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
    return Objects(f"real files ({kinds}) of {LEAST_BYTES >> 10} KiB to {MOST_BYTES >> 20} MiB", tuple(values))


def generate(most: int) -> Objects:
    """Made-up files of `most` bytes together, at least one."""
    chance = random.Random(2)
    instructions = [chance.randbytes(chance.choice((1, 2, 3, 3, 4, 5, 7))) for _ in range(INSTRUCTIONS)]
    weights = [1 / (rank + 2) for rank in range(INSTRUCTIONS)]
    words = [bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz_", k=chance.randint(3, 9))) for _ in range(500)]
    values: list[bytes] = []
    left = most
    while not values or left >= LEAST_BYTES:
        size = min(int(LEAST_BYTES * (MOST_BYTES / LEAST_BYTES) ** chance.random()), max(left, LEAST_BYTES))
        values.append(elf(chance, size, instructions, weights, words))
        left -= size
    return Objects("made-up files in the manner of ELF", tuple(values))


def elf(chance: random.Random, size: int, instructions: list[bytes], weights: list[float], words: list[bytes]) -> bytes:
    """A file with the sections that a compiler writes, of as many bytes."""
    room = {part: int(size * share) for part, share in PARTS.items()}
    codes = chance.choices(instructions, weights, k=room["code"] // 3)
    codes[::ADDRESSES] = [code + chance.randbytes(3) for code in codes[::ADDRESSES]]
    entries = room["relocations"] // ENTRY_BYTES
    places = sorted(chance.sample(range(size), entries))
    targets = chance.choices(range(1, max(2, entries // 3)), k=entries)
    relocations = [struct.pack("<QIIq", place, 2, target, -4) for place, target in zip(places, targets, strict=True)]
    symbols = [
        struct.pack("<IBBHQQ", name, 18, 0, 1, place, chance.randrange(400))
        for name, place in zip(
            range(1, size, 40), chance.choices(range(size), k=room["symbols"] // ENTRY_BYTES), strict=False
        )
    ]
    names = [b"_ZN4core3%b17h%bE\0" % (chance.choice(words), chance.choice(words)) for _ in range(room["names"] // 25)]
    parts = [codes, relocations, symbols, names, [bytes(room["zeros"])]]
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHI", 1, 62, 1) + bytes(36)
    return (head + b"".join(map(b"".join, parts)))[:size].ljust(size, b"\0")
