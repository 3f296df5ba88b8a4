"""What memcached's clients have written, behind restarts: flags, times to live, and numbers that never come again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import memcached
from cold_values_test import PAGES, recompression
from memcached import Cache, Client
from pages import page
from servers import check
from waiting import until

pytestmark = pytest.mark.snugly_only

KEYS = 200
DURABILITY = ["fsync", "batched", "none"]
each_durability = pytest.mark.parametrize("durability", DURABILITY)


def stored(folder: Path, durability: str) -> list[str]:
    return ["--storage", str(folder), "--durability", durability]


def kill(cache: Cache) -> None:
    cache.server.process.kill()
    cache.server.process.wait()


def value(key: int) -> bytes:
    """Values of all sizes, some of which are compressed."""
    return random.Random(key).randbytes(key) if key % 3 else b"again and again " * key


def put(client: Client) -> None:
    """Keys of which each has flags of its own, and every second one a time to live."""
    requests = [
        b"ms key:%d %d F%d T%d q\r\n%b\r\n" % (key, len(value(key)), key * 12_345_678, key % 2 * 10_000, value(key))
        for key in range(KEYS)
    ]
    assert client.ask(b"".join(requests)) == b""


def numbers(client: Client, keys: int = KEYS) -> list[int]:
    """The numbers of the keys' last writes; 0 for keys that are not there."""
    replies = client.ask(b"".join(b"mg key:%d c\r\n" % key for key in range(keys))).splitlines()
    return [int(reply.removeprefix(b"HD c")) if reply != b"EN" else 0 for reply in replies]


def assert_kept(client: Client, before: list[int]) -> None:
    for key in range(KEYS):
        head, body = client.ask(b"mg key:%d f c t v\r\n" % key).split(b"\r\n", 1)
        words = head.split()
        assert words[:4] == [b"VA", b"%d" % len(value(key)), b"f%d" % (key * 12_345_678), b"c%d" % before[key]]
        left = int(words[4][1:])
        assert 9_000 < left <= 10_000 if key % 2 else left == -1
        assert body == value(key) + b"\r\n"


@each_durability
def test_a_restart_keeps_flags_numbers_and_times_to_live(tmp_path: Path, durability: str) -> None:
    options = stored(tmp_path / "store", durability)
    with memcached.spoken_by_snugly(*options) as cache, cache.connect() as client:
        put(client)
        before = numbers(client)
    check(tmp_path / "store")
    with memcached.spoken_by_snugly(*options) as cache, cache.connect() as client:
        assert_kept(client, before)
        assert client.ask(b"cas key:7 1 0 1 %d\r\na\r\n" % before[7]) == b"STORED\r\n"
        assert client.ask(b"cas key:7 2 0 1 %d\r\nb\r\n" % before[7]) == b"EXISTS\r\n"


def test_a_kill_keeps_what_was_answered(tmp_path: Path) -> None:
    options = stored(tmp_path / "store", "fsync")
    with memcached.spoken_by_snugly(*options) as cache:
        with cache.connect() as client:
            put(client)
            before = numbers(client)
            assert client.ask(b"touch key:8 100\r\ndelete key:9\r\nincr key:0 1\r\n").startswith(
                b"TOUCHED\r\nDELETED\r\n"
            )
        kill(cache)
    check(tmp_path / "store")
    with memcached.spoken_by_snugly(*options) as cache, cache.connect() as client:
        assert client.ask(b"mg key:9\r\n") == b"EN\r\n"
        left = int(client.ask(b"mg key:8 t\r\n").removeprefix(b"HD t"))
        assert 0 < left <= 100
        client.ask(b"touch key:8 0\r\nms key:9 %d F%d T10000\r\n%b\r\n" % (len(value(9)), 9 * 12_345_678, value(9)))
        after = numbers(client)
        assert after[9] not in before
        assert_kept(client, [*before[:9], after[9], *before[10:]])


