"""`snugly backup` and BACKUP: copies of a store that is in use; `snugly restore`: stores that are made of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from threading import Event, Thread

import pytest

import servers
from info import info
from resp import Connection, Failure, Map, Simple
from servers import Server, check
from tested import Start
from waiting import until

pytestmark = pytest.mark.snugly_only


def program(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(servers.snugly_binary()), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def status(connection: Connection) -> dict[bytes, object]:
    reply = connection.command("BACKUP", "STATUS")
    if isinstance(reply, Map):
        return {name: value for name, value in reply.pairs if isinstance(name, bytes)}
    assert isinstance(reply, list)
    return {name: value for name, value in zip(reply[::2], reply[1::2], strict=True) if isinstance(name, bytes)}


@pytest.fixture
def server(start: Start, tmp_path: Path) -> Server:
    """A server with a store, whose folder for backups is another one."""
    (tmp_path / "dir").mkdir()
    return start("--storage", str(tmp_path / "store"), "--dir", str(tmp_path / "dir"))


def test_a_backup_that_a_person_asks_for_is_a_store_that_can_be_restored(server: Server, tmp_path: Path) -> None:
    with server.connect() as connection:
        for number in range(500):
            connection.command("SET", f"key:{number}", b"x" * number * 10)
        connection.command("RPUSH", "list", *range(1000))
        done = program("backup", f"snugly://127.0.0.1:{server.port}", "--name", "first")
        assert done.returncode == 0, done.stderr
        connection.command("SET", "later", "value")
    copy = tmp_path / "dir" / "first"
    assert done.stdout.startswith(f"{copy}: keys 501, ")
    assert done.stdout.endswith("no faults\n")
    check(copy)
    assert oct(copy.stat().st_mode)[-3:] == "700", "values are nobody else's business"
    restored = tmp_path / "restored"
    assert program("restore", str(copy), str(restored)).stdout == f"{restored}: keys 501, no faults\n"
    with servers.snugly("--storage", str(restored)) as second, second.connect() as connection:
        assert connection.command("GET", "key:499") == b"x" * 4990
        assert connection.command("LLEN", "list") == 1000
        assert connection.command("EXISTS", "later") == 0


def test_a_backup_without_a_name_has_the_time(server: Server, tmp_path: Path) -> None:
    assert program("backup", f"snugly://127.0.0.1:{server.port}").returncode == 0
    (made,) = (tmp_path / "dir").iterdir()
    assert re.fullmatch(r"snugly-\d{8}T\d{6}Z", made.name)


def test_the_state_of_backups_is_told(server: Server, tmp_path: Path) -> None:
    with server.connect() as connection:
        connection.command("SET", "key", "value")
        assert status(connection) == {b"state": b"none"}
        assert connection.command("BACKUP", "CREATE", "one") == Simple(b"Backup started")
        until(lambda: status(connection)[b"state"] == b"made")
        told = status(connection)
        assert told[b"folder"] == str(tmp_path / "dir" / "one").encode()
        assert told[b"keys"] == 1
        assert info(connection, "disk", "backup_in_progress") == info(connection, "disk", "failed_backups") == 0
        assert info(connection, "disk", "last_backup_time") > 1_700_000_000
        assert server.says("a backup is made")


@pytest.mark.parametrize("name", ["", "..", "../up", "/tmp/elsewhere", ".hidden", "-flag", "a b", "x" * 201, b"\xff"])
def test_a_name_leads_to_no_other_folder(server: Server, name: str | bytes) -> None:
    with server.connect() as connection:
        refused = connection.command("BACKUP", "CREATE", name)
        assert isinstance(refused, Failure)
        assert b"the name of a backup has letters" in refused.text


def test_nothing_is_overwritten(server: Server, tmp_path: Path) -> None:
    (tmp_path / "dir" / "there").mkdir()
    with server.connect() as connection:
        refused = connection.command("BACKUP", "CREATE", "there")
        assert isinstance(refused, Failure)
        assert b"exists: choose another name" in refused.text
    restored = program("restore", str(tmp_path / "dir"), str(tmp_path / "dir"))
    assert (restored.returncode, "exists" in restored.stderr) == (1, True)


def test_a_server_that_keeps_nothing_on_disk_says_what_to_do(start: Start) -> None:
    done = program("backup", f"snugly://127.0.0.1:{start().port}")
    assert done.returncode == 1
    assert "BGSAVE" in done.stderr


def test_no_backup_is_written_into_the_store(start: Start, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    server = start("--storage", str(tmp_path / "store"), "--dir", str(tmp_path / "store"))
    with server.connect() as connection:
        refused = connection.command("BACKUP", "CREATE", "inside")
        assert isinstance(refused, Failure)
        assert b"is the folder of the store" in refused.text


def test_another_server_is_told_of_plainly(peer: Server) -> None:
    done = program("backup", f"valkey://127.0.0.1:{peer.port}")
    assert done.returncode == 1
    assert "unknown command" in done.stderr


@pytest.mark.parametrize("durability", ["fsync", "batched"])
def test_backups_have_one_moment_while_clients_write(start: Start, tmp_path: Path, durability: str) -> None:
    server = start("--storage", str(tmp_path / "store"), "--dir", str(tmp_path), "--durability", durability)
    is_done = Event()

    def write() -> None:
        with server.connect() as connection:
            turn = 0
            while not is_done.is_set():
                turn += 1
                connection.command("MSET", *[part for name in "abcdef" for part in (name, f"{turn} " * 1000)])
                connection.command("RPUSH", "turns", turn)

    writer = Thread(target=write)
    writer.start()
    try:
        with server.connect() as connection:
            for name in ["first", "second", "third"]:
                connection.command("BACKUP", "CREATE", name)
                until(lambda: status(connection)[b"state"] != b"running")
                assert status(connection)[b"state"] == b"made"
    finally:
        is_done.set()
        writer.join()
    for name in ["first", "second", "third"]:
        check(tmp_path / name)
        with servers.snugly("--storage", str(tmp_path / name)) as copy, copy.connect() as connection:
            values = connection.command("MGET", *"abcdef")
            assert isinstance(values, list)
            assert len(set(map(str, values))) == 1, "one command is one change"
            (value,) = {value.split()[0] if isinstance(value, bytes) else b"0" for value in values}
            last = connection.command("LINDEX", "turns", -1)
            assert int(value) - int(last if isinstance(last, bytes) else 0) in (0, 1), "changes are in their order"


def large(server: Server) -> None:
    """Enough to be caught in the middle."""
    with server.connect() as connection:
        connection.command("CONFIG", "SET", "compression", "none")
        for number in range(400):
            connection.command("SET", f"key:{number}", os.urandom(250_000))


def test_a_backup_that_is_cancelled_leaves_nothing(server: Server, tmp_path: Path) -> None:
    large(server)
    command = [str(servers.snugly_binary()), "backup", f"snugly://127.0.0.1:{server.port}", "--name", "large"]
    with server.connect() as connection:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until(lambda: status(connection)[b"state"] != b"none")
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
        ended = status(connection)
        # It may have been faster than the signal.
        if ended[b"state"] == b"failed":
            assert process.returncode == 1
            assert "the backup was cancelled" in told
            assert list((tmp_path / "dir").iterdir()) == []
            assert info(connection, "disk", "failed_backups") == 0
        assert connection.command("BACKUP", "CANCEL") == Failure(b"ERR no backup is being made")
        connection.command("BACKUP", "CREATE", "another")
        until(lambda: status(connection)[b"state"] == b"made")


def test_a_server_that_is_killed_leaves_no_half_backup_under_the_name(start: Start, tmp_path: Path) -> None:
    options = ["--storage", str(tmp_path / "store"), "--dir", str(tmp_path)]
    server = start(*options)
    large(server)
    with server.connect() as connection:
        connection.command("BACKUP", "CREATE", "copy")
        until(lambda: (tmp_path / "copy.partial").exists() or status(connection)[b"state"] == b"made")
    server.process.kill()
    server.process.wait()
    if (tmp_path / "copy").exists():
        check(tmp_path / "copy")
        return
    again = start(*options)
    with again.connect() as connection:
        connection.command("BACKUP", "CREATE", "copy")
        until(lambda: status(connection)[b"state"] == b"made")
    check(tmp_path / "copy")
    assert not (tmp_path / "copy.partial").exists()


def test_a_damaged_backup_is_not_restored(server: Server, tmp_path: Path) -> None:
    with server.connect() as connection:
        connection.command("CONFIG", "SET", "compression", "none")
        for number in range(50):
            connection.command("SET", f"key:{number}", b"value" * 1000)
    assert program("backup", f"snugly://127.0.0.1:{server.port}", "--name", "copy").returncode == 0
    data = tmp_path / "dir" / "copy" / "data.mdb"
    content = bytearray(data.read_bytes())
    content[content.index(b"valuevalue")] ^= 1
    data.write_bytes(content)
    done = program("restore", str(data.parent), str(tmp_path / "restored"))
    assert done.returncode == 1
    assert "is not whole: " in done.stderr
    assert not (tmp_path / "restored").exists()
