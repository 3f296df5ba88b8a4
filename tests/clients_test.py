"""Real clients, as they come: they connect without special settings, complain about nothing, and work."""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import glide
import glide_shared
import glide_sync
import pytest
import redis
import redis.asyncio
import valkey
import valkey.asyncio

from resp import Simple
from servers import Server
from tested import Start

TEXT = "Zürich, 🦊"
BINARY = bytes(range(256)) * 3

each_protocol = pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])
each_library = pytest.mark.parametrize("library", [redis, valkey], ids=["redis-py", "valkey-py"])


@pytest.fixture(autouse=True)
def nothing_to_complain_about(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """No warning, no log record, nothing on standard error."""
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        yield
    assert [record.getMessage() for record in caplog.get_records("call")] == []
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def connect(library: Any, server: Server, protocol: int, **options: Any) -> Any:
    name = "Redis" if library in (redis, redis.asyncio) else "Valkey"
    return getattr(library, name)(host="127.0.0.1", port=server.port, protocol=protocol, **options)


@each_library
@each_protocol
def test_strings(server: Server, library: Any, protocol: int) -> None:
    with connect(library, server, protocol) as client:
        assert client.ping() is True
        assert client.set("key", BINARY) is True
        assert client.get("key") == BINARY
        assert client.get("none") is None
        assert client.set("key", "again", nx=True) is None
        assert client.set("key", "again", xx=True, get=True) == BINARY
        assert client.mset({"a": "1", "b": TEXT}) is True
        assert client.mget("a", "b", "none") == [b"1", TEXT.encode(), None]
        assert client.incr("a", 41) == 42
        assert client.incrbyfloat("a", 0.5) == 42.5
        assert client.append("b", "!") == len(TEXT.encode()) + 1
        assert client.strlen("b") == len(TEXT.encode()) + 1
        assert client.getdel("b") == TEXT.encode() + b"!"
        assert client.setnx("c", "1") == 1
        assert client.getex("c", ex=100) == b"1"
        assert 0 < client.ttl("c") <= 100


@each_library
@each_protocol
def test_keys_and_expiry(server: Server, library: Any, protocol: int) -> None:
    with connect(library, server, protocol) as client:
        client.mset({f"key:{number}": number for number in range(500)})
        assert client.dbsize() == 500
        assert sorted(client.scan_iter("key:*", count=50)) == sorted(client.keys("*"))
        assert client.exists("key:1", "key:2", "none") == 2
        assert client.delete("key:1", "none") == 1
        assert client.unlink("key:2") == 1
        assert client.type("key:3") == b"string"
        assert client.expire("key:3", 100) == 1
        assert client.expire("key:3", 50, gt=True) == 0
        assert client.persist("key:3") == 1
        assert client.ttl("key:3") == -1
        assert client.pexpireat("key:3", 1) == 1
        assert client.exists("key:3") == 0
        assert client.object("encoding", "key:4") == b"int"
        assert client.memory_usage("key:4") > 0
        assert client.randomkey().startswith(b"key:")
        assert client.flushdb() is True
        assert client.dbsize() == 0


@each_library
@each_protocol
def test_lists(server: Server, library: Any, protocol: int) -> None:
    events = [f'{{"event": {number}, "page": "/products/{number % 7}"}}'.encode() for number in range(2000)]
    with connect(library, server, protocol) as client:
        assert client.rpush("log", *events) == 2000
        assert client.type("log") == b"list"
        assert client.object("encoding", "log") == b"quicklist"
        assert client.lrange("log", 0, -1) == events
        assert client.lindex("log", 1000) == events[1000]
        assert client.lpos("log", events[1000]) == 1000
        assert client.lset("log", 1000, BINARY) is True
        assert client.linsert("log", "BEFORE", BINARY, "in front") == 2001
        assert client.lrange("log", 999, 1002) == [events[999], b"in front", BINARY, events[1001]]
        assert client.lrem("log", 0, "in front") == 1
        assert client.lmove("log", "done", "LEFT", "RIGHT") == events[0]
        assert client.lmpop(2, "none", "log", direction="LEFT", count=2) == [b"log", events[1:3]]
        assert client.rpop("log", 2) == [events[1999], events[1998]]
        assert client.ltrim("log", 0, 9) is True
        assert client.llen("log") == 10
        assert client.sort("log", alpha=True, start=0, num=1) == [min(client.lrange("log", 0, -1))]
        assert client.blpop(["none", "done"], timeout=1) in ((b"done", events[0]), [b"done", events[0]])
        assert client.brpop("none", timeout=0.01) is None


@each_library
@each_protocol
def test_a_list_is_a_queue_for_workers_that_wait(server: Server, library: Any, protocol: int) -> None:
    jobs = [f"job {number}".encode() for number in range(500)]
    with ThreadPoolExecutor(4) as pool, connect(library, server, protocol) as client:
        workers = [pool.submit(work_until_stopped, library, server, protocol) for _ in range(4)]
        for job in jobs:
            client.rpush("jobs", job)
        client.rpush("jobs", *[b"stop"] * 4)
        done = [job for worker in workers for job in worker.result()]
    assert sorted(done) == sorted(jobs)


def work_until_stopped(library: Any, server: Server, protocol: int) -> list[bytes]:
    """Takes jobs from the queue until one of them is to stop."""
    done: list[bytes] = []
    with connect(library, server, protocol) as client:
        while (job := client.blpop("jobs", timeout=60)[1]) != b"stop":
            done.append(job)
    return done


@each_library
@each_protocol
def test_the_server_tells_about_itself(server: Server, library: Any, protocol: int) -> None:
    with connect(library, server, protocol, client_name="tester") as client:
        assert client.client_getname() in (b"tester", "tester")
        assert client.client_id() > 0
        assert any(row["name"] == "tester" for row in client.client_list())
        assert client.info("server")["redis_version"]
        assert client.info()["connected_clients"] >= 1
        assert client.config_get("maxmemory") == {"maxmemory": "0"}
        assert client.config_set("maxmemory-policy", "allkeys-lru") is True
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}
        assert client.config_set("maxmemory-policy", "noeviction") is True
        assert client.command_count() > 50
        assert client.time()[0] > 0
        assert client.echo("hello") == b"hello"
        assert "get" in client.command()


