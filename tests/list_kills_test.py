"""kill -9 while lists are pushed to and popped from: what was promised is there after a restart, in order, once."""

from __future__ import annotations

import os
import random
import signal
import time
from functools import partial
from pathlib import Path

import pytest

import servers
from histories import Commits
from resp import Connection, Failure
from servers import Server, check
from threads import in_threads
from waiting import until

pytestmark = pytest.mark.snugly_only

KILLS = int(os.environ.get("SNUGLY_KILLS", "6"))
QUEUES = 4
MAX_MEMORY = 2 << 20


class Queue:
    """Numbers that one thread pushes to a list in their order, and pops from its front."""

    def __init__(self, number: int, seed: str) -> None:
        self.key = f"queue:{number}"
        self.random = random.Random(f"{seed} {number}")
        # The next number, and how many were popped; each with the times of the answers.
        self.next, self.popped = 0, 0
        self.pushes: list[tuple[float, int]] = []
        self.pops: list[tuple[float, int]] = []

    def element(self) -> bytes:
        return b"%d %s" % (self.next, b"event" * self.random.randrange(0, 200))

    def write_until_killed(self, port: int) -> None:
        try:
            with Connection(port) as connection:
                while True:
                    self.step(connection)
        except (ConnectionError, EOFError):
            pass

    def step(self, connection: Connection) -> None:
        if self.random.random() < 0.3 and self.next - self.popped > 40:
            count = self.random.randrange(1, 30)
            # It may have happened without being answered.
            self.popped += count
            connection.command("LPOP", self.key, count)
            self.pops.append((time.monotonic(), self.popped))
            return
        # One transaction: the list's last number is that of the string.
        number, element = self.next, self.element()
        self.next += 1
        connection.command("MULTI")
        connection.command("RPUSH", self.key, element)
        connection.command("SET", f"last:{self.key}", number)
        answer = connection.command("EXEC")
        assert not isinstance(answer, Failure), answer
        self.pushes.append((time.monotonic(), self.next))

    def verify(self, connection: Connection, promised: float) -> None:
        elements = connection.command("LRANGE", self.key, 0, -1)
        assert isinstance(elements, list)
        found = [int(bytes(element).split(b" ")[0]) for element in elements]  # type: ignore[arg-type]
        last = connection.command("GET", f"last:{self.key}")
        assert last is None or isinstance(last, bytes)
        first, end = (found[0], found[-1] + 1) if found else (0, 0)
        assert found == list(range(first, end)), "numbers are missing or out of order"
        assert int(last or -1) == end - 1, "a transaction was torn apart"
        pushed = max((number for at, number in self.pushes if at <= promised), default=0)
        popped = max((number for at, number in self.pops if at <= promised), default=0)
        assert pushed <= end <= self.next
        assert popped <= first <= self.popped
        # It goes on from here.
        self.next, self.popped, self.pushes, self.pops = end, first, [], []


@pytest.mark.parametrize("kills", [1, pytest.param(KILLS, marks=pytest.mark.slow, id="many")])
@pytest.mark.parametrize("durability", ["fsync", "batched"])
def test_a_kill_loses_no_push_and_no_pop_that_was_promised(tmp_path: Path, durability: str, kills: int) -> None:
    folder, seed = tmp_path / "store", os.environ.get("SNUGLY_SEED", durability)
    random_ = random.Random(seed)
    queues = [Queue(number, seed) for number in range(QUEUES)]
    options = ["--storage", str(folder), "--durability", durability, "--max-memory", str(MAX_MEMORY)]
    for number in range(kills):
        commits = Commits()
        with servers.snugly(*options) as server:

            def kill(server: Server = server, commits: Commits = commits, is_first: bool = number == 0) -> None:
                if is_first:
                    until(lambda: commits.done_before > 0)
                else:
                    time.sleep(random_.uniform(0.1, 0.8))
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()

            in_threads(
                kill,
                partial(commits.watch_until_killed, server.port),
                *(partial(queue.write_until_killed, server.port) for queue in queues),
            )
        promised = time.monotonic() if durability == "fsync" else commits.done_before
        check(folder)
        with servers.snugly(*options) as server, server.connect() as connection:
            for queue in queues:
                queue.verify(connection, promised)
