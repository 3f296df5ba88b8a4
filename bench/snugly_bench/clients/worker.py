"""A process that measures one library: it carries out one order after another, and answers each.

An order that measures has two steps, so that several processes start together: the worker says `READY`, and begins when
it is told `GO`.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import traceback
from array import array
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from multiprocessing.connection import Connection
from time import monotonic, perf_counter, process_time
from typing import Any

from snugly_bench.clients.peers import Address, Client, Training
from snugly_bench.clients.plan import OPERATIONS, Contender, Operation
from snugly_bench.clients.versions import peer

READY, GO, DONE = "ready", "go", "done"
FILL_BATCH = 20
SHOWN_FRAMES = 3
"""Of a failure, the innermost ones."""

Values = list[tuple[str, bytes]]
"""Names, which a key ends in, and values."""


@dataclass(frozen=True)
class Take:
    """The order to keep values for the orders that follow."""

    values: Values
    training: Training
    """Values to learn from, for clients that do."""


@dataclass(frozen=True)
class Fill:
    """The order to write all values, and to read all back and compare them."""

    contender: Contender
    address: Address
    prefix: str


@dataclass(frozen=True)
class Measure:
    """The order to measure all operations, one after the other."""

    contender: Contender
    address: Address
    prefix: str
    clients: int
    """Tasks that each have one request under way."""
    own: bool
    """Whether each task has a client object of its own; else all share one."""
    batch: int
    seconds: float
    iterations: int | None
    """Operations after which it ends earlier."""


@dataclass(frozen=True)
class Sample:
    """The measurements of one operation by one process."""

    operations: int
    began: float
    """By the clock that all processes have in common, in seconds, as `ended`."""
    ended: float
    cpu: float
    """Seconds of processor time, of all threads of the process."""
    latencies: array[float]
    """Seconds of each request."""


@dataclass(frozen=True)
class Failure:
    """The answer to an order that could not be done."""

    text: str


class WrongValue(Exception):
    """A value came back other than it was written."""


def work(pipe: Connection) -> None:
    """Does orders until the pipe is closed."""
    # Ctrl-C goes to all processes of a terminal; it is the first that ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    values: Values = []
    training: Training = ()
    while True:
        try:
            order = pipe.recv()
        except EOFError:
            return
        try:
            match order:
                case Take():
                    values, training = order.values, order.training
                case Fill():
                    asyncio.run(fill(order, values, training))
                case Measure():
                    asyncio.run(measure(order, values, training, pipe))
            pipe.send(DONE)
        except Exception as error:
            where = "".join(traceback.format_tb(error.__traceback__, limit=-SHOWN_FRAMES))
            pipe.send(Failure(f"{type(error).__name__}: {error}\n{where}"))


async def fill(order: Fill, values: Values, training: Training) -> None:
    client = await peer(order.contender.peer).open(order.address, order.contender.backend, 1, training)
    pairs = [(order.prefix + name, value) for name, value in values]
    batches = [pairs[start : start + FILL_BATCH] for start in range(0, len(pairs), FILL_BATCH)]
    for batch in batches:
        await client.set_all(batch)
    for batch in batches:
        check(batch, await client.get_all([key for key, _ in batch]))
    key, value = pairs[0]
    check([(key, value)], [await client.get(key)])
    await client.close()


def check(expected: Sequence[tuple[str, bytes]], replies: list[Any] | None) -> None:
    for (key, value), reply in zip(expected, replies or [], strict=True):
        if reply != value:
            raise WrongValue(f"{key} was written as {shown(value)} and came back as {shown(reply)}")


def shown(value: object) -> str:
    """The beginning of a value, and how long it is."""
    return f"{len(value)} bytes {value[:20]!r}" if isinstance(value, bytes) else repr(value)


async def measure(order: Measure, values: Values, training: Training, pipe: Connection) -> None:
    count = order.clients if order.own else 1
    library = peer(order.contender.peer)
    each = order.clients // count
    opened = [await library.open(order.address, order.contender.backend, each, training) for _ in range(count)]
    pairs = [(order.prefix + name, value) for name, value in values]
    clients = list(islice(cycle(opened), order.clients))
    for operation in OPERATIONS:
        await warm_up(clients, operation, pairs, order.batch)
        gc.collect()
        pipe.send(READY)
        if pipe.recv() != GO:
            break
        requests = [request(client, operation, pairs, order.batch) for client in clients]
        pipe.send(await repeat(requests, starts(pairs, order.batch), order))
    await asyncio.gather(*(client.close() for client in opened))


def starts(pairs: Sequence[object], batch: int) -> range:
    """The starts of batches; the last values are left out if they are too few for one."""
    return range(0, len(pairs) - batch + 1, batch)


async def warm_up(clients: list[Client], operation: Operation, pairs: Values, batch: int) -> None:
    """Sends a request of each task, all at once, so that all connections are there, and checks what is read."""

    async def ask(client: Client, start: int) -> None:
        part = pairs[start : start + batch]
        if operation == "SET":
            await client.set_all(part)
        else:
            check(part, await client.get_all([key for key, _ in part]))

    positions = cycle(starts(pairs, batch))
    await asyncio.gather(*(ask(client, start) for client, start in zip(clients, positions, strict=False)))


def request(client: Client, operation: Operation, pairs: Values, batch: int) -> Callable[[int], Awaitable[object]]:
    """The function that sends the request that starts at a position; it does nothing but the library's own work."""
    keys = [key for key, _ in pairs]
    if batch == 1:
        if operation == "SET":
            return lambda start: client.set(*pairs[start])
        return lambda start: client.get(keys[start])
    if operation == "SET":
        return lambda start: client.set_all(pairs[start : start + batch])
    return lambda start: client.get_all(keys[start : start + batch])


async def repeat(requests: list[Callable[[int], Awaitable[object]]], positions: range, order: Measure) -> Sample:
    """Sends requests, each task one after the other, until time or iterations are over."""
    limit = None if order.iterations is None else -(-order.iterations // order.batch)
    shared = islice(cycle(positions), limit)
    latencies = array("d")
    cpu, began = process_time(), monotonic()
    until = perf_counter() + order.seconds
    await asyncio.gather(*(ask_again(ask, shared, until, latencies) for ask in requests))
    ended = monotonic()
    return Sample(len(latencies) * order.batch, began, ended, process_time() - cpu, latencies)


async def ask_again(
    ask: Callable[[int], Awaitable[object]], positions: Iterator[int], until: float, latencies: array[float]
) -> None:
    for position in positions:
        began = perf_counter()
        if began >= until:
            return
        await ask(position)
        latencies.append(perf_counter() - began)
