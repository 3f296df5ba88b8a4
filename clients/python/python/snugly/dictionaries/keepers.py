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
        # A thread that is to end may still be at work when the next one starts.
        self._looking = threading.Lock()
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
            keeping = threading.Thread(
                target=keep, args=(weakref.ref(self), ended), name="snugly-dictionaries", daemon=True
            )
            # There may be too many threads, or the interpreter ends. Whoever wakes this does so again.
            with contextlib.suppress(RuntimeError):
                keeping.start()
                self._end = weakref.finalize(self, ended.put, None)

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
            with self._looking:
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
    """For asyncio clients, in one event loop at a time, which it does not keep."""

    def __init__(
        self, catalogue: Catalogue, way: AsyncNodeWay | AsyncClusterWay, learning: Learning | None = None
    ) -> None:
        self.catalogue = catalogue
        self._way = way
        self._upkeep = Upkeep(catalogue, learning)
        self._care: weakref.ref[Care] | None = None
        self.forget()
        KEEPERS.add(self)

    def forget(self) -> None:
        """Starts from nothing: a child does not go on with the loops of its parent."""
        self._fetching: weakref.WeakValueDictionary[int, asyncio.Task[bool]] = weakref.WeakValueDictionary()
        care = self._let_go()
        if care is not None:
            care.has_ended = True
        self._upkeep.forget()
        self.catalogue.at_hand.sleep()

    async def fetch(self, dictionary: int) -> bool:
        """Gets a dictionary, once for all who wait for it, and says whether it is at hand."""
        if self.catalogue.at_hand.get(dictionary) is not None:
            return True
        if self.catalogue.is_missing(dictionary):
            return False
        event_loop = asyncio.get_running_loop()
        task = self._fetching.get(dictionary)
        if task is None or task.done() or task.get_loop() is not event_loop:
            task = self._fetching[dictionary] = event_loop.create_task(self._found(dictionary))
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
        care = self._care() if self._care is not None else None
        if care is not None:
            if care.goes_on_beside(event_loop):
                return
            care.end_from_elsewhere()
        self._care = weakref.ref(Care(self, event_loop))

    async def stop(self) -> None:
        """Ends that, until dictionaries are used again."""
        care = self._let_go()
        if care is not None:
            await care.stop()
        self.catalogue.at_hand.sleep()

    def _let_go(self) -> Care | None:
        reference, self._care = self._care, None
        return reference() if reference is not None else None

    async def look(self, way: Any) -> float:
        """Does what is to be done, and returns how long there is nothing to do, in seconds."""
        try:
            return await done_async(self._upkeep.look(), way)
        except Exception:
            logger.warning(UNEXPECTED, exc_info=True)
        return self.catalogue.interval

    def way(self) -> Any:
        return self._way.copy()


class Care:
    """What one event loop does for a keeper while that is there.

    Only the loop keeps this, by what is to be done next. Between two looks that is a timer: of tasks that are pending
    when a loop is closed, asyncio complains.
    """

    def __init__(self, keeper: AsyncKeeper, event_loop: asyncio.AbstractEventLoop) -> None:
        self.has_ended = False
        self._event_loop = event_loop
        self._keeper = weakref.ref(keeper, lambda _: self.end_from_elsewhere())
        self._way = keeper.way()
        self._timer: asyncio.TimerHandle | None = None
        self._begin()

    def goes_on_beside(self, event_loop: asyncio.AbstractEventLoop) -> bool:
        """Whether it goes on while another loop runs: not in one that is closed, or was left."""
        return not self.has_ended and (self._event_loop is event_loop or self._event_loop.is_running())

    def end_from_elsewhere(self) -> None:
        """Ends it, from any thread and whatever has become of its loop."""
        self.has_ended = True
        # It may be closed.
        with contextlib.suppress(RuntimeError):
            self._event_loop.call_soon_threadsafe(self._end)

    async def stop(self) -> None:
        """Ends it, and waits for that if it is in the same loop."""
        if self._event_loop is not asyncio.get_running_loop():
            self.end_from_elsewhere()
            return
        self._end()
        # A command is not broken off, since a cluster's connections are used again; nobody waits for it for long.
        await asyncio.wait([self._task], timeout=LONGEST_END)
        self._task.cancel()

    def _begin(self) -> None:
        self._timer = None
        self._task = self._event_loop.create_task(self._look())

    def _end(self) -> None:
        """Lets the look that is at work, or else another one, be the last."""
        self.has_ended = True
        if self._timer is not None:
            self._timer.cancel()
            self._begin()

    async def _look(self) -> None:
        pause = None
        keeper = self._keeper()
        if keeper is not None and not self.has_ended:
            # The loop ends, perhaps; there may be another one.
            with contextlib.suppress(asyncio.CancelledError):
                pause = await keeper.look(self._way)
        if pause is not None and not self.has_ended:
            self._timer = self._event_loop.call_later(pause, self._begin)
        else:
            self.has_ended = True
            await self._way.aclose()


async def done_async(steps: Steps[Result], way: Any) -> Result:
    """Does the steps, and returns what comes of them."""
    event_loop = asyncio.get_running_loop()
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
                if event_loop.is_closed():
                    # Nothing of this goes on; the library stumbles when what it awaits is taken from it.
                    raise GeneratorExit from error
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
