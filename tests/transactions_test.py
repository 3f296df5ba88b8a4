"""MULTI, EXEC, WATCH: what runs as one, what does not run at all, and that nothing comes in between."""

from __future__ import annotations

import random
import threading
from typing import Any

import glide_shared
import glide_sync
import pytest
import redis
import valkey

from resp import Argument, Connection, Failure, Reply, Simple, encode
from servers import Server
from tested import Start
from threads import in_threads
from waiting import until

OK, QUEUED = Simple(b"OK"), Simple(b"QUEUED")

each_library = pytest.mark.parametrize(
    ("library", "name"), [(redis, "Redis"), (valkey, "Valkey")], ids=["redis-py", "valkey-py"]
)
each_protocol = pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])


def connect(library: Any, name: str, server: Server, protocol: int) -> Any:
    return getattr(library, name)(host="127.0.0.1", port=server.port, protocol=protocol)


def test_a_transaction_answers_all_its_commands_at_its_end(connection: Connection) -> None:
    assert connection.command("MULTI") == OK
    for command in (["SET", "a", 1], ["INCR", "a"], ["GET", "a"], ["SELECT", 1], ["GET", "a"]):
        assert connection.command(*command) == QUEUED
    assert connection.command("EXEC") == [OK, 2, b"2", OK, None]
    assert connection.command("GET", "a") is None
    assert connection.command("SELECT", 0) == OK
    assert connection.command("GET", "a") == b"2"


def test_a_command_that_fails_does_not_keep_the_others_from_running(connection: Connection) -> None:
    connection.send(b"".join(encode(*command) for command in (["MULTI"], ["SET", "a", "x"], ["INCR", "a"], ["EXEC"])))
    assert [connection.read() for _ in range(3)] == [OK, QUEUED, QUEUED]
    assert connection.read() == [OK, Failure(b"ERR value is not an integer or out of range")]
    assert connection.command("GET", "a") == b"x"


@pytest.mark.parametrize(
    "refused", [["NOSUCH"], ["GET"], ["CLIENT", "NOSUCH"], ["MULTI"], ["WATCH", "a"]], ids=" ".join
)
def test_a_transaction_with_a_refused_command_does_not_run(connection: Connection, refused: list[str]) -> None:
    connection.command("MULTI")
    assert connection.command("SET", "a", 1) == QUEUED
    assert isinstance(connection.command(*refused), Failure)
    assert connection.command("SET", "b", 1) == QUEUED
    assert connection.command("EXEC") == Failure(b"EXECABORT Transaction discarded because of previous errors.")
    assert connection.command("EXISTS", "a", "b") == 0


@pytest.mark.parametrize("ending", ["DISCARD", "RESET"])
def test_a_discarded_transaction_does_not_run(connection: Connection, ending: str) -> None:
    connection.command("WATCH", "a")
    connection.command("MULTI")
    connection.command("SET", "a", 1)
    connection.command(ending)
    assert connection.command("EXEC") == Failure(b"ERR EXEC without MULTI")
    assert connection.command("EXISTS", "a") == 0


@each_library
@each_protocol
def test_of_two_clients_that_change_what_they_watch_one_succeeds(
    server: Server, library: Any, name: str, protocol: int
) -> None:
    with connect(library, name, server, protocol) as one, connect(library, name, server, protocol) as two:
        one.set("stock", 1)
        buyers = [one.pipeline(), two.pipeline()]
        for buyer in buyers:
            buyer.watch("stock")
            assert buyer.get("stock") == b"1"
            buyer.multi()
            buyer.decr("stock")
        assert buyers[0].execute() == [0]
        with pytest.raises(library.WatchError):
            buyers[1].execute()
        assert one.get("stock") == b"0"


