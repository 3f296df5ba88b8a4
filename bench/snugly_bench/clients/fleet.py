"""Processes that each measure one library: how they are started, asked together and ended."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from snugly_bench.clients.peers import Training
from snugly_bench.clients.plan import OPERATIONS, Operation
from snugly_bench.clients.worker import DONE, GO, READY, Failure, Fill, Measure, Sample, Take, Values, work

ANSWER_SECONDS = 300.0
"""Time that a worker may take for a step, beyond the time that it measures."""
END_SECONDS = 5.0


@dataclass(frozen=True)
class Fleet:
    """The processes of one peer."""

    peer: str
    pipes: tuple[Connection, ...]

    def take(self, values: Values, training: Training = ()) -> None:
        """Hands each process its share of the values, and all that is to be learned from."""
        count = len(self.pipes)
        for number, pipe in enumerate(self.pipes):
            pipe.send(Take(values[number::count], training))
        self.expect(DONE)

    def fill(self, order: Fill) -> None:
        """Has all values written, read and compared."""
        self.send(order)
        self.expect(DONE)

    def measure(self, order: Measure, cpu: Callable[[], float]) -> dict[Operation, tuple[list[Sample], float]]:
        """The samples of all processes for each operation, and by how much what `cpu` returns has grown meanwhile."""
        self.send(order)
        found: dict[Operation, tuple[list[Sample], float]] = {}
        for operation in OPERATIONS:
            self.expect(READY)
            before = cpu()
            self.send(GO)
            samples = [self.sample(pipe) for pipe in self.pipes]
            found[operation] = samples, cpu() - before
        self.expect(DONE)
        return found

    def send(self, message: object) -> None:
        for pipe in self.pipes:
            pipe.send(message)

    def expect(self, answer: str) -> None:
        for pipe in self.pipes:
            received = self.receive(pipe)
            if received != answer:
                raise self.unexpected(received, answer)

    def sample(self, pipe: Connection) -> Sample:
        received = self.receive(pipe)
        if not isinstance(received, Sample):
            raise self.unexpected(received, "a sample")
        return received

    def unexpected(self, received: object, wanted: str) -> SystemExit:
        return SystemExit(f"a process that measures {self.peer} answered {received!r:.60} instead of {wanted}")

    def receive(self, pipe: Connection) -> object:
        """The next answer; exits if there is none, or if it is a failure."""
        try:
            answer = pipe.recv() if pipe.poll(ANSWER_SECONDS) else Failure(f"no answer for {ANSWER_SECONDS:.0f} s")
        except EOFError:
            answer = Failure("the process has ended")
        if isinstance(answer, Failure):
            raise SystemExit(f"measuring {self.peer} failed: {answer.text}")
        return answer


@contextmanager
def running(peer: str, processes: int) -> Iterator[Fleet]:
    """Starts the processes of a peer, and ends them in any case."""
    # A forked process would share the threads' locks of a library with its parent.
    context = multiprocessing.get_context("spawn")
    with ExitStack() as afterwards:
        pipes = []
        for _ in range(processes):
            ours, theirs = context.Pipe()
            process = context.Process(target=work, args=[theirs], daemon=True)
            process.start()
            theirs.close()
            afterwards.callback(end, process, ours)
            pipes.append(ours)
        yield Fleet(peer, tuple(pipes))


def end(process: multiprocessing.process.BaseProcess, pipe: Connection) -> None:
    pipe.close()
    process.terminate()
    process.join(END_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
