"""Parts, bits and integers of strings, where random commands seldom go: limits, overflow, large values, the clock."""

from __future__ import annotations

import pytest

from resp import Argument, Connection
from servers import Server

FAR = 4_000_000_000
LONG = b'{"id": 1, "name": "customer", "active": true}\n' * 50


def both(server: Server, peer: Server, protocol: int, *commands: list[Argument]) -> list[bytes]:
    """The replies of the server under test, which must be valkey-server's too."""
    replies = []
    for each in (server, peer):
        with each.connect(protocol) as connection:
            connection.command("FLUSHALL")
            replies.append([connection.command_raw(*command) for command in commands])
    assert replies[0] == replies[1]
    return replies[0]


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("kind", ["i1", "u1", "i8", "u8", "i31", "u63", "i63", "i64"])
@pytest.mark.parametrize("how", ["WRAP", "SAT", "FAIL"])
def test_integers_overflow_as_valkey_lets_them(
    server: Server, peer: Server, protocol: int, kind: str, how: str
) -> None:
    """Around the least and the most that the field holds, from below and above, alone and over its neighbours' bits."""
    width = int(kind[1:])
    most = (1 << width - (kind[0] == "i")) - 1
    least = -most - 1 if kind[0] == "i" else 0
    numbers = [least - 1, least, least + 1, -1, 0, 1, most - 1, most, most + 1]
    numbers = [number for number in numbers if -(1 << 63) <= number < 1 << 63]
    commands: list[list[Argument]] = [["SET", "key", b"\xa5" * 20]]
    for number in numbers:
        commands += [
            ["BITFIELD", "key", "OVERFLOW", how, "SET", kind, offset, number, "GET", kind, offset, "GET", "u16", 16]
            for offset in ("0", "3", "#1", "61")
        ]
        for start in (least, 0, most):
            commands += [
                ["BITFIELD", "key", "SET", kind, 5, start, "OVERFLOW", how, "INCRBY", kind, 5, number],
                ["GET", "key"],
            ]
    both(server, peer, protocol, *commands)


def test_one_bitfield_may_have_several_kinds_of_overflow(connection: Connection) -> None:
    replies = connection.command(
        *("BITFIELD", "key", "SET", "u8", 0, 250, "INCRBY", "u8", 0, 10, "OVERFLOW", "SAT", "INCRBY", "u8", 0, 255),
        *("OVERFLOW", "FAIL", "INCRBY", "u8", 0, 1, "OVERFLOW", "WRAP", "INCRBY", "u8", 0, 1),
    )
    assert replies == [0, 4, 255, None, 0]


def test_a_bitfield_that_fails_still_makes_its_key(connection: Connection) -> None:
    assert connection.command("BITFIELD", "key", "OVERFLOW", "FAIL", "SET", "u8", 8, 256) == [None]
    assert connection.command("GET", "key") == bytes(2)


@pytest.mark.snugly_only
def test_what_changes_nothing_is_not_written(server: Server) -> None:
    with server.connect() as connection:
        connection.command("SET", "key", b"\x01value")
        before = written(connection)
        assert connection.command("SETBIT", "key", 7, 1) == 1
        assert connection.command("SETRANGE", "key", 5, "") == 6
        assert connection.command("BITFIELD", "key", "SET", "u8", 0, 1) == [1]
        assert connection.command("BITFIELD", "key", "OVERFLOW", "FAIL", "INCRBY", "u8", 0, 255) == [None]
        assert connection.command("SETRANGE", "missing", 5, "") == 0
        assert written(connection) == before
        assert connection.command("SETBIT", "key", 7, 0) == 1
        assert written(connection) == before + 1


def written(connection: Connection) -> int:
    """Number of values stored so far."""
    text = connection.command("INFO", "compression")
    assert isinstance(text, bytes)
    return sum(int(line.split(b":")[1]) for line in text.splitlines() if line.startswith(b"encoded_values_"))