CHANGES: dict[str, list[list[str]]] = {
    "written": [["SET", "key", "other"]],
    "written as it was": [["SET", "key", "value"]],
    "deleted": [["DEL", "key"]],
    "deleted and written again": [["DEL", "key"], ["SET", "key", "value"]],
    "given an expiry": [["EXPIRE", "key", "100"]],
    "flushed": [["FLUSHDB"]],
    "flushed with all": [["FLUSHALL"]],
    "exchanged": [["SWAPDB", "0", "1"]],
    "renamed": [["RENAME", "key", "kez"]],
    "moved": [["MOVE", "key", "1"]],
}
NO_CHANGES: dict[str, list[list[str]]] = {
    "read": [["GET", "key"], ["TOUCH", "key"], ["GETEX", "key"], ["GETEX", "key", "PERSIST"], ["TTL", "key"]],
    "not written": [["SETNX", "key", "other"], ["PERSIST", "key"], ["EXPIRE", "key", "100", "XX"]],
    "written in another database": [["SELECT", "1"], ["SET", "key", "other"]],
    "flushed in another database": [["SELECT", "1"], ["SET", "key", "other"], ["FLUSHDB"]],
    "among others": [["SET", "kez", "other"], ["DEL", "nothing"]],
    "copied": [["COPY", "key", "kez"], ["SETRANGE", "key", "0", ""]],
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=list(CHANGES))
@pytest.mark.parametrize("by", ["others", "itself"])
def test_a_transaction_does_not_run_if_a_watched_key_was(
    server: Server, connection: Connection, changes: list[list[str]], by: str
) -> None:
    with server.connect() as other:
        assert connection.command("SET", "key", "value") == OK
        connection.command("WATCH", "unchanged", "key")
        for change in changes:
            (other if by == "others" else connection).command(*change)
        connection.command("MULTI")
        connection.command("SET", "done", 1)
        assert connection.command("EXEC") is None
        assert connection.command("EXISTS", "done") == 0
        # The watched keys are forgotten.
        connection.command("MULTI")
        assert connection.command("EXEC") == []


@pytest.mark.parametrize("changes", NO_CHANGES.values(), ids=list(NO_CHANGES))
def test_a_transaction_runs_if_a_watched_key_was(
    server: Server, connection: Connection, changes: list[list[str]]
) -> None:
    with server.connect() as other:
        connection.command("SET", "key", "value")
        connection.command("WATCH", "key")
        for change in changes:
            other.command(*change)
        connection.command("MULTI")
        assert connection.command("EXEC") == []


def test_a_watched_key_that_is_not_there_stays_unchanged_by_a_flush(server: Server, connection: Connection) -> None:
    with server.connect() as other:
        connection.command("WATCH", "nothing")
        other.command("FLUSHALL")
        connection.command("MULTI")
        assert connection.command("EXEC") == []
        connection.command("WATCH", "nothing")
        other.command("SET", "nothing", 1)
        other.command("FLUSHALL")
        connection.command("MULTI")
        assert connection.command("EXEC") is None


def test_a_watched_key_that_comes_with_another_database_has_changed(server: Server, connection: Connection) -> None:
    with server.connect() as other:
        other.command("SELECT", 1)
        other.command("SET", "key", 1)
        connection.command("WATCH", "key")
        other.command("SWAPDB", 0, 1)
        connection.command("MULTI")
        assert connection.command("EXEC") is None


def test_a_watched_key_that_expires_has_changed(server: Server, connection: Connection) -> None:
    with server.connect() as other:
        # In one go, so that it is watched before its time has come, however slow the machine is.
        connection.send(encode("SET", "key", "value", "PX", 200) + encode("WATCH", "key"))
        assert [connection.read(), connection.read()] == [OK, OK]
        until(lambda: other.command("EXISTS", "key") == 0)
        connection.command("MULTI")
        assert connection.command("EXEC") is None
        connection.command("WATCH", "key")
        connection.command("MULTI")
        assert connection.command("EXEC") == []


def test_a_watched_key_that_is_evicted_has_changed(start: Start) -> None:
    server = start(memory="20mb", policy="allkeys-random")
    with server.connect() as watcher, server.connect() as writer:
        watcher.command("SET", "key", "value")
        watcher.command("WATCH", "key")
        for number in range(1_000_000):
            writer.command("SET", f"other:{number}", random.randbytes(2000))
            if number % 100 == 0 and not writer.command("EXISTS", "key"):
                break
        else:
            pytest.fail("the key was never evicted")
        watcher.command("MULTI")
        assert watcher.command("EXEC") is None


