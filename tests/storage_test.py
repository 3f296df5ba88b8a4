"""Promises of the disk tier, seen from outside: restarts, and stores that cannot be used."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
from histories import scan
from info import info
from mounts import read_only, small_disk
from resp import Simple
from servers import check, snugly_binary
from waiting import until

pytestmark = pytest.mark.snugly_only


@pytest.mark.parametrize("durability", ["fsync", "batched", "none"])
def test_a_graceful_end_keeps_everything(tmp_path: Path, durability: str) -> None:
    options = ["--storage", str(tmp_path / "store"), "--durability", durability]
    with servers.snugly(*options) as server, server.connect() as connection:
        for number in range(500):
            connection.command("SET", f"key:{number}", b"x" * number * 10)
        connection.command("SET", "soon", "gone", "PX", 1)
        connection.command("SET", "late", "there", "EX", 1000)
    check(tmp_path / "store")
    with servers.snugly(*options) as server, server.connect() as connection:
        assert connection.command("GET", "key:499") == b"x" * 4990
        assert connection.command("GET", "soon") is None
        ttl = connection.command("TTL", "late")
        assert isinstance(ttl, int)
        assert 900 < ttl <= 1000
        until(lambda: connection.command("DBSIZE") == 501)  # what has expired is removed in the background
        assert len(scan(connection, 0)) == 501


def test_damage_in_the_journal_takes_one_write_and_is_told(tmp_path: Path) -> None:
    store = tmp_path / "store"
    options = ["--storage", str(store), "--durability", "fsync"]
    with servers.snugly(*options, "--commit-interval", "60000") as server:
        with server.connect() as connection:
            for number in range(100):
                connection.command("SET", f"key:{number}", b"value:%d" % number)
        server.process.kill()
        server.process.wait()
    journal = store / "journal.0"
    content = bytearray(journal.read_bytes())
    content[content.index(b"value:50")] ^= 1
    journal.write_bytes(content)
    checked = subprocess.run([str(snugly_binary()), "check", str(store)], capture_output=True, text=True, check=False)
    assert checked.returncode != 0
    assert "1 records of the journal are damaged: their changes are lost" in checked.stdout
    with servers.snugly(*options) as server, server.connect() as connection:
        assert "damage in the journal: changes that were answered are lost" in server.output()
        values = [connection.command("GET", f"key:{number}") for number in range(100)]
        assert values == [b"value:%d" % number if number != 50 else None for number in range(100)]


def test_more_than_memory_holds_is_read_from_disk(tmp_path: Path) -> None:
    values = {b"key:%d" % number: random.Random(number).randbytes(2_000) for number in range(3_000)}
    with (
        servers.snugly("--storage", str(tmp_path / "store"), "--max-memory", "1mb") as server,
        server.connect() as connection,
    ):
        for key, value in values.items():
            connection.command("SET", key, value)
        assert connection.command("DBSIZE") == len(values)
        for key, value in values.items():
            assert connection.command("GET", key) == value
        assert connection.command("EXISTS", *values) == len(values)


def refused(folder: Path, *options: str) -> str:
    """The output of `snugly serve` before it ends with an error."""
    command = [str(snugly_binary()), "serve", "--port", "0", "--storage", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    return done.stderr


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that was used and closed."""
    folder = tmp_path / "store"
    with servers.snugly("--storage", str(folder)) as server, server.connect() as connection:
        connection.command("SET", "key", "value")
    return folder


def test_a_store_in_use_is_refused(store: Path) -> None:
    with servers.snugly("--storage", str(store)):
        assert "is open in another process" in refused(store)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"garbage" * 10_000, "is no store of snugly"),
        (None, "is truncated"),
    ],
    ids=["empty", "garbage", "truncated"],
)
def test_a_store_that_is_not_whole_is_refused_and_left_alone(store: Path, content: bytes | None, message: str) -> None:
    data = store / "data.mdb"
    content = data.read_bytes()[:9_000] if content is None else content
    data.write_bytes(content)
    assert message in refused(store)
    assert data.read_bytes() == content


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear reader")
    assert "holds files and is no store" in refused(tmp_path)
    assert "is a file" in refused(tmp_path / "letter.txt")


def test_a_store_of_another_version_is_refused_and_left_alone(store: Path) -> None:
    magic, data = b"snugly-store", store / "data.mdb"
    content = data.read_bytes().replace(magic + b"\x05\0\0\0", magic + b"\x63\0\0\0")
    data.write_bytes(content)
    message = refused(store)
    assert f"the store {store} has format version 99, and this program knows version 5" in message
    assert "use the program that wrote it" in message
    assert data.read_bytes() == content


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that has room for a store and not for much more."""
    with small_disk(tmp_path / "disk", 8 << 20) as disk:
        yield disk


def files(folder: Path) -> dict[Path, bytes]:
    """The contents of every file below a folder."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_store_that_cannot_be_written_is_refused_and_left_alone(store: Path, disk: Path) -> None:
    copy = disk / "store"
    shutil.copytree(store, copy)
    before = files(disk)
    with read_only(disk):
        for folder in (copy, disk / "new"):
            message = refused(folder)
            assert f"cannot open the store {folder}" in message
            assert "Read-only file system" in message
            assert "a store must be writable: change that, or choose another path" in message
            assert message.count("Read-only file system") == 1, "it is said once"
        assert files(disk) == before
    with servers.snugly("--storage", str(copy)) as server, server.connect() as connection:
        assert connection.command("GET", "key") == b"value"


