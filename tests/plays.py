"""Plays: what clients send, line by line, the same to two servers, whose replies are compared as bytes.

It knows how a line is written, which client sends it, and what a server keeps from one play to the next; it knows
nothing of what is played.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pytest

from resp import Argument, Connection, Failure
from servers import Server

NO_VALUES: Mapping[str, bytes] = {}

# A line is `GET key`, `b: GET key` if another client than `a` sends it, or the arguments of one request.
Line: TypeAlias = str | Sequence[Argument]

KEPT = (["FLUSHALL"], ["SCRIPT", "FLUSH", "SYNC"], ["FUNCTION", "FLUSH", "SYNC"], ["CONFIG", "RESETSTAT"])

each_protocol = pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])

# Where the protocol makes little difference, RESP3 need not be tried every time.
each_protocol_at_length = pytest.mark.parametrize(
    "protocol", [2, pytest.param(3, marks=pytest.mark.slow)], ids=["resp2", "resp3"]
)


def each(rows: Mapping[str, object]) -> pytest.MarkDecorator:
    """A test for each row of a table, called by the row's name."""
    return pytest.mark.parametrize("row", rows.values(), ids=list(rows))


def rows(text: str) -> dict[str, list[str]]:
    """Plays by their names, from a text that has a name and a colon in a line, and below it the lines of that play,
    of which several that stand in one line have ` | ` between them."""
    found: dict[str, list[str]] = {}
    for line in text.strip().splitlines():
        if not line.startswith(" "):
            name = line.removesuffix(":")
            found[name] = []
        else:
            found[name] += line.strip().split(" | ")
    return found


def script(text: str, *arguments: Argument, keys: int = 0) -> Line:
    return ["EVAL", text, keys, *arguments]


def emptied(server: Server) -> None:
    """A server without keys, scripts, functions and counts of the play before."""
    with server.connect() as connection:
        for request in KEPT:
            connection.command(*request)


def request(line: Line, values: Mapping[str, bytes] = NO_VALUES) -> tuple[str, list[Argument]]:
    """The client that sends a line, and what it sends, with values for words that stand for them."""
    if not isinstance(line, str):
        return "a", list(line)
    name, colon, text = line.partition(": ")
    if not (colon and name.isalpha() and name.islower()):
        name, text = "a", line
    return name, [values.get(word, word) for word in shlex.split(text)]


def played(
    server: Server, protocol: int, lines: Sequence[Line], values: Mapping[str, bytes] = NO_VALUES
) -> list[bytes]:
    """The replies of an emptied server, each to the client that has sent the line."""
    emptied(server)
    clients: dict[str, Connection] = {}
    try:
        replies = []
        for line in lines:
            name, arguments = request(line, values)
            if name not in clients:
                clients[name] = server.connect(protocol)
            replies.append(clients[name].command_raw(*arguments))
        return replies
    finally:
        for client in clients.values():
            client.close()


def assert_alike(
    server: Server, peer: Server, protocol: int, lines: Sequence[Line], values: Mapping[str, bytes] = NO_VALUES
) -> None:
    ours, theirs = (played(each, protocol, lines, values) for each in (server, peer))
    for line, our_reply, their_reply in zip(lines, ours, theirs, strict=True):
        assert our_reply == their_reply, line


def is_busy(server: Server) -> bool:
    """Whether a new client is told that a script runs. An earlier one may have to wait for its thread."""
    with Connection(server.port, timeout=1.0) as connection:
        try:
            reply = connection.command("PING")
        except TimeoutError:
            return False
        return isinstance(reply, Failure) and reply.text.startswith(b"BUSY ")
