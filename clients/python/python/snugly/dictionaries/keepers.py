"""Who asks a client's server about dictionaries: whoever reads a value, and a thread or task that looks after them.

It knows threads and event loops. What is asked is up to the catalogue, and how it gets there to a way.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from snugly.dictionaries.catalogue import Catalogue, is_reply, logger
from snugly.dictionaries.learning import Learning
from snugly.dictionaries.steps import Alone, Result, Steps, Work
from snugly.dictionaries.ways import AsyncClusterWay, AsyncNodeWay, ClusterWay, NodeWay

UNEXPECTED = "dictionaries could not be looked after; it is tried again"
LONGEST_END = 1.0
"""How long a client that is closed waits for its task, in seconds."""


class Upkeep:
    """What there is to do for the dictionaries of one client, and when."""

    def __init__(self, catalogue: Catalogue, learning: Learning | None) -> None:
        self._catalogue = catalogue
        self._learning = learning
        self._round_at = 0.0

    def look(self) -> Steps[float]:
        """Does what is to be done, and returns how long there is nothing to do, in seconds."""
        if time.monotonic() >= self._round_at:
            self._round_at = time.monotonic() + self._catalogue.interval
            yield from self._catalogue.round()
        learned: float = (yield from self._learning.look()) if self._learning is not None else self._catalogue.interval
        return max(min(learned, self._round_at - time.monotonic()), 0.0)

    def forget(self) -> None:
        """Starts from nothing, in another process."""
        self._round_at = 0.0
        if self._learning is not None:
            self._learning.forget()


class Keeper:
    """For synchronous clients, from any thread."""

    def __init__(self, catalogue: Catalogue, way: NodeWay | ClusterWay, learning: Learning | None = None) -> None:
        self.catalogue = catalogue
        self._way = way
        self._upkeep = Upkeep(catalogue, learning)
        self.forget()
        KEEPERS.add(self)

    def forget(self) -> None:
        """Starts from nothing: a child has neither the threads of its parent nor what they have locked."""
        end: weakref.finalize[Any, Keeper] | None = getattr(self, "_end", None)
        if end is not None:
            end.detach()
        # A client may be collected, and closed by that, while its own thread holds this.
        self._lock = threading.RLock()
        self._fetching: dict[int, Future[bool]] = {}
        self._end: weakref.finalize[Any, Keeper] | None = None
        self._upkeep.forget()
        self.catalogue.at_hand.sleep()

    def fetch(self, dictionary: int) -> bool:
        """Gets a dictionary, once for all who wait for it, and says whether it is at hand."""
        with self._lock:
            if self.catalogue.at_hand.get(dictionary) is not None:
                return True
            if self.catalogue.is_missing(dictionary):
                return False
            future = self._fetching.get(dictionary)
            is_mine = future is None
            if future is None:
                future = self._fetching[dictionary] = Future()
        if not is_mine:
            return future.result()
        found = False
        try:
            with contextlib.closing(self._way.copy()) as way:
                found = done(self.catalogue.found(dictionary), way)
        finally:
            del self._fetching[dictionary]
            future.set_result(found)
        return found

    def start(self) -> None:
        """Begins to look after dictionaries, unless somebody does."""
        with self._lock:
            if self._end is not None:
                return
            # The only kind that may be used while garbage is collected.
            ended: queue.SimpleQueue[None] = queue.SimpleQueue()
            self._end = weakref.finalize(self, ended.put, None)
            keeping = threading.Thread(
                target=keep, args=(weakref.ref(self), ended), name="snugly-dictionaries", daemon=True
            )
            # An interpreter that ends starts no threads.
            with contextlib.suppress(RuntimeError):
                keeping.start()

    def stop(self) -> None:
        """Ends that, until dictionaries are used again."""
        with self._lock:
            end, self._end = self._end, None
        if end is not None:
            end()
            self.catalogue.at_hand.sleep()

    def look(self, way: NodeWay | ClusterWay) -> float:
        """Does what is to be done, and returns how long there is nothing to do, in seconds."""
        try:
            return done(self._upkeep.look(), way)
        except Exception:
            logger.warning(UNEXPECTED, exc_info=True)
        return self.catalogue.interval

    def way(self) -> NodeWay | ClusterWay:
        return self._way.copy()


def keep(reference: Callable[[], Keeper | None], ended: queue.SimpleQueue[None]) -> None:
    """What the thread does while the keeper is there."""
    way: NodeWay | ClusterWay | None = None
    try:
        while (keeper := reference()) is not None:
            way = way or keeper.way()
            pause = keeper.look(way)
            del keeper
            with contextlib.suppress(queue.Empty):
                ended.get(timeout=pause)
                return
    finally:
        if way is not None:
            way.close()


def done(steps: Steps[Result], way: NodeWay | ClusterWay) -> Result:
    """Does the steps, and returns what comes of them."""
    try:
        step = next(steps)
        while True:
            if isinstance(step, float):
                time.sleep(step)
                step = next(steps)
                continue
            try:
                reply = taken(step, way)
            except Exception as error:
                if not is_reply(error):
                    way.close()
                step = steps.throw(error)
            else:
                step = steps.send(reply)
    except StopIteration as end:
        result: Result = end.value
        return result


def taken(step: Any, way: NodeWay | ClusterWay) -> Any:
    """What comes of one step."""
    if isinstance(step, Work):
        return step.do()
    if isinstance(step, Alone):
        with contextlib.closing(way.alone(step.key)) as alone:
            return done(step.steps, alone)
    return way.send(*step)


class AsyncKeeper:
    """For asyncio clients, in one event loop at a time."""

    def __init__(
        self, catalogue: Catalogue, way: AsyncNodeWay | AsyncClusterWay, learning: Learning | None = None
    ) -> None:
        self.catalogue = catalogue
        self._way = way
        self._upkeep = Upkeep(catalogue, learning)
        self._end: weakref.finalize[Any, AsyncKeeper] | None = None
        self.forget()
        KEEPERS.add(self)

    def forget(self) -> None:
        """Starts from nothing: a child does not go on with the loops of its parent."""
        self._fetching: dict[tuple[asyncio.AbstractEventLoop, int], asyncio.Task[bool]] = {}
        self._task: asyncio.Task[None] | None = None
        self._let_go()
        self._upkeep.forget()
        self.catalogue.at_hand.sleep()

    async def fetch(self, dictionary: int) -> bool:
        """Gets a dictionary, once for all who wait for it, and says whether it is at hand."""
        if self.catalogue.at_hand.get(dictionary) is not None:
            return True
        if self.catalogue.is_missing(dictionary):
            return False
        event_loop = asyncio.get_running_loop()
        place = (event_loop, dictionary)
        task = self._fetching.get(place)
        if task is None:
            task = self._fetching[place] = event_loop.create_task(self._found(dictionary))
            task.add_done_callback(lambda _: self._fetching.pop(place, None))
        # Who stops waiting does not stop others.
        return await asyncio.shield(task)

    async def _found(self, dictionary: int) -> bool:
        way = self._way.copy()
        try:
            return await done_async(self.catalogue.found(dictionary), way)
        finally:
            await way.aclose()

    def start(self) -> None:
        """Begins to look after dictionaries, unless somebody does, or there is no loop to do it in."""
        try:
            event_loop = asyncio.get_running_loop()
        except RuntimeError:
            self.catalogue.at_hand.sleep()
            return
        task = self._task
        if task is not None and not task.done() and task.get_loop() is event_loop:
            return
        ended = asyncio.Event()
        self._let_go()
        self._task = event_loop.create_task(keep_async(weakref.ref(self), ended))
        self._end = weakref.finalize(self, end_in, event_loop, ended)

    async def stop(self) -> None:
        """Ends that, until dictionaries are used again."""
        task, self._task = self._task, None
        end, self._end = self._end, None
        if end is not None and (task is None or task.done()):
            end.detach()
        elif end is not None and task is not None:
            end()
            # A command is not broken off, since a cluster's connections are used again; nobody waits for it for long.
            if task.get_loop() is asyncio.get_running_loop():
                await asyncio.wait([task], timeout=LONGEST_END)
                task.cancel()
        self.catalogue.at_hand.sleep()

    def _let_go(self) -> None:
        """Keeps no loop any more that was used before."""
        if self._end is not None:
            self._end.detach()
        self._end = None

    async def look(self, way: Any) -> float:
        """Does what is to be done, and returns how long there is nothing to do, in seconds."""
        try:
            return await done_async(self._upkeep.look(), way)
        except Exception:
            logger.warning(UNEXPECTED, exc_info=True)
        return self.catalogue.interval

    def way(self) -> Any:
        return self._way.copy()


def end_in(event_loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """Ends a task, from any thread and whatever has become of its loop."""
    # It may be closed.
    with contextlib.suppress(RuntimeError):
        event_loop.call_soon_threadsafe(ended.set)


async def keep_async(reference: Callable[[], AsyncKeeper | None], ended: asyncio.Event) -> None:
    """What the task does while the keeper is there."""
    way = None
    try:
        while (keeper := reference()) is not None and not ended.is_set():
            way = way or keeper.way()
            pause = await keeper.look(way)
            del keeper
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), pause)
    finally:
        keeper = reference()
        if keeper is not None:
            # The loop has ended, perhaps; there may be another one.
            keeper.catalogue.at_hand.sleep()
        if way is not None:
            await way.aclose()


async def done_async(steps: Steps[Result], way: Any) -> Result:
    """Does the steps, and returns what comes of them."""
    try:
        step = next(steps)
        while True:
            if isinstance(step, float):
                await asyncio.sleep(step)
                step = next(steps)
                continue
            try:
                reply = await taken_async(step, way)
            except Exception as error:
                if not is_reply(error):
                    await way.aclose()
                step = steps.throw(error)
            else:
                step = steps.send(reply)
    except StopIteration as end:
        result: Result = end.value
        return result


async def taken_async(step: Any, way: Any) -> Any:
    """What comes of one step."""
    if isinstance(step, Work):
        return await asyncio.to_thread(step.do)
    if isinstance(step, Alone):
        async with contextlib.aclosing(way.alone(step.key)) as alone:
            return await done_async(step.steps, alone)
    return await way.send(*step)


KEEPERS: weakref.WeakSet[Keeper | AsyncKeeper] = weakref.WeakSet()


def forget_all() -> None:
    for keeper in list(KEEPERS):
        keeper.forget()


os.register_at_fork(after_in_child=forget_all)