def test_unwatch_forgets(connection: Connection) -> None:
    connection.command("WATCH", "key")
    connection.command("SET", "key", 1)
    connection.command("UNWATCH")
    connection.command("MULTI")
    assert connection.command("EXEC") == []


def test_a_client_that_goes_watches_nothing_more(server: Server) -> None:
    with server.connect() as observer:
        with server.connect() as watcher:
            until(lambda: b"watching_clients:0\r\n" in info(observer, "clients"))
            watcher.command("WATCH", "a", "b", "a")
            assert b"total_watched_keys:2\r\n" in info(observer, "clients")
            assert b"watching_clients:1\r\n" in info(observer, "clients")
        until(lambda: b"watching_clients:0\r\n" in info(observer, "clients"))
        assert b"total_watched_keys:0\r\n" in info(observer, "clients")


def info(connection: Connection, section: str) -> bytes:
    text = connection.command("INFO", section)
    assert isinstance(text, bytes)
    return text


ACCOUNTS = [f"account:{number}" for number in range(8)]
TOTAL = 1000 * len(ACCOUNTS)
TRANSFERS = 150


@each_protocol
@each_library
def test_transfers_between_accounts_conserve_the_sum(server: Server, library: Any, name: str, protocol: int) -> None:
    """Some read, decide and write what they watch; some add and subtract blindly; some look at all the while."""
    with connect(library, name, server, protocol) as client:
        client.mset(dict.fromkeys(ACCOUNTS, 1000))
    done = threading.Event()

    def optimistic() -> None:
        with connect(library, name, server, protocol) as client:
            for _ in range(TRANSFERS):
                source, target = random.sample(ACCOUNTS, 2)

                def transfer(pipeline: Any, source: str = source, target: str = target) -> None:
                    here, there = int(pipeline.get(source)), int(pipeline.get(target))
                    amount = random.randrange(max(here, 0) + 1)
                    pipeline.multi()
                    pipeline.set(source, here - amount)
                    pipeline.set(target, there + amount)

                client.transaction(transfer, source, target)

    def blind() -> None:
        with connect(library, name, server, protocol) as client:
            for _ in range(TRANSFERS):
                source, target = random.sample(ACCOUNTS, 2)
                amount = random.randrange(10)
                client.pipeline().decrby(source, amount).incrby(target, amount).execute()

    def auditor() -> None:
        with connect(library, name, server, protocol) as client:
            while not done.is_set():
                pipeline = client.pipeline()
                for account in ACCOUNTS:
                    pipeline.get(account)
                assert sum(map(int, pipeline.execute())) == TOTAL
                assert sum(map(int, client.mget(ACCOUNTS))) == TOTAL

    def transfers() -> None:
        try:
            in_threads(optimistic, optimistic, optimistic, blind, blind, blind)
        finally:
            done.set()

    in_threads(transfers, auditor, auditor)
    with connect(library, name, server, protocol) as client:
        assert sum(map(int, client.mget(ACCOUNTS))) == TOTAL


def test_transactions_over_everything_and_over_single_keys_do_not_wait_for_each_other_forever(server: Server) -> None:
    """Also a check that nothing that EXEC runs takes a lock that another one holds: otherwise this never ends."""
    everything = [
        *[["DBSIZE"], ["KEYS", "*"], ["SCAN", "0"], ["RANDOMKEY"], ["INFO", "everything"], ["FLUSHDB"], ["TIME"]],
        *[["CONFIG", "SET", "maxmemory", "100mb"], ["CONFIG", "RESETSTAT"], ["CONFIG", "GET", "*"], ["CLIENT", "LIST"]],
        *[["COMMAND", "COUNT"], ["MEMORY", "USAGE", "key:1"], ["PING"]],
    ]

    def keys() -> list[list[str]]:
        names = random.sample([f"key:{number}" for number in range(20)], 4)
        return [["MSET", names[0], "1", names[1], "2"], ["DEL", names[2]], ["INCR", names[3]], ["MGET", *names]]

    def work() -> None:
        with server.connect() as connection:
            for _ in range(150):
                watched, *_ = keys()
                commands = random.choice(
                    [keys(), random.sample(everything, 3), [*keys(), *random.sample(everything, 2)]]
                )
                lines = [["WATCH", watched[1]], ["MULTI"], *commands, ["EXEC"]]
                connection.send(b"".join(encode(*line) for line in lines))
                replies = [connection.read() for _ in lines]
                assert replies[:-1] == [OK, OK, *[QUEUED] * len(commands)]
                assert replies[-1] is None or isinstance(replies[-1], list)
                assert isinstance(connection.command(*random.choice(everything)), object)

    in_threads(*[work] * 8)
    with server.connect() as connection:
        assert connection.command("CONFIG", "SET", "maxmemory", 0) == OK


