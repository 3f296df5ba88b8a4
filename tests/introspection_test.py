"""The server's description of itself for clients and people, beside valkey-server's."""

from __future__ import annotations

import functools
import itertools

import pytest

from resp import Connection, Failure, Map, Other, Reply, Simple, encode
from servers import Server
from tested import Start
from threads import in_threads


def dictionary(reply: Reply) -> dict[bytes, Reply]:
    """A map of RESP3, or an array of names and values of RESP2."""
    pairs = reply.pairs if isinstance(reply, Map) else []
    if isinstance(reply, list):
        pairs = list(zip(reply[::2], reply[1::2], strict=True))
    return {name: value for name, value in pairs if isinstance(name, bytes)}


def content(reply: Reply) -> bytes:
    """A text for people: a bulk string in RESP2, a verbatim string in RESP3."""
    if isinstance(reply, Other):
        assert reply.text.startswith(b"txt:")
        return reply.text[4:]
    assert isinstance(reply, bytes)
    return reply


@pytest.mark.parametrize(
    "command",
    [
        *["MSETEX 2 a 1 b 2 EX 5", "MSETEX 2 a 1 b", "MSETEX 3 a 1 b 2", "MSETEX 0 a 1", "MSETEX -1 a 1"],
        *["MSETEX x a 1", "MSETEX 1 a", "BITOP AND a b c", "RENAME a b", "LCS a b LEN", "SWAPDB 0 1"],
    ],
)
def test_keys_are_found_where_valkey_finds_them(connection: Connection, peer: Server, command: str) -> None:
    with peer.connect() as valkey:
        theirs = valkey.command("COMMAND", "GETKEYS", *command.split())
    assert connection.command("COMMAND", "GETKEYS", *command.split()) == theirs


@pytest.mark.parametrize(
    "name",
    ["maxmemory", "maxmemory-policy", "databases", "port", "timeout", "save", "appendonly", "proto-max-bulk-len"],
)
def test_settings_that_clients_ask_for_are_there(connection: Connection, peer: Server, name: str) -> None:
    found = dictionary(connection.command("CONFIG", "GET", name))
    assert list(found) == [name.encode()]
    with peer.connect() as valkey:
        theirs = dictionary(valkey.command("CONFIG", "GET", name))
    if name not in ("port", "save"):
        assert found == theirs


def test_settings_are_found_by_pattern_and_by_several_names(connection: Connection) -> None:
    assert {b"maxmemory", b"maxmemory-policy", b"maxclients"} <= dictionary(
        connection.command("CONFIG", "GET", "max*")
    ).keys()
    both = dictionary(connection.command("CONFIG", "GET", "timeout", "MAXMEMORY", "timeout"))
    assert set(both) == {b"timeout", b"MAXMEMORY"}
    assert dictionary(connection.command("CONFIG", "GET", "no-such-setting")) == {}
    assert isinstance(connection.command("CONFIG", "GET"), Failure)


def test_settings_are_changed_all_or_none(connection: Connection) -> None:
    assert connection.command("CONFIG", "SET", "timeout", 100, "maxmemory-policy", "allkeys-lru") == Simple(b"OK")
    assert dictionary(connection.command("CONFIG", "GET", "timeout")) == {b"timeout": b"100"}
    reply = connection.command("CONFIG", "SET", "timeout", 200, "maxmemory-policy", "nonsense")
    assert isinstance(reply, Failure)
    assert reply.text.startswith(b"ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy')")
    assert dictionary(connection.command("CONFIG", "GET", "timeout")) == {b"timeout": b"100"}
    assert connection.command("CONFIG", "SET", "timeout", 0, "maxmemory-policy", "noeviction") == Simple(b"OK")


def test_clients_that_change_different_settings_at_once_all_succeed(start: Start) -> None:
    server = start()

    def change(name: str) -> None:
        requests = b"".join(
            encode("CONFIG", "SET", name, value) + encode("CONFIG", "GET", name) for value in range(5000)
        )
        with server.connect() as client:
            client.send(requests)
            for value in range(5000):
                assert client.read() == Simple(b"OK")
                assert client.read() == [name.encode(), str(value).encode()]

    names = ["slowlog-max-len", "latency-monitor-threshold", "commandlog-large-reply-max-len"]
    in_threads(*(functools.partial(change, name) for name in names))


