"""Managers of the dictionaries of one client: they fetch those that readers wait for, and refresh what is in use on a
thread or in an event loop.

They know threads and event loops. What is asked is up to the tasks, and how it gets to the server to a connection.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import enum
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any

from snugly import _native
from snugly.deferred import Found
from snugly.dictionaries.connections import (
    AsyncClusterConnection,
    AsyncNodeConnection,
    ClusterConnection,
    NodeConnection,
    is_reply,
)
from snugly.dictionaries.effects import Batch, Dedicated, Effects, Result, Work
from snugly.dictionaries.learning import Learning
from snugly.dictionaries.shared_connection import AsyncSharedConnection, SharedConnection
from snugly.dictionaries.tasks import DictionaryTasks, logger

UNEXPECTED = "dictionaries could not be maintained; it is tried again"
LONGEST_END = 1.0
"""Time that a closed client waits for its last look, in seconds."""


class Maintenance:
    """Periodic work for the dictionaries of one client."""

    def __init__(self, tasks: DictionaryTasks, learning: Learning | None) -> None:
        self._tasks = tasks
        self._learning = learning

    def look(self) -> Effects[float]:
        """Does the work that is due, and returns the time until more is due, in seconds."""
        pause = yield from self._tasks.refreshed()
        if self._learning is None:
            return pause
        began = time.monotonic()
        learned = yield from self._learning.look()
        return max(min(learned, pause - (time.monotonic() - began)), 0.0)

    def last(self) -> Effects[None]:
        """Does the last work before the client is closed: others read what it has written."""
        if self._tasks.is_written_with:
            yield from self._tasks.kept()

    def forget(self) -> None:
        """Starts from nothing, in another process."""
        self._tasks.forget_tasks()
        if self._learning is not None:
            self._learning.forget()


class DictionaryManager:
    """For synchronous clients, from any thread."""

    def __init__(
        self, tasks: DictionaryTasks, connection: NodeConnection | ClusterConnection, learning: Learning | None = None
    ) -> None:
        self.tasks = tasks
        self._connection = connection
        self._maintenance = Maintenance(tasks, learning)
        self.forget()
        MANAGERS.add(self)

    def forget(self) -> None:
        """Starts from nothing: a child has neither the threads of its parent nor what they have locked."""
        end: weakref.finalize[Any, DictionaryManager] | None = getattr(self, "_end", None)
        if end is not None:
            end.detach()
        # A client may be collected, and closed by that, while its own thread holds this.
        self._lock = threading.RLock()
        # A thread that is to end may still be at work when the next one starts.
        self._looking = threading.Lock()
        self._fetching: dict[int, Future[_native.Dictionary | None]] = {}
        self._shared = SharedConnection(self._connection.copy())
        self._end: weakref.finalize[Any, DictionaryManager] | None = None
        self._thread: threading.Thread | None = None
        self._messages: queue.SimpleQueue[Message] | None = None
        self._maintenance.forget()
        self.tasks.cache.sleep()

    def fetch(self, dictionaries: Collection[int]) -> Found:
        """Fetches dictionaries, each once for all its waiters, and returns those found."""
        found: Found = {}
        mine: dict[int, Future[_native.Dictionary | None]] = {}
        others: dict[int, Future[_native.Dictionary | None]] = {}
        with self._lock:
            for dictionary in dictionaries:
                held = self.tasks.cache.get(dictionary)
                if held is not None:
                    found[dictionary] = held
                elif dictionary in self._fetching:
                    others[dictionary] = self._fetching[dictionary]
                elif not self.tasks.is_missing(dictionary):
                    mine[dictionary] = self._fetching[dictionary] = Future()
        if mine:
            fetched: Found = {}
            try:
                with self._shared.used() as connection:
                    fetched = carried_out(self.tasks.fetched(mine), connection)
            finally:
                for dictionary, future in mine.items():
                    del self._fetching[dictionary]
                    future.set_result(fetched.get(dictionary))
            found.update(fetched)
        for dictionary, future in others.items():
            got = future.result()
            if got is not None:
                found[dictionary] = got
        return found

    def start(self) -> None:
        """Starts managing dictionaries, unless that is under way."""
        with self._lock:
            if self._end is not None:
                return
            # The only kind that may be used while garbage is collected.
            messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
            keeping = threading.Thread(
                target=keep, args=(weakref.ref(self), messages), name="snugly-dictionaries", daemon=True
            )
            # There may be too many threads, or the interpreter ends. Whoever wakes this does so again.
            with contextlib.suppress(RuntimeError):
                keeping.start()
                self._end = weakref.finalize(self, messages.put, Message.END)
                # At the end of the process there is a last look first.
                self._end.atexit = False
                self._thread, self._messages = keeping, messages

    def hurry(self) -> None:
        """Looks soon: a connection was lost."""
        messages = self._messages
        if messages is not None:
            self.tasks.hurry()
            messages.put(Message.LOOK)

    def stop(self) -> None:
        """Ends that after a last look, until dictionaries are used again."""
        with self._lock:
            end, self._end = self._end, None
            messages, self._messages = self._messages, None
            thread, self._thread = self._thread, None
        if end is None or messages is None or thread is None:
            return
        end.detach()
        looks = self.tasks.is_written_with and thread is not threading.current_thread()
        messages.put(Message.LOOK_AND_END if looks else Message.END)
        if looks:
            thread.join(LONGEST_END)
        self.tasks.cache.sleep()

    def look_last(self, connection: NodeConnection | ClusterConnection) -> None:
        """Does the last work before the client is closed."""
        with contextlib.suppress(Exception), self._looking:
            carried_out(self._maintenance.last(), connection)

    def look(self, connection: NodeConnection | ClusterConnection) -> float:
        """Does the work that is due, and returns the time until more is due, in seconds."""
        try:
            with self._looking:
                return carried_out(self._maintenance.look(), connection)
        except Exception:
            logger.warning(UNEXPECTED, exc_info=True)
        return self.tasks.interval

    def connection(self) -> NodeConnection | ClusterConnection:
        return self._connection.copy()


class Message(enum.Enum):
    """Requests to the thread that refreshes dictionaries."""

    LOOK = enum.auto()
    LOOK_AND_END = enum.auto()
    END = enum.auto()


def keep(reference: Callable[[], DictionaryManager | None], messages: queue.SimpleQueue[Message]) -> None:
    """Refreshes a manager's dictionaries while it lives. Runs on a thread."""
    connection: NodeConnection | ClusterConnection | None = None
    try:
        while (manager := reference()) is not None:
            connection = connection or manager.connection()
            pause = manager.look(connection)
            del manager
            message = None
            with contextlib.suppress(queue.Empty):
                message = messages.get(timeout=pause)
            if message is Message.LOOK_AND_END and (manager := reference()) is not None:
                manager.look_last(connection)
            if message in (Message.LOOK_AND_END, Message.END):
                return
    finally:
        if connection is not None:
            connection.close()