def test_glide_batches(server: Server) -> None:
    address = glide_shared.NodeAddress("127.0.0.1", server.port)
    configuration = glide_sync.GlideClientConfiguration([address], request_timeout=60_000)
    client: Any = glide_sync.GlideClient.create(configuration)
    batch = glide_sync.Batch(is_atomic=True)
    batch.set("a", "1")
    batch.incr("a")
    batch.get("a")
    assert client.exec(batch, raise_on_error=True) == ["OK", 2, b"2"]
    client.watch(["a"])
    with server.connect() as other:
        other.command("SET", "a", 5)
    assert client.exec(batch, raise_on_error=True) is None
    client.close()


@pytest.mark.snugly_only
def test_a_transaction_is_bounded_by_settings_that_the_refusal_names(start: Start) -> None:
    server = start("--max-transaction-requests", "3", "--max-transaction-bytes", "2kb")
    aborted = Failure(b"EXECABORT Transaction discarded because of previous errors.")
    with server.connect() as connection:
        connection.command("MULTI")
        for _ in range(3):
            assert connection.command("PING") == QUEUED
        assert names_setting(connection.command("PING"), b"max-transaction-requests")
        assert connection.command("EXEC") == aborted
        connection.command("MULTI")
        assert connection.command("SET", "a", "x" * 1000) == QUEUED
        assert names_setting(connection.command("SET", "a", "x" * 1000), b"max-transaction-bytes")
        assert connection.command("EXEC") == aborted
        assert names_setting(connection.command("WATCH", "a", "b", "c", "d"), b"max-transaction-requests")
        assert names_setting(connection.command("WATCH", "x" * 1000), b"max-transaction-bytes")
        assert connection.command("CONFIG", "SET", "max-transaction-requests", 4) == OK
        connection.command("MULTI")
        for _ in range(4):
            assert connection.command("PING") == QUEUED
        assert connection.command("EXEC") == [Simple(b"PONG")] * 4


def names_setting(reply: Reply, setting: bytes) -> bool:
    return isinstance(reply, Failure) and setting in reply.text


@pytest.mark.parametrize(
    "commands",
    [
        [["EXEC"], ["DISCARD"], ["EXEC", "x"], ["MULTI", "x"], ["WATCH"], ["UNWATCH", "x"], ["DISCARD", "x"]],
        [["MULTI"], ["MULTI"], ["EXEC"], ["EXEC"]],
        [["MULTI"], ["WATCH", "a"], ["DISCARD"], ["DISCARD"]],
        [["MULTI"], ["EXEC", "x"], ["EXEC"]],
        [["MULTI"], ["SHUTDOWN"], ["CLIENT", "REPLY", "OFF"], ["EXEC"]],
        [["MULTI"], ["UNWATCH"], ["AUTH", "x"], ["HELLO", "4"], ["CLIENT", "ID", "x"], ["EXEC"]],
        [["MULTI"], ["CLIENT", "PAUSE", "0"], ["CLIENT", "CACHING", "YES"], ["SELECT", "99"], ["EXEC"]],
    ],
    ids=str,
)
@each_protocol
def test_mistakes_are_answered_as_valkey_answers_them(
    server: Server, peer: Server, protocol: int, commands: list[list[str]]
) -> None:
    with server.connect(protocol) as connection, peer.connect(protocol) as valkey:
        for command in commands:
            assert connection.command_raw(*command) == valkey.command_raw(*command), command


def test_nothing_is_told_of_transactions_without_the_password(locked_pair: tuple[Server, Server]) -> None:
    ours, theirs = locked_pair
    with ours.connect() as connection, theirs.connect() as valkey:
        for command in ("MULTI", "EXEC", "DISCARD", "WATCH", "SUBSCRIBE", "UNWATCH"):
            assert connection.command_raw(command) == valkey.command_raw(command)


