"""Memory that clients can make the server hold: replies and requests are bounded, whatever is asked for."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from info import info
from memory import anonymous
from resp import Argument, Connection, Failure, Simple, encode
from servers import Server
from tested import Start
from waiting import until

pytestmark = pytest.mark.snugly_only

MB = 1 << 20
MAX_MEMORY = 32 * MB
CLIENTS = 96 * MB
LONGEST = 16 * MB
THREADS = 2
# A command holds a value that it reads or changes, what becomes of it, and the request, on each thread.
COMMANDS = THREADS * 3 * LONGEST
# The program itself, before anything is asked of it.
PROGRAM = 32 * MB
BOUND = MAX_MEMORY * 1.1 + CLIENTS + COMMANDS + PROGRAM

LIMITS = [
    *["--max-memory", "32mb", "--max-memory-clients", "96mb", "--max-value-bytes", "16mb"],
    *["--max-request-bytes", "64mb", "--threads", str(THREADS)],
]


@contextlib.contextmanager
def watched(server: Server) -> Iterator[None]:
    """Asserts that a server stays within the bound, and answers when it is over."""
    most, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            most[0] = max(most[0], anonymous(server))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    with server.connect() as connection:
        assert connection.command("PING") == Simple(b"PONG")
    assert most[0] <= BOUND, f"{most[0] / MB:.0f} MB, at most {BOUND / MB:.0f} MB"


def letters(letter: str, length: int = LONGEST) -> bytes:
    return letter.encode() * length


def fill(connection: Connection, keys: int) -> None:
    for number in range(keys):
        assert connection.command("SET", f"key:{number}", letters(chr(65 + number % 26))) == Simple(b"OK")


@pytest.mark.slow
def test_a_long_reply_of_one_large_value_takes_the_memory_of_one(start: Start) -> None:
    server = start(*LIMITS)
    with server.connect() as connection:
        fill(connection, 1)
        with watched(server):
            connection.send(encode("MGET", *["key:0"] * 60))
            time.sleep(0.2)
            values = connection.read()
        assert isinstance(values, list)
        assert len(values) == 60
        assert all(value == letters("A") for value in values)


@pytest.mark.slow
@pytest.mark.parametrize(
    "requests",
    [
        [["MGET", *["key:0"] * 1000]],
        [["MULTI"], *[["GET", "key:0"]] * 1000, ["EXEC"]],
        [["SORT", "numbers", "BY", "nosort", *["GET", "key:*"] * 1000]],
        [["GET", "key:0"]] * 1000,
        [["MGET", *["small"] * 100_000]],
    ],
    ids=lambda requests: requests[0][0],
)
def test_a_reader_who_stops_makes_the_server_hold_little(start: Start, requests: list[list[str]]) -> None:
    server = start(*LIMITS)
    with server.connect() as connection, server.connect() as stopped:
        fill(connection, 1)
        connection.command("SET", "small", letters("x", 40_000))
        connection.command("RPUSH", "numbers", 0)
        with watched(server):
            stopped.send(b"".join(encode(*request) for request in requests))
            time.sleep(1)
            assert connection.command("PING") == Simple(b"PONG")
        assert info(connection, "stats", "evicted_clients") == 0


@pytest.mark.slow
@pytest.mark.parametrize("keys", [1, 40], ids=["one value", "a value for each"])
def test_many_slow_readers_share_a_value_and_the_heaviest_are_disconnected(start: Start, keys: int) -> None:
    server = start(*LIMITS)
    with contextlib.ExitStack() as stack, server.connect() as connection:
        fill(connection, keys)
        readers = [stack.enter_context(server.connect()) for _ in range(40)]
        with watched(server):
            for number, reader in enumerate(readers):
                reader.send(encode("GET", f"key:{number % keys}"))
            time.sleep(1)
        assert (info(connection, "stats", "evicted_clients") > 0) == (keys > 1)
        assert info(connection, "memory", "mem_clients_normal") <= CLIENTS


@pytest.mark.slow
def test_elements_that_are_taken_come_whole_whatever_their_length(start: Start) -> None:
    server = start(*LIMITS)
    with server.connect() as connection, server.connect() as reader:
        for letter in "ABCDEFGHIJKLMNOPQRST":
            assert isinstance(connection.command("RPUSH", "list", letters(letter, 8 * MB)), int)
        with watched(server):
            assert isinstance(connection.command("SORT", "list", "ALPHA"), Failure)
            reader.send(encode("LMPOP", 1, "list", "RIGHT", "COUNT", 15) + encode("LPOP", "list", 100))
            until(lambda: connection.command("LLEN", "list") == 5)
            popped, rest = reader.read(), reader.read()
        assert isinstance(popped, list)
        assert popped[0] == b"list"
        for elements, expected in [(popped[1], "TSRQPONMLKJIHGF"), (rest, "ABCDE")]:
            assert isinstance(elements, list)
            pairs = zip(elements, expected, strict=True)
            assert all(element == letters(letter, 8 * MB) for element, letter in pairs)
        assert info(connection, "stats", "client_output_buffer_limit_disconnections") == 0


@pytest.mark.slow
def test_a_range_of_a_list_comes_whole_whatever_its_length(start: Start) -> None:
    server = start(*LIMITS)
    with server.connect() as connection, server.connect() as reader:
        for letter in "ABCDEFGHIJKLMNOPQRST":
            connection.command("RPUSH", "list", letters(letter, 8 * MB), *[letters(letter, 100)] * 1000)
        with watched(server):
            reader.send(encode("LRANGE", "list", 0, -1))
            time.sleep(0.5)
            assert connection.command("PING") == Simple(b"PONG")
            elements = reader.read()
        assert isinstance(elements, list)
        expected = [part for at in range(20) for part in [(65 + at, 8 * MB), *[(65 + at, 100)] * 1000]]
        assert [(element[0], len(element)) for element in elements if isinstance(element, bytes)] == expected


def test_what_a_request_names_many_times_counts_once_for_its_client(start: Start) -> None:
    server = start("--max-memory-clients", "24mb")
    value = os.urandom(100_000)
    with server.connect() as connection:
        connection.command("SET", "value", value)
        connection.command("RPUSH", "list", *[value[:5_000]] * 20)
        assert connection.command("MGET", *["value"] * 500) == [value] * 500
        connection.send(encode("LRANGE", "list", 0, -1) * 500)
        assert all(connection.read() == [value[:5_000]] * 20 for _ in range(500))
        assert info(connection, "stats", "evicted_clients") == 0


def test_keys_may_take_what_all_clients_may_hold(start: Start) -> None:
    server = start("--max-memory-clients", "24mb")
    names = {f"{number:06}".encode() + b"k" * 1000 for number in range(16_000)}
    with server.connect() as connection:
        for name in names:
            connection.send(encode("SET", name, ""))
        assert all(connection.read() == Simple(b"OK") for _ in names)
        requests: list[list[Argument]] = [["KEYS", "*"], ["SCAN", 0, "COUNT", 1_000_000]]
        for request in requests:
            found = connection.command(*request)
            assert isinstance(found, list)
            found = found if request[0] == "KEYS" else found[1]
            assert isinstance(found, list)
            assert len(found) == len(names)
            assert set(found) == names
        connection.command("CONFIG", "SET", "maxmemory-clients", "12mb")
        with server.connect() as greedy, contextlib.suppress(ConnectionError):
            greedy.send(encode("KEYS", "*"))
            assert greedy.read_to_end() == b""
        assert info(connection, "stats", "client_output_buffer_limit_disconnections") == 1


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits another process")
def test_a_command_that_the_system_has_no_memory_for_is_refused(start: Start) -> None:
    server = start("--threads", "1")
    with server.connect() as connection:
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        taken = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmSize"))
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (taken + 300 * MB, resource.RLIM_INFINITY))
        assert connection.command("SETBIT", "zeros", 192 * MB * 8 - 1, 0) == 0
        requests: list[list[Argument]] = [
            ["SETBIT", "bits", 2**32 - 1, 1],
            ["BITFIELD", "bits", "SET", "u8", 2**32 - 8, 1],
            ["SETRANGE", "text", 500 * MB, "x"],
            ["BITOP", "NOT", "ones", "zeros"],
            ["BITOP", "OR", "more", "zeros", "zeros"],
        ]
        for request in requests:
            reply = connection.command(*request)
            assert isinstance(reply, Failure), request
            assert reply.text.startswith(b"OOM "), reply
            assert connection.command("EXISTS", "bits", "text", "ones", "more") == 0
        assert connection.command("STRLEN", "zeros") == 192 * MB
        assert connection.command("SETBIT", "bits", 7, 1) == 0


def test_commands_that_would_hold_more_than_the_memory_are_refused_before_they_take_it(
    start: Start, peer: Server
) -> None:
    server = start("--max-memory", "32mb", "--max-memory-policy", "allkeys-lru")
    with peer.connect() as valkey, server.connect() as connection:
        valkey.command("SETRANGE", "long", 100 * MB, "x")
        payload = valkey.command("DUMP", "long")
        valkey.command("DEL", "long")
        assert isinstance(payload, bytes)
        assert len(payload) < 4 * MB
        for number in range(100):
            connection.command("SET", f"other:{number}", "x")
        # They compress to little.
        for key, length in [("large", 100), ("middling", 20)]:
            assert connection.command("SET", key, bytes(length * MB)) == Simple(b"OK")
        keys = connection.command("DBSIZE")
        attacks: list[list[Argument]] = [
            ["SETRANGE", "new", 500 * MB, "x"],
            ["SETRANGE", "middling", 500 * MB, "x"],
            ["SETBIT", "new", 2**32 - 1, 1],
            ["BITFIELD", "new", "SET", "u8", 2**32 - 8, 1],
            ["BITFIELD", "new", "GET", "u8", 0, "SET", "u8", 2**32 - 8, 1],
            ["BITOP", "NOT", "new", "large"],
            ["BITOP", "OR", "new", "middling", "large"],
            ["APPEND", "middling", bytes(33 * MB)],
            ["LCS", "none", "middling", "LEN"],
            ["LCS", "none", "middling", "IDX"],
            ["RESTORE", "new", 0, payload],
        ]
        for attack in attacks:
            reply = connection.command(*attack)
            assert isinstance(reply, Failure), attack[:4]
            assert reply.text.startswith(b"OOM "), (attack[:4], reply)
        assert connection.command("DBSIZE") == keys
        assert connection.command("STRLEN", "middling") == 20 * MB
        assert info(connection, "stats", "evicted_keys") == 0
        assert connection.command("SETRANGE", "new", 20 * MB, "x") == 20 * MB + 1
        assert connection.command("BITOP", "NOT", "inverted", "middling") == 20 * MB


@pytest.mark.slow
def test_a_payload_that_claims_much_is_refused(start: Start, peer: Server) -> None:
    server = start(*LIMITS)
    with peer.connect() as valkey, server.connect() as connection:
        for _ in range(40):
            valkey.command("RPUSH", "list", *[letters("x", 4000)] * 1000)
        payload = valkey.command("DUMP", "list")
        assert isinstance(payload, bytes)
        assert len(payload) < 4 * MB
        with watched(server):
            assert isinstance(connection.command("RESTORE", "list", 0, payload), Failure)


def test_a_reader_who_stops_in_the_middle_of_a_reply_is_disconnected_after_the_timeout(start: Start) -> None:
    server = start(*LIMITS, "--timeout", "1")
    with server.connect() as connection:
        fill(connection, 1)
    with server.connect() as stopped:
        stopped.send(encode("GET", "key:0"))

        def clients() -> int:
            with server.connect() as connection:
                return info(connection, "clients", "connected_clients")

        until(lambda: clients() == 1)


def test_output_limits_of_a_class_hold_at_once_or_after_some_time(start: Start) -> None:
    limits = "normal 8mb 0 0 pubsub 32mb 8mb 60"
    server = start(*LIMITS, "--client-output-buffer-limit", limits)
    with server.connect() as connection, server.connect() as stopped:
        shown = "normal 8388608 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
        assert connection.command("CONFIG", "GET", "client-output-buffer-limit") == [
            b"client-output-buffer-limit",
            shown.encode(),
        ]
        fill(connection, 1)
        stopped.send(encode("GET", "key:0"))
        until(lambda: info(connection, "stats", "client_output_buffer_limit_disconnections") == 1)
        connection.command("CONFIG", "SET", "client-output-buffer-limit", "normal 0 1mb 1")
    with server.connect() as connection, server.connect() as stopped:
        stopped.send(encode("GET", "key:0"))
        until(lambda: info(connection, "stats", "client_output_buffer_limit_disconnections") == 2)
