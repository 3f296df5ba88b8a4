"""Clients that misbehave: that read nothing, go away in the middle, or are there by the thousand and say nothing.

Each function disturbs the server of a scene and checks what becomes of it; it raises Wrong. It knows nothing of the
load.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
import struct

from info import info
from resp import encode
from soak.instances import LONG, MB
from soak.ledger import Wrong
from soak.links import CARRIERS
from soak.scene import Scene
from soak.values import TEXT

IDLE_CONNECTIONS = 10_000
# One of so many idle connections is inside TLS, whose keys cost both sides time.
IDLE_PER_TLS = 20
# Files that a soak has open beside idle connections.
OTHER_FILES = 1_000
# Connections of everybody but the idle ones, at most.
OTHER_CONNECTIONS = 1_000


def slow_reader(scene: Scene) -> None:
    """Asks for more than may wait for a client, and reads none of it until the server has ended the connection."""
    long = (TEXT * (1 + LONG // len(TEXT)))[:LONG]
    with scene.instance.connect() as keeper, scene.instance.connect() as reader:
        name = reader.command("CLIENT", "ID")
        assert isinstance(name, int)
        reader.send(encode("SET", "slow", long) + encode("GET", "slow"))
        scene.until(
            lambda: keeper.command("CLIENT", "LIST", "ID", name) == b"", "the end of a slow reader's connection"
        )
        if reader.read_to_end().endswith(long + b"\r\n"):
            raise Wrong("a slow reader whose connection was ended has got its whole reply")
        keeper.command("DEL", "slow")


def stopped_readers(scene: Scene) -> None:
    """Ask for one value many times, read nothing for some seconds, and go away."""
    with contextlib.ExitStack() as stack:
        for carrier in ("plain", "tls", "path"):
            reader = stack.enter_context(contextlib.closing(CARRIERS[carrier](scene.instance.at)))
            reader.sendall(encode("SET", "stopped", TEXT[: MB // 2]) + encode("MGET", *["stopped"] * 1_000))
        scene.waits(scene.rng.uniform(1, 3))


def half_requests(scene: Scene) -> None:
    """Clients of every protocol that stop in the middle of a request, and go away in the one or the other way."""
    for _ in range(10):
        request = scene.rng.choice(REQUESTS)
        sent = request[: scene.rng.randrange(1, len(request))]
        carrier = scene.rng.choice(list(CARRIERS))
        with contextlib.closing(CARRIERS[carrier](scene.instance.at)) as client:
            # A server that has refused the beginning takes no more.
            with contextlib.suppress(ConnectionError):
                client.sendall(sent)
            scene.waits(scene.rng.choice((0, 0, 0.01, 0.1)))
            if scene.rng.random() < 0.5 and client.family == socket.AF_INET:
                # The end comes as a reset.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with contextlib.closing(CARRIERS["plain"](scene.instance.at)) as client:
        client.sendall(REQUESTS[0])
    hello = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="127.0.0.1").do_handshake()
    with socket.create_connection(("127.0.0.1", scene.instance.at.tls_port)) as client:
        client.sendall(hello.read()[: scene.rng.randrange(1, 200)])


REQUESTS = (
    encode("SET", "half", b"x" * 100_000),
    encode("MULTI") + encode("SET", "half", "x") + encode("EXEC"),
    encode("BLPOP", "half", 0),
    b"set half 0 0 100000\r\n" + b"x" * 100_000 + b"\r\n",
    b"ms half 1000\r\n" + b"x" * 1000 + b"\r\n",
    struct.pack(">BBHBBHIIQ", 0x80, 1, 4, 8, 0, 0, 1012, 0, 0) + bytes(8) + b"half" + bytes(1000),
)


def idle_connections(scene: Scene) -> None:
    """Thousands of connections of every kind that say nothing, for as long as this is done."""
    wanted = idle_possible()
    carriers = ["plain", "memcached", "path"]
    with contextlib.ExitStack() as stack, scene.instance.connect() as keeper:
        for place in range(wanted):
            carrier = "tls" if place % IDLE_PER_TLS == 0 else carriers[place % len(carriers)]
            stack.enter_context(contextlib.closing(CARRIERS[carrier](scene.instance.at)))
            if scene.stop.is_set():
                return
        scene.until(lambda: info(keeper, "clients", "connected_clients") >= wanted, f"{wanted} connections")
        scene.told.append(f"{wanted:,} idle connections")
        scene.stop.wait()
    with scene.instance.connect() as keeper:
        scene.until(
            lambda: info(keeper, "clients", "connected_clients") < OTHER_CONNECTIONS, "the end of idle connections"
        )


def idle_possible() -> int:
    """Connections that this process may open beside everything else; raises its limit of open files if it can."""
    wanted = IDLE_CONNECTIONS + OTHER_FILES
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY or limit >= wanted:
        return IDLE_CONNECTIONS
    allowed = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    return allowed - OTHER_FILES
