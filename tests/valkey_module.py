"""Finds snugly's module for valkey-server, starts servers with it, and makes values that matter to it.

It knows the names of settings and the lengths from which the module changes what is stored. It knows nothing of what is
tested.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import envelope
import servers
from info import number as number_of
from resp import Connection
from servers import Server
from tested import target_name

# Strings that are shorter are never changed, whatever the settings are.
LEAST = 128
# Three bytes and a version, with which envelopes begin.
HEADER = b"\x00\x01\x02\x00"
# Backends from this one on need a dictionary, which clients have.
WITH_DICTIONARY = 0x80
# Compresses what it may, without dictionaries: what is stored says all that a reader needs.
EAGER = ("--snugly.min-bytes", str(LEAST), "--snugly.dictionary-memory", "0")
SUFFIX = "dylib" if sys.platform == "darwin" else "so"


def library() -> Path:
    """The module: SNUGLY_MODULE, or what cargo built last in this checkout."""
    return servers.built(f"libsnugly_module.{SUFFIX}", "SNUGLY_MODULE")


@contextlib.contextmanager
def serving(*options: str, arguments: Sequence[str] = (), program: Path | None = None) -> Iterator[Server]:
    """A valkey-server with the module, which is given arguments; without it, if valkey-server is what is tested."""
    if target_name() == "valkey":
        pairs = zip(options[::2], options[1::2], strict=True)
        others = [part for name, value in pairs if not name.startswith("--snugly.") for part in (name, value)]
        with servers.valkey(*others, program=program) as server:
            yield server
    else:
        load = ("--loadmodule", str(library()), *arguments)
        with servers.valkey(*load, *options, program=program) as server:
            yield server
            assert panics(server) == 0


def panics(server: Server) -> int:
    """How often the module has failed inside; 0 if it or the server is gone, or tells nobody without a password."""
    if server.process.poll() is not None:
        return 0
    with server.connect() as connection:
        told = connection.command("INFO", "snugly")
        return number_of(told, "snugly_panics") if isinstance(told, bytes) and b"snugly_panics" in told else 0


@contextlib.contextmanager
def pair(*options: str, program: Path | None = None) -> Iterator[tuple[Server, Server]]:
    """A valkey-server with the module, which compresses what it may, and one without, with the same options."""
    with serving(*EAGER, *options, program=program) as ours, servers.valkey(*options, program=program) as theirs:
        yield ours, theirs


def text(size: int, seed: int = 1) -> bytes:
    """Words in random order, which compress to about a half from some hundred bytes on."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randrange(4, 11))) for _ in range(40)]
    drawn: list[str] = []
    while sum(map(len, drawn)) < size:
        drawn.append(rng.choice(words) + " ")
    return "".join(drawn)[:size].encode()


def number(size: int, seed: int = 1) -> bytes:
    """A number with so many digits behind its point, which compress since they come again and again."""
    block = "".join(random.Random(seed).choices("0123456789", k=140))
    return b"0." + (block * (size // len(block) + 1))[:size].encode()


def enveloped(value: bytes, backend: str = "zstd") -> bytes:
    """The envelope of a value, as a client that compresses sends it."""
    return envelope.encode(value, backend, None, 0, wrap=True)


def restored(stored: bytes) -> bytes:
    """What reading gives of a string that is stored: what is in an envelope that is long enough and can be read."""
    if len(stored) < LEAST or not envelope.well_formed(stored) or stored[4] >= WITH_DICTIONARY:
        return stored
    value = envelope.decode(stored)
    assert value is not None
    return value


def restores_an_envelope(command: list[bytes]) -> bool:
    """Whether RESTORE is given an envelope, which is then the stored form of a value and not a value."""
    names = {argument.upper() for argument in command}
    return b"RESTORE" in names and any(0 < argument.find(HEADER) < 8 for argument in command)


def size_in_memory(connection: Connection, key: str | bytes) -> int:
    size = connection.command("MEMORY", "USAGE", key)
    assert isinstance(size, int)
    return size


TEXT = text(1000)
ENVELOPE = enveloped(text(600, 3))
# Words of plays that stand for values.
VALUES = {
    "TEXT": TEXT,
    "OTHER": text(1000, 2),
    "SHORT": text(LEAST - 1),
    "BIG": text(50_000),
    "EVEN": b"x" * 5000,
    "ENVELOPE": ENVELOPE,
    "ENVELOPE_LZ4": enveloped(text(600, 3), "lz4"),
    "SHORT_ENVELOPE": enveloped(b"short"),
    # Counts as an envelope, of a backend that there is not; and one that lacks its end.
    "UNKNOWN": b"\x00\x01\x02\x00\x9f" + TEXT,
    "DAMAGED": ENVELOPE[:-1],
    # Every bit is turned.
    "TURNED": bytes(byte ^ 0xFF for byte in ENVELOPE),
    # The two parts of an envelope.
    "HEADER": ENVELOPE[:9],
    "REST": ENVELOPE[9:],
    "NUMBER": number(420),
    "NUMBER2": number(420, 2),
    "DIGITS": b"1" * 300,
}
