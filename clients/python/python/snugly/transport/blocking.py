"""The transport of synchronous clients: a connection of the pool for each call, and one native call on it.

Which connection, whether it is alive, and what is tried again is up to valkey-py's pool and connection.
"""

from __future__ import annotations

import builtins
import selectors
from collections.abc import Callable
from time import time
from typing import Any

from valkey._parsers.socket import SERVER_CLOSED_CONNECTION_ERROR
from valkey.connection import Connection, SSLConnection, UnixDomainSocketConnection
from valkey.exceptions import ConnectionError, InvalidResponse, TimeoutError

from snugly import _native
from snugly.clients import Transported, become
from snugly.deferred import Deferrals, deferred_in, each_settled, settle
from snugly.errors import UndecodableError
from snugly.handshakes import attend
from snugly.transport.pipelines import StagingPipeline, request_of, results_of, stage_again
from snugly.transport.wire import FOREIGN_OPTIONS, WIRE, callback_finder, deferrals_of, suits, wire_for

DEFERRALS = "_snugly_deferrals"
"""Attribute of a client, or a pipeline, with the counts of values that wait."""

READ_BYTES = 64 << 10
"""Bytes read at once. Requests that are longer are sent while their replies are read."""
SENT_BYTES = 16 << 10
"""Bytes that are sent at once then."""


CONNECTIONS = (Connection, SSLConnection, UnixDomainSocketConnection)


class BlockingNode(Transported):
    """For clients of one server."""

    @classmethod
    def adopt(cls, client: Any) -> None:
        pool = client.connection_pool
        if client.connection is None and suits(pool, CONNECTIONS):
            attend(client, None)
            client.__dict__[WIRE], client.__dict__[DEFERRALS] = wire_for(client), deferrals_of(client)
            become(client, cls)

    def execute_command(self, *args: Any, **options: Any) -> Any:
        wire: _native.Wire = self.__dict__[WIRE]
        ours = self.connection is None and FOREIGN_OPTIONS.isdisjoint(options)
        request = wire.request(args) if ours else None
        if request is None:
            return super().execute_command(*args, **options)
        options.pop("keys", None)
        pool = self.connection_pool
        deferrals: Deferrals = self.__dict__[DEFERRALS]
        made = deferrals.made
        connection = pool.get_connection(args[0])
        try:
            reply = connection.retry.call_with_retry(
                lambda: reply_over(connection, request), lambda error: failed(self, connection, error)
            )
        finally:
            pool.release(connection)
        if deferrals.made != made:
            reply = settle(deferrals, reply)
        callback = callback_finder(self)(args[0])
        return reply if callback is None else callback(reply, **options)

    def pipeline(self, *args: Any, **options: Any) -> Any:
        pipeline = super().pipeline(*args, **options)
        pipeline.__dict__[WIRE], pipeline.__dict__[DEFERRALS] = self.__dict__[WIRE], self.__dict__[DEFERRALS]
        become(pipeline, BlockingPipeline)
        return pipeline


class BlockingPipeline(StagingPipeline):
    """For their pipelines."""

    connection: Any

    def execute(self, raise_on_error: bool = True) -> Any:
        commands = self.command_stack
        transaction = bool(self.transaction or self.explicit_transaction)
        try:
            request = request_of(self, transaction)
        except BaseException:
            self.reset()
            raise
        if request is None:
            stage_again(self)
            return super().execute(raise_on_error)
        connection = self.connection_pool.get_connection("MULTI", self.shard_hint)
        self.connection = connection
        try:
            return connection.retry.call_with_retry(
                lambda: results_of(
                    self, commands, self._replies(connection, request, transaction), transaction, raise_on_error
                ),
                lambda error: self._failed(connection, error),
            )
        finally:
            self.reset()

    def _replies(self, connection: Any, request: _native.Request, transaction: bool) -> list[Any]:
        """The replies, with all of their values. Of a `transaction` the last has those of its commands."""
        deferrals: Deferrals = self.__dict__[DEFERRALS]
        made = deferrals.made
        replies = exchanged(connection, request)
        if deferrals.made == made or not (waiting := list(deferred_in(replies))):
            return replies
        found = deferrals.fetched(waiting)
        if transaction and isinstance(replies[-1], list):
            replies[-1] = each_settled(replies[-1], found, UndecodableError)
        return each_settled(replies, found, UndecodableError)

    def _failed(self, connection: Any, error: Exception) -> Any:
        hurry(self.__dict__[DEFERRALS])
        return self._disconnect_raise_reset(connection, error)


def failed(client: Any, connection: Any, error: Exception) -> Any:
    hurry(client.__dict__[DEFERRALS])
    return client._disconnect_raise(connection, error)


def hurry(deferrals: Deferrals) -> None:
    """Makes the dictionary manager look soon: a connection was lost, and perhaps more."""
    if deferrals.manager is not None:
        deferrals.manager.hurry()


def reply_over(connection: Any, request: _native.Request) -> Any:
    """The reply to the one command of a request. Raises it if it is an error."""
    (reply,) = exchanged(connection, request)
    if not isinstance(reply, Exception):
        return reply
    try:
        raise reply
    finally:
        # Its traceback leads here.
        del reply


def send_and_take(sock: Any, packed: bytes, take: Callable[[bytes], list[Any] | None]) -> list[Any] | None:
    """Sends a long request, and takes what is answered meanwhile: a server that reads no more until its replies are
    taken would wait for this client as this client waits for it. Returns the replies if they are all there.

    Raises the errors of the socket, its TimeoutError, and those of `take`.
    """
    unsent, replies = memoryview(packed), None
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while unsent:
            ready = selector.select(sock.gettimeout())
            if not ready:
                raise builtins.TimeoutError("timed out")
            _, events = ready[0]
            if events & selectors.EVENT_READ:
                replies = take(sock.recv(READ_BYTES))
            if events & selectors.EVENT_WRITE:
                # No more than there surely is room for: a socket that blocks would wait for the rest.
                unsent = unsent[sock.send(unsent[:SENT_BYTES]) :]
    return replies


def exchanged(connection: Any, request: _native.Request) -> list[Any]:
    """The replies to a request, over a connection that nobody else has."""
    if connection._sock is None:
        connection.connect()
    else:
        connection.check_health()
    host = connection._host_error()
    doing = "writing to socket"
    try:
        receive, take = connection._sock.recv, request.receiver().take
        replies = None
        if len(request.packed) <= READ_BYTES:
            connection._sock.sendall(request.packed)
        else:
            replies = send_and_take(connection._sock, request.packed, take)
        doing = f"reading from {host}"
        while replies is None:
            replies = take(receive(READ_BYTES))
    except builtins.TimeoutError as error:
        connection.disconnect()
        raise TimeoutError(f"Timeout {doing}") from error
    except EOFError as error:
        connection.disconnect()
        raise ConnectionError(SERVER_CLOSED_CONNECTION_ERROR) from error
    except OSError as error:
        connection.disconnect()
        raise ConnectionError(f"Error while {doing} : {error.args}") from error
    except _native.ProtocolFault as fault:
        connection.disconnect()
        raise InvalidResponse(f"Protocol Error: {fault}") from fault
    except BaseException:
        connection.disconnect()
        raise
    if connection.health_check_interval:
        connection.next_health_check = time() + connection.health_check_interval
    return replies
