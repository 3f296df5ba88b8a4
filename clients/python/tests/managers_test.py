"""Managers of dictionaries: threads and event loops that come and go."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import snugly
import snugly.asyncio
from kinds import KINDS, Driver, gated
from managing import CATALOGUE, PATIENT, READER, REFRESH, all_threads, own_server, write_until
from published import PAGES, STORED, USERS, WITH_DICTIONARY, dictionary_key, publish, sender, user
from servers import Server
from snugly import CompressionConfiguration
from waiting import until

KIND = {kind.name: kind for kind in KINDS}
ASYNCIO = [kind.name for kind in KINDS if "asyncio" in kind.name and not kind.cluster]
POOLED = ["snugly-asyncio-not-native", "valkey-py-asyncio", "redis-py-asyncio"]
"""Those that have all of their connections in a pool; the native transport keeps one until it has another."""

# Threads and processes.


def test_the_thread_ends_with_its_client_and_starts_again_when_it_is_used() -> None:
    until(lambda: not all_threads())
    with own_server() as (server, plain):
        plain.mset({"user:1": STORED, dictionary_key(USERS): USERS.bytes})
        reader = snugly.Valkey(port=server.port, compression=READER)
        assert reader.get("{snugly}:nothing") is None
        assert not all_threads(), "nothing has been used yet"
        reader.get("user:1")
        assert len(all_threads()) == 1
        reader.close()  # type: ignore[no-untyped-call]
        until(lambda: not all_threads())
        reader.get("user:1")
        assert len(all_threads()) == 1
        del reader
        gc.collect()
        until(lambda: not all_threads())


UNCLOSED = """
import sys, time
sys.path[:0] = sys.argv[2:]
import snugly
from published import USERS, WITH_DICTIONARY, user
client = snugly.Valkey(port=int(sys.argv[1]), compression=snugly.CompressionConfiguration(dictionary=USERS))
plain = snugly.Valkey(port=int(sys.argv[1]))
while not plain.get("user:0").startswith(WITH_DICTIONARY):
    client.set("user:0", user(0))
    time.sleep(0.01)