@pytest.mark.parametrize("size", [1, 100, 5000, 300_000])
def test_ranges_and_bits_of_compressed_values_are_those_of_the_value(server: Server, peer: Server, size: int) -> None:
    value = (b'{"id": 1, "name": "customer"}\n' * (size // 30 + 1))[:size]
    both(
        *(server, peer, 2),
        ["SET", "key", value],
        ["GETRANGE", "key", -20, -3],
        ["GETRANGE", "key", size // 2, size * 2],
        ["GETBIT", "key", size * 4],
        ["GETBIT", "key", size * 8],
        ["BITCOUNT", "key"],
        ["BITCOUNT", "key", 3, size * 8 - 5, "BIT"],
        ["BITPOS", "key", 0, size // 2],
        ["BITPOS", "key", 1, -9, -1, "BIT"],
        ["BITFIELD_RO", "key", "GET", "i64", size * 8 - 7],
        ["SETBIT", "key", size * 8 + 70, 1],
        ["SETRANGE", "key", size // 2, "changed"],
        ["BITFIELD", "key", "INCRBY", "u8", "#2", 300],
        ["BITOP", "XOR", "target", "key", "key", "missing"],
        ["BITOP", "NOT", "target", "key"],
        ["GET", "target"],
        ["GET", "key"],
    )


def test_a_row_of_ones_has_no_zero_in_it_but_one_behind_it(connection: Connection) -> None:
    connection.command("SET", "key", b"\xff" * 1000)
    assert connection.command("BITPOS", "key", 0) == 8000
    assert connection.command("BITPOS", "key", 0, 10) == 8000
    assert connection.command("BITPOS", "key", 0, 0, -1) == -1
    assert connection.command("BITPOS", "key", 0, 5, 7990, "BIT") == -1


def test_bitop_without_bytes_removes_its_target(connection: Connection) -> None:
    connection.command("SET", "target", "value")
    assert connection.command("BITOP", "AND", "target", "missing", "missing too") == 0
    assert connection.command("EXISTS", "target") == 0


def test_the_target_of_bitop_may_be_a_source_and_loses_its_lifetime(connection: Connection) -> None:
    connection.command("SET", "a", b"\x0f\xff", "EX", 100)
    connection.command("SET", "b", b"\xff")
    assert connection.command("BITOP", "AND", "a", "a", "b") == 2
    assert connection.command("GET", "a") == b"\x0f\x00"
    assert connection.command("TTL", "a") == -1


LIMITED: list[list[Argument]] = [
    ["SETRANGE", "key", 1048570, "123456"],
    ["SETRANGE", "key", 1048570, "1234567"],
    ["SETBIT", "key", 1048576 * 8 - 1, 1],
    ["SETBIT", "key", 1048576 * 8, 1],
    ["GETBIT", "key", 1048576 * 8],
    ["BITFIELD", "key", "GET", "u8", "#1048576"],
    ["APPEND", "key", "1"],
    ["SET", "a", b"ab" * 250],
    ["SET", "b", b"cb" * 250],
    ["LCS", "a", "b", "LEN"],
    ["LCS", "a", "b", "IDX", "MINMATCHLEN", 2],
    ["APPEND", "b", "d" * 24],
    ["LCS", "a", "b", "LEN"],
    ["APPEND", "a", "d" * 24],
    ["LCS", "a", "b", "LEN"],
    ["LCS", "a", "b"],
]


@pytest.mark.parametrize("protocol", [2, 3])
def test_no_value_and_no_table_grows_over_the_limit(server: Server, peer: Server, protocol: int) -> None:
    smaller: list[Argument] = ["CONFIG", "SET", "proto-max-bulk-len", 1 << 20]
    as_before: list[Argument] = ["CONFIG", "SET", "proto-max-bulk-len", 512 << 20]
    both(server, peer, protocol, smaller, *LIMITED, as_before)


def test_values_keep_their_lifetime_when_a_part_changes(connection: Connection) -> None:
    commands: list[list[Argument]] = [
        ["SETRANGE", "key", 1, "x"],
        ["SETBIT", "key", 9, 1],
        ["BITFIELD", "key", "SET", "u8", 0, 1],
    ]
    for command in commands:
        connection.command("SET", "key", "value", "EXAT", FAR)
        connection.command(*command)
        assert connection.command("EXPIRETIME", "key") == FAR


@pytest.mark.parametrize(
    ("options", "expired"), [(["EX", "100"], False), (["EXAT", "1"], True), (["PXAT", str(FAR * 1000)], False)]
)
def test_many_keys_are_written_with_one_lifetime(connection: Connection, options: list[str], expired: bool) -> None:
    assert connection.command("MSETEX", 2, "a", "1", "b", "2", *options) == 1
    assert connection.command("MGET", "a", "b") == ([None, None] if expired else [b"1", b"2"])


def test_a_key_is_deleted_only_if_it_holds_what_is_expected(connection: Connection) -> None:
    connection.command("SET", "key", LONG)
    assert connection.command("DELIFEQ", "key", LONG[:-1] + b"x") == 0
    assert connection.command("DELIFEQ", "key", LONG + b"x") == 0
    assert connection.command("DELIFEQ", "key", LONG) == 1
    assert connection.command("DELIFEQ", "key", LONG) == 0
