"""CLIENT: finding connections and ending them, and letting requests wait."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

import dumps
from resp import Connection, Failure, Other, Simple, encode
from servers import Server
from waiting import until

OK = Simple(b"OK")
each_protocol = pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])


def text_of(reply: object) -> bytes:
    assert isinstance(reply, bytes | Other)
    return reply if isinstance(reply, bytes) else reply.text.removeprefix(b"txt:")


@contextlib.contextmanager
def some_clients(server: Server) -> Iterator[dict[str, Connection]]:
    """Clients that differ, by their names."""
    described: dict[str, list[list[str]]] = {
        "plain": [],
        "second": [["SELECT", "1"]],
        "library": [["CLIENT", "SETINFO", "LIB-NAME", "lib"], ["CLIENT", "SETINFO", "LIB-VER", "1.0"]],
        "multi": [["MULTI"]],
        "dirty": [["WATCH", "a"], ["SET", "a", "1"], ["MULTI"]],
        "tracking": [["CLIENT", "TRACKING", "ON"]],
        "broadcast": [["CLIENT", "TRACKING", "ON", "BCAST"]],
        "keeping": [["CLIENT", "NO-EVICT", "ON"], ["CLIENT", "NO-TOUCH", "ON"]],
        "capable": [["CLIENT", "CAPA", "redirect"]],
        "listening": [["SUBSCRIBE", "__redis__:invalidate"]],
    }
    with contextlib.ExitStack() as stack:
        clients = {}
        for name, commands in described.items():
            connection = stack.enter_context(server.connect())
            for command in [["CLIENT", "SETNAME", name], *commands]:
                assert not isinstance(connection.command(*command), Failure)
            clients[name] = connection
        yield clients


def found(connection: Connection, *filters: str) -> set[bytes]:
    """The names of the connections that CLIENT LIST lists; of one without a name, nothing."""
    lines = text_of(connection.command("CLIENT", "LIST", *filters)).splitlines()
    return {field.removeprefix(b"name=") for line in lines for field in line.split() if field.startswith(b"name=")}


FILTERS = [
    *[
        "TYPE normal",
        "TYPE PUBSUB",
        "TYPE master",
        "TYPE replica",
        "FLAGS N",
        "FLAGS x",
        "FLAGS xd",
        "FLAGS d",
        "FLAGS t",
    ],
    *[
        "FLAGS tB",
        "FLAGS B",
        "FLAGS e",
        "FLAGS Te",
        "FLAGS P",
        "FLAGS xN",
        "FLAGS O",
        "FLAGS A",
        "CAPA r",
        "DB 1",
        "DB 0",
    ],
    *["NAME plain", "NAME nobody", "LIB-NAME lib", "LIB-VER 1.0", "LIB-VER 2.0", "LIB-NAME lib LIB-VER 1.0 DB 0"],
    *[
        "IP 127.0.0.1",
        "IP 127.0.0",
        "IP ::1",
        "USER default",
        "SKIPME yes",
        "SKIPME NO DB 0",
        "IDLE 1000",
        "MAXAGE 1000",
    ],
    *["ADDR 127.0.0.1:1", "LADDR 127.0.0.1:1", "DB 0 DB 1", "TYPE normal ID", "id 999999", "FLAGS x NAME multi"],
    *[
        "NOT-TYPE normal",
        "NOT-TYPE PUBSUB",
        "NOT-TYPE replica",
        "NOT-FLAGS N",
        "NOT-FLAGS x",
        "NOT-FLAGS xd",
        "not-flags tB",
        "NOT-CAPA r",
        "NOT-DB 1",
        "NOT-DB 0",
    ],
    *[
        "NOT-NAME plain",
        "NOT-NAME nobody",
        "NOT-LIB-NAME lib",
        "NOT-LIB-VER 1.0",
        "NOT-LIB-VER 2.0",
        "NOT-IP 127.0.0.1",
        "NOT-IP ::1",
        "NOT-USER default",
        "NOT-ADDR 127.0.0.1:1",
        "NOT-LADDR 127.0.0.1:1",
    ],
    *[
        "NOT-ID 999999",
        "NOT-ID NAME plain",
        "ID NAME plain",
        "NOT-DB 0 NOT-DB 1",
        "DB 0 NOT-DB 0",
        "DB 1 NOT-DB 0",
        "FLAGS x NOT-FLAGS d",
        "TYPE normal NOT-FLAGS N SKIPME yes",
        "NOT-NAME plain NAME plain NAME multi",
    ],
]


def test_filters_find_what_valkeys_find(server: Server, peer: Server) -> None:
    with some_clients(server), some_clients(peer), server.connect() as ours, peer.connect() as theirs:
        for filters in FILTERS:
            assert found(ours, *filters.split()) == found(theirs, *filters.split()), filters
        for option in ["FLAGS", "CAPA", "NAME", "LIB-NAME", "LIB-VER", "IP", "ADDR"]:
            for name in [option, f"NOT-{option}"]:
                assert found(ours, name, "") == found(theirs, name, ""), name


def test_clients_are_found_by_their_numbers_and_addresses(connection: Connection) -> None:
    connection.command("CLIENT", "SETNAME", "me")
    fields = dict(field.split(b"=") for field in text_of(connection.command("CLIENT", "INFO")).split())
    number, address, local = (fields[name].decode() for name in (b"id", b"addr", b"laddr"))
    assert found(connection, "ID", number) == {b"me"}
    assert found(connection, "ID", "999999", number, "999998") == {b"me"}
    assert found(connection, "ID", "999999", "ID", number, "NAME", "me") == {b"me"}
    assert found(connection, "ADDR", address, "LADDR", local) == {b"me"}
    assert found(connection, "ID", number, "SKIPME", "yes") == set()
    for opposite in [
        ["NOT-ID", number],
        ["NOT-ID", number, "NOT-ID", "999999"],
        ["NOT-ADDR", address],
        ["NOT-LADDR", local],
    ]:
        assert found(connection, "NAME", "me", *opposite) == set()


@pytest.mark.parametrize(
    "filters",
    [
        ["NAME", "plain"],
        ["FLAGS", "x"],
        ["TYPE", "pubsub"],
        ["DB", "1", "NAME", "second"],
        ["LIB-NAME", "lib"],
        ["CAPA", "r"],
        ["NAME", "plain", "NOT-FLAGS", "x"],
    ],
    ids=" ".join,
)
def test_filters_end_what_they_find(server: Server, filters: list[str]) -> None:
    with some_clients(server) as clients, server.connect() as killer:
        doomed = found(killer, *filters)
        assert doomed
        assert killer.command("CLIENT", "KILL", *filters, "MAXAGE", "1000") == 0
        assert killer.command("CLIENT", "KILL", *filters) == len(doomed)
        for name, connection in clients.items():
            if name.encode() in doomed:
                assert connection.read_to_end() == b""
            else:
                assert connection.command("PING") in (Simple(b"PONG"), Simple(b"QUEUED"), [b"pong", b""])


@pytest.mark.parametrize(
    "command",
    [
        *["GET key", "MGET key none", "GETEX key", "GETEX key EX 100", "GETRANGE key 0 1", "STRLEN key", "LCS key key"],
        *["SET key new", "SET key new KEEPTTL", "MSET key new", "GETSET key new", "APPEND key x", "SETRANGE key 1 x"],
        *["INCR key", "BITCOUNT key", "GETBIT key 1", "SETBIT key 1 1", "BITFIELD key SET u8 0 1", "DUMP key"],
        *["TOUCH key", "EXPIRE key 100"],
    ],
)
def test_what_a_client_does_that_leaves_no_trace_is_no_use_of_a_key(server: Server, peer: Server, command: str) -> None:
    idle = []
    for each in (server, peer):
        with each.connect() as silent, each.connect() as other:
            assert silent.command("CLIENT", "NO-TOUCH", "ON") == OK
            payload = dumps.payload(dumps.raw(b"1000"))
            other.command("RESTORE", "key", 0, payload, "REPLACE", "IDLETIME", 1000)
            assert not isinstance(silent.command(*command.split()), Failure)
            seconds = other.command("OBJECT", "IDLETIME", "key")
            assert isinstance(seconds, int)
            idle.append(seconds >= 1000)
    assert idle[0] == idle[1] == (command != "TOUCH key")


def test_a_client_that_leaves_no_trace_counts_among_hits_and_misses(connection: Connection) -> None:
    def looked_up() -> list[int]:
        text = text_of(connection.command("INFO", "stats"))
        return [int(text.split(name)[1].split(b"\r\n")[0]) for name in (b"keyspace_hits:", b"keyspace_misses:")]

    connection.command("CLIENT", "NO-TOUCH", "ON")
    connection.command("SET", "key", "value")
    hits, misses = looked_up()
    for command in (["GET", "key"], ["GET", "none"], ["MGET", "key", "none"], ["STRLEN", "none"]):
        connection.command(*command)
    assert looked_up() == [hits + 2, misses + 3]


def test_a_client_is_ended_by_its_address_even_itself(server: Server, connection: Connection) -> None:
    with server.connect() as other:
        fields = dict(field.split(b"=") for field in text_of(other.command("CLIENT", "INFO")).split())
        assert connection.command("CLIENT", "KILL", fields[b"addr"]) == OK
        assert other.read_to_end() == b""
        assert connection.command("CLIENT", "KILL", fields[b"addr"]) == Failure(b"ERR No such client")
    own = dict(field.split(b"=") for field in text_of(connection.command("CLIENT", "INFO")).split())
    assert connection.command("CLIENT", "KILL", "ID", own[b"id"]) == 0
    assert connection.command("CLIENT", "KILL", own[b"addr"]) == OK
    assert connection.read_to_end() == b""


MISTAKES = [
    *[
        "LIST x",
        "LIST x y",
        "LIST ID",
        "LIST ID x",
        "LIST ID 0",
        "LIST ID -1",
        "LIST ID 1 TYPE",
        "LIST TYPE x",
        "LIST IDLE x",
    ],
    *["LIST IDLE 0", "LIST MAXAGE x", "LIST MAXAGE -1", "LIST DB x", "LIST DB -1", "LIST DB 16", "LIST DB 99999999999"],
    *["LIST USER x", "LIST SKIPME x", "LIST FLAGS z", "LIST CAPA x", "LIST NAME", "LIST ID 9999999999999999999 5"],
    *[
        "LIST NOT-ID",
        "LIST NOT-ID 0",
        "LIST NOT-ID x",
        "LIST NOT-ID 1 x",
        "LIST NOT-TYPE",
        "LIST NOT-TYPE x",
        "LIST NOT-USER nobody",
        "LIST NOT-DB 16",
        "LIST NOT-DB x",
        "LIST NOT-FLAGS xQ",
        "LIST NOT-CAPA x",
        "LIST NOT-IDLE 1",
        "LIST NOT-MAXAGE 1",
        "LIST NOT-SKIPME yes",
        "LIST NOT- x",
        "LIST NOT-NOT-ID 1",
        "KILL NOT-DB 16",
        "KILL NOT-ID",
    ],
    *["KILL", "KILL x", "KILL ID", "KILL ID x", "KILL ID 0", "KILL x y", "KILL FLAGS z", "KILL ID 999999 SKIPME"],
    *[
        "PAUSE",
        "PAUSE x",
        "PAUSE -1",
        "PAUSE 1.5",
        "PAUSE 0",
        "PAUSE 0 foo",
        "PAUSE 0 WRITE x",
        "PAUSE 9223372036854775807",
    ],
    *[
        "PAUSE 9223372036854775808",
        "UNPAUSE",
        "UNPAUSE x",
        "UNBLOCK",
        "UNBLOCK x",
        "UNBLOCK 1",
        "UNBLOCK 1 foo",
        "UNBLOCK x foo",
    ],
    *[
        "UNBLOCK 1 ERROR",
        "UNBLOCK 1 timeout x",
        "CAPA",
        "CAPA x",
        "CAPA redirect y",
        "IMPORT-SOURCE",
        "IMPORT-SOURCE ON",
    ],
    *["IMPORT-SOURCE OFF", "IMPORT-SOURCE x", "GETREDIR x", "TRACKINGINFO x", "CACHING", "TRACKING"],
]


@each_protocol
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_answered_as_valkey_answers_them(
    server: Server, peer: Server, protocol: int, mistake: str
) -> None:
    with server.connect(protocol) as connection, peer.connect(protocol) as valkey:
        command = ["CLIENT", *mistake.split()]
        assert connection.command_raw(*command) == valkey.command_raw(*command)


def waits(server: Server, connection: Connection) -> None:
    """Returns once a request of the connection waits for the end of a pause."""
    with server.connect() as observer:
        until(lambda: b"blocked_clients:1\r\n" in text_of(observer.command("INFO", "clients")))
        assert connection.pending == b""


def test_a_pause_of_writes_lets_reads_pass(server: Server, connection: Connection) -> None:
    with server.connect() as writer:
        assert connection.command("CLIENT", "PAUSE", 1_000_000, "WRITE") == OK
        writer.send(b"".join(encode(*command) for command in (["GET", "a"], ["SET", "a", 1], ["GET", "a"])))
        assert writer.read() is None
        waits(server, writer)
        assert connection.command("GET", "a") is None
        info = text_of(connection.command("INFO", "clients"))
        assert b"paused_reason:client_pause\r\npaused_actions:write\r\npaused_timeout_milliseconds:" in info
        assert found(connection, "FLAGS", "b") == {b""}
        assert connection.command("CLIENT", "UNPAUSE") == OK
        assert [writer.read(), writer.read()] == [OK, b"1"]
        info = text_of(connection.command("INFO", "clients"))
        assert b"paused_reason:none\r\npaused_actions:none\r\npaused_timeout_milliseconds:0\r\n" in info


def test_a_pause_of_all_ends_by_itself(server: Server) -> None:
    with server.connect() as one, server.connect() as two:
        assert one.command("CLIENT", "PAUSE", 300) == OK
        two.send(encode("PING") + encode("NOSUCH"))
        one.send(encode("CLIENT", "UNPAUSE"))
        assert two.read() == Simple(b"PONG")
        assert isinstance(two.read(), Failure)
        assert one.read() == OK


def test_a_transaction_that_writes_waits_when_it_is_to_run(server: Server) -> None:
    with server.connect() as client, server.connect() as other:
        client.command("MULTI")
        client.command("SET", "a", 1)
        other.command("CLIENT", "PAUSE", 1_000_000, "WRITE")
        client.send(encode("EXEC"))
        waits(server, client)
        assert other.command("GET", "a") is None
        other.command("CLIENT", "UNPAUSE")
        assert client.read() == [OK]
        client.command("MULTI")
        client.command("GET", "a")
        other.command("CLIENT", "PAUSE", 1_000_000, "WRITE")
        assert client.command("EXEC") == [b"1"]
        other.command("CLIENT", "UNPAUSE")


def test_a_waiting_client_can_be_ended_and_can_go(server: Server) -> None:
    with server.connect() as other:
        other.command("CLIENT", "PAUSE", 1_000_000, "WRITE")
        with server.connect() as doomed:
            doomed.send(encode("SET", "a", 1))
            waits(server, doomed)
            assert other.command("CLIENT", "KILL", "FLAGS", "b") == 1
            assert doomed.read_to_end() == b""
        with server.connect() as leaver:
            leaver.send(encode("SET", "a", 1))
            waits(server, leaver)
        until(lambda: not found(other, "FLAGS", "b"))
        other.command("CLIENT", "UNPAUSE")
        assert other.command("GET", "a") is None


def test_a_waiting_client_hears_of_changes(server: Server) -> None:
    with server.connect(3) as client, server.connect() as other:
        client.command("CLIENT", "TRACKING", "ON")
        client.command("GET", "a")
        other.command("CLIENT", "PAUSE", 1_000_000, "WRITE")
        client.send(encode("SET", "b", 1))
        waits(server, client)
        other.command("CLIENT", "UNPAUSE")
        other.command("SET", "a", 1)
        told = [client.read_raw(), client.read_raw()]
        assert sorted(told) == [b"+OK\r\n", b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n"]