def test_values_that_are_on_disk_alone_have_their_flags(tmp_path: Path) -> None:
    options = [*stored(tmp_path / "store", "fsync"), "--max-memory", "1"]
    with memcached.spoken_by_snugly(*options) as cache, cache.connect() as client:
        put(client)
        before = numbers(client)
        assert_kept(client, before)


def test_a_stale_value_is_stale_behind_a_restart(tmp_path: Path) -> None:
    options = stored(tmp_path / "store", "fsync")
    with memcached.spoken_by_snugly(*options) as cache, cache.connect() as client:
        assert client.ask(b"ms k 1\r\na\r\nmd k I\r\nmg l N1000\r\n") == b"HD\r\nHD\r\nHD W\r\n"
    with memcached.spoken_by_snugly(*options) as cache, cache.connect() as client:
        assert client.ask(b"mg k v\r\n").startswith(b"VA 1 X ")
        assert client.ask(b"mg l v\r\n").startswith(b"VA 0")


@pytest.mark.parametrize("durability", [*DURABILITY, "no storage"])
@pytest.mark.parametrize("ends", ["killed", pytest.param("stopped", marks=pytest.mark.slow)])
def test_a_number_never_comes_again(tmp_path: Path, durability: str, ends: str) -> None:
    options = stored(tmp_path / "store", durability) if durability != "no storage" else []
    seen: list[set[int]] = [set() for _ in range(10)]
    for _ in range(4):
        with memcached.spoken_by_snugly(*options) as cache:
            with cache.connect() as client:
                for key, number in enumerate(numbers(client, len(seen))):
                    # Value and number may be lost with the end, or the number alone: then the value gets a new one.
                    assert number in {0, *seen[key]} or number > max(map(max, seen))
                for round_ in range(20):
                    requests = b"".join(
                        b"ms key:%d 1 q\r\n%d\r\n" % (key, round_ % 10) if round_ % 5 else b"md key:%d q\r\n" % key
                        for key in range(len(seen))
                    )
                    client.ask(requests)
                    for key, number in enumerate(numbers(client, len(seen))):
                        assert number == 0 or number not in seen[key]
                        seen[key] |= {number} - {0}
            if ends == "killed":
                kill(cache)
    assert {len(told) for told in seen} == {4 * 16}


def test_numbers_grow_across_an_end(tmp_path: Path) -> None:
    """Else an old number would look like a new one to `ms` with `I`."""
    for options in ([], stored(tmp_path / "store", "batched")):
        last = 0
        for _ in range(3):
            with memcached.spoken_by_snugly(*options) as cache:
                with cache.connect() as client:
                    for _ in range(50):
                        number = int(client.ask(b"ms k 1 c\r\na\r\n").removeprefix(b"HD c"))
                        assert number > last
                        last = number
                kill(cache)


def test_recompression_leaves_number_flags_and_time(tmp_path: Path) -> None:
    slow = ["--background-cpu-percent", "100", "--cold-after", "0", "--dictionaries", "no"]
    options = [*slow, *stored(tmp_path / "store", "batched")]
    with memcached.spoken_by_snugly(*options) as cache, cache.connect() as client, cache.server.connect() as connection:
        pages = [page(number) for number in range(PAGES)]
        requests = [b"ms key:%d %d F%d T9000 q\r\n%b\r\n" % (at, len(text), at, text) for at, text in enumerate(pages)]
        assert client.ask(b"".join(requests)) == b""
        before = numbers(client, PAGES)
        connection.command("CONFIG", "SET", "cold-after", "1")
        until(lambda: recompression(connection, "recompression_tries") == PAGES)
        assert recompression(connection, "recompressed_records") > 0
        assert numbers(client, PAGES) == before
        for at in range(0, PAGES, 100):
            head, body = client.ask(b"mg key:%d f c v\r\n" % at).split(b"\r\n", 1)
            assert head == b"VA %d f%d c%d" % (len(pages[at]), at, before[at])
            assert body == pages[at] + b"\r\n"
        assert client.ask(b"cas key:5 0 0 1 %d\r\na\r\n" % before[5]) == b"STORED\r\n"
