"""The transport of asyncio clients of clusters: one connection to each node that all commands share.

Where commands go, and where they go next after MOVED, ASK and TRYAGAIN or when a node is lost, is up to valkey-py. A
command is packed once, its values encoded, and what was packed travels among its options, as a Restoration does where
valkey-py packs. So it is sent as it was as often as it takes.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from valkey.asyncio.cluster import ClusterNode, ClusterParser, NodesManager

from snugly import _native
from snugly.clients import Compression, Plain, Transported, become
from snugly.deferred import Deferrals
from snugly.handshakes import plain_class
from snugly.lasting_nodes import LastingNodes, keep_start_nodes
from snugly.restoration import OPTION
from snugly.text import known_nodes
from snugly.transport.shared import CONNECTIONS, LEAST_CONNECTIONS, Shared
from snugly.transport.wire import FOREIGN_OPTIONS, WIRE, callback_finder, deferrals_of, wire_for

FOREIGN_CLUSTER_OPTIONS = FOREIGN_OPTIONS | {"target_nodes"}
"""The nodes that somebody names need not be of this client."""
ASKING = ("ASKING",)
STAGED: Any = object()
"""In place of a request: the command is for this transport, and is packed when its pipeline is executed."""


class SharedCluster(Transported):
    """For asyncio clients of clusters."""

    @classmethod
    def finish(cls, client: Any, compression: Compression, native: bool) -> Any:
        keep_start_nodes(client)
        return super().finish(client, compression, native)

    @classmethod
    def adopt(cls, client: Any) -> None:
        settings = client.connection_kwargs
        plain = plain_class(settings["connection_class"]) in CONNECTIONS and settings["parser_class"] is ClusterParser
        caches = settings["cache_enabled"] or settings["client_cache"]
        if plain and not caches and settings["max_connections"] >= LEAST_CONNECTIONS:
            wire = wire_for(client, ClusterParser.parse_error)
            client.__dict__[WIRE] = wire
            client.nodes_manager = Nodes(client.nodes_manager, wire, deferrals_of(client))
            become(client, cls)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        wire: _native.Wire = self.__dict__[WIRE]
        if is_ours(self, wire, args, options):
            options[OPTION] = wire.request(args)
        return await super().execute_command(*args, **options)

    async def aclose(self) -> None:
        for node in known_nodes(self.nodes_manager):
            await node.close()
        await super().aclose()

    def pipeline(self, *args: Any, **options: Any) -> Any:
        pipeline = super().pipeline(*args, **options)
        pipeline.__dict__[WIRE] = self.__dict__[WIRE]
        become(pipeline, SharedClusterPipeline)
        return pipeline


class SharedClusterPipeline(Plain):  # type: ignore[misc]
    """For their pipelines."""

    _command_stack: list[Any]

    def execute_command(self, *args: Any, **options: Any) -> Any:
        if is_ours(self._client, self.__dict__[WIRE], args, options):
            options[OPTION] = STAGED
        return super().execute_command(*args, **options)

    async def execute(self, *args: Any, **options: Any) -> Any:
        staged = [command for command in self._command_stack if command.kwargs.get(OPTION) is STAGED]
        try:
            requests = self.__dict__[WIRE].requests([(command.args, command.kwargs) for command in staged])
        except BaseException:
            self._command_stack = []
            raise
        for command, request in zip(staged, requests, strict=True):
            command.kwargs[OPTION] = request
        return await super().execute(*args, **options)


def is_ours(client: Any, wire: _native.Wire, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Returns whether a command is for this transport. Raises CommandRefusedError."""
    # A callback that joins the replies of several nodes gets the options, and does not accept more of them.
    plain = FOREIGN_CLUSTER_OPTIONS.isdisjoint(options) and args[0] not in client.result_callbacks
    return plain and wire.takes(args)


