"""The nodes of an asyncio cluster of valkey-py, with start-up nodes that last.

valkey-py strikes a node that could not be reached from its start-up nodes. When all of them are away together there is
none left, and the client never finds the cluster again.
"""

from __future__ import annotations

from typing import Any

from valkey.asyncio.cluster import ClusterNode, NodesManager
from valkey.cluster import get_node_name


class LastingNodes(NodesManager):
    """Manager of the nodes of a client, which looks for them at those that it was given, too, and at those it knew."""

    __slots__ = ("_given",)

    def __init__(self, manager: NodesManager) -> None:
        """Takes the place of the manager that a client has."""
        for name in NodesManager.__slots__:
            setattr(self, name, getattr(manager, name))
        self._given = [(node.host, int(node.port)) for node in self.startup_nodes.values()]

    async def initialize(self) -> None:
        for node in self.nodes_cache.values():
            self.startup_nodes.setdefault(node.name, node)
        for host, port in self._given:
            name = get_node_name(host, port)
            if name not in self.startup_nodes or is_spent(self.startup_nodes[name]):
                self.startup_nodes[name] = self.made(host, port)
        await super().initialize()

    def made(self, host: str, port: int) -> ClusterNode:
        """A node at this address, which no connection has been made to yet."""
        return ClusterNode(host, port, **self.connection_kwargs)


def is_spent(node: ClusterNode) -> bool:
    """Returns whether a node can never be asked again: valkey-py forgets a connection on which sending failed, and
    makes no more than `max_connections`."""
    connections = node._connections
    is_full = len(connections) >= node.max_connections
    return is_full and not node._free and not any(connection.is_connected for connection in connections)


def keep_start_nodes(client: Any) -> None:
    """Gives an asyncio client of valkey-py for a cluster such a manager. One that is no plain one stays as it is."""
    if type(client.nodes_manager) is NodesManager:
        client.nodes_manager = LastingNodes(client.nodes_manager)
