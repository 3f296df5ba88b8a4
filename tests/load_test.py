"""`--load-rdb`: a file is in the store as a whole or not at all, whatever ends the load."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
from waiting import until

pytestmark = pytest.mark.snugly_only

KEYS = 3_000


@pytest.fixture(name="dump", scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An RDB file of some megabytes that do not compress."""
    folder = tmp_path_factory.mktemp("dump")
    random_ = random.Random("load")
    with servers.snugly("--dir", str(folder)) as server, server.connect() as connection:
        for number in range(KEYS):
            connection.command("SET", f"key:{number}", random_.randbytes(2_000))
        connection.command("SAVE")
    return folder / "dump.rdb"


@contextlib.contextmanager
def load_from_pipe(dump: Path, pipe: Path, store: Path, durability: str) -> Iterator[subprocess.Popen[str]]:
    """A server that loads from a pipe and has committed some of it; the pipe goes on byte by byte."""
    os.mkfifo(pipe)
    options = ["--storage", str(store), "--durability", durability, "--load-rdb", str(pipe)]
    command = [str(servers.snugly_binary()), "serve", "--port", "0", *options]
    ended = threading.Event()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def write() -> None:
        # For reading as well, so that nothing here waits for the server.
        sink = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        data = dump.read_bytes()
        at, half = 0, len(data) // 2
        while not ended.wait(0 if at < half else 0.001):
            with contextlib.suppress(BlockingIOError):
                at += os.write(sink, data[at : half if at < half else at + 1])
        os.close(sink)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        until(lambda: commits(store) > 5)
        yield process
    finally:
        process.kill()
        process.wait()
        ended.set()
        writer.join()


def commits(store: Path) -> int:
    """The number of the last transaction, as the two meta pages of LMDB's file have it."""
    with contextlib.suppress(FileNotFoundError, struct.error):
        start = (store / "data.mdb").read_bytes()[:8192]
        return max(int(struct.unpack_from("<Q", start, page + 144)[0]) for page in (0, 4096))
    return 0


def keys(*options: str) -> object:
    with servers.snugly(*options) as server, server.connect() as connection:
        return connection.command("DBSIZE")


def refusal(*options: str) -> str:
    """The output of a server that does not start."""
    command = [str(servers.snugly_binary()), "serve", "--port", "0", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("durability", ["batched", pytest.param("fsync", marks=pytest.mark.slow)])
def test_a_store_whose_load_was_killed_is_not_served_until_it_is_loaded_again(
    tmp_path: Path, dump: Path, durability: str
) -> None:
    store, pipe = tmp_path / "store", tmp_path / "pipe"
    with load_from_pipe(dump, pipe, store, durability) as process:
        process.kill()
    kept = ["--storage", str(store), "--durability", durability]
    said = refusal(*kept)
    assert "only a part" in said
    assert f"--load-rdb {pipe}" in said
    checked = subprocess.run(
        [str(servers.snugly_binary()), "check", str(store)], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, f"the load of {pipe} did not end" in checked.stdout) == (1, True)
    load = ["--load-rdb", str(dump)]
    with servers.snugly(*kept, *load) as server, server.connect() as connection:
        assert server.says("it begins anew")
        assert connection.command("DBSIZE") == KEYS
        connection.command("SET", "later", "value")
    with servers.snugly(*kept, *load) as server, server.connect() as connection:
        assert server.says("already loaded")
        assert connection.command("DBSIZE") == KEYS + 1
    assert keys(*kept) == KEYS + 1
    servers.check(store)


@pytest.mark.slow
def test_sigterm_ends_a_load_and_leaves_nothing_of_it(tmp_path: Path, dump: Path) -> None:
    store = tmp_path / "store"
    with load_from_pipe(dump, tmp_path / "pipe", store, "batched") as process:
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=120)[1]
    assert process.returncode == 0
    assert "as empty as before" in said
    servers.check(store)
    assert keys("--storage", str(store)) == 0


def test_a_file_that_is_damaged_in_its_middle_leaves_nothing_behind(tmp_path: Path, dump: Path) -> None:
    cut = tmp_path / "cut.rdb"
    cut.write_bytes(dump.read_bytes()[:-100_000])
    kept = ["--storage", str(tmp_path / "store")]
    assert str(cut) in refusal(*kept, "--load-rdb", str(cut))
    servers.check(tmp_path / "store")
    assert keys(*kept) == 0
    assert keys(*kept, "--load-rdb", str(dump)) == KEYS


def test_another_file_is_not_loaded_over_keys(tmp_path: Path, dump: Path) -> None:
    kept = ["--storage", str(tmp_path / "store")]
    assert keys(*kept, "--load-rdb", str(dump)) == KEYS
    other = tmp_path / "other.rdb"
    with servers.snugly("--dir", str(tmp_path), "--dbfilename", other.name) as server, server.connect() as connection:
        connection.command("SET", "key", "value")
        connection.command("SAVE")
    assert "the store has keys already" in refusal(*kept, "--load-rdb", str(other))
    assert keys(*kept) == KEYS