def carried_out(effects: Effects[Result], connection: NodeConnection | ClusterConnection | SharedConnection) -> Result:
    """Carries effects out, and returns their outcome."""
    try:
        effect = next(effects)
        while True:
            if isinstance(effect, float):
                time.sleep(effect)
                effect = next(effects)
                continue
            try:
                reply = outcome(effect, connection)
            except Exception as error:
                if not is_reply(error):
                    connection.close()
                effect = effects.throw(error)
            else:
                effect = effects.send(reply)
    except StopIteration as end:
        result: Result = end.value
        return result


def outcome(effect: Any, connection: Any) -> Any:
    """The outcome of one effect."""
    if isinstance(effect, Work):
        return effect.do()
    if isinstance(effect, Dedicated):
        with contextlib.closing(connection.alone(effect.key)) as alone:
            return carried_out(effect.effects, alone)
    return connection.send_all(effect.commands) if isinstance(effect, Batch) else connection.send(*effect)


class AsyncDictionaryManager:
    """For asyncio clients, in one event loop at a time, which it does not keep."""

    def __init__(
        self,
        tasks: DictionaryTasks,
        connection: AsyncNodeConnection | AsyncClusterConnection,
        learning: Learning | None = None,
    ) -> None:
        self.tasks = tasks
        self._connection = connection
        self._maintenance = Maintenance(tasks, learning)
        self._loop: weakref.ref[RefreshLoop] | None = None
        self.forget()
        MANAGERS.add(self)

    def forget(self) -> None:
        """Starts from nothing: a child does not go on with the loops of its parent."""
        self._fetching: weakref.WeakValueDictionary[int, asyncio.Task[Found]] = weakref.WeakValueDictionary()
        self._shared: weakref.ref[AsyncSharedConnection] | None = None
        loop = self._let_go()
        if loop is not None:
            loop.has_ended = True
        self._maintenance.forget()
        self.tasks.cache.sleep()

    async def fetch(self, dictionaries: Collection[int]) -> Found:
        """Fetches dictionaries, each once for all its waiters, and returns those found."""
        event_loop = asyncio.get_running_loop()
        found: Found = {}
        mine: list[int] = []
        tasks: list[asyncio.Task[Found]] = []
        for dictionary in dictionaries:
            held = self.tasks.cache.get(dictionary)
            task = self._fetching.get(dictionary)
            if held is not None:
                found[dictionary] = held
            elif task is not None and not task.done() and task.get_loop() is event_loop:
                tasks.append(task)
            elif not self.tasks.is_missing(dictionary):
                mine.append(dictionary)
        if mine:
            task = event_loop.create_task(self._found(mine))
            tasks.append(task)
            for dictionary in mine:
                self._fetching[dictionary] = task
        for task in tasks:
            # A caller that stops waiting does not stop others.
            got = await asyncio.shield(task)
            found.update((dictionary, got[dictionary]) for dictionary in dictionaries if dictionary in got)
        return found

    async def _found(self, dictionaries: Collection[int]) -> Found:
        joint = self._shared() if self._shared is not None else None
        if joint is None or joint.event_loop is not asyncio.get_running_loop():
            joint = AsyncSharedConnection(self._connection.copy())
            # Only its tasks keep it, since it keeps their loop.
            self._shared = weakref.ref(joint)
        async with joint.used() as connection:
            return await carried_out_async(self.tasks.fetched(dictionaries), connection)

    def start(self) -> None:
        """Starts managing dictionaries, unless that is under way, or there is no loop to do it in."""
        try:
            event_loop = asyncio.get_running_loop()
        except RuntimeError:
            self.tasks.cache.sleep()
            return
        loop = self._loop() if self._loop is not None else None
        if loop is not None:
            if loop.goes_on_beside(event_loop):
                return
            loop.end_from_elsewhere()
        self._loop = weakref.ref(RefreshLoop(self, event_loop))

    def hurry(self) -> None:
        """Looks soon: a connection was lost."""
        loop = self._loop() if self._loop is not None else None
        if loop is not None:
            self.tasks.hurry()
            loop.hurry()

    async def stop(self) -> None:
        """Ends that after a last look, until dictionaries are used again."""
        loop = self._let_go()
        if loop is not None:
            await loop.stop()
        self.tasks.cache.sleep()

    def _let_go(self) -> RefreshLoop | None:
        reference, self._loop = self._loop, None
        return reference() if reference is not None else None

    async def look(self, connection: Any) -> float:
        """Does the work that is due, and returns the time until more is due, in seconds."""
        try:
            return await carried_out_async(self._maintenance.look(), connection)
        except Exception:
            logger.warning(UNEXPECTED, exc_info=True)
        return self.tasks.interval

    async def look_last(self, connection: Any) -> None:
        """Does the last work before the client is closed."""
        with contextlib.suppress(Exception):
            await carried_out_async(self._maintenance.last(), connection)

    def connection(self) -> Any:
        return self._connection.copy()


