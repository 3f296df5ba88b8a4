"""Encrypted connections, to a real redis-server that wants a certificate of the client, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import redis
import redis.asyncio
import trustme
import valkey
import valkey.asyncio

import servers
import snugly
import snugly.asyncio
from kinds import Driver
from published import USERS, publish, user
from rules import noise
from servers import Server

MIB = 1 << 20
JSON = b'{"name": "value", "tags": ["cache", "cached", "caching"], "id": 7}'
VALUES = {
    "empty": b"",
    "short": b"short",
    "page": JSON * 40,
    "over a record of TLS": (JSON * 300)[: 17 << 10],
    "1 MiB that shrinks": (JSON * (MIB // len(JSON) + 1))[:MIB],
    "1 MiB of noise": noise(5, MIB),
}


@dataclass(frozen=True)
class Encrypted:
    """A server that also listens on an encrypted port, and what a client must know to use that."""

    server: Server
    port: int
    options: dict[str, str]


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    folder: Path = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    for name in ("server", "client"):
        issued = authority.issue_cert("127.0.0.1", "localhost")
        issued.private_key_and_cert_chain_pem.write_to_path(folder / f"{name}.pem")
    options = ["--tls-ca-cert-file", str(folder / "authority.pem")]
    options += ["--tls-cert-file", str(folder / "server.pem"), "--tls-key-file", str(folder / "server.pem")]
    client = {"ssl_ca_certs": "authority", "ssl_certfile": "client", "ssl_keyfile": "client"}
    try:
        with servers.reserved_port() as port, servers.redis("--tls-port", str(port), *options) as server:
            yield Encrypted(server, port, {name: str(folder / f"{file}.pem") for name, file in client.items()})
    except servers.NoProgram as error:
        pytest.skip(str(error))


Open = Callable[[Encrypted], Any]


def by_arguments(make: Callable[..., Any], **more: Any) -> Open:
    return lambda to: make(host="localhost", port=to.port, ssl=True, **to.options, **more)


def by_url(make: Callable[..., Any], scheme: str, **more: Any) -> Open:
    return lambda to: make(f"{scheme}://localhost:{to.port}/0?{urlencode(to.options)}", **more)


def given(opened: Open) -> Open:
    return lambda to: snugly.compress(opened(to))


WAYS: dict[str, Open] = {
    "snugly": by_arguments(snugly.Valkey, compression=True),
    "snugly resp3": by_arguments(snugly.Valkey, compression=True, protocol=3),
    "snugly not native": by_arguments(snugly.Valkey, compression=True, native=False),
    "snugly valkeys": by_url(snugly.Valkey.from_url, "valkeys", compression=True),
    "snugly rediss": by_url(snugly.Valkey.from_url, "rediss", compression=True),
    "valkey-py": given(by_arguments(valkey.Valkey)),
    "redis-py": given(by_arguments(redis.Redis)),
    "redis-py rediss": given(by_url(redis.Redis.from_url, "rediss")),
    "snugly-asyncio": by_arguments(snugly.asyncio.Valkey, compression=True),
    "snugly-asyncio resp3": by_arguments(snugly.asyncio.Valkey, compression=True, protocol=3),
    "snugly-asyncio not native": by_arguments(snugly.asyncio.Valkey, compression=True, native=False),
    "snugly-asyncio valkeys": by_url(snugly.asyncio.Valkey.from_url, "valkeys", compression=True),
    "snugly-asyncio rediss": by_url(snugly.asyncio.Valkey.from_url, "rediss", compression=True),
    "valkey-py-asyncio": given(by_arguments(valkey.asyncio.Valkey)),
    "redis-py-asyncio": given(by_arguments(redis.asyncio.Redis)),
    "redis-py-asyncio rediss": given(by_url(redis.asyncio.Redis.from_url, "rediss")),
}
IN_GATE = {"snugly", "snugly not native", "snugly rediss", "redis-py", "snugly-asyncio", "valkey-py-asyncio"}
each_way = pytest.mark.parametrize(
    "way",
    [pytest.param(way, id=name, marks=[] if name in IN_GATE else pytest.mark.slow) for name, way in WAYS.items()],
)


@contextmanager
def opened(way: Open, to: Encrypted) -> Iterator[Driver]:
    driver = Driver(lambda: way(to))
    yield driver
    driver.close()


@each_way
def test_values_are_written_and_read_over_encrypted_connections(encrypted: Encrypted, way: Open) -> None:
    with opened(way, encrypted) as client, encrypted.server.connect() as plain:
        for name, value in VALUES.items():
            client("set", name, value)
            assert client("get", name) == value
        stored = plain.command("GET", "1 MiB that shrinks")
        assert isinstance(stored, bytes)
        assert len(stored) < MIB / 10
        assert client("mget", list(VALUES)) == list(VALUES.values())
        with pytest.raises(snugly.CommandRefusedError):
            client("append", "page", "more")


@each_way
def test_dictionaries_are_fetched_over_encrypted_connections(encrypted: Encrypted, way: Open) -> None:
    with opened(way, encrypted) as client, valkey.Valkey(port=encrypted.server.port) as plain:
        publish(lambda name, *args: getattr(plain, name)(*args), ("*", USERS))
        plain.set("user:1", snugly.codec.Codec(snugly.CompressionConfiguration(dictionary=USERS)).encode(user(1)))
        assert client("get", "user:1") == user(1)


@each_way
@pytest.mark.parametrize("transaction", [False, True], ids=["pipeline", "transaction"])
def test_pipelines_are_written_and_read_over_encrypted_connections(
    encrypted: Encrypted, way: Open, transaction: bool
) -> None:
    with opened(way, encrypted) as client:
        written = [("set", name, value) for name, value in VALUES.items()]
        read = [("get", name) for name in VALUES]
        replies = client.batch(*written, *read, transaction=transaction)
        assert replies == [True] * len(VALUES) + list(VALUES.values())


@pytest.mark.parametrize("way", [WAYS["snugly"], WAYS["snugly-asyncio"]], ids=["snugly", "snugly-asyncio"])
def test_a_server_that_is_not_trusted_gets_no_value(encrypted: Encrypted, way: Open, tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "stranger.pem")
    stranger = Encrypted(
        encrypted.server, encrypted.port, {**encrypted.options, "ssl_ca_certs": str(tmp_path / "stranger.pem")}
    )
    with opened(way, stranger) as client, encrypted.server.connect() as plain:
        plain.command("DEL", "k")
        with pytest.raises(valkey.ConnectionError, match="certificate verify failed"):
            client("set", "k", JSON * 10)
        assert plain.command("GET", "k") is None