@each_library
@each_protocol
def test_decoded_replies(server: Server, library: Any, protocol: int) -> None:
    with connect(library, server, protocol, decode_responses=True) as client:
        client.set("key", TEXT)
        assert client.get("key") == TEXT
        assert client.mget(["key", "none"]) == [TEXT, None]
        assert client.getset("key", "new") == TEXT
        assert list(client.scan_iter()) == ["key"]


@each_library
@each_protocol
def test_pipelines(server: Server, library: Any, protocol: int) -> None:
    with connect(library, server, protocol) as client:
        pipeline = client.pipeline(transaction=False)
        for number in range(1000):
            pipeline.set(f"key:{number}", f"value {number}" * 20)
        for number in range(1000):
            pipeline.get(f"key:{number}")
        replies = pipeline.execute()
        assert replies[:1000] == [True] * 1000
        assert replies[1000:] == [f"value {number}".encode() * 20 for number in range(1000)]


@each_library
@each_protocol
def test_an_error_in_a_pipeline_is_the_error_of_its_command(server: Server, library: Any, protocol: int) -> None:
    with connect(library, server, protocol) as client:
        pipeline = client.pipeline(transaction=False)
        pipeline.set("key", "text").incr("key").get("key")
        stored, error, read = pipeline.execute(raise_on_error=False)
        assert (stored, read) == (True, b"text")
        assert "value is not an integer or out of range" in str(error)


