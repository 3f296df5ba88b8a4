"""Replies to random command sequences, byte for byte beside valkey-server's."""

from __future__ import annotations

import random

import pytest

import comparison
import random_commands
import random_scripts
from servers import Server

LENGTH = 150


@pytest.mark.parametrize("seed", comparison.seeds())
@pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])
def test_replies_are_those_of_valkey(server: Server, peer: Server, protocol: int, seed: int) -> None:
    rng = random.Random(seed * 10 + protocol)
    commands = random_commands.sequence(rng, LENGTH)
    found = comparison.compare(server, peer, protocol, commands)
    if found:
        pytest.fail(f"seed {seed}, RESP{protocol}:\n{comparison.shrink(server, peer, protocol, found)}")


@pytest.mark.parametrize("seed", comparison.seeds(2_000, part=2))
@pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])
def test_replies_are_those_of_valkey_when_scripts_run_the_commands(
    server: Server, peer: Server, protocol: int, seed: int
) -> None:
    commands = random_scripts.sequence(random.Random(seed * 10 + protocol), LENGTH)
    found = comparison.compare(server, peer, protocol, commands)
    if found:
        pytest.fail(f"seed {seed}, RESP{protocol}:\n{comparison.shrink(server, peer, protocol, found)}")


@pytest.mark.snugly_only
@pytest.mark.parametrize("seed", comparison.seeds(1_000, part=2))
@pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])
def test_replies_are_those_of_valkey_when_values_come_from_disk(
    server_on_disk: Server, peer: Server, protocol: int, seed: int
) -> None:
    rng = random.Random(seed * 10 + protocol)
    commands = random_commands.sequence(rng, LENGTH)
    found = comparison.compare(server_on_disk, peer, protocol, commands, at_once=3)
    if found:
        pytest.fail(f"seed {seed}, RESP{protocol}:\n{comparison.shrink(server_on_disk, peer, protocol, found)}")


def test_a_difference_is_found_and_shrunk(server: Server, peer: Server) -> None:
    """The comparison itself: the two servers have different ports, and nothing else makes them say so."""
    noise = [[b"SET", b"a", b"1"], [b"GET", b"a"]] * 5
    tell = [b"CONFIG", b"GET", b"port"]
    found = comparison.compare(server, peer, 2, [*noise, tell, *noise])
    assert found is not None
    assert found.at == len(noise)
    shrunk = comparison.shrink(server, peer, 2, found)
    assert shrunk.commands[: shrunk.at + 1] == [tell]