def test_a_client_that_its_own_transaction_disconnects_is_told_until_then(connection: Connection) -> None:
    identity = connection.command("CLIENT", "ID")
    assert isinstance(identity, int)
    commands: list[list[Argument]] = [
        ["MULTI"],
        ["SET", "a", 1],
        ["CLIENT", "KILL", "SKIPME", "no", "ID", identity],
        ["PING"],
        ["EXEC"],
        ["PING"],
    ]
    connection.send(b"".join(encode(*command) for command in commands))
    assert connection.read_to_end() == b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n:1\r\n"


def test_clients_in_transactions_are_listed_as_such(server: Server) -> None:
    with server.connect() as client, server.connect() as observer:
        identity = client.command("CLIENT", "ID")
        assert isinstance(identity, int)

        def line(identity: int = identity) -> bytes:
            text = observer.command("CLIENT", "LIST", "ID", identity)
            assert isinstance(text, bytes)
            return text

        assert b" flags=N " in line()
        assert b" multi=-1 watch=0 " in line()
        client.command("WATCH", "a", "b")
        assert b" multi=0 watch=2 " in line()
        client.command("MULTI")
        client.command("PING")
        assert b" flags=x " in line()
        assert b" multi=1 watch=2 " in line()
        observer.command("SET", "a", 1)
        assert b" flags=xd " in line()
        client.command("EXEC")
        assert b" flags=N " in line()
        assert b" multi=0 watch=0 " in line()


def test_a_transaction_for_which_there_is_no_memory_is_refused_and_loses_nothing(start: Start) -> None:
    server = start(memory="3mb", policy="noeviction")
    with server.connect() as connection:
        for number in range(100):
            connection.command("RPUSH", "from", f"job {number}")
        number = 0
        for size in (2000, 20):
            while not isinstance(connection.command("SET", f"filler:{number}", random.randbytes(size)), Failure):
                number += 1
        moved = random.randbytes(20_000)
        assert connection.command("MULTI") == OK
        assert connection.command("LPOP", "from") == QUEUED
        refused = connection.command("RPUSH", "to", moved)
        assert isinstance(refused, Failure)
        assert refused.text.startswith(b"OOM command not allowed")
        aborted = connection.command("EXEC")
        assert isinstance(aborted, Failure)
        assert aborted.text.startswith(b"EXECABORT")
        assert connection.command("LLEN", "from") == 100
        # What takes no memory still runs.
        assert connection.command("MULTI") == OK
        assert connection.command("LPOP", "from") == QUEUED
        assert connection.command("EXEC") == [b"job 0"]


@pytest.mark.snugly_only
def test_a_transaction_that_was_queued_while_there_was_memory_runs_whole_or_not_at_all(start: Start) -> None:
    server = start("--threads", "1", memory="3mb", policy="noeviction")
    with server.connect() as connection, server.connect() as other:
        connection.command("RPUSH", "from", *[f"job {number}" for number in range(50)])
        for number in range(8):
            assert connection.command("MULTI") == OK
            assert connection.command("LPOP", "from") == QUEUED
            assert connection.command("RPUSH", f"to:{number}", "job") == QUEUED
            fillers: list[str] = []
            # Up to the last bytes, or up to some before them.
            for size in (20_000, 10) if number % 2 else (20_000, 3_000):
                while not isinstance(other.command("SET", f"filler:{len(fillers)}", random.randbytes(size)), Failure):
                    fillers.append(f"filler:{len(fillers)}")
            outcome = connection.command("EXEC")
            if isinstance(outcome, Failure):
                assert outcome.text == b"EXECABORT Transaction discarded because of: " + (
                    b"OOM command not allowed when used memory > 'maxmemory'."
                )
                assert connection.command("EXISTS", f"to:{number}") == 0
            else:
                assert isinstance(outcome, list)
                assert outcome[1] == 1
            other.command("DEL", *fillers)
        left = connection.command("LLEN", "from")
        moved = sum(connection.command("EXISTS", f"to:{number}") == 1 for number in range(8))
        assert isinstance(left, int)
        assert left + moved == 50