@each_library
@each_protocol
def test_databases_are_apart(server: Server, library: Any, protocol: int) -> None:
    with connect(library, server, protocol, db=1) as one, connect(library, server, protocol, db=2) as two:
        one.set("key", "one")
        two.set("key", "two")
        assert (one.get("key"), two.get("key")) == (b"one", b"two")
        one.flushdb()
        assert (one.get("key"), two.get("key")) == (None, b"two")


@each_library
@each_protocol
def test_passwords(locked_pair: tuple[Server, Server], library: Any, protocol: int) -> None:
    server, _ = locked_pair
    with connect(library, server, protocol, password="secret") as client:
        assert client.set("key", "value") is True
    with connect(library, server, protocol, username="default", password="secret") as client:
        assert client.get("key") == b"value"
    no_retry = {"retry": None, "password": "wrong"}
    with connect(library, server, protocol, **no_retry) as client, pytest.raises(library.AuthenticationError):
        client.ping()
    with connect(library, server, protocol) as client, pytest.raises(library.AuthenticationError):
        client.get("key")


@pytest.mark.parametrize("library", [redis.asyncio, valkey.asyncio], ids=["redis-py", "valkey-py"])
@each_protocol
def test_asyncio(server: Server, library: Any, protocol: int) -> None:
    async def use() -> None:
        async with connect(library, server, protocol) as client:
            await client.set("key", BINARY, ex=100)
            assert await client.get("key") == BINARY
            await asyncio.gather(*(client.set(f"key:{number}", "x" * number) for number in range(50)))
            values = await asyncio.gather(*(client.get(f"key:{number}") for number in range(50)))
            assert values == [b"x" * number for number in range(50)]
            pipeline = client.pipeline(transaction=False)
            pipeline.incr("counter").incr("counter").ttl("key")
            assert (await pipeline.execute())[:2] == [1, 2]
            assert len([key async for key in client.scan_iter("key:*")]) == 50

    asyncio.run(use())


def glide_configuration(module: Any, server: Server, **options: Any) -> Any:
    """That of a client as it comes, but for the time after which it gives a request up: a busy machine may take the
    quarter of a second."""
    address = glide_shared.NodeAddress("127.0.0.1", server.port)
    return module.GlideClientConfiguration([address], request_timeout=60_000, **options)