class Nodes(LastingNodes):
    """The nodes of a client: whichever it hears of is one with a shared connection."""

    __slots__ = ("_deferrals", "_wire")

    def __init__(self, manager: NodesManager, wire: _native.Wire, deferrals: Deferrals) -> None:
        """Takes the place of the manager that a client has."""
        super().__init__(manager)
        self._wire, self._deferrals = wire, deferrals
        for node in known_nodes(self):
            share(node, wire, deferrals)

    def made(self, host: str, port: int) -> ClusterNode:
        node = super().made(host, port)
        share(node, self._wire, self._deferrals)
        return node

    def set_nodes(self, old: dict[str, ClusterNode], new: dict[str, ClusterNode], remove_old: bool = False) -> None:
        for node in new.values():
            if not isinstance(node, Node):
                share(node, self._wire, self._deferrals)
        super().set_nodes(old, new, remove_old)


def share(node: ClusterNode, wire: _native.Wire, deferrals: Deferrals) -> None:
    """Makes the commands to a node share a connection."""
    if isinstance(node, Node):
        node._connections.shared.retire()
    else:
        # This one counts, too.
        node.max_connections -= 1
    node.__class__ = Node
    node._connections = Connections(node._connections)
    node._connections.shared = Shared(node, wire, deferrals)


class Connections(list[Any]):
    """The connections of a node, and the one that is shared: nodes have no room for another attribute."""

    shared: Shared
    asking: asyncio.Task[Any] | None = None
    """Task that has just sent ASKING, which is to leave together with its next command."""


class Node(ClusterNode):
    """A node with a shared connection, and connections of its own for what cannot share one."""

    __slots__ = ()
    _connections: Connections

    def __del__(self, *args: Any) -> None:
        # A caller that has waited for long may still ask a node that was given up meanwhile.
        self._connections.shared.retire()
        super().__del__(*args)

    async def get_connection(self, _name: str) -> Any:
        """A new one, for all to share: the node itself closes its connections whenever the topology is read."""
        connection: Any = self.connection_class(**self.connection_kwargs)
        await connection.connect()
        return connection

    async def release(self, connection: Any) -> None:
        """The shared connection is not used in any other way."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        # Nothing is awaited between ASKING and the command that it is for.
        asking = self._asked_before()
        if args == ASKING:
            self._connections.asking = asyncio.current_task()
            return True
        request = options.get(OPTION)
        if isinstance(request, _native.Request):
            *_, reply = await self._replies([request], asking)
            return self._result(reply, args, options)
        if asking:
            await super().execute_command(*ASKING)
            # The connection that it went by is the next to be taken.
            self._free.rotate(1)
        return await super().execute_command(*args, **options)

    async def execute_pipeline(self, commands: list[Any]) -> bool:
        self._connections.asking = None
        failed = False
        for ours, run in itertools.groupby(commands, is_packed):
            together = list(run)
            failed |= await (self._execute_together(together) if ours else super().execute_pipeline(together))
        return failed

    async def disconnect(self) -> None:
        """Closes the connections. Who waits on the shared one still gets a reply, having done nothing to lose it."""
        self._connections.shared.retire()
        await super().disconnect()

    async def close(self) -> None:
        """Closes the shared connection; all who wait get an error."""
        await self._connections.shared.close()

    def _asked_before(self) -> bool:
        """Returns whether this task has just sent ASKING."""
        task, self._connections.asking = self._connections.asking, None
        return task is not None and task is asyncio.current_task()

    async def _execute_together(self, commands: list[Any]) -> bool:
        """Sets the results of commands that have been packed, and says whether one of them is an error.

        That the connection is lost meanwhile is such an error; that there is none to be had is raised.
        """
        await self._connections.shared.open()
        try:
            replies = await self._replies([command.kwargs[OPTION] for command in commands])
        except Exception as error:
            replies = [error] * len(commands)
        failed = False
        for command, reply in zip(commands, replies, strict=True):
            try:
                command.result = self._result(reply, command.args, command.kwargs)
            except Exception as error:
                command.result, failed = error, True
        return failed

    async def _replies(self, requests: list[_native.Request], asking: bool = False) -> list[Any]:
        replies: list[Any] = await self._connections.shared.send(requests, asking)
        return replies

    def _result(self, reply: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Returns the callback's result for a reply. Raises it if it is an error."""
        if isinstance(reply, Exception):
            raise reply
        callback = callback_finder(self)(args[0])
        if callback is None:
            return reply
        return callback(reply, **{name: value for name, value in options.items() if name not in (OPTION, "keys")})


def is_packed(command: Any) -> bool:
    return isinstance(command.kwargs.get(OPTION), _native.Request)
