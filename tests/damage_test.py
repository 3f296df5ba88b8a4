"""A store with a damaged page: what is whole is served and kept, and `snugly repair` makes a new store of it."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

import servers
from info import info
from mounts import read_only, small_disk
from resp import Connection, Failure, Simple
from waiting import until

pytestmark = pytest.mark.snugly_only

PAGE = 4096
KEYS = 2_000


def value(number: int) -> bytes:
    return random.Random(number).randbytes(200)


@pytest.fixture(name="store")
def damaged(tmp_path: Path) -> Path:
    """A store of which one page of rows is garbage."""
    store = tmp_path / "store"
    with servers.snugly("--storage", str(store)) as server, server.connect() as connection:
        for number in range(KEYS):
            connection.command("SET", f"key:{number}", value(number))
        connection.command("RPUSH", "list", *(f"element {number}" for number in range(1_000)))
    # Every page is in use then.
    assert run("compact", str(store)).returncode == 0
    data = store / "data.mdb"
    content = bytearray(data.read_bytes())
    pages = {at: bytes(content[at : at + PAGE]) for at in range(0, len(content), PAGE)}
    # Where rows are differs from store to store; the list is to stay whole.
    leaves = [at for at, page in pages.items() if page[10] == 2 and page.count(b"key:") > 5 and b"list" not in page]
    at = leaves[len(leaves) // 2]
    content[at : at + PAGE] = random.Random("damage").randbytes(PAGE)
    data.write_bytes(content)
    return store


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(servers.snugly_binary()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def lost(connection: Connection) -> set[int]:
    """Keys that cannot be read. All others have their values."""
    missing = set()
    for number in range(KEYS):
        reply = connection.command("GET", f"key:{number}")
        if isinstance(reply, Failure):
            assert b"snugly repair" in reply.text
            missing.add(number)
        else:
            assert reply == value(number)
    return missing


@pytest.mark.parametrize("durability", ["batched", "fsync"])
def test_what_is_whole_is_served_and_written_whatever_is_done_to_the_rest(store: Path, durability: str) -> None:
    options = ["--storage", str(store), "--durability", durability]
    with servers.snugly(*options) as server, server.connect() as connection:
        missing = lost(connection)
        assert 5 < len(missing) < 100
        for number in missing:
            assert isinstance(connection.command("DEL", f"key:{number}"), Failure)
            assert isinstance(connection.command("SET", f"key:{number}", "again"), Failure)
        kept = [n for n in range(500) if connection.command("SET", f"new:{n}", value(n)) == Simple(b"OK")]
        assert len(kept) > 400
        assert b"disk_last_commit_status:ok" in bytes(str(connection.command("INFO", "disk")), "ascii")
        assert server.says("can be neither read nor written")
        if durability == "batched":
            until(lambda: info(connection, "disk", "disk_pending_bytes") == 0)
        server.process.kill()
        server.process.wait()
    with servers.snugly(*options) as server, server.connect() as connection:
        assert [n for n in kept if connection.command("GET", f"new:{n}") != value(n)] == []
        assert connection.command("SET", "last", "one") == Simple(b"OK")


def test_a_repair_keeps_all_that_can_be_read_and_says_what_is_lost(store: Path, tmp_path: Path) -> None:
    done = run("check", str(store))
    assert (done.returncode, "of the data file is damaged" in done.stdout) == (1, True)
    assert "snugly repair" in done.stderr
    refused = run("compact", str(store))
    assert (refused.returncode, "snugly repair" in refused.stderr) == (1, True)
    before = (store / "data.mdb").read_bytes()
    new = tmp_path / "new"
    done = run("repair", str(store), str(new))
    assert done.returncode == 0, done.stderr
    assert "lost: page" in done.stdout
    assert (store / "data.mdb").read_bytes() == before
    servers.check(new)
    with servers.snugly("--storage", str(new)) as server, server.connect() as connection:
        kept = connection.command("DBSIZE")
        assert isinstance(kept, int)
        assert KEYS - 100 < kept < KEYS
        assert f"keys {kept:,}, and" in done.stdout
        assert connection.command("LLEN", "list") == 1_000
        for number in range(KEYS):
            assert connection.command("GET", f"key:{number}") in (value(number), None)
    assert "is not empty" in run("repair", str(store), str(new)).stderr


def test_a_copy_that_cannot_be_written_is_checked(store: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 32 << 20) as disk:
        shutil.copytree(store, disk / "store")
        for name in ("lock.mdb", "snugly.lock"):
            (disk / "store" / name).unlink()
        with read_only(disk):
            done = run("check", str(disk / "store"))
    assert "of the data file is damaged" in done.stdout, done.stderr