plain.flushall()
client.mset({f"user:{number}": user(number) for number in range(200)})
"""


def test_what_a_process_has_written_that_ends_without_closing_is_read() -> None:
    with own_server() as (server, plain):
        plain.set("user:0", "")
        command = [sys.executable, "-c", UNCLOSED, str(server.port), *sys.path]
        subprocess.run(command, check=True, timeout=120)
        assert bytes(plain.get("user:7")).startswith(WITH_DICTIONARY)
        with snugly.Valkey(port=server.port, compression=READER) as reader:
            assert reader.mget([f"user:{number}" for number in range(200)]) == [user(number) for number in range(200)]


@pytest.mark.slow
@pytest.mark.parametrize("native", [True, False], ids=["native", "not native"])
def test_a_forked_process_has_a_thread_of_its_own(native: bool) -> None:
    with own_server() as (server, plain):
        publish(sender(plain), ("*", USERS))
        with snugly.Valkey(port=server.port, compression=CATALOGUE, native=native) as client:
            write_until(Driver(lambda: client), Driver(lambda: plain), "user:1", user(1))
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    assert not all_threads()
                    assert client.get("user:1") == user(1)
                    client.set("user:2", user(2))
                    assert len(all_threads()) == 1
                    until(lambda: client.dbsize() == 99)
                    assert len(all_threads()) == 1
                    assert client.get("user:2") == user(2)
                    code = 0
                finally:
                    os._exit(code)
            until(lambda: plain.get("user:2") is not None)
            assert bytes(plain.get("user:2")).startswith(WITH_DICTIONARY)
            client.close()
            until(lambda: not all_threads())
            # Now it is the child that keeps it.
            plain.delete(dictionary_key(USERS))
            until(lambda: bool(plain.get(dictionary_key(USERS)) == USERS.bytes))
            plain.mset({str(number): b"" for number in range(99 - plain.dbsize())})
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_thread_that_cannot_start_is_started_later() -> None:
    until(lambda: not all_threads())
    with own_server() as (server, plain), snugly.Valkey(port=server.port, compression=READER) as reader:
        plain.mset({"user:1": STORED, dictionary_key(USERS): USERS.bytes})
        stack = threading.stack_size(1 << 46)
        try:
            assert reader.get("user:1") == user(1)
            assert not all_threads(), "there is no room for its stack"
        finally:
            threading.stack_size(stack)
        until(lambda: (reader.get("user:1"), len(all_threads()) == 1)[1])
        plain.delete(dictionary_key(USERS))
        until(lambda: bool(plain.get(dictionary_key(USERS)) == USERS.bytes))


# Event loops.


def test_an_idle_asyncio_client_puts_back_what_is_gone() -> None:
    async def main(server: Server, plain: Any) -> None:
        others = len(asyncio.all_tasks())
        async with snugly.asyncio.Valkey(port=server.port, compression=READER) as reader:
            assert await reader.get("user:1") == user(1)
            plain.delete(dictionary_key(USERS))
            while plain.get(dictionary_key(USERS)) != USERS.bytes:
                await asyncio.sleep(0.02)
        assert len(asyncio.all_tasks()) == others

    with own_server() as (server, plain):
        plain.mset({"user:1": STORED, dictionary_key(USERS): USERS.bytes})
        asyncio.run(asyncio.wait_for(main(server, plain), 60))


def abandoned(client: Any, when: str) -> asyncio.AbstractEventLoop:
    """A loop in which a value was read, and that was closed then: while its client was looking after dictionaries, or
    between that and the next time."""
    event_loop = asyncio.new_event_loop()
    assert event_loop.run_until_complete(client.get("user:1")) == user(1)
    while when == "between" and asyncio.all_tasks(event_loop):
        event_loop.run_until_complete(asyncio.sleep(0.01))
    event_loop.close()
    # The library's own connections are of that loop.
    client.connection_pool.reset()
    return event_loop


@pytest.mark.parametrize("when", ["between", "while looking"])
@pytest.mark.parametrize("name", gated(ASYNCIO))
def test_after_a_loop_that_was_closed_with_all_it_had_the_next_one_looks_after_dictionaries(
    name: str, when: str
) -> None:
    async def main(client: Any, plain: Any) -> None:
        plain.delete(dictionary_key(USERS))
        while plain.get(dictionary_key(USERS)) != USERS.bytes:
            assert await client.get("user:1") == user(1)
            await asyncio.sleep(0.02)
        await client.aclose()

    with own_server() as (server, plain):
        plain.mset({"user:1": STORED, dictionary_key(USERS): USERS.bytes})
        client = KIND[name].make(host="127.0.0.1", port=server.port, compression=READER)
        abandoned(client, when)
        asyncio.run(asyncio.wait_for(main(client, plain), 60))


@pytest.mark.slow
@pytest.mark.parametrize("when", ["between", "while looking"])
@pytest.mark.parametrize("name", gated(POOLED))
def test_a_loop_that_was_closed_is_let_go(name: str, when: str, caplog: Any) -> None:
    # Other tests leave some.
    gc.collect()
    caplog.clear()
    with own_server() as (server, plain):
        plain.mset({"user:1": STORED, dictionary_key(USERS): USERS.bytes})
        client = KIND[name].make(host="127.0.0.1", port=server.port, compression=READER)
        event_loop = weakref.ref(abandoned(client, when))
        gc.collect()
        assert event_loop() is None
        complaints = [record.getMessage() for record in caplog.records]
        assert all("Task was destroyed" in complaint for complaint in complaints)
        assert len(complaints) <= (when != "between"), "asyncio complains of what was broken off"


def test_a_loop_that_was_closed_while_a_dictionary_was_waited_for_is_let_go() -> None:
    async def wait(client: Any, plain: Any) -> None:
        # Dedicated, since what is broken off of valkey-py's does not end without complaints.
        reading = asyncio.ensure_future(client._snugly_compressor.manager.fetch({USERS.id}))
        while not plain.info("stats")["keyspace_misses"]:
            await asyncio.sleep(0.02)
        assert not reading.done()

    with own_server() as (server, plain):
        client: Any = snugly.asyncio.Valkey(port=server.port, compression=PATIENT)
        event_loop = asyncio.new_event_loop()
        event_loop.run_until_complete(wait(client, plain))
        assert asyncio.all_tasks(event_loop)
        event_loop.close()
        client.connection_pool.reset()
        reference = weakref.ref(event_loop)
        del event_loop
        gc.collect()
        assert reference() is None


def test_a_client_that_is_gone_is_looked_after_no_more() -> None:
    async def main(server: Server) -> None:
        others = len(asyncio.all_tasks())
        client: Any = snugly.asyncio.Valkey(port=server.port, compression=READER)
        assert await client.get("user:1") == user(1)
        reference = weakref.ref(client._snugly_compressor.manager)
        await client.connection_pool.disconnect()
        del client
        while reference() is not None or len(asyncio.all_tasks()) > others:
            gc.collect()
            await asyncio.sleep(0.02)

    with own_server() as (server, plain):
        plain.mset({"user:1": STORED, dictionary_key(USERS): USERS.bytes})
        connected = plain.info("clients")["connected_clients"]
        asyncio.run(asyncio.wait_for(main(server), 60))
        until(lambda: plain.info("clients")["connected_clients"] == connected)


class Files:
    """Record of the accesses to files in a folder, with their threads. The hook cannot be removed any more."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.done: list[tuple[str, threading.Thread]] = []
        sys.addaudithook(self.heard)

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        if self.folder is not None and args and str(args[0]).startswith(self.folder):
            self.done.append((event, threading.current_thread()))

    @contextmanager
    def watched(self, folder: Path) -> Iterator[list[tuple[str, threading.Thread]]]:
        self.folder, self.done = str(folder), []
        try:
            yield self.done
        finally:
            self.folder = None


@pytest.fixture(scope="session")
def files() -> Files:
    return Files()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["snugly-asyncio", "redis-py-asyncio"])
def test_no_event_loop_waits_for_copies_in_a_folder(name: str, files: Files, tmp_path: Path) -> None:
    folder = tmp_path / "dictionaries"
    configuration = CompressionConfiguration(dictionary_refresh=REFRESH, dictionary_folder=folder)

    async def main(server: Server, plain: Any) -> None:
        for _ in range(2):
            client = KIND[name].make(host="127.0.0.1", port=server.port, compression=configuration)
            assert await client.get("user:1") == user(1)
            await client.aclose()
        client = KIND[name].make(host="127.0.0.1", port=server.port, compression=configuration)
        assert await client.get("user:1") == user(1)
        publish(sender(plain), ("page:*", PAGES), forgotten=[USERS.id])
        while not any(event == "os.remove" for event, _ in done):
            await asyncio.sleep(0.02)
        await client.aclose()

    with own_server() as (server, plain), files.watched(folder) as done:
        plain.mset({"user:1": STORED, dictionary_key(USERS): USERS.bytes})
        asyncio.run(asyncio.wait_for(main(server, plain), 60))
        assert {"os.mkdir", "open", "os.rename", "os.remove"} <= {event for event, _ in done}
        assert [event for event, thread in done if thread is threading.current_thread()] == []
