"""How commands about dictionaries get to a client's server: on a connection of their own that is made as the client's
are, or, in a cluster, the way of the client, which knows its nodes.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import Any, Self

from snugly.callbacks import OPTION
from snugly.compressor import Restoration

AS_IT_IS = Restoration(None, (), (), lambda reply, _key: reply)
"""Says that a command's values are not ours to encode, nor those of its reply to restore."""


LONGEST_WAIT = 10.0
"""In seconds, for a server that says nothing, where the client's settings have no limit."""


class Unreachable(OSError):
    """The client is not there any more."""


class NodeWay:
    """To one server, by a connection of a synchronous client's pool that the pool knows nothing of."""

    def __init__(self, pool: Any) -> None:
        """`pool` is anything that knows how connections are made."""
        self._pool = pool
        self._connection: Any = None

    def copy(self) -> Self:
        """Another way there, not open yet."""
        return type(self)(self._pool)

    def alone(self, _key: bytes) -> Self:
        """A way to the node of a key, not open yet, that nobody else uses."""
        return self.copy()

    def connection(self) -> Any:
        if self._connection is None:
            settings = self._pool.connection_kwargs
            timeout = settings.get("socket_timeout") or LONGEST_WAIT
            settings = {**settings, "decode_responses": False, "socket_timeout": timeout}
            self._connection = self._pool.connection_class(**settings)
        return self._connection

    def send(self, *command: Any) -> Any:
        self.connection().connect()
        self._connection.send_command(*command)
        return self._connection.read_response()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()


class AsyncNodeWay(NodeWay):
    """The same for an asyncio client."""

    async def send(self, *command: Any) -> Any:
        await self.connection().connect()
        await self._connection.send_command(*command)
        return await self._connection.read_response()

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # Its loop may be closed.
            with contextlib.suppress(RuntimeError):
                await connection.disconnect(nowait=True)


class ClusterWay:
    """To the primaries of a cluster, by the client itself."""

    def __init__(self, client: Any, library: str = "") -> None:
        """`library` is where the client comes from: what its methods are called depends on that."""
        self._client = weakref.ref(client)
        self._library = library

    def copy(self) -> Self:
        """Another way there: the same."""
        return self

    def alone(self, key: bytes) -> NodeWay:
        """As that of a NodeWay. In front of it something was sent for the key, so that its node is known."""
        connection_to = getattr(self.client(), f"get_{self._library}_connection")
        return NodeWay(connection_to(self.primary(key)).connection_pool)

    def client(self) -> Any:
        client = self._client()
        if client is None:
            raise Unreachable("the client is not there any more")
        return client

    def primary(self, key: bytes) -> Any:
        """The node that has a key."""
        client = self.client()
        return client.nodes_manager.get_node_from_slot(client.keyslot(key))

    def send(self, *command: Any) -> Any:
        options: dict[str, Any] = {"NEVER_DECODE": []}
        if command[0] != "TOUCH":
            options[OPTION] = AS_IT_IS
        if command[0] == "GET":
            # Else a client that reads from replicas asks one, which may be behind. The client does not try again then,
            # but looks for the nodes anew, and whoever asks this tries again.
            options["target_nodes"] = self.primary(command[1])
        return self.client().execute_command(*command, **options)

    def close(self) -> None:
        """The client's connections stay open."""


class AsyncClusterWay(ClusterWay):
    """The same for an asyncio client."""

    def alone(self, key: bytes) -> AsyncNodeWay:
        return AsyncNodeWay(self.primary(key))

    async def send(self, *command: Any) -> Any:
        # One that has lost a node knows none until it has looked for them.
        await self.client().initialize()
        return await super().send(*command)

    async def aclose(self) -> None:
        """The client's connections stay open."""
