"""Bytes as the vectors write them down: inline, or by a rule where they would be long (see README.md)."""

from __future__ import annotations

from typing import Any, TypeAlias

Rule: TypeAlias = dict[str, Any]

MULTIPLIER, INCREMENT, MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1


def expand(rule: Rule) -> bytes:
    """The bytes that a rule stands for."""
    match rule:
        case {"text": str(text)}:
            return text.encode()
        case {"hex": str(text)}:
            return bytes.fromhex(text)
        case {"repeat": dict(unit), "size": int(size)}:
            piece = expand(unit)
            return (piece * (size // len(piece) + 1))[:size]
        case {"count": str(text), "size": int(size)}:
            return counted(text, size)
        case {"noise": int(seed), "size": int(size)}:
            return noise(seed, size)
        case {"join": list(parts)}:
            return b"".join(expand(part) for part in parts)
    raise ValueError(f"no rule for bytes: {rule}")


def counted(text: str, size: int) -> bytes:
    """`text` again and again with `#` replaced by 0, 1, 2 ..., cut to `size` bytes."""
    made = bytearray()
    number = 0
    while len(made) < size:
        made += text.replace("#", str(number)).encode()
        number += 1
    return bytes(made[:size])


def noise(seed: int, size: int) -> bytes:
    """The top bytes of a 64-bit linear congruential generator (Knuth's MMIX constants), which starts at `seed`."""
    made = bytearray(size)
    state = seed
    for at in range(size):
        state = (state * MULTIPLIER + INCREMENT) & MASK
        made[at] = state >> 56
    return bytes(made)