class RefreshLoop:
    """Refreshes a manager's dictionaries in one event loop while the manager lives.

    Only the loop keeps this, by what is to be done next. Between two looks that is a timer: of tasks that are pending
    when a loop is closed, asyncio complains.
    """

    def __init__(self, manager: AsyncDictionaryManager, event_loop: asyncio.AbstractEventLoop) -> None:
        self.has_ended = False
        self._looks_last = False
        self._event_loop = event_loop
        self._manager = weakref.ref(manager, lambda _: self.end_from_elsewhere())
        self._connection = manager.connection()
        self._timer: asyncio.TimerHandle | None = None
        self._begin()

    def goes_on_beside(self, event_loop: asyncio.AbstractEventLoop) -> bool:
        """Returns whether it goes on while another loop runs: not in one that is closed, or was left."""
        return not self.has_ended and (self._event_loop is event_loop or self._event_loop.is_running())

    def end_from_elsewhere(self) -> None:
        """Ends it, from any thread and whatever has become of its loop."""
        self.has_ended = True
        # The loop may be closed.
        with contextlib.suppress(RuntimeError):
            self._event_loop.call_soon_threadsafe(self._end)

    async def stop(self) -> None:
        """Ends it, and waits for that if it is in the same loop."""
        if self._event_loop is not asyncio.get_running_loop():
            self.end_from_elsewhere()
            return
        self._looks_last = True
        self._end()
        # A command is not broken off, since a cluster's connections are used again; nobody waits for it for long.
        await asyncio.wait([self._task], timeout=LONGEST_END)
        self._task.cancel()

    def hurry(self) -> None:
        """Begins the next look now, if it waits for that, and this is its loop."""
        if self._timer is not None and not self.has_ended and self._event_loop is asyncio.get_running_loop():
            self._timer.cancel()
            self._begin()

    def _begin(self) -> None:
        self._timer = None
        self._task = self._event_loop.create_task(self._look())

    def _end(self) -> None:
        """Makes the look that is at work, or else another one, the last."""
        self.has_ended = True
        if self._timer is not None:
            self._timer.cancel()
            self._begin()

    async def _look(self) -> None:
        pause = None
        manager = self._manager()
        if manager is not None and not self.has_ended:
            # The loop ends, perhaps; there may be another one.
            with contextlib.suppress(asyncio.CancelledError):
                pause = await manager.look(self._connection)
        if pause is not None and not self.has_ended:
            self._timer = self._event_loop.call_later(pause, self._begin)
        else:
            self.has_ended = True
            if self._looks_last and manager is not None:
                await manager.look_last(self._connection)
            await self._connection.aclose()