NOBODY = 65534


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that other users can reach, with the program in it."""
    with tempfile.TemporaryDirectory(prefix="snugly-test-") as folder:
        Path(folder).chmod(0o755)
        shutil.copy(snugly_binary(), folder)
        yield Path(folder)


def run_as(user: int, public: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The program run by a user, whom only root can stand for."""
    command = [str(public / snugly_binary().name), *arguments]
    other = None if os.geteuid() == user else user
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        user=other,
        group=other,
        extra_groups=None if other is None else [],
    )


def given_to(owner: int, store: Path, copy: Path, *, file_mode: int, folder_mode: int) -> Path:
    shutil.copytree(store, copy)
    for path in (*copy.iterdir(), copy):
        os.chown(path, owner, owner if os.geteuid() == 0 else -1)
        path.chmod(folder_mode if path == copy else file_mode)
    return copy


def modes(folder: Path) -> list[tuple[str, int, int, bytes]]:
    """Every file's name, mode, owner and content."""
    paths = sorted(folder.iterdir())
    return [(path.name, path.stat().st_mode, path.stat().st_uid, path.read_bytes()) for path in paths]


@pytest.mark.parametrize("locks", [True, False], ids=["with-locks", "without-locks"])
@pytest.mark.parametrize("durability", ["batched", "fsync"])
def test_a_copy_that_may_only_be_read_is_checked_and_stays_as_it_is(
    tmp_path: Path, public: Path, durability: str, locks: bool
) -> None:
    store = tmp_path / "store"
    with servers.snugly("--storage", str(store), "--durability", durability) as server, server.connect() as connection:
        connection.command("SET", "key", "value")
    for name in () if locks else ("snugly.lock", "lock.mdb"):
        (store / name).unlink()
    user = os.geteuid() or NOBODY
    copy = given_to(user, store, public / "copy", file_mode=0o400, folder_mode=0o500)
    before = modes(copy)
    for reader in {user, os.geteuid()}:
        done = run_as(reader, public, "check", str(copy))
        assert (done.returncode, done.stderr) == (0, "")
        assert "no faults" in done.stdout
        assert modes(copy) == before
    copy.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root works on files of others")
def test_what_root_does_to_a_store_leaves_it_to_its_owner(store: Path, public: Path) -> None:
    (store / "snugly.lock").unlink()
    theirs = given_to(NOBODY, store, public / "store", file_mode=0o600, folder_mode=0o700)
    for command in ([], ["check", str(theirs)], ["compact", str(theirs)], ["repair", str(theirs), str(public / "new")]):
        if command:
            done = run_as(0, public, *command)
            assert (done.returncode, done.stderr) == (0, "")
        else:
            with servers.snugly("--storage", str(theirs), "--durability", "fsync"):
                pass
        found = [path for folder in (theirs, public / "new") if folder.exists() for path in (folder, *folder.iterdir())]
        assert {(path.name, path.stat().st_uid, path.stat().st_gid) for path in found} == {
            (path.name, NOBODY, NOBODY) for path in found
        }
        assert {path.stat().st_mode & 0o777 for path in found if path.is_file()} == {0o600}
    assert run_as(NOBODY, public, "check", str(public / "new")).returncode == 0


# From nothing at all to nearly enough.
@pytest.mark.parametrize("free", [0, 4 << 10, 64 << 10, 256 << 10, 4 << 20])
def test_a_store_for_which_the_disk_has_no_room_is_not_begun(disk: Path, free: int) -> None:
    folder = disk / "store"
    folder.mkdir()
    ballast = disk / "ballast"
    fill_disk(ballast, free)
    message = refused(folder)
    assert f"there is no room on the disk for the store {folder}: free some, or choose another path" in message
    assert [path.name for path in folder.iterdir() if path.name != "snugly.lock"] == []
    ballast.unlink()
    with servers.snugly("--storage", str(folder)) as server, server.connect() as connection:
        assert connection.command("SET", "key", "value") == Simple(b"OK")


def test_a_store_on_a_disk_that_is_full_is_opened_and_can_be_read(store: Path, disk: Path) -> None:
    copy = disk / "store"
    shutil.copytree(store, copy)
    fill_disk(disk / "ballast", 0)
    with servers.snugly("--storage", str(copy)) as server, server.connect() as connection:
        assert connection.command("GET", "key") == b"value"
    check(copy)


def fill_disk(ballast: Path, free: int) -> None:
    """Leaves so many bytes of a disk free."""
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)) == 4096:
            pass
    with ballast.open("r+b") as file:
        file.truncate(ballast.stat().st_size - free)


def test_a_budget_that_is_too_small_is_refused(tmp_path: Path) -> None:
    assert "a store needs at least 16777216" in refused(tmp_path / "store", "--max-disk", "1mb")


def test_a_store_is_compacted(store: Path) -> None:
    with servers.snugly("--storage", str(store)) as server, server.connect() as connection:
        before = info(connection, "disk", "disk_used_bytes")
        for number in range(2_000):
            connection.command("SET", f"key:{number}", random.Random(number).randbytes(3_000))
        until(lambda: info(connection, "disk", "disk_used_bytes") > before + 1_000_000)
        connection.command("FLUSHALL")
        connection.command("SET", "last", "one")
        # Flushed rows are removed in the background.
        until(lambda: info(connection, "disk", "disk_used_bytes") < before + 100_000)
    done = subprocess.run([str(snugly_binary()), "compact", str(store)], capture_output=True, text=True, check=True)
    assert "before" in done.stdout
    assert (store / "data.mdb").stat().st_size < 200_000
    assert "keys 1," in check(store)
