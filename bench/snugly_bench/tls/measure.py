"""Measurements of a server with TLS and without: requests, new connections, and memory of idle ones.

Knows how they are taken; knows no table.
"""

from __future__ import annotations

import re
import resource
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product

import valkey

from snugly_bench.corpora import generated_corpus
from snugly_bench.progress import Progress
from snugly_bench.results import Results
from snugly_bench.servers.generators import run
from snugly_bench.servers.loads import CPU, LOAD_CORE, QUICK_KEYS, RATE, SERVER_CORE
from snugly_bench.servers.peers import Server, start
from snugly_bench.servers.process import process_seconds, steady_anonymous_bytes
from snugly_bench.tls.peers import CARRIERS, PLAIN, TLS, Certificates, Encrypted

VALUE_BYTES = 1_000
KEYS = 100_000
CONNECTIONS = 50
SUITE = "TLS_AES_128_GCM_SHA256"
"""Of TLS 1.3, which all servers and redis-benchmark have."""
PIPELINES = {1: 300_000, 16: 1_200_000}
"""Requests at a time, and of each test in all: so many that the handshakes of the connections, which are counted with
them, take less than a hundredth of the processor time."""
NEW_CONNECTIONS = 5_000
IDLE_CONNECTIONS = 10_000
QUICK_REQUESTS, QUICK_NEW, QUICK_IDLE = 2_000, 200, 100
OTHER_FILES = 200
"""Files that this process has open beside idle connections."""
CONNECT = "new connection and PING"
MEMORY = "bytes per idle connection"
IDLE = "idle"
STEADY_SECONDS, QUICK_STEADY_SECONDS, MOST_STEADY_SECONDS = 2.0, 0.1, 20.0


@dataclass(frozen=True)
class Load:
    """Requests of redis-benchmark, as the words behind its options."""

    name: str
    words: tuple[str, ...]
    options: tuple[str, ...]
    requests: int


def subject(server: str, carrier: str) -> str:
    return f"{server}, {carrier}"


def bases(names: list[str]) -> dict[str, str]:
    """Every server with TLS is compared with itself without, and that one with the first's."""
    own = {subject(name, TLS): subject(name, PLAIN) for name in names}
    return own | {subject(name, PLAIN): subject(names[0], PLAIN) for name in names}


def loads(value: bytes, quick: bool) -> tuple[Load, ...]:
    keys = QUICK_KEYS if quick else KEYS
    tests = {"SET": ("SET", "key:__rand_int__", value.decode()), "GET": ("GET", "key:__rand_int__")}
    asked = [
        Load(
            workload(test, pipeline),
            words,
            ("-c", str(CONNECTIONS), "-P", str(pipeline), "-r", str(keys)),
            QUICK_REQUESTS if quick else requests,
        )
        for (pipeline, requests), (test, words) in product(PIPELINES.items(), tests.items())
    ]
    connections = ("-c", str(CONNECTIONS), "-k", "0")
    return (*asked, Load(CONNECT, ("PING",), connections, QUICK_NEW if quick else NEW_CONNECTIONS))


def workload(test: str, pipeline: int) -> str:
    return f"{test}, {pipeline} at a time"


def json_value(program: str) -> bytes:
    return generated_corpus(program, "json", VALUE_BYTES, 1).values[0]


def measure(
    benchmark: str, peers: list[Encrypted], certificates: Certificates, value: bytes, rounds: int, quick: bool
) -> Results:
    """Asks the servers in turn, with TLS and without; each round with servers just started, and another one first."""
    names = [each.peer.name for each in peers]
    results = Results(subject(names[0], PLAIN), bases(names))
    with Progress(rounds * len(peers) * (1 + len(CARRIERS) * len(loads(value, quick)))) as progress:
        for number in range(rounds):
            what = f"round {number + 1} of {rounds}"
            with ExitStack() as running:
                servers = []
                for each in peers:
                    with progress.step(1, f"{what}: starting {each.peer.name}"):
                        servers.append((each, running.enter_context(start(each.peer, SERVER_CORE))))
                        fill(servers[-1][1], value, QUICK_KEYS if quick else KEYS)
                first = number % len(servers)
                turn = servers[first:] + servers[:first]
                for load, (each, server), carrier in product(loads(value, quick), turn, CARRIERS):
                    with progress.step(1, f"{what}: {load.name}, {each.peer.name}, {carrier}"):
                        found = ask(benchmark, each.reached(server, carrier), load, carrier, certificates)
                    results.add(load.name, subject(each.peer.name, carrier), found)
    return results


