"""Values that cannot be read: what the application gets, and that nothing else is disturbed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import redis
import valkey

import snugly
from kinds import Connect, Driver, Kind, gated
from servers import Server
from snugly import CompressionConfiguration, OnUndecodable

PAGE = b"<html><body><p>hello</p></body></html>" * 60
UNKNOWN = b"\x00\x01\x02\x00\x1f" + b"from the future"
DAMAGED = snugly.codec.encode(PAGE)[:-1]
LONG = snugly.codec.encode(b"a" * 100_000)


def test_the_error_says_what_is_wrong_with_which_key(connect: Connect, plain: Driver) -> None:
    client = connect(CompressionConfiguration(max_decompressed_size=10_000))
    for stored, kind, backend in ((UNKNOWN, "unknown_backend", 0x1F), (DAMAGED, "corrupt", 1), (LONG, "too_large", 1)):
        plain("set", "{a}key", stored)
        with pytest.raises(snugly.UndecodableError) as caught:
            client("get", "{a}key")
        error = caught.value
        assert (error.kind, error.backend, error.key, error.stored) == (kind, backend, b"{a}key", stored)
        assert f"{len(stored)} bytes, backend {backend:02x}, at key b'{{a}}key': " in str(error)
        # Handlers of the library's errors handle this one.
        assert isinstance(error, (valkey.ResponseError, redis.ResponseError))
        plain("set", "{a}good", PAGE)
        with pytest.raises(snugly.UndecodableError, match=r"at key b'\{a\}key'"):
            client("mget", "{a}good", "{a}key")
        assert client("get", "{a}good") == PAGE


@pytest.mark.parametrize("transaction", [False, True], ids=["pipeline", "transaction"])
def test_in_a_pipeline_the_error_is_that_of_its_command(
    connect: Connect, kind: Kind, plain: Driver, transaction: bool
) -> None:
    if transaction and not kind.transactions:
        pytest.skip("valkey-py's clusters have no transactions")
    client = connect()
    options = {"transaction": transaction} if kind.transactions else {}
    plain("set", "{a}bad", DAMAGED)
    client("set", "{a}good", PAGE)
    commands = [("get", "{a}good"), ("get", "{a}bad"), ("incr", "{a}n"), ("get", "{a}good")]
    good, bad, number, again = client.batch(*commands, raise_on_error=False, **options)
    assert (good, number, again) == (PAGE, 1, PAGE)
    assert isinstance(bad, snugly.UndecodableError)
    assert bad.key == b"{a}bad"
    with pytest.raises(snugly.UndecodableError, match=r"at key b'\{a\}bad'"):
        client.batch(*commands, **options)
    for _ in range(3):
        assert client.batch(("get", "{a}good"), ("incr", "{a}n"), **options)[0] == PAGE
        assert client("get", "{a}good") == PAGE


def test_the_stored_bytes_can_be_asked_for_instead(connect: Connect, plain: Driver) -> None:
    client = connect(CompressionConfiguration(on_undecodable=OnUndecodable.RAW))
    for stored in (UNKNOWN, DAMAGED):
        plain("set", "k", stored)
        assert client("get", "k") == stored
        assert client.batch(("get", "k")) == [stored]
    text = connect(CompressionConfiguration(on_undecodable=OnUndecodable.RAW), decode_responses=True)
    assert text("get", "k") == DAMAGED.decode("utf-8", "surrogateescape")


LIMITED = """
import resource, sys
import kinds
import snugly
import snugly.asyncio
kind, port = sys.argv[1], int(sys.argv[2])
value = b"value" * 1000
make = snugly.asyncio.Valkey if kind == "asyncio" else snugly.Valkey
client = kinds.Driver(lambda: make(port=port, compression=True, decode_responses=kind == "text"))
client("set", "large", bytes(256 << 20))
client("set", "small", value)
large = bytes(96 << 20)
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (64 << 20),) * 2)
asked = {
    "pipeline": lambda: client.batch(("get", "large"), ("get", "small")),
    "write": lambda: client("set", "other", large),
}
for _ in range(3):
    try:
        asked.get(kind, lambda: client("get", "large"))()
    except MemoryError as error:
        print(str(error)[:22])
    read = client("get", "small")
    assert (read.encode() if kind == "text" else read) == value
"""


@pytest.mark.parametrize("kind", gated(("bytes", "text", "asyncio", "pipeline", "write"), {"bytes", "text"}))
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits a process")
def test_what_there_is_no_memory_for_is_a_memory_error(kind: str, valkey_server: Server) -> None:
    command = [sys.executable, "-c", LIMITED, kind, str(valkey_server.port)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = "there is no memory for" if kind == "write" else "no memory for a value "
    assert done.stdout.splitlines() == [said] * 3
