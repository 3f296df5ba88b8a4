"""The transport of asyncio clients: one connection that all commands of a client share.

Commands of one turn of the loop leave in one write, and nobody waits for another's reply. The connection is taken from
valkey-py's pool, which has opened it, logged in and chosen the database; then its bytes go to the native module.
Commands that wait or change how replies come, and transactions that watch keys, get connections of their own there.
"""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import Callable
from typing import Any

from valkey._parsers.socket import SERVER_CLOSED_CONNECTION_ERROR
from valkey.asyncio.connection import Connection, SSLConnection, UnixDomainSocketConnection
from valkey.exceptions import ConnectionError, InvalidResponse, TimeoutError

from snugly import _native
from snugly.clients import Transported, become
from snugly.deferred import Deferrals, deferred_in, each_settled, settle_async
from snugly.errors import UndecodableError
from snugly.transport.pipelines import StagingPipeline, request_of, results_of, stage_again
from snugly.transport.wire import (
    FOREIGN_OPTIONS,
    WIRE,
    callback_finder,
    deferrals_of,
    is_awaitable,
    suits,
    wire_for,
)

SHARED = "_snugly_shared"
OWNER = "_snugly_owner"
CONNECTIONS = (Connection, SSLConnection, UnixDomainSocketConnection)
PROBE = 0.5
"""Time in seconds in which a connection must give a sign of life after a command was given up. Without one, others that
wait on it go on waiting, and commands that follow get another connection."""
LEAST_CONNECTIONS = 2
"""A pool must have one for those commands that need it to themselves."""


