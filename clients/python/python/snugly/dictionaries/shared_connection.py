"""One connection for all look-ups of dictionaries at a time: they take turns, and the last one closes it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

from snugly.dictionaries.connections import (
    AsyncClusterConnection,
    AsyncNodeConnection,
    ClusterConnection,
    NodeConnection,
    is_reply,
)


class SharedConnection:
    """For threads. It stands for a connection; closing it does nothing while others use it."""

    def __init__(self, connection: NodeConnection | ClusterConnection) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self._users = 0

    @contextlib.contextmanager
    def used(self) -> Iterator[Self]:
        with self._lock:
            self._users += 1
        try:
            yield self
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._connection.close()

    def send_all(self, commands: list[tuple[Any, ...]]) -> Any:
        with self._lock:
            try:
                return self._connection.send_all(commands)
            except BaseException as error:
                if not (isinstance(error, Exception) and is_reply(error)):
                    self._connection.close()
                raise

    def close(self) -> None:
        """The connection ends with the last who uses it, or with an error."""


class AsyncSharedConnection:
    """The same for the tasks of one event loop."""

    def __init__(self, connection: AsyncNodeConnection | AsyncClusterConnection) -> None:
        self.event_loop = asyncio.get_running_loop()
        self._connection = connection
        self._lock = asyncio.Lock()
        self._users = 0

    @contextlib.asynccontextmanager
    async def used(self) -> AsyncIterator[Self]:
        self._users += 1
        try:
            yield self
        finally:
            self._users -= 1
            if not self._users:
                await self._connection.aclose()

    async def send_all(self, commands: list[tuple[Any, ...]]) -> Any:
        async with self._lock:
            try:
                return await self._connection.send_all(commands)
            except BaseException as error:
                if not (isinstance(error, Exception) and is_reply(error)):
                    await self._connection.aclose()
                raise

    async def aclose(self) -> None:
        """Like that of a SharedConnection."""
