"""asyncio: commands that are given up, connections that die silently, and those that are lost."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import suppress
from typing import Any

import pytest
import uvloop
import valkey

import snugly
import snugly.asyncio
from managing import own_server
from servers import Server


def test_after_a_command_was_given_up_a_silent_connection_is_left() -> None:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server, dead: Any) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", server.port)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(1 << 16):
                # A dead server accepts everything and says nothing.
                if writer not in dead:
                    sink.write(data)

        relayed.append(writer)
        with suppress(ConnectionError):
            await asyncio.gather(pump(reader, back), pump(there, writer))

    relayed: list[asyncio.StreamWriter] = []

    async def main(server: Server) -> None:
        dead: set[asyncio.StreamWriter] = set()
        relay = await asyncio.start_server(lambda r, w: swallow(r, w, server, dead), "127.0.0.1", 0)
        port = relay.sockets[0].getsockname()[1]
        client = snugly.asyncio.Valkey(port=port, compression=True, socket_timeout=None)
        await client.set("key", "value")
        patient = asyncio.ensure_future(client.get("key"))
        assert await patient == b"value"
        dead.update(relayed)
        while True:
            try:
                assert await asyncio.wait_for(client.get("key"), 0.2) == b"value"
                break
            except TimeoutError:
                continue
        await client.aclose()
        relay.close()

    with own_server() as (server, _):
        asyncio.run(asyncio.wait_for(main(server), 60))


@pytest.mark.slow
def test_what_a_slow_server_owes_is_still_delivered_after_others_gave_up() -> None:
    async def main(server: Server) -> None:
        async with snugly.asyncio.Valkey(port=server.port, compression=True) as client:
            await client.set("key", "value")
            os.kill(server.process.pid, signal.SIGSTOP)
            patient = asyncio.ensure_future(client.get("key"))
            for _ in range(6):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(client.get("key"), 0.2)
            os.kill(server.process.pid, signal.SIGCONT)
            assert await patient == b"value"
            assert await client.get("key") == b"value"

    with own_server() as (server, _):
        asyncio.run(asyncio.wait_for(main(server), 60))


@pytest.mark.slow
def test_what_was_cancelled_before_it_was_sent_is_not_sent() -> None:
    async def main(server: Server, plain: Any) -> None:
        async with snugly.asyncio.Valkey(port=server.port, compression=True) as client:
            await client.ping()
            os.kill(server.process.pid, signal.SIGSTOP)

            async def write(number: int) -> None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(client.set(f"key:{number}", os.urandom(1000)), 0.3)

            await asyncio.gather(*(write(number) for number in range(20_000)))
            os.kill(server.process.pid, signal.SIGCONT)
            await client.ping()
            assert plain.dbsize() < 10_000, "what has left is not to be had back"

    with own_server() as (server, plain):
        asyncio.run(asyncio.wait_for(main(server, plain), 60))


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_lost_connections_leave_nothing_on_the_loop(caplog: pytest.LogCaptureFixture, loop_factory: Any) -> None:
    async def main(server: Server, plain: Any) -> None:
        complaints: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        async with snugly.asyncio.Valkey(port=server.port, compression=True) as client:

            async def write(number: int) -> None:
                for _ in range(30):
                    with suppress(valkey.ConnectionError):
                        await client.set(f"key:{number}", b"v" * 2000)

            writing = [asyncio.ensure_future(write(number)) for number in range(300)]
            for _ in range(15):
                await asyncio.sleep(0.02)
                await asyncio.to_thread(plain.execute_command, "CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")
            await asyncio.gather(*writing)
        assert complaints == []

    loop = asyncio.Runner(loop_factory=loop_factory)
    with own_server() as (server, plain), caplog.at_level(logging.WARNING, "asyncio"), loop as runner:
        runner.run(asyncio.wait_for(main(server, plain), 60))
    assert caplog.messages == []