class Link(_native.Link):
    """The connection, while it is there: what an asyncio transport calls. The native half does all that is hot."""

    def __new__(cls, _connection: Any, wire: _native.Wire) -> Link:
        """Takes over a connection of valkey-py that is open. Its streams still learn that it ends."""
        return super().__new__(cls, wire, asyncio.get_running_loop())

    def __init__(self, connection: Any, _wire: _native.Wire) -> None:
        self.connection = connection
        self.event_loop = asyncio.get_running_loop()
        self.is_open = True
        self.is_retired = False
        self.is_doubtful = False
        """Whether the other side gives no sign of life, so that nothing is asked any more."""
        self.retry = connection.retry if connection.retry._retries and connection.retry_on_error else None
        self.health_check_interval: float = connection.health_check_interval
        self.is_careful = self.retry is not None or self.health_check_interval > 0
        """Whether there is more to asking than to ask."""
        self.last_heard = self.event_loop.time()
        self._writer = connection._writer
        self._transport = connection._writer.transport
        self._streams = self._transport.get_protocol()
        self._probe: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._resumed = asyncio.Event()
        self._resumed.set()
        self.is_watched = connection.socket_timeout is None
        """Whether somebody looks how long replies take, if they may not take any time."""
        self._transport.set_protocol(self)
        # Received data answers nothing that is asked from now on, but it may be half of something.
        super().data_received(bytes(connection._reader._buffer))

    def is_ready(self) -> bool:
        """Returns whether all earlier requests were sent."""
        return self._resumed.is_set()

    async def ready(self) -> None:
        """Waits until it is."""
        await self._resumed.wait()

    def watch(self) -> None:
        """Looks after the timeout whether those who wait now still do."""
        self.is_watched = True
        self._timer = self.event_loop.call_later(self.connection.socket_timeout, self._look)

    def _look(self) -> None:
        waiting, timeout = self.waiting(), self.connection.socket_timeout
        if waiting is None:
            self.is_watched = False
        elif waiting < timeout:
            self._timer = self.event_loop.call_later(timeout - waiting, self._look)
        else:
            self.fail(TimeoutError, f"Timeout reading from {self.connection._host_error()}")

    def write(self, data: bytes) -> None:
        """Sends bytes, unless the connection is ending: then all who wait get an error in a moment."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def doubt(self) -> None:
        """Looks whether the other side is still there: a command was given up, and perhaps for want of a reply."""
        if self._probe is not None or not self.is_open:
            return
        if self.waiting() is None:
            # Nothing is owed.
            probing = self.ask(("PING",))
            if probing is not None:
                probing.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._probe = self.event_loop.call_later(PROBE, self._judge)

    def _judge(self) -> None:
        self._probe = None
        waiting = self.waiting()
        if waiting is not None and waiting >= PROBE:
            self.is_doubtful = True

    def fail(self, kind: type[Exception], message: str) -> None:
        """Ends the connection; all who wait get an error."""
        self.is_open = False
        for timer in (self._timer, self._probe):
            if timer is not None:
                timer.cancel()
        self._resumed.set()
        for future in self.abandon():
            if not future.done():
                future.set_exception(kind(message))
        self._transport.abort()

    def retire(self) -> None:
        """Ends the connection as soon as nobody waits any more. Nothing may be asked from now on."""
        self.is_retired = True
        self._end_if_idle()
        if self.is_open and self.is_doubtful:
            self._end_if_unwanted()

    def _end_if_idle(self) -> None:
        if self.waiting() is None:
            self.fail(ConnectionError, "The connection is not used any more.")

    def _end_if_unwanted(self) -> None:
        """Ends the connection once all who waited on it have given up."""
        if not self.is_open:
            return
        if self.is_wanted():
            self._probe = self.event_loop.call_later(PROBE, self._end_if_unwanted)
        else:
            self.fail(ConnectionError, "The connection is not used any more.")

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except _native.ProtocolFault as fault:
            self.fail(InvalidResponse, f"Protocol Error: {fault}")
        except BaseException:
            # An unknown part has been read.
            self.fail(ConnectionError, "Reading was interrupted.")
            raise
        if not self.is_open:
            # It was closed by code that ran while the native half held on to the waiters.
            self.fail(ConnectionError, SERVER_CLOSED_CONNECTION_ERROR)
        elif self.is_retired:
            self._end_if_idle()

    def eof_received(self) -> None:
        """The transport closes then."""

    def connection_lost(self, error: Exception | None) -> None:
        self._streams.connection_lost(error)
        self.fail(ConnectionError, f"Connection lost: {error}" if error else SERVER_CLOSED_CONNECTION_ERROR)
        # The connection may have been opened again meanwhile.
        if self.connection._writer is self._writer:
            self.connection._close()

    def pause_writing(self) -> None:
        self._resumed.clear()

    def resume_writing(self) -> None:
        self._resumed.set()


class Shared:
    """A client's link: opened when it is first needed, and again when it was lost."""

    def __init__(self, pool: Any, wire: _native.Wire, deferrals: Deferrals) -> None:
        self.wire = wire
        self.deferrals = deferrals
        self.link: Link | None = None
        self._pool = pool
        self._opening: asyncio.Task[None] | None = None

    def usable(self) -> Link | None:
        link = self.link
        if link is not None and link.is_open and not link.is_doubtful and link.event_loop is asyncio.get_running_loop():
            return link
        return None

    async def open(self) -> Link:
        """The link. Raises what the pool raises if there is no connection to be had, for all who want it now."""
        event_loop = asyncio.get_running_loop()
        while (link := self.usable()) is None:
            opening = self._opening
            if opening is None or opening.done() or opening.get_loop() is not event_loop:
                opening = self._opening = event_loop.create_task(self._open())
            await asyncio.shield(opening)
        return link

    async def _open(self) -> None:
        was_lost = self.link is not None
        await self.close()
        self.link = Link(await self._pool.get_connection("SHARED"), self.wire)
        if was_lost and self.deferrals.manager is not None:
            # More than the connection may be lost.
            self.deferrals.manager.hurry()

    async def close(self) -> None:
        """Returns the connection to the pool, closed."""
        link, self.link = self.link, None
        if link is None:
            return
        if link.event_loop is asyncio.get_running_loop() and not link.is_doubtful:
            link.fail(ConnectionError, "The client has been closed.")
            await link.connection.disconnect(nowait=True)
        else:
            leave(link)
        # A pool that was reset meanwhile does not know it any more.
        with contextlib.suppress(KeyError):
            await self._pool.release(link.connection)

    def drop(self, owner: object) -> None:
        """Closes the connection of an owner that is not there any more."""
        link, self.link = self.link, None
        if link is not None and link.is_open:
            warnings.warn(f"Unclosed client session {owner!r}", ResourceWarning, source=owner, stacklevel=2)
            # Its loop may have ended, and the connection with it.
            with contextlib.suppress(RuntimeError):
                link.fail(ConnectionError, "The client is gone.")
            link.connection._reader = link.connection._writer = None

    def retire(self) -> None:
        """Leaves the connection to those who wait on it. It is closed then, and not given back. From any thread."""
        link, self.link = self.link, None
        if link is not None:
            leave(link)

    async def healthy(self) -> Link:
        """The link, after a PING if nothing was heard for as long as the setting says."""
        link = self.usable() or await self.open()
        interval, event_loop = link.health_check_interval, link.event_loop
        if interval and event_loop.time() - link.last_heard > interval:
            with contextlib.suppress(ConnectionError, TimeoutError):
                await answered(link, link.ask(("PING",)))
            link = self.usable() or await self.open()
            link.last_heard = event_loop.time()
        return link

    async def send(
        self,
        requests: list[_native.Request],
        asking: bool = False,
        finish: Callable[[list[Any]], Any] = lambda replies: replies,
        transaction: bool = False,
    ) -> Any:
        """Returns the result of `finish` for the replies to requests, sent behind ASKING if `asking`.

        Tried again as the settings say. Of a `transaction` the last reply has those of its commands.
        """
        link = await self.healthy()

        async def once() -> Any:
            nonlocal link
            link = self.usable() or await self.open()
            await link.ready()
            replies = await answered(link, link.send(requests, asking))
            if self.deferrals.count:
                waiting = list(deferred_in(replies))
                found = await self.deferrals.fetched_async(waiting) if waiting else {}
                if transaction and isinstance(replies[-1], list):
                    replies[-1] = each_settled(replies[-1], found, UndecodableError)
                replies = each_settled(replies, found, UndecodableError)
            return finish(replies)

        async def failed(error: Exception) -> None:
            if not isinstance(error, tuple(link.connection.retry_on_error or ())):
                raise error

        result = await (link.retry.call_with_retry(once, failed) if link.retry is not None else once())
        link.last_heard = link.event_loop.time()
        return result


