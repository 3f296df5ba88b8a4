"""Questions to one node of a cluster, over a connection of their own."""

from __future__ import annotations

from resp import Argument, Reply
from servers import Server


def ask(node: Server, *words: Argument) -> Reply:
    with node.connect() as connection:
        return connection.command(*words)


def identity(node: Server) -> bytes:
    reply = ask(node, "CLUSTER", "MYID")
    assert isinstance(reply, bytes)
    return reply