@pytest.fixture(params=[glide_shared.ProtocolVersion.RESP2, glide_shared.ProtocolVersion.RESP3], ids=["resp2", "resp3"])
def glide_protocol(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_glide(server: Server, glide_protocol: Any) -> None:
    client: Any = glide_sync.GlideClient.create(glide_configuration(glide_sync, server, protocol=glide_protocol))
    assert client.ping() == b"PONG"
    assert client.set("key", BINARY) == "OK"
    assert client.get("key") == BINARY
    assert client.mset({"a": "1", "b": TEXT}) == "OK"
    assert client.mget(["a", "b", "none"]) == [b"1", TEXT.encode(), None]
    assert client.incr("a") == 2
    assert client.expire("a", 100) is True
    assert client.delete(["a", "b"]) == 2
    assert client.rpush("list", ["one", BINARY, "three"]) == 3
    assert client.lrange("list", 0, -1) == [b"one", BINARY, b"three"]
    assert client.lmpop(["list"], glide_shared.ListDirection.LEFT, 2) == {b"list": [b"one", BINARY]}
    assert client.blpop(["none", "list"], 1) == [b"list", b"three"]
    assert client.info()
    assert client.config_get(["maxmemory"]) == {b"maxmemory": b"0"}
    client.close()


def test_glide_async(server: Server, glide_protocol: Any) -> None:
    async def use() -> None:
        client: Any = await glide.GlideClient.create(glide_configuration(glide, server, protocol=glide_protocol))
        assert await client.set("key", BINARY) == "OK"
        assert await client.get("key") == BINARY
        await asyncio.gather(*(client.set(f"key:{number}", "x" * number) for number in range(50)))
        values = await asyncio.gather(*(client.get(f"key:{number}") for number in range(50)))
        assert values == [b"x" * number for number in range(50)]
        batch = glide.Batch(is_atomic=False)
        batch.set("a", "1")
        batch.incr("a")
        batch.get("a")
        assert await client.exec(batch, raise_on_error=True) == ["OK", 2, b"2"]
        await client.close()

    asyncio.run(use())


@pytest.mark.parametrize(
    "backend", [glide_shared.CompressionBackend.ZSTD, glide_shared.CompressionBackend.LZ4], ids=["zstd", "lz4"]
)
def test_glide_with_its_own_compression(server: Server, backend: Any) -> None:
    """Its envelopes pass through: what another connection reads is what GLIDE sent, byte for byte."""
    value = b'{"id": 1, "name": "customer"}' * 40
    compression = glide_shared.CompressionConfiguration(enabled=True, backend=backend)
    client: Any = glide_sync.GlideClient.create(glide_configuration(glide_sync, server, compression=compression))
    assert client.set("key", value) == "OK"
    assert client.get("key") == value
    assert client.mget(["key", "none"]) == [value, None]
    with server.connect() as raw:
        stored = raw.command("GET", "key")
        assert isinstance(stored, bytes)
        assert stored.startswith(b"\0\1\2\0" + bytes([1 if backend == glide_shared.CompressionBackend.ZSTD else 2]))
        assert len(stored) < len(value)
        assert raw.command("STRLEN", "key") == len(stored)
        assert raw.command("SET", "key", stored) == Simple(b"OK")
    assert client.get("key") == value
    client.close()


Cli = Callable[..., str]


@pytest.fixture
def cli(server: Server) -> Cli:
    program = shutil.which("redis-cli")
    if program is None:
        pytest.skip("no redis-cli here (Debian: apt install redis-tools)")

    def call(*args: str, stdin: str | bytes | None = None) -> str:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        command = [program, "-p", str(server.port), *args]
        done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
        return done.stdout.decode()

    return call


def test_redis_cli(cli: Cli) -> None:
    assert cli("SET", "key", TEXT) == "OK\n"
    assert cli("GET", "key") == f"{TEXT}\n"
    assert cli("-3", "GET", "key") == f"{TEXT}\n"
    assert cli("--no-raw", "GET", "none") == "(nil)\n"
    assert cli("-3", "--json", "CONFIG", "GET", "maxmemory") == '{"maxmemory":"0"}\n'
    assert cli("-x", "SET", "stdin", stdin="from standard input") == "OK\n"
    assert cli("INFO", "server").startswith("# Server\r\n")
    assert cli(stdin="SET a 1\nINCR a\nGET a\n") == "OK\n2\n2\n"
    assert set(cli("--scan").split()) == {"key", "stdin", "a"}
    assert "Sampled 3 keys" in cli("--bigkeys")
    assert "Sampled 3 keys" in cli("--memkeys")


def test_redis_cli_mass_insertion(cli: Cli) -> None:
    requests = b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\nkey:%d\r\n$1\r\nx\r\n" % (len(f"key:{n}"), n) for n in range(5000))
    assert "errors: 0, replies: 5000" in cli("--pipe", stdin=requests)
    assert cli("DBSIZE") == "5000\n"


@pytest.mark.parametrize("password", [None, "secret"])
def test_redis_benchmark(start: Start, password: str | None) -> None:
    server = start(password=password) if password else start()
    program = shutil.which("redis-benchmark")
    if program is None:
        pytest.skip("no redis-benchmark here (Debian: apt install redis-tools)")
    command = [program, "-p", str(server.port), "-n", "2000", "-P", "16", "-q", "-t", "ping,set,get,incr,mset"]
    # Values of 20 KB go out in one packet with the password.
    command += ["-a", password, "-d", "20000"] if password else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for test in ("PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"):
        assert f"{test}: " in done.stdout.replace("\r", "\n")