def leave(link: Link) -> None:
    """Leaves a link to its own loop. From any thread."""
    # If that has ended, so has the connection.
    if not link.event_loop.is_closed():
        link.event_loop.call_soon_threadsafe(link.retire)
    link.connection._reader = link.connection._writer = None


async def answered(link: Link, future: asyncio.Future[Any] | None) -> Any:
    """Waits for the future's result, up to the timeout."""
    if not link.is_watched:
        link.watch()
    assert future is not None
    try:
        return await future
    except asyncio.CancelledError:
        link.doubt()
        raise


def first_of(replies: list[Any]) -> Any:
    """The reply to the one command that was sent. Raises it if it is an error."""
    reply = replies[-1]
    if isinstance(reply, Exception):
        raise reply
    return reply


class SharedNode(Transported):
    """For asyncio clients of one server."""

    @classmethod
    def adopt(cls, client: Any) -> None:
        pool = client.connection_pool
        single = client.single_connection_client or client.connection is not None
        # Of a pool that is somebody else's no connection is kept.
        own = client.auto_close_connection_pool and pool.max_connections >= LEAST_CONNECTIONS
        if own and not single and suits(pool, CONNECTIONS):
            wire = wire_for(client)
            client.__dict__.update({WIRE: wire, SHARED: Shared(pool, wire, deferrals_of(client))})
            become(client, cls)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        shared: Shared = self.__dict__[SHARED]
        if self.connection is not None:
            return await super().execute_command(*args, **options)
        if options:
            if not FOREIGN_OPTIONS.isdisjoint(options):
                return await super().execute_command(*args, **options)
            options.pop("keys", None)
        link = shared.usable()
        if link is None or link.is_careful or not link.is_ready():
            request = shared.wire.request(args)
            if request is None:
                return await super().execute_command(*args, **options)
            reply = await shared.send([request], finish=first_of)
        else:
            future = link.ask(args)
            if future is None:
                return await super().execute_command(*args, **options)
            if not link.is_watched:
                link.watch()
            try:
                reply = await future
            except asyncio.CancelledError:
                link.doubt()
                raise
            if shared.deferrals.count:
                reply = await settle_async(shared.deferrals, reply)
        callback = callback_finder(self)(args[0])
        if callback is None:
            return reply
        result = callback(reply, **options)
        return await result if is_awaitable(result) else result

    def pipeline(self, *args: Any, **options: Any) -> Any:
        pipeline = super().pipeline(*args, **options)
        own = pipeline.__dict__
        own[SHARED], own[WIRE] = self.__dict__[SHARED], self.__dict__[WIRE]
        # The connection is the client's, and must not end before the pipeline.
        own[OWNER] = self
        become(pipeline, SharedPipeline)
        return pipeline

    def __del__(self) -> None:
        if SHARED in self.__dict__:
            self.__dict__[SHARED].drop(self)
        super().__del__()

    async def aclose(self, *args: Any, **options: Any) -> None:
        await self.__dict__[SHARED].close()
        await super().aclose(*args, **options)


class SharedPipeline(StagingPipeline):
    """For their pipelines."""

    async def execute(self, raise_on_error: bool = True) -> Any:
        shared: Shared = self.__dict__[SHARED]
        commands = self.command_stack
        transaction = bool(self.is_transaction or self.explicit_transaction)
        try:
            request = request_of(self, transaction)
        except BaseException:
            await self.reset()
            raise
        if request is None:
            stage_again(self)
            return await super().execute(raise_on_error)
        # Without a connection the commands stay where they are, as in valkey-py.
        await shared.healthy()
        try:
            results = await shared.send(
                [request],
                finish=lambda replies: results_of(self, commands, replies, transaction, raise_on_error),
                transaction=transaction,
            )
        finally:
            await self.reset()
        return [await result if is_awaitable(result) else result for result in results]