async def carried_out_async(effects: Effects[Result], connection: Any) -> Result:
    """Carries effects out, and returns their outcome."""
    event_loop = asyncio.get_running_loop()
    try:
        effect = next(effects)
        while True:
            if isinstance(effect, float):
                await asyncio.sleep(effect)
                effect = next(effects)
                continue
            try:
                reply = await outcome_async(effect, connection)
            except Exception as error:
                if event_loop.is_closed():
                    # Nothing of this goes on; the library stumbles when what it awaits is taken from it.
                    raise GeneratorExit from error
                if not is_reply(error):
                    await connection.aclose()
                effect = effects.throw(error)
            else:
                effect = effects.send(reply)
    except StopIteration as end:
        result: Result = end.value
        return result


async def outcome_async(effect: Any, connection: Any) -> Any:
    """The outcome of one effect."""
    if isinstance(effect, Work):
        return await asyncio.to_thread(effect.do)
    if isinstance(effect, Dedicated):
        async with contextlib.aclosing(connection.alone(effect.key)) as alone:
            return await carried_out_async(effect.effects, alone)
    return await (connection.send_all(effect.commands) if isinstance(effect, Batch) else connection.send(*effect))


MANAGERS: weakref.WeakSet[DictionaryManager | AsyncDictionaryManager] = weakref.WeakSet()


def forget_all() -> None:
    for manager in list(MANAGERS):
        manager.forget()


def stop_all() -> None:
    """Ends all threads: the values of a client that is never closed are read by others, too."""
    managers = [manager for manager in list(MANAGERS) if isinstance(manager, DictionaryManager)]
    for manager in managers:
        manager.stop()


os.register_at_fork(after_in_child=forget_all)
os.register_at_fork(after_in_child=_native.forget_threads)
# Threads that come later stay in the native module; so what is registered later is called before.
atexit.register(_native.leave)
atexit.register(stop_all)
