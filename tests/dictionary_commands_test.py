"""DICTIONARY and its settings, over the socket: what is answered, what is refused, and what takes effect at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import servers
import waiting
from alike import USERS, assert_users, dictionaries, learn_users, put_users, user
from info import info
from resp import Argument, Connection, Failure, Map, Other, Reply, Simple
from servers import Server
from tested import Start

pytestmark = pytest.mark.snugly_only
FAST = ("--background-cpu-percent", "100")
DICTIONARY = [
    *["number", "id", "active", "min_len", "max_len", "bytes", "memory", "samples", "ratio_before", "ratio_after"],
    *["ratio_now", "records", "trained_at", "pattern"],
]
CLASS = ["pattern", "min_len", "max_len", "seen", "samples", "sample_bytes", "dictionary"]


@pytest.fixture(scope="module")
def learned() -> Iterator[Server]:
    """A server that has a dictionary for `user:*`."""
    with servers.snugly(*FAST) as server:
        with server.connect() as connection:
            learn_users(connection)
        yield server


def fields(reply: Reply) -> list[dict[str, Reply]]:
    """The maps of an array, flat ones in RESP2."""
    assert isinstance(reply, list)
    found = []
    for item in reply:
        pairs = item.pairs if isinstance(item, Map) else []
        if isinstance(item, list):
            pairs = list(zip(item[::2], item[1::2], strict=True))
        found.append({name.decode(): value for name, value in pairs if isinstance(name, bytes)})
    return found


def set_config(connection: Connection, name: str, value: Argument) -> None:
    assert connection.command("CONFIG", "SET", name, value) == Simple(b"OK")


@pytest.mark.parametrize("protocol", [2, 3])
def test_each_dictionary_is_a_map_of_its_fields(learned: Server, protocol: int) -> None:
    with learned.connect(protocol) as connection:
        reply = connection.command("DICTIONARY", "LIST")
        assert isinstance(reply, list)
        assert all(isinstance(item, Map if protocol == 3 else list) for item in reply)
        [found] = [found for found in fields(reply) if found["active"] == 1]
    assert list(found) == DICTIONARY
    numbers = ["number", "id", "min_len", "max_len", "bytes", "memory", "samples", "records", "trained_at"]
    assert all(isinstance(found[name], int) for name in numbers)
    assert (found["pattern"], found["records"]) == (b"user:*", USERS)
    ratio = found["ratio_after"]
    assert isinstance(ratio, Other if protocol == 3 else bytes)
    assert 0 < float(ratio.text if isinstance(ratio, Other) else ratio) < 1


@pytest.mark.parametrize("protocol", [2, 3])
def test_each_class_is_a_map_with_its_dictionary_if_there_is_one(learned: Server, protocol: int) -> None:
    with learned.connect(protocol) as connection:
        # So many that some are sampled, and all together smaller than what any dictionary takes.
        for number in range(300):
            connection.command("SET", f"visitor:{number}", b"%040d" % number)
        found = fields(connection.command("DICTIONARY", "CLASSES"))
    assert all(list(row) == CLASS for row in found)
    by_pattern = {row["pattern"]: row for row in found}
    assert isinstance(by_pattern[b"user:*"]["dictionary"], int)
    assert by_pattern[b"visitor:*"]["dictionary"] is None


def test_info_has_the_same_dictionary_on_one_line(learned: Server) -> None:
    with learned.connect() as connection:
        text = connection.command("INFO", "dictionaries")
        assert isinstance(text, bytes)
        [identity] = [row["id"] for row in fields(connection.command("DICTIONARY", "LIST")) if row["active"] == 1]
        assert isinstance(identity, int)
        assert info(connection, "dictionaries", "dictionary_max_bytes") == 32 << 20
    [line] = [line for line in text.decode().splitlines() if f":id={identity}," in line]
    parts = dict(part.split("=") for part in line.split(":", 1)[1].split(","))
    assert list(parts) == DICTIONARY[1:]
    assert parts["pattern"] == "user:*"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["EXPORT", 99], "there is no dictionary 99"),
        (["FORGET", 99], "there is no dictionary 99"),
        (["EXPORT", "x"], "value is not an integer or out of range"),
        (["FORGET", -1], "value is not an integer or out of range"),
        (["EXPORT", 1 << 32], "value is not an integer or out of range"),
        (["IMPORT", "user:*", "x", "content"], "value is not an integer or out of range"),
        (["IMPORT", "user:*", -1, "content"], "value is not an integer or out of range"),
        (["IMPORT", "user:*", 31, "CONTENT"], "no dictionary is used for values of 31 bytes"),
        (["IMPORT", "user:*", 32 << 10, "CONTENT"], "no dictionary is used for values of 32768 bytes"),
        (["IMPORT", "user:*", 300, "no dictionary"], "not a zstd dictionary"),
        (["TRAIN", "nobody:*"], "no class of values has the pattern nobody:*: DICTIONARY CLASSES lists them all"),
        (["TRAIN", "user:*", "more"], "syntax error"),
        (["LIST", "more"], "wrong number of arguments for 'dictionary|list' command"),
        (["EXPORT"], "wrong number of arguments for 'dictionary|export' command"),
        (["NOSUCH"], "unknown subcommand 'NOSUCH'. Try DICTIONARY HELP."),
    ],
)
def test_mistakes_are_told(learned: Server, command: list[Argument], said: str) -> None:
    with learned.connect() as connection:
        content = connection.command("DICTIONARY", "EXPORT", 1)
        assert isinstance(content, bytes)
        reply = connection.command("DICTIONARY", *(content if word == "CONTENT" else word for word in command))
    assert isinstance(reply, Failure)
    assert reply.text.decode().startswith(f"ERR {said}")


def test_a_dictionary_that_finds_no_room_is_refused_with_what_to_do(learned: Server, start: Start) -> None:
    with learned.connect() as connection:
        content = connection.command("DICTIONARY", "EXPORT", 1)
        assert isinstance(content, bytes)
    with start("--dictionary-memory", "1mb").connect() as connection:
        for number in range(100):
            reply = connection.command("DICTIONARY", "IMPORT", f"kind{chr(97 + number % 26)}{number}:*", 300, content)
            if isinstance(reply, Failure):
                break
        assert isinstance(reply, Failure)
        assert b"are left for dictionaries: raise dictionary-memory, or forget another" in reply.text
        assert number > 0


@pytest.mark.parametrize(
    ("options", "setting", "said"),
    [
        (("--dictionaries", "no"), ("dictionaries", "yes"), "dictionaries are switched off"),
        (
            ("--compression", "none"),
            ("compression", "zstd"),
            "dictionaries need compression, and there is none",
        ),
    ],
    ids=["no", "none"],
)
def test_what_would_have_no_effect_is_refused_with_the_setting_that_gives_it_one(
    learned: Server, start: Start, options: tuple[str, str], setting: tuple[str, str], said: str
) -> None:
    with learned.connect() as connection:
        content = connection.command("DICTIONARY", "EXPORT", 1)
        assert isinstance(content, bytes)
    with start(*options).connect() as connection:
        refusal = Failure(f"ERR {said}: CONFIG SET {' '.join(setting)}".encode())
        assert connection.command("DICTIONARY", "TRAIN") == refusal
        assert connection.command("DICTIONARY", "IMPORT", "user:*", 300, content) == refusal
        assert dictionaries(connection, "dictionaries_enabled") == 0
        set_config(connection, *setting)
        assert dictionaries(connection, "dictionaries_enabled") == 1
        assert connection.command("DICTIONARY", "TRAIN") == 0
        assert connection.command("DICTIONARY", "IMPORT", "user:*", 300, content) == 1
        assert dictionaries(connection, "dictionaries_active") == 1
        set_config(connection, setting[0], options[1])
        assert dictionaries(connection, "dictionaries_active") == 0
        assert [row["active"] for row in fields(connection.command("DICTIONARY", "LIST"))] == [0]


def test_a_quiet_server_trains_with_the_values_that_are_there(start: Start) -> None:
    # With auto it would know the classes already.
    with start(*FAST, "--compression", "lz4", "--dictionaries", "no").connect() as connection:
        put_users(connection)
        set_config(connection, "dictionaries", "yes")
        assert connection.command("DICTIONARY", "TRAIN") == 0
        waiting.until(lambda: dictionaries(connection, "dictionary_records") == USERS)
        assert_users(connection)
        assert connection.command("DICTIONARY", "TRAIN", "user:*") == 1


def test_a_pattern_is_shown_as_text_and_found_as_it_is_shown(start: Start) -> None:
    with start(*FAST).connect() as connection:
        expected = {"käse:*".encode(), b"k\xff\n:*"}

        def is_sampled() -> bool:
            # A value is not sampled where the sampler is busy.
            for key in ["käse:7".encode(), b"k\xff\n:7"]:
                connection.command("SET", key, user(7))
            return {row["pattern"] for row in fields(connection.command("DICTIONARY", "CLASSES"))} == expected

        waiting.until(is_sampled)
        for pattern in ["käse:*".encode(), b"k\xff\n:*", b"k\\xff\\n:*", b"k\\xc3\\xa4se:*"]:
            assert connection.command("DICTIONARY", "TRAIN", pattern) == 1


def test_excluded_keys_are_left_alone_from_the_next_write_on(start: Start) -> None:
    with start(*FAST, "--dictionary-exclude", "session:* user:*").connect() as connection:
        put_users(connection)
        assert connection.command("DICTIONARY", "TRAIN") == 0
        assert dictionaries(connection, "dictionary_samples") == 0
        assert connection.command("CONFIG", "GET", "dictionary-exclude") == [b"dictionary-exclude", b"session:* user:*"]
        set_config(connection, "dictionary-exclude", "")
        put_users(connection)
        waiting.until(lambda: dictionaries(connection, "dictionary_records") == USERS)
        set_config(connection, "dictionary-exclude", "user:1*")
        left = sum(not str(number).startswith("1") for number in range(USERS))
        waiting.until(lambda: dictionaries(connection, "dictionary_records") == left)
        assert_users(connection)


@pytest.mark.parametrize("codec", ["auto", "lz4"])
def test_switching_off_ends_use_at_once_and_on_begins_it(start: Start, codec: str) -> None:
    with start(*FAST, "--compression", codec).connect() as connection:
        learn_users(connection)
        set_config(connection, "dictionaries", "no")
        connection.command("SET", "user:7", user(7))
        assert dictionaries(connection, "dictionary_records") == USERS - 1
        # With auto, values are sampled for the choice of a codec.
        assert codec == "auto" or dictionaries(connection, "dictionary_samples") == 0
        assert_users(connection)
        set_config(connection, "dictionaries", "yes")
        connection.command("SET", "user:7", user(7))
        assert dictionaries(connection, "dictionary_records") == USERS


def test_the_limit_of_memory_can_be_changed_at_any_time(start: Start) -> None:
    with start(*FAST, "--dictionary-memory", "1mb").connect() as connection:
        put_users(connection)
        waiting.until(lambda: dictionaries(connection, "dictionary_trainings") > 0)
        assert dictionaries(connection, "dictionary_sample_bytes") <= 1 << 19
        assert dictionaries(connection, "dictionary_bytes") <= 1 << 19
        set_config(connection, "dictionary-memory", "32mb")
        assert dictionaries(connection, "dictionary_max_bytes") == 32 << 20
        connection.command("DICTIONARY", "TRAIN")
        waiting.until(lambda: dictionaries(connection, "dictionary_records") == USERS)
        set_config(connection, "dictionary-memory", "1mb")
        assert dictionaries(connection, "dictionary_records") == USERS
        assert_users(connection)


def learning_seconds(server: Server) -> float:
    """Processor time of the thread that learns dictionaries."""
    for task in Path(f"/proc/{server.process.pid}/task").iterdir():
        # The name is in parentheses; behind them field 14 and 15 of the line are times, and the third comes first.
        name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
        if name == "dictionaries":
            times = rest.split()[11:13]
            return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
    raise AssertionError("no thread learns dictionaries")


def use_and_disuse(connection: Connection, wanted: Callable[[], bool]) -> None:
    """Has records encoded anew, always more than it gets done, while this is wanted."""
    turn = 0
    while wanted():
        set_config(connection, "dictionary-exclude", "" if turn % 2 else "user:*")
        turn += 1
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the time of a thread is read from /proc")
def test_the_share_of_a_processor_is_kept_to(start: Start) -> None:
    server = start(*FAST)
    with server.connect() as connection:
        put_users(connection)
        waiting.until(lambda: dictionaries(connection, "dictionary_records") == USERS)
        set_config(connection, "background-cpu-percent", 5)
        begun, before = time.monotonic(), learning_seconds(server)
        use_and_disuse(connection, lambda: time.monotonic() < begun + 4)
        bounded = learning_seconds(server) - before
        assert bounded < 0.25 * (time.monotonic() - begun)
        # There was more to do: without the bound it takes more, however long that lasts where others are busy as well.
        set_config(connection, "background-cpu-percent", 100)
        before, deadline = learning_seconds(server), time.monotonic() + 60
        use_and_disuse(
            connection,
            lambda: learning_seconds(server) < before + 1.5 and time.monotonic() < deadline,
        )
        assert learning_seconds(server) - before > 2 * bounded


@pytest.mark.slow
def test_a_rest_ends_as_soon_as_more_may_be_taken(start: Start) -> None:
    with start("--background-cpu-percent", "1").connect() as connection:
        put_users(connection)
        # A training of a tenth of a second and more has a rest behind it that the test would not wait for.
        waiting.until(lambda: dictionaries(connection, "dictionary_trainings") > 0)
        set_config(connection, "background-cpu-percent", 100)
        waiting.until(lambda: dictionaries(connection, "dictionary_records") == USERS, seconds=30)
