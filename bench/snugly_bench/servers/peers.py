"""The servers that are measured: how each is started, pinned and ended. Knows nothing of what is measured."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

CODECS = ("none", "lz4", "zstd")
VALKEY, REDIS, MEMCACHED = "valkey", "redis", "memcached"
PLAIN, LEARNING, LZ4_LEARNING = "snugly zstd", "snugly zstd with dictionaries", "snugly lz4 with dictionaries"
AUTO_LEARNING = "snugly auto"
BUILT_SNUGLY = str(Path(os.environ.get("CARGO_TARGET_DIR") or "target", "release", "snugly"))
"""The folder in which `make` and cargo build the program."""
START_SECONDS = 10.0
"""Time for a server to listen."""
END_SECONDS = 10.0
"""Time for a server to end when asked to, before it is killed."""


@dataclass(frozen=True)
class Peer:
    """A server to measure."""

    name: str
    version: str
    command: tuple[str, ...]
    """`{port}` stands for the port to listen on."""
    one_thread: tuple[str, ...] = ()
    """Options that make it serve all connections with one thread."""
    scheme: str = "redis"


@dataclass(frozen=True)
class Server:
    """A peer that runs."""

    peer: Peer
    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"{self.peer.scheme}://127.0.0.1:{self.port}"

    def check_pinned(self, core: int) -> None:
        """Ends the program unless every thread of the server may run on `core` only."""
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with suppress(ProcessLookupError):
                allowed = os.sched_getaffinity(int(task.name))
                if allowed != {core}:
                    raise SystemExit(f"a thread of {self.peer.name} may run on the cores {allowed}, not only on {core}")


def find_program(program: str, advice: str) -> str:
    """The absolute path of a program; where it is not there, an error that ends with `advice`."""
    found = shutil.which(program)
    if found is None:
        raise SystemExit(f"{program or 'the path'} is no program that can be run: {advice}")
    return str(Path(found).resolve())


def find_snugly(program: str) -> str:
    """The absolute path of the snugly to run, or an error that says how to get one."""
    return find_program(program, "build it with `cargo build --release --package snugly`, or give it with --program")


def version_of(program: str) -> str:
    return subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def valkey_peer() -> Peer:
    """The server that all others are compared with."""
    program = find_program(
        os.environ.get("SNUGLY_VALKEY_SERVER", "valkey-server"),
        "install valkey-server, or set SNUGLY_VALKEY_SERVER to its path",
    )
    options = ("--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
    return Peer(VALKEY, version_of(program), (program, *options), one_thread=("--io-threads", "1"))


def redis_peer() -> Peer | None:
    """Redis without persistence; `None` where it is not installed."""
    program = shutil.which("redis-server")
    if program is None:
        return None
    options = ("--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
    return Peer(REDIS, version_of(program), (program, *options))


def keeping_valkey_peer(synced: str) -> Peer:
    """Valkey with a log of all writes, in the folder that it runs in, and `appendfsync` as given."""
    peer = valkey_peer()
    return replace(
        peer, name=f"{VALKEY} {synced}", command=(*peer.command, "--appendonly", "yes", "--appendfsync", synced)
    )


def snugly_peer(program: str, codec: str) -> Peer:
    # The codec alone: what dictionaries add would depend on how soon they are learned.
    return configured_snugly_peer(program, f"snugly {codec}", ("--compression", codec, "--dictionaries", "no"))


def configured_snugly_peer(program: str, name: str, options: tuple[str, ...]) -> Peer:
    """snugly with these options of `snugly serve`."""
    command = (program, "serve", "--port", "{port}", *options, "--log-level", "error")
    return Peer(name, version_of(program), command, one_thread=("--threads", "1"))


def dictionary_snugly_peer(program: str) -> Peer:
    """snugly with dictionaries."""
    return configured_snugly_peer(program, LEARNING, ("--compression", "zstd", "--dictionaries", "yes"))


def lz4_dictionary_snugly_peer(program: str) -> Peer:
    """The same with LZ4."""
    return configured_snugly_peer(program, LZ4_LEARNING, ("--compression", "lz4", "--dictionaries", "yes"))


def auto_snugly_peer(program: str) -> Peer:
    """The same with what the server chooses, for values as they are written and where they stay."""
    return configured_snugly_peer(program, AUTO_LEARNING, ("--compression", "auto", "--dictionaries", "yes"))


def learning_snugly_peer(program: str) -> Peer:
    """The same, learned as fast as it can."""
    peer = dictionary_snugly_peer(program)
    return replace(peer, command=(*peer.command, "--background-cpu-percent", "100"))


def keeping_snugly_peer(program: str, codec: str, durability: str) -> Peer:
    """snugly with a store in the folder that it runs in."""
    peer = snugly_peer(program, codec)
    kept = ("--storage", "store", "--durability", durability)
    return replace(peer, name=f"snugly {codec}, {durability}", command=(*peer.command, *kept))


def memcached_peer() -> Peer | None:
    """Memcached with memory for every value of the benchmark; `None` where it is not installed."""
    program = shutil.which("memcached")
    if program is None:
        return None
    options = ["-p", "{port}", "-U", "0", "-l", "127.0.0.1", "-m", "4096", "-I", "1m"]
    if os.geteuid() == 0:
        options += ["-u", "nobody"]
    return Peer(MEMCACHED, version_of(program), (program, *options), one_thread=("-t", "1"), scheme="memcached")


def asked_as_memcached(peer: Peer, resp_port: int) -> Peer:
    """A snugly that is asked over memcached's protocol; RESP is on this port."""
    ports = {"{port}": str(resp_port)}
    command = (*(ports.get(word, word) for word in peer.command), "--memcached-port", "{port}")
    return replace(peer, command=command, scheme="memcached")


@contextmanager
def start(peer: Peer, core: int | None = None) -> Iterator[Server]:
    """Starts a peer on a free port, and ends it in any case; with a `core`, one serving thread, pinned to that core."""
    port = free_port()
    command = [part.format(port=port) for part in peer.command]
    if core is not None:
        command = ["taskset", "--cpu-list", str(core), *command, *peer.one_thread]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SNUGLY_")}
    with tempfile.TemporaryDirectory(prefix="snugly-bench-") as folder, ExitStack() as afterwards:
        log = Path(folder, "log")
        with uninterrupted(), log.open("w") as output:
            process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
            afterwards.callback(end, process)
        wait_until_it_listens(peer, process, port, log)
        yield Server(peer, port, process.pid)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_it_listens(peer: Peer, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    said = log.read_text(errors="replace")[-2000:]
    raise SystemExit(f"{peer.name} does not listen on port {port}; it said:\n{said}")


def end(process: subprocess.Popen[bytes]) -> None:
    with uninterrupted():
        process.terminate()
        try:
            process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds back Ctrl-C and SIGTERM, so that they cannot come between a process and its end."""
    held: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _frame: held.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])