def fill(server: Server, value: bytes, keys: int) -> None:
    """Writes the value to all keys that redis-benchmark asks for."""
    with valkey.Valkey(port=server.port) as client:
        for start_at in range(0, keys, 1_000):
            names = range(start_at, min(start_at + 1_000, keys))
            client.mset({f"key:{number:012}": value for number in names})


def ask(benchmark: str, server: Server, load: Load, carrier: str, certificates: Certificates) -> dict[str, float]:
    """Requests a second, and the server's processor time for one."""
    encryption = ("--tls", "--cacert", certificates.authority, "--tls-ciphersuites", SUITE) if carrier == TLS else ()
    command = [benchmark, "-h", "127.0.0.1", "-p", str(server.port), "-q", "-n", str(load.requests)]
    before = process_seconds(server.pid)
    output = run([*command, *load.options, *encryption, *load.words], server, LOAD_CORE)
    taken = process_seconds(server.pid) - before
    server.check_pinned(SERVER_CORE)
    rates = re.findall(r"([\d.]+) requests per second", output)
    if not rates:
        raise SystemExit(f"redis-benchmark did not say how fast {server.peer.name} was: {output[-500:]}")
    return {RATE: float(rates[-1]), CPU: 1e6 * taken / load.requests}


def measure_idle(peers: list[Encrypted], certificates: Certificates, rounds: int, quick: bool) -> Results:
    """Opens connections to servers just started, asks each for one PING, and leaves them alone."""
    names = [each.peer.name for each in peers]
    results = Results(subject(names[0], PLAIN), bases(names))
    count = QUICK_IDLE if quick else IDLE_CONNECTIONS
    allow_files(count + OTHER_FILES)
    with Progress(rounds * len(peers) * len(CARRIERS)) as progress:
        for number, each, carrier in product(range(rounds), peers, CARRIERS):
            what = f"round {number + 1} of {rounds}: {count:,} idle connections, {each.peer.name}, {carrier}"
            with progress.step(1, what), start(each.peer) as server, ExitStack() as opened:
                before = steady_memory(server, quick)
                connect = connector(each.reached(server, carrier).port, carrier, certificates)
                for _ in range(count):
                    opened.enter_context(idle(connect))
                growth = steady_memory(server, quick) - before
            results.add(IDLE, subject(each.peer.name, carrier), {MEMORY: growth / count})
    return results


def steady_memory(server: Server, quick: bool) -> int:
    steady = QUICK_STEADY_SECONDS if quick else STEADY_SECONDS
    return steady_anonymous_bytes(server.pid, steady, MOST_STEADY_SECONDS)


def allow_files(wanted: int) -> None:
    """Lets this process open so many files. Exits where the system refuses it."""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and wanted > most:
        raise SystemExit(f"the system lets this process open {most} files, of which {wanted} are needed: ulimit -n")
    if limit != resource.RLIM_INFINITY and limit < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def connector(port: int, carrier: str, certificates: Certificates) -> Callable[[], socket.socket]:
    """Opens connections to a port, through TLS or without."""
    context = ssl.create_default_context(cafile=certificates.authority)

    def connect() -> socket.socket:
        bare = socket.create_connection(("127.0.0.1", port))
        return context.wrap_socket(bare, server_hostname="127.0.0.1") if carrier == TLS else bare

    return connect


@contextmanager
def idle(connect: Callable[[], socket.socket]) -> Iterator[None]:
    """A connection that has been served once."""
    with connect() as connection:
        connection.sendall(b"PING\r\n")
        answer = connection.recv(100)
        if answer != b"+PONG\r\n":
            raise SystemExit(f"PING was answered {answer!r}")
        yield