@pytest.mark.parametrize(
    "command",
    [
        ["CONFIG", "SET", "no-such-setting", "1"],
        ["CONFIG", "SET", "maxmemory"],
        ["CONFIG", "SET", "maxmemory", "much"],
        ["CONFIG", "SET", "timeout", "1", "timeout", "2"],
        ["CONFIG", "NOSUCH"],
        ["CONFIG"],
        ["COMMAND", "NOSUCH"],
        ["CLIENT"],
        ["CLIENT", "KILL", "ID", "x"],
        ["CLIENT", "KILL", "nobody"],
        ["CLIENT", "REPLY", "MAYBE"],
        ["CLIENT", "SETINFO", "NOSUCH", "x"],
        ["CLIENT", "NO-EVICT", "MAYBE"],
        ["OBJECT", "ENCODING"],
        ["OBJECT", "NOSUCH", "key"],
        ["MEMORY", "NOSUCH"],
        ["MEMORY", "USAGE", "key", "SAMPLES"],
        ["MEMORY", "USAGE", "key", "SAMPLES", "-1"],
        ["INFO", "no-such-section"],
        ["SHUTDOWN", "MAYBE"],
        ["TIME", "zone"],
        ["HELLO", "3", "AUTH", "user"],
        ["HELLO", "3", "NOSUCH"],
        ["QUIT", "now"],
        ["DBSIZE", "0"],
    ],
    ids=" ".join,
)
def test_mistakes_are_answered_as_valkey_answers_them(server: Server, peer: Server, command: list[str]) -> None:
    with server.connect() as connection, peer.connect() as valkey:
        assert connection.command(*command) == valkey.command(*command)


def test_info_has_the_fields_that_tools_read(connection: Connection) -> None:
    text = content(connection.command("INFO"))
    assert text.startswith(b"# Server\r\n")
    fields = dict(line.split(b":", 1) for line in text.split(b"\r\n") if b":" in line)
    for name in (
        *[b"redis_version", b"tcp_port", b"process_id", b"uptime_in_seconds", b"connected_clients", b"used_memory"],
        *[b"used_memory_human", b"used_memory_rss", b"maxmemory", b"maxmemory_policy", b"total_commands_processed"],
        *[b"total_connections_received", b"keyspace_hits", b"keyspace_misses", b"expired_keys", b"evicted_keys"],
        *[b"role", b"used_cpu_sys", b"used_cpu_user", b"cluster_enabled"],
    ):
        assert name in fields, name
    assert (fields[b"role"], fields[b"cluster_enabled"]) == (b"master", b"0")


def test_info_counts_hits_misses_and_keys(server: Server) -> None:
    with server.connect() as connection:

        def count(name: bytes) -> int:
            text = content(connection.command("INFO", "stats"))
            return int(text.split(name + b":")[1].split(b"\r\n")[0])

        hits, misses = count(b"keyspace_hits"), count(b"keyspace_misses")
        connection.command("SET", "key", "value", "EX", 100)
        for key in ("key", "none", "key", "none", "none"):
            connection.command("GET", key)
        assert (count(b"keyspace_hits") - hits, count(b"keyspace_misses") - misses) == (2, 3)
        assert b"db0:keys=1,expires=1," in content(connection.command("INFO", "keyspace"))


def test_info_takes_sections_in_any_case_and_number(connection: Connection) -> None:
    text = content(connection.command("INFO", "SERVER", "memory"))
    assert b"# Server\r\n" in text
    assert b"# Memory\r\n" in text
    assert b"# Stats\r\n" not in text


def test_clients_are_listed_with_what_people_look_for(connection: Connection) -> None:
    connection.command("CLIENT", "SETNAME", "tester")
    identity = connection.command("CLIENT", "ID")
    assert isinstance(identity, int)
    for subcommand in ("LIST", "INFO"):
        text = content(connection.command("CLIENT", subcommand))
        for field in (f"id={identity} ", "addr=127.0.0.1:", "name=tester", "db=0", f"cmd=client|{subcommand.lower()}"):
            assert field in text.decode()


def test_encodings_of_lists_are_named_as_valkey_names_them(connection: Connection, peer: Server) -> None:
    with peer.connect() as valkey:
        for length in range(8180, 8200):
            element = "x" * length
            names: list[list[Reply]] = []
            for each in (connection, valkey):
                names.append([])
                for command in (["RPUSH", "l", element], ["RPUSH", "l", "a"], ["RPOP", "l"], ["LSET", "l", 0, "b"]):
                    each.command(*command)
                    names[-1].append(each.command("OBJECT", "ENCODING", "l"))
                each.command("DEL", "l")
            assert names[0] == names[1], f"an element of {length} bytes"


def test_encodings_are_named_as_valkey_names_them(connection: Connection, peer: Server) -> None:
    keys = ["k" * size for size in (1, 31, 32, 111, 112, 300)]
    values = ["", "12", "9223372036854775807", "01", *("x" * size for size in range(75, 115))]
    with peer.connect() as valkey:
        for key, value in itertools.product(keys, values):
            names = []
            for each in (connection, valkey):
                each.command("SET", key, value)
                names.append(each.command("OBJECT", "ENCODING", key))
            assert names[0] == names[1], f"a key of {len(key)} bytes, a value of {len(value)}"
