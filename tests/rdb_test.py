"""RDB files: what SAVE and BGSAVE write is what other servers load, and what they write is what is loaded."""

from __future__ import annotations

import random
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

import servers
from dumps import crc64
from info import info
from resp import Connection, Failure, Simple, encode
from threads import in_threads
from waiting import until

pytestmark = pytest.mark.snugly_only

# The year 2100.
FAR = 4_102_444_800_000


def fill(connection: Connection) -> None:
    """Strings and lists of all sizes in two databases, some of which expire."""
    random_ = random.Random("rdb")
    for database in (0, 3):
        connection.command("SELECT", database)
        for number in range(300):
            length = random_.choice((0, 3, 200, 5_000, 70_000))
            connection.command("SET", f"string:{number}", random_.choice((b"text ", b"%d" % number)) * (length // 5))
        connection.command("SET", "number", 12345)
        for number in range(40):
            elements = [
                random_.choice(
                    (b"%d" % number, b"event %d " % number * random_.randrange(1, 40), random_.randbytes(30))
                )
                for _ in range(random_.choice((1, 20, 900)))
            ]
            connection.command("RPUSH", f"list:{number}", *elements)
        connection.command("RPUSH", "large", b"x" * 20_000, b"small", b"y" * 300_000)
        connection.command("PEXPIREAT", "large", FAR + database)
        connection.command("PEXPIREAT", "string:7", FAR)


def contents(connection: Connection) -> dict[tuple[int, bytes], object]:
    """Every key, its value and when it expires."""
    found: dict[tuple[int, bytes], object] = {}
    for database in range(16):
        connection.command("SELECT", database)
        keys = connection.command("KEYS", "*")
        assert isinstance(keys, list)
        for key in keys:
            assert isinstance(key, bytes)
            is_list = connection.command("TYPE", key) == Simple(b"list")
            value = connection.command("LRANGE", key, 0, -1) if is_list else connection.command("GET", key)
            found[database, key] = (value, connection.command("PEXPIRETIME", key))
    return found


def until_saved(connection: Connection, count: int) -> None:
    until(lambda: info(connection, "persistence", "rdb_saves") == count)


@pytest.mark.parametrize("command", ["SAVE", "BGSAVE"])
def test_what_is_saved_is_loaded_by_valkey_and_by_snugly(tmp_path: Path, command: str) -> None:
    with servers.snugly("--dir", str(tmp_path)) as server, server.connect() as connection:
        fill(connection)
        expected = contents(connection)
        assert connection.command(command) in (Simple(b"OK"), Simple(b"Background saving started"))
        until_saved(connection, 1)
        assert info(connection, "persistence", "rdb_bgsave_in_progress") == 0
        assert connection.command("LASTSAVE") == info(connection, "persistence", "rdb_last_save_time")
    assert [file.name for file in tmp_path.iterdir()] == ["dump.rdb"]
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    shutil.copy(tmp_path / "dump.rdb", theirs)
    with servers.valkey("--dir", str(theirs)) as server, server.connect() as connection:
        until(lambda: info(connection, "persistence", "loading") == 0)
        assert contents(connection) == expected
        assert connection.command("SAVE") == Simple(b"OK")
    ours, valkeys = ((folder / "dump.rdb").stat().st_size for folder in (tmp_path, theirs))
    assert ours <= valkeys * 1.1, "values are compressed as Valkey does it"
    with servers.snugly("--load-rdb", str(tmp_path / "dump.rdb")) as server, server.connect() as connection:
        assert contents(connection) == expected


@pytest.mark.parametrize("command", ["SAVE", "BGSAVE"])
def test_a_list_on_disk_that_memory_has_no_room_for_is_saved(tmp_path: Path, command: str) -> None:
    dumped, folder = tmp_path / "dumped", tmp_path / "store"
    dumped.mkdir()
    elements = [random.Random(number).randbytes(1 << 20) for number in range(24)]
    options = ("--storage", str(folder), "--max-memory", "1mb", "--dir", str(dumped))
    with servers.snugly(*options) as server, server.connect() as connection:
        for element in elements:
            connection.command("RPUSH", "list", element)
        until(lambda: isinstance(connection.command("LRANGE", "list", 0, -1), Failure))
        assert connection.command(command) in (Simple(b"OK"), Simple(b"Background saving started"))
        until_saved(connection, 1)
    with servers.valkey("--dir", str(dumped)) as server, server.connect() as connection:
        until(lambda: info(connection, "persistence", "loading") == 0)
        assert connection.command("LRANGE", "list", 0, -1) == elements


def test_what_valkey_has_saved_is_loaded_and_other_types_are_counted(tmp_path: Path) -> None:
    options = ["--dir", str(tmp_path), "--list-compress-depth", "1"]
    with servers.valkey(*options) as server, server.connect() as connection:
        fill(connection)
        expected = contents(connection)
        connection.command("SELECT", 1)
        connection.command("HSET", "hash", "field", "value")
        connection.command("SADD", "set", 1, 2, 3)
        connection.command("ZADD", "zset", 1, "a")
        connection.command("XADD", "stream", "*", "field", "value")
        assert connection.command("SAVE") == Simple(b"OK")
    with servers.snugly("--load-rdb", str(tmp_path / "dump.rdb")) as server, server.connect() as connection:
        assert contents(connection) == expected


def of_version(file: bytes, magic: bytes) -> bytes:
    """An RDB file whose header says another version."""
    changed = magic + file[9:-8]
    return changed + crc64(changed).to_bytes(8, "little")


def test_what_redis_has_saved_is_loaded(tmp_path: Path) -> None:
    with servers.redis("--dir", str(tmp_path), "--list-compress-depth", "1") as server, server.connect() as connection:
        fill(connection)
        expected = contents(connection)
        assert connection.command("SAVE") == Simple(b"OK")
    with servers.snugly("--load-rdb", str(tmp_path / "dump.rdb")) as server, server.connect() as connection:
        assert contents(connection) == expected


@pytest.mark.parametrize("magic", ["REDIS0012", "REDIS0014", "VALKEY081"])
def test_a_newer_file_is_loaded_if_all_of_it_is_known(tmp_path: Path, magic: str) -> None:
    file = tmp_path / "dump.rdb"
    with servers.snugly("--dir", str(tmp_path)) as server, server.connect() as connection:
        fill(connection)
        expected = contents(connection)
        assert connection.command("SAVE") == Simple(b"OK")
    file.write_bytes(of_version(file.read_bytes(), magic.encode()))
    with servers.snugly("--load-rdb", str(file)) as server, server.connect() as connection:
        assert contents(connection) == expected
    known, end = file.read_bytes()[:-9], b"\xff" + bytes(8)
    file.write_bytes(known + b"\x18\x05h\xc3sh\x00whatever a newer type has" + end)
    said = refusal("--load-rdb", str(file), "--storage", str(tmp_path / "store"))
    assert 'in the key "h\\xc3sh\\x00"' in said
    assert "newer than what is known here" in said
    with servers.snugly("--storage", str(tmp_path / "store")) as server, server.connect() as connection:
        assert contents(connection) == {}


def test_a_file_is_loaded_into_a_store_on_disk_once(tmp_path: Path) -> None:
    with servers.snugly("--dir", str(tmp_path)) as server, server.connect() as connection:
        fill(connection)
        expected = contents(connection)
        assert connection.command("SAVE") == Simple(b"OK")
    options = ["--storage", str(tmp_path / "store"), "--load-rdb", str(tmp_path / "dump.rdb")]
    with servers.snugly(*options) as server, server.connect() as connection:
        assert contents(connection) == expected
    for again in (options, options[:2]):
        with servers.snugly(*again) as server, server.connect() as connection:
            assert contents(connection) == expected


JOBS, NAMES, COUNTERS = 200, 20, 10


def keep_moving(server: servers.Server, done: threading.Event) -> None:
    """Moves jobs between lists, renames keys and counts counters up one after the other, as fast as it can."""
    random_ = random.Random("moves")
    # Each key has two names, and is under one of them.
    names = list(range(NAMES))
    with server.connect() as connection:
        while not done.is_set():
            requests = []
            for _ in range(20):
                origin, target = random_.sample(range(3), 2)
                requests.append(encode("LMOVE", f"queue:{origin}", f"queue:{target}", "LEFT", "RIGHT"))
                index = random_.randrange(NAMES)
                before, after = names[index], (names[index] + NAMES) % (2 * NAMES)
                names[index] = after
                requests.append(encode("RENAME", f"name:{before}", f"name:{after}"))
                requests += [encode("INCR", f"counter:{number}") for number in range(COUNTERS)]
            connection.send(b"".join(requests))
            for _ in requests:
                assert not isinstance(connection.read(), Failure)


def assert_of_one_moment(connection: Connection) -> None:
    queues = [connection.command("LRANGE", f"queue:{queue}", 0, -1) for queue in range(3)]
    jobs = [job for queue in queues if isinstance(queue, list) for job in queue if isinstance(job, bytes)]
    assert sorted(jobs) == sorted(b"job:%d" % number for number in range(JOBS)), "none is missing or there twice"
    names = [name for name in range(2 * NAMES) if connection.command("EXISTS", f"name:{name}")]
    assert sorted(name % NAMES for name in names) == list(range(NAMES))
    counted = [connection.command("INCRBY", f"counter:{number}", 0) for number in range(COUNTERS)]
    counts = [count for count in counted if isinstance(count, int)]
    assert counts == sorted(counts, reverse=True), "each is counted up after the one before it"
    assert counts[0] - counts[-1] <= 1


@pytest.mark.parametrize("saves", [3, pytest.param(25, marks=pytest.mark.slow)])
@pytest.mark.parametrize("tier", ["memory", "disk"])
def test_a_file_that_is_written_in_the_background_is_of_one_moment(tmp_path: Path, tier: str, saves: int) -> None:
    done = threading.Event()
    storage = ("--storage", str(tmp_path / "store"), "--max-memory", "8mb") if tier == "disk" else ()
    with servers.snugly(*storage, "--dir", str(tmp_path)) as server, server.connect() as connection:
        for number in range(20_000):
            connection.send(encode("SET", f"filler:{number}", random.Random(number).randbytes(700)))
        assert all(connection.read() == Simple(b"OK") for _ in range(20_000))
        connection.command("RPUSH", "queue:0", *(f"job:{number}" for number in range(JOBS)))
        for number in range(NAMES):
            connection.command("SET", f"name:{number}", "value")
        for number in range(COUNTERS):
            connection.command("SET", f"counter:{number}", 0)

        def save() -> None:
            try:
                for count in range(1, saves + 1):
                    assert connection.command("BGSAVE") == Simple(b"Background saving started")
                    until_saved(connection, count)
                    shutil.copy(tmp_path / "dump.rdb", tmp_path / f"{count}.rdb")
            finally:
                done.set()

        in_threads(save, lambda: keep_moving(server, done))
    for count in range(1, saves + 1):
        file = ("--dir", str(tmp_path), "--dbfilename", f"{count}.rdb")
        with servers.valkey(*file) as server, server.connect() as connection:
            until(lambda: info(connection, "persistence", "loading") == 0)
            assert_of_one_moment(connection)


def test_a_save_begins_again_when_a_database_is_flushed(tmp_path: Path) -> None:
    with servers.snugly("--dir", str(tmp_path)) as server, server.connect() as connection:
        for round_ in range(1, 6):
            for number in range(5_000):
                connection.send(encode("SET", f"key:{number}", b"value" * 200))
            assert all(connection.read() == Simple(b"OK") for _ in range(5_000))
            connection.send(encode("BGSAVE") + encode("FLUSHALL") + encode("SET", "last", "value"))
            assert [connection.read() for _ in range(3)][1:] == [Simple(b"OK")] * 2
            until_saved(connection, round_)
    with servers.snugly("--load-rdb", str(tmp_path / "dump.rdb")) as server, server.connect() as connection:
        assert connection.command("DBSIZE") in (0, 1, 5_000)


def test_a_file_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    file = tmp_path / "dump.rdb"
    assert "cannot open" in refusal("--load-rdb", str(file))
    file.write_bytes(b"something else entirely")
    assert str(file) in refusal("--load-rdb", str(file))
    with servers.snugly("--dir", str(tmp_path)) as server, server.connect() as connection:
        connection.command("SELECT", 9)
        connection.command("SET", "key", "value")
        assert connection.command("SAVE") == Simple(b"OK")
    assert "start with --databases 10" in refusal("--load-rdb", str(file), "--databases", "4")
    file.write_bytes(file.read_bytes()[:-12])
    assert str(file) in refusal("--load-rdb", str(file))


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with servers.snugly("--dir", str(folder)) as server, server.connect() as connection:
        connection.command("SET", "key", "value")
        assert connection.command("SAVE") == Simple(b"OK")
        before = (folder / "dump.rdb").read_bytes()
        (folder / "taken").mkdir()
        assert connection.command("CONFIG", "SET", "dbfilename", "taken") == Simple(b"OK")
        failure = connection.command("SAVE")
        assert isinstance(failure, Failure)
        assert str(folder / "taken").encode() in failure.text
        assert sorted(file.name for file in folder.iterdir()) == ["dump.rdb", "taken"]
        assert (folder / "dump.rdb").read_bytes() == before
        assert isinstance(connection.command("CONFIG", "SET", "dbfilename", "../elsewhere"), Failure)
        assert isinstance(connection.command("CONFIG", "SET", "dir", str(tmp_path / "nowhere")), Failure)


def refusal(*options: str) -> str:
    """The output of a server that does not start."""
    command = [str(servers.snugly_binary()), "serve", "--port", "0", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    return done.stderr
