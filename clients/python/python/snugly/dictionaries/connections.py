"""Connections for commands about dictionaries: to a server, one of their own that is made as the client's are; to a
cluster, those of the client, which knows the nodes.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import Any, Self

from snugly.restoration import OPTION, Restoration

AS_IT_IS = Restoration()
"""Option that keeps a command's values from being encoded, and those of its reply from being restored."""


LONGEST_WAIT = 10.0
"""In seconds, for a server that says nothing, where the client's settings have no limit."""


MOST_BY_CLIENT = 2
"""Most commands that a cluster's client sends one by one."""


def is_reply(error: Exception) -> bool:
    """Returns whether an error came from the server, and its connection can still be used."""
    return any(base.__name__ == "ResponseError" for base in type(error).__mro__)


class Unreachable(OSError):
    """The client is not there any more."""


class NodeConnection:
    """To one server, by a connection of a synchronous client's pool that the pool knows nothing of."""

    def __init__(self, pool: Any, database: int | None = None) -> None:
        """`pool` knows how connections are made; `database` is where the dictionaries are, if in another."""
        self._pool = pool
        self._database = database
        self._connection: Any = None

    def copy(self) -> Self:
        """Another connection there, not open yet."""
        return type(self)(self._pool, self._database)

    def alone(self, _key: bytes) -> Self:
        """A connection to the node of a key, not open yet, that nobody else uses."""
        return self.copy()

    def connection(self) -> Any:
        if self._connection is None:
            settings = self._pool.connection_kwargs
            timeout = settings.get("socket_timeout") or LONGEST_WAIT
            settings = {**settings, "decode_responses": False, "socket_timeout": timeout}
            if self._database is not None:
                settings["db"] = self._database
            self._connection = self._pool.connection_class(**settings)
        return self._connection

    def send(self, *command: Any) -> Any:
        self.connection().connect()
        self._connection.send_command(*command)
        return self._connection.read_response()

    def send_all(self, commands: list[tuple[Any, ...]]) -> Any:
        """Sends commands in one round trip, and returns their replies; those that are errors stand among them."""
        connection = self.connection()
        connection.connect()
        connection.send_packed_command(connection.pack_commands(commands))
        return [self._reply_or_error() for _ in commands]

    def _reply_or_error(self) -> Any:
        try:
            return self._connection.read_response()
        except Exception as error:
            if not is_reply(error):
                raise
            return error

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()


class AsyncNodeConnection(NodeConnection):
    """The same for an asyncio client."""

    async def send(self, *command: Any) -> Any:
        await self.connection().connect()
        await self._connection.send_command(*command)
        return await self._connection.read_response()

    async def send_all(self, commands: list[tuple[Any, ...]]) -> Any:
        connection = self.connection()
        await connection.connect()
        await connection.send_packed_command(b"".join(connection.pack_commands(commands)))
        return [await self._reply_or_error() for _ in commands]

    async def _reply_or_error(self) -> Any:
        try:
            return await self._connection.read_response()
        except Exception as error:
            if not is_reply(error):
                raise
            return error

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # Its loop may be closed.
            with contextlib.suppress(RuntimeError):
                await connection.disconnect(nowait=True)


def is_elsewhere(reply: Any) -> bool:
    """Returns whether another node has the key."""
    return isinstance(reply, Exception) and any(
        base.__name__ in ("MovedError", "AskError") for base in type(reply).__mro__
    )


class ClusterConnection:
    """To the primaries of a cluster, by the client itself."""

    def __init__(self, client: Any, library: str = "") -> None:
        """`library` is where the client comes from: what its methods are called depends on that."""
        self._client = weakref.ref(client)
        self._library = library

    def copy(self) -> Self:
        """Another connection there: the same."""
        return self

    def alone(self, key: bytes) -> NodeConnection:
        """Like that of a NodeConnection. A command for the key was sent before, so that its node is known."""
        connection_to = getattr(self.client(), f"get_{self._library}_connection")
        return NodeConnection(connection_to(self.primary(key)).connection_pool)

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

    def send_all(self, commands: list[tuple[Any, ...]]) -> Any:
        """Sends commands to the node that has the key of the first, on a connection of their own; those whose keys are
        elsewhere, after all, the connection of the client."""
        replies: list[Any] = [None] * len(commands)
        rest = list(range(len(commands)))
        if len(commands) > MOST_BY_CLIENT:
            with contextlib.closing(self.alone(commands[0][1])) as connection:
                replies = connection.send_all(commands)
            rest = [at for at, reply in enumerate(replies) if is_elsewhere(reply)]
        for at in rest:
            try:
                replies[at] = self.send(*commands[at])
            except Exception as error:
                if not is_reply(error):
                    raise
                replies[at] = error
        return replies

    def close(self) -> None:
        """The client's connections stay open."""


class AsyncClusterConnection(ClusterConnection):
    """The same for an asyncio client."""

    def alone(self, key: bytes) -> AsyncNodeConnection:
        return AsyncNodeConnection(self.primary(key))

    async def send(self, *command: Any) -> Any:
        # One that has lost a node knows none until it has looked for them.
        await self.client().initialize()
        return await super().send(*command)

    async def send_all(self, commands: list[tuple[Any, ...]]) -> Any:
        await self.client().initialize()
        replies: list[Any] = [None] * len(commands)
        rest = list(range(len(commands)))
        if len(commands) > MOST_BY_CLIENT:
            async with contextlib.aclosing(self.alone(commands[0][1])) as connection:
                replies = await connection.send_all(commands)
            rest = [at for at, reply in enumerate(replies) if is_elsewhere(reply)]
        for at in rest:
            try:
                replies[at] = await self.send(*commands[at])
            except Exception as error:
                if not is_reply(error):
                    raise
                replies[at] = error
        return replies

    async def aclose(self) -> None:
        """The client's connections stay open."""
