"""Random commands, and scripts that call them: Valkey with the module answers as Valkey without it, byte for byte."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import comparison
import module_dictionaries
import random_commands
import random_scripts
import valkey_module
from module_dictionaries import enveloped as enveloped_with
from module_dictionaries import give, trained
from plays import each_protocol
from random_commands import Command, Row, key, text
from servers import Server
from valkey_module import HEADER, enveloped, number, restores_an_envelope

LENGTH = 150
MAGIC = b"\x28\xb5\x2f\xfd"
NOISE = random.Random(5).randbytes(200)
LONG = enveloped(valkey_module.text(600))
LONG_LZ4 = enveloped(valkey_module.text(600), "lz4")
ENVELOPES = [
    LONG,
    LONG_LZ4,
    # One in another, and one of the value that it would be with every bit turned.
    enveloped(LONG),
    bytes(byte ^ 0xFF for byte in LONG),
    # Too short to be changed, before and after it is restored; then before alone.
    enveloped(b"short"),
    enveloped(b"short", "lz4"),
    enveloped(b"x" * 5000),
    enveloped(b"x" * 5000, "lz4"),
    # With the dictionary that the module may have, as a client sends it that has it as well.
    enveloped_with(b"".join(map(module_dictionaries.user, range(5))), trained(), 0x81),
    enveloped_with(b"".join(map(module_dictionaries.user, range(5))), trained(), 0x82),
    enveloped_with(module_dictionaries.user(1), trained(), 0x82),
    # With a dictionary that nobody has: of a frame, and of a block with its ID, length and checksum.
    HEADER + b"\x81" + MAGIC + b"\x23\x00\x80\x00\x00\x10" + NOISE,
    HEADER + b"\x82" + b"\x00\x80\x00\x00" + b"\x20\x00\x00\x00" + NOISE,
    # What counts as an envelope and is none: unknown backends, no frame, too much claimed, cut, more behind it.
    HEADER + b"\x1f" + NOISE,
    HEADER + b"\x9f" + NOISE,
    HEADER + b"\x01" + NOISE,
    HEADER + b"\x02" + b"\xff\xff\xff\x7f" + NOISE,
    LONG[:-1],
    LONG_LZ4[:-1],
    LONG + b"x",
    LONG_LZ4[:160] + NOISE,
    # What does not count as one.
    HEADER + b"\x00" + NOISE,
    HEADER + b"\x20" + NOISE,
    b"\x00\x01\x02\x01" + NOISE,
    HEADER * 40,
    HEADER,
]
COMPRESSIBLE = [valkey_module.text(size, size) for size in (127, 128, 129, 160, 200, 255, 256, 300, 2000)]
ALIKE = [module_dictionaries.user(number) * times for number, times in ((1, 1), (2, 1), (3, 2), (4, 8))]
# HyperLogLogs without elements, in either representation, and what begins as one.
HYPERLOGLOGS = [
    b"HYLL\x01" + bytes(11) + b"\x7f\xff",
    b"HYLL\x01" + bytes(11) + b"\x3f" * 256,
    b"HYLL" + bytes(12 + 12288),
    b"HYLL" + valkey_module.text(300),
]
LONG_FLOATS = [b"0." + b"0" * 200 + b"1", number(200), number(420), b"-" + number(600), b"1" * 130, b" " + number(300)]
HYPERLOGLOG_COMMANDS = [
    Row(b"PFADD", 3, [key], [text]),
    Row(b"PFCOUNT", 3, [], [key]),
    Row(b"PFMERGE", 2, [key], [key]),
]


WITH_DICTIONARY = ["lz4 with a dictionary", pytest.param("zstd with a dictionary", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=["lz4", "zstd", *WITH_DICTIONARY])
def ours(request: pytest.FixtureRequest) -> Iterator[Server]:
    codec, *with_dictionary = request.param.split(" ", 1)
    memory = ("--snugly.dictionary-memory", "16mb") if with_dictionary else ()
    with valkey_module.serving(*valkey_module.EAGER, *memory, "--snugly.codec", codec) as server:
        if with_dictionary:
            with server.connect() as connection:
                give(connection, "*")
        yield server


@pytest.fixture(autouse=True)
def _values_that_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_commands, "TEXTS", [*ENVELOPES, *COMPRESSIBLE, *COMPRESSIBLE, *ALIKE, *HYPERLOGLOGS])
    monkeypatch.setattr(random_commands, "FLOATS", [*random_commands.FLOATS[:6], *LONG_FLOATS])
    monkeypatch.setattr(random_commands, "COMMANDS", [*random_commands.COMMANDS, *HYPERLOGLOG_COMMANDS])


def tells_functions(command: Command) -> bool:
    """Whether a command gives a list of all functions, among which dictionaries are kept."""
    return command[0].upper() == b"FUNCTION" and any(word.upper() in {b"LIST", b"DUMP", b"STATS"} for word in command)


def assert_same(ours: Server, theirs: Server, protocol: int, commands: list[Command], at_once: int = 1_000) -> None:
    commands = [command for command in commands if not restores_an_envelope(command) and not tells_functions(command)]
    found = comparison.compare(ours, theirs, protocol, commands, at_once)
    if found:
        pytest.fail(f"RESP{protocol}:\n{comparison.shrink(ours, theirs, protocol, found)}")


@pytest.mark.parametrize("seed", comparison.seeds(3_000, part=2))
@each_protocol
def test_replies_are_those_of_valkey(ours: Server, peer: Server, protocol: int, seed: int) -> None:
    commands = random_commands.sequence(random.Random(seed * 10 + protocol), LENGTH)
    assert_same(ours, peer, protocol, commands)


@pytest.mark.parametrize("seed", comparison.seeds(4_000, part=2))
@each_protocol
def test_replies_are_those_of_valkey_when_scripts_run_the_commands(
    ours: Server, peer: Server, protocol: int, seed: int
) -> None:
    commands = random_scripts.sequence(random.Random(seed * 10 + protocol), LENGTH)
    assert_same(ours, peer, protocol, commands)


@pytest.mark.parametrize("seed", comparison.seeds(5_000, part=5))
def test_replies_are_those_of_valkey_when_each_is_waited_for(ours: Server, peer: Server, seed: int) -> None:
    commands = random_commands.sequence(random.Random(seed), LENGTH)
    assert_same(ours, peer, 2, commands, at_once=1)
