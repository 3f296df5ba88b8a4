"""Who looks after dictionaries: threads and event loops that come and go."""

from __future__ import annotations

import asyncio
import gc
import os
from typing import Any

import pytest

import snugly
import snugly.asyncio
from keeping import CATALOGUE, READER, all_threads, own_server, write_until
from kinds import Driver
from published import STORED, USERS, WITH_DICTIONARY, dictionary_key, publish, sender, user
from servers import Server
from waiting import until

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


# Event loops.


def test_an_idle_asyncio_client_puts_back_what_is_gone() -> None:
    async def main(server: Server, plain: Any) -> None:
        others = len(asyncio.all_tasks())
        async with snugly.asyncio.Valkey(port=server.port, compression=READER) as reader:
            assert await reader.get("user:1") == user(1)
            assert len(asyncio.all_tasks()) == others + 1
            plain.delete(dictionary_key(USERS))
            while plain.get(dictionary_key(USERS)) != USERS.bytes:
                await asyncio.sleep(0.02)
        assert len(asyncio.all_tasks()) == others

    with own_server() as (server, plain):
        plain.mset({"user:1": STORED, dictionary_key(USERS): USERS.bytes})
        asyncio.run(asyncio.wait_for(main(server, plain), 20))
