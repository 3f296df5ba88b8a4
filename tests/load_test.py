"""Many clients, slow ones, ones that stop, and more than memory holds: the others go on, and memory is bounded."""

from __future__ import annotations

import contextlib
import random
import resource
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import servers
from info import info
from resp import Reply, Simple, encode
from servers import Server
from tested import Start
from threads import in_threads
from waiting import until

OK = Simple(b"OK")
MIB = 1 << 20
IDLE_CLIENTS = 10_000
# Random, so that no compression makes it shorter. Values are parts of it.
POOL = random.Random(0).randbytes(8 * MIB)


def value(number: int) -> bytes:
    """From some bytes to some kilobytes, another for each number."""
    start, length = number * 7919 % (4 * MIB), 10 + number * 104_729 % 20_000
    return POOL[start : start + length]


def resident(server: Server) -> int:
    """Bytes of the server in physical memory."""
    status = Path(f"/proc/{server.process.pid}/status")
    if not status.exists():
        pytest.skip("how much memory a process has is read from /proc")
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def learn_nothing(server: Server) -> None:
    """Ends what snugly does with samples of values in the background, since that takes memory for a while."""
    with server.connect() as connection:
        connection.command("CONFIG", "SET", "dictionaries", "no")


def go_on(server: Server, rounds: int = 500) -> None:
    """Does what a client does, beside the clients that are tested."""
    with server.connect() as connection:
        for number in range(rounds):
            assert connection.command("SET", f"other:{number}", value(number)) == OK
            assert connection.command("GET", f"other:{number}") == value(number)


@contextlib.contextmanager
def open_files(count: int) -> Iterator[None]:
    """Lets the test, and a server that it starts, open so many files before they ask for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"this user may open {hard} files, and {count} are needed (ulimit -H -n)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_ten_thousand_idle_clients_take_little_memory_and_disturb_nobody(
    start: Start, record_property: Callable[[str, object], None]
) -> None:
    with open_files(256):
        server = start()
    learn_nothing(server)
    with open_files(IDLE_CLIENTS + 1_000), contextlib.ExitStack() as stack, server.connect() as connection:
        connection.command("CONFIG", "SET", "maxclients", IDLE_CLIENTS + 100)
        go_on(server)
        before = resident(server)
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(IDLE_CLIENTS)]
        for client in idle:
            client.sendall(encode("SET", "idle", value(1)))
        assert {client.recv(100) for client in idle} == {b"+OK\r\n"}
        each = (resident(server) - before) / IDLE_CLIENTS
        record_property("bytes_per_idle_client", round(each))
        print(f"{each:,.0f} bytes for each idle client")
        assert each < 64 << 10
        assert info(connection, "clients", "connected_clients") == IDLE_CLIENTS + 1
        go_on(server)
        for client in idle[::100]:
            client.sendall(encode("PING"))
            assert client.recv(100) == b"+PONG\r\n"


# Valkey keeps all replies of a client that does not read them, and by default has no limit for them.
@pytest.mark.snugly_only
def test_replies_that_nobody_reads_are_not_made(start: Start) -> None:
    server, gets = start(), 100
    learn_nothing(server)
    with server.connect() as slow:
        slow.command("SET", "big", POOL)
        before = resident(server)
        slow.send(encode("GET", "big") * gets)
        go_on(server)
        assert resident(server) - before < 8 * len(POOL)
        assert all(slow.read() == POOL for _ in range(gets)), "it gets all its replies once it reads"


@pytest.mark.snugly_only
def test_a_client_that_does_not_read_is_not_read_from(start: Start) -> None:
    server = start()
    learn_nothing(server)
    most, requests = 256 * MIB, encode("GET", "key") * 10_000
    with server.connect() as connection, server.connect() as slow:
        connection.command("SET", "key", value(0))
        before = resident(server)
        slow.socket.settimeout(1.0)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < most:
                sent += slow.socket.send(requests)
        assert sent < most, "the server has taken all requests"
        go_on(server)
        assert resident(server) - before < 32 * MIB


BEGINNINGS = {
    "a value that does not come": b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$104857600\r\n",
    "a value of which little comes": b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$104857600\r\n" + bytes(1000),
    "arguments that do not come": b"*1048576\r\n$4\r\nMGET\r\n",
    "half a word": b"*2\r\n$3\r\nGE",
    "half a number": b"*2\r\n$",
    "half a line": b"GET ha",
}


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS.keys())
def test_a_request_that_stops_in_its_middle_takes_what_has_come_and_no_more(start: Start, beginning: bytes) -> None:
    server, count = start(), 200
    learn_nothing(server)
    with contextlib.ExitStack() as stack, server.connect() as connection:
        go_on(server)
        before = resident(server)
        for _ in range(count):
            stack.enter_context(server.connect()).send(beginning)
        until(lambda: info(connection, "clients", "connected_clients") == count + 1)
        go_on(server)
        assert resident(server) - before < count * (64 << 10)
        stack.close()
        until(lambda: info(connection, "clients", "connected_clients") == 1)
        assert connection.command("EXISTS", "half") == 0


def test_a_request_that_stopped_in_its_middle_can_go_on(server: Server) -> None:
    with server.connect() as slow:
        request = encode("SET", "half", POOL)
        for part in (request[:10], request[10:30], request[30:MIB], request[MIB:-1]):
            slow.send(part)
            go_on(server, rounds=20)
        slow.send(request[-1:])
        assert slow.read() == OK
        assert slow.command("GET", "half") == POOL


def test_many_clients_in_a_full_memory_get_right_values_or_none(start: Start) -> None:
    budget = 32 * MIB
    server = start(memory="32mb", policy="allkeys-lru")
    before = resident(server)
    found = [0]

    def work(seed: int) -> None:
        rng = random.Random(seed)
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(server.connect()) for _ in range(20)]
            for _ in range(12):
                batches = [[rng.randrange(20_000) for _ in range(10)] for _ in connections]
                for connection, batch in zip(connections, batches, strict=True):
                    connection.send(b"".join(encode("SET", f"key:{n}", value(n)) for n in batch))
                    connection.send(b"".join(encode("GET", f"key:{n - n % 7}") for n in batch))
                for connection, batch in zip(connections, batches, strict=True):
                    assert [connection.read() for _ in batch] == [OK] * len(batch)
                    for number in batch:
                        reply: Reply = connection.read()
                        assert reply in (None, value(number - number % 7))
                        found[0] += reply is not None

    in_threads(*(lambda seed=seed: work(seed) for seed in range(5)))
    assert found[0] > 0
    with server.connect() as connection:
        assert info(connection, "stats", "evicted_keys") > 0
    # Fragmentation, connections and the requests that are on their way.
    assert resident(server) - before < 2 * budget


@pytest.mark.snugly_only
def test_cold_reads_beside_hot_ones_give_the_right_values(tmp_path: Path) -> None:
    count, hot = 2_000, 50
    options = ["--storage", str(tmp_path / "store"), "--max-memory", "4mb"]
    with servers.snugly(*options) as server, server.connect() as connection:
        connection.send(b"".join(encode("SET", f"key:{number}", value(number)) for number in range(count)))
        assert all(connection.read() == OK for _ in range(count))

    def read(server: Server, numbers: Iterator[int]) -> None:
        with server.connect() as connection:
            for number in numbers:
                assert connection.command("GET", f"key:{number}") == value(number)

    with servers.snugly(*options) as server:
        rng = random.Random(0)
        in_threads(
            *(lambda: read(server, (random.randrange(hot) for _ in range(count))) for _ in range(2)),
            *(lambda: read(server, iter(rng.sample(range(count), count))) for _ in range(2)),
        )
