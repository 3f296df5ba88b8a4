"""The command table against a real valkey-server: nothing unclassified, nothing found in the wrong place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

import servers
from resp import Connection, Items, Map, Reply, Simple
from table import Misfit, Pattern, Refused, Row, Table

ALL_TYPES = {"strings", "hashes", "lists", "streams"}
MARK = b"\0<encoded>"

# Commands as an application writes them, by the row that they exercise; the last one of a line is the one
# whose reply is looked at, and the number is how many values that reply must restore. Words with `v` and a
# digit are the values.
SCENARIOS: dict[str, list[tuple[int, list[str]]]] = {
    "SET": [
        (0, ["SET k v1"]),
        (1, ["SET k v1", "SET k v2 GET"]),
        (1, ["SET k v1", "set k v2 ex 100 xx get"]),
        (1, ["SET k v1", "SET k v2 GET NX"]),
        (0, ["SET k v1 PX 90000 GET"]),
        (0, ["SET k v1", "SET k v2 EX 100 NX"]),
        (0, ["SET GET v1", "SET GET v2 KEEPTTL"]),
    ],
    "SETNX": [(0, ["SETNX k v1"])],
    "SETEX": [(0, ["SETEX k 100 v1"])],
    "PSETEX": [(0, ["PSETEX k 100000 v1"])],
    "MSET": [(0, ["MSET k v1 l v2"])],
    "MSETNX": [(0, ["MSETNX k v1 l v2"])],
    "MSETEX": [(0, ["MSETEX 2 k v1 l v2 EX 100"]), (0, ["MSETEX 1 k v1"])],
    "GETSET": [(0, ["GETSET k v1"]), (1, ["SET k v1", "GETSET k v2"])],
    "GET": [(0, ["GET k"]), (1, ["SET k v1", "GET k"]), (1, ["MSETEX 1 k v1", "get k"])],
    "GETEX": [(1, ["SETEX k 100 v1", "GETEX k"]), (1, ["PSETEX k 99999 v1", "GETEX k PERSIST"])],
    "GETDEL": [(1, ["SETNX k v1", "GETDEL k"])],
    "MGET": [(2, ["MSET k v1 l v2", "MGET k none l"]), (2, ["MSETNX k v1 l v2", "MGET k l"])],
    "HSET": [(0, ["HSET h f v1 g v2"])],
    "HMSET": [(0, ["HMSET h f v1 g v2"])],
    "HSETNX": [(0, ["HSETNX h f v1"])],
    "HSETEX": [
        (0, ["HSETEX h FIELDS 2 f v1 g v2"]),
        (0, ["HSETEX h FNX EX 100 FIELDS 1 f v1"]),
        (0, ["HSETEX h NX PX 99999 FIELDS 1 FIELDS v1"]),
    ],
    "HGET": [(1, ["HSET h f v1", "HGET h f"]), (0, ["HSET h f v1", "HGET h none"])],
    "HMGET": [(2, ["HMSET h f v1 g v2", "HMGET h f none g"])],
    "HGETDEL": [(2, ["HSET h f v1 g v2", "HGETDEL h FIELDS 3 f none g"])],
    "HGETEX": [
        (1, ["HSETNX h f v1", "HGETEX h FIELDS 1 f"]),
        (2, ["HSET h f v1 g v2", "HGETEX h EX 100 FIELDS 2 f g"]),
    ],
    "HVALS": [(2, ["HSETEX h FIELDS 2 f v1 g v2", "HVALS h"])],
    "HGETALL": [(2, ["HSET h f v1 g v2", "HGETALL h"]), (0, ["HGETALL none"])],
    "HSCAN": [
        (2, ["HSET h f v1 g v2", "HSCAN h 0"]),
        (1, ["HSET h NOVALUES v1 g v2", "HSCAN h 0 MATCH NOVALUES COUNT 10"]),
        (0, ["HSET h f v1 g v2", "HSCAN h 0 COUNT 5 NOVALUES"]),
    ],
    "HRANDFIELD": [
        (0, ["HSET h f v1", "HRANDFIELD h"]),
        (0, ["HSET h f v1 g v2", "HRANDFIELD h 2"]),
        (2, ["HSET h f v1 g v2", "HRANDFIELD h 2 WITHVALUES"]),
        (5, ["HSET h f v1", "HRANDFIELD h -5 withvalues"]),
        (0, ["HRANDFIELD none 5 WITHVALUES"]),
    ],
    "LPUSH": [(0, ["LPUSH l v1 v2"])],
    "RPUSH": [(0, ["RPUSH l v1 v2"])],
    "LPUSHX": [(0, ["RPUSH l v1", "LPUSHX l v2 v3"])],
    "RPUSHX": [(0, ["RPUSH l v1", "RPUSHX l v2"])],
    "LSET": [(0, ["RPUSH l v1", "LSET l 0 v2"])],
    "LINSERT": [(0, ["RPUSH l v1", "LINSERT l BEFORE pivot v2"])],
    "LINDEX": [(1, ["RPUSH l v1 v2", "LINDEX l 1"]), (0, ["LINDEX none 0"])],
    "LRANGE": [(2, ["LPUSH l v1 v2", "LRANGE l 0 -1"])],
    "LPOP": [
        (1, ["RPUSH l v1 v2", "LPOP l"]),
        (2, ["RPUSH l v1 v2", "LPOP l 5"]),
        (1, ["RPUSH l v1 v2", "LPOP l 1"]),
        (0, ["LPOP none 1"]),
        (0, ["LPOP none"]),
    ],
    "RPOP": [(1, ["RPUSH l v1 v2", "LPUSHX l v3", "RPOP l"]), (2, ["RPUSH l v1 v2", "RPOP l 2"])],
    "LMPOP": [(2, ["RPUSH l v1 v2", "LMPOP 2 none l LEFT COUNT 9"]), (0, ["LMPOP 1 none LEFT"])],
    "BLMPOP": [(1, ["RPUSH l v1 v2", "BLMPOP 1 2 none l RIGHT"]), (0, ["BLMPOP 0.01 1 none LEFT"])],
    "BLPOP": [(1, ["RPUSHX l v0", "RPUSH l v1", "BLPOP none l 1"]), (0, ["BLPOP none 0.01"])],
    "BRPOP": [(1, ["RPUSH l v1", "LSET l 0 v2", "BRPOP l none 1"])],
    "LMOVE": [(1, ["RPUSH l v1", "LMOVE l m LEFT RIGHT"]), (0, ["LMOVE none m LEFT RIGHT"])],
    "BLMOVE": [(1, ["RPUSH l v1", "BLMOVE l m LEFT RIGHT 1"])],
    "RPOPLPUSH": [(1, ["RPUSH l v1", "RPOPLPUSH l m"])],
    "BRPOPLPUSH": [(1, ["RPUSH l v1", "BRPOPLPUSH l m 1"])],
    "XADD": [
        (0, ["XADD x * f v1 g v2"]),
        (0, ["XADD x NOMKSTREAM MAXLEN ~ 100 LIMIT 10 1-1 f v1"]),
        (0, ["XADD x MINID = 1 5-* f v1"]),
        (0, ["XADD x maxlen 9 77 MAXLEN v1"]),
    ],
    "XRANGE": [(2, ["XADD x * f v1 g v2", "XRANGE x - +"]), (0, ["XRANGE none - + COUNT 5"])],
    "XREVRANGE": [(3, ["XADD x * f v1 g v2", "XADD x * f v3", "XREVRANGE x + - COUNT 9"])],
    "XREAD": [
        (3, ["XADD x * f v1 g v2", "XADD y * f v3", "XREAD COUNT 9 STREAMS x y 0 0"]),
        (0, ["XREAD STREAMS none 0"]),
    ],
    "XREADGROUP": [
        (2, ["XADD x 1 f v1 g v2", "XGROUP CREATE x gr 0", "XREADGROUP GROUP gr me COUNT 9 STREAMS x >"]),
        (
            1,
            [
                "XADD x 1 f v1",
                "XADD x 2 f v2",
                "XGROUP CREATE x gr 0",
                "XREADGROUP GROUP gr me STREAMS x >",
                "XDEL x 1",
                "XREADGROUP GROUP gr me STREAMS x 0",
            ],
        ),
    ],
    "XCLAIM": [
        (
            2,
            [
                "XADD x 1 f v1",
                "XADD x 2 f v2",
                "XGROUP CREATE x gr 0",
                "XREADGROUP GROUP gr me STREAMS x >",
                "XCLAIM x gr you 0 1-0 2-0 IDLE 5 RETRYCOUNT 3 FORCE",
            ],
        ),
        (
            0,
            [
                "XADD x 1 f v1",
                "XGROUP CREATE x gr 0",
                "XREADGROUP GROUP gr me STREAMS x >",
                "XCLAIM x gr you 0 1 LASTID 1 JUSTID",
            ],
        ),
    ],
    "XAUTOCLAIM": [
        (
            1,
            [
                "XADD x 1 f v1",
                "XADD x 2 f v2",
                "XGROUP CREATE x gr 0",
                "XREADGROUP GROUP gr me STREAMS x >",
                "XDEL x 1",
                "XAUTOCLAIM x gr you 0 0 COUNT 9",
            ],
        ),
        (
            0,
            [
                "XADD x 1 f v1",
                "XGROUP CREATE x gr 0",
                "XREADGROUP GROUP gr me STREAMS x >",
                "XAUTOCLAIM x gr you 0 0 justid",
            ],
        ),
    ],
}


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.valkey() as running:
        yield running


@pytest.fixture(params=[2, 3])
def connection(server: servers.Server, request: pytest.FixtureRequest) -> Iterator[Connection]:
    with server.connect(protocol=request.param) as connection:
        connection.command("FLUSHALL")
        yield connection


def words(command: str) -> list[bytes]:
    return command.encode().split()


def scenarios() -> list[Any]:
    return [
        pytest.param(count, commands, id=commands[-1].replace(" ", "_"))
        for cases in SCENARIOS.values()
        for count, commands in cases
    ]


def scalars(reply: Reply) -> Iterator[Reply]:
    if isinstance(reply, Items):
        reply = reply.items
    if isinstance(reply, Map):
        reply = [item for pair in reply.pairs for item in pair]
    if isinstance(reply, list):
        for item in reply:
            yield from scalars(item)
    else:
        yield reply


def known_to(server: servers.Server) -> set[str]:
    with server.connect() as connection:
        listed = connection.command("COMMAND", "LIST")
    assert isinstance(listed, list)
    return {name.decode().upper().partition("|")[0] for name in listed if isinstance(name, bytes)}


def test_the_server_is_the_one_the_table_names(server: servers.Server) -> None:
    with server.connect() as connection:
        info = connection.command("INFO", "server")
    assert isinstance(info, bytes)
    name, version = Table().data["server"].split()
    assert f"{name}_version:{version}.".encode() in info


def test_every_command_of_the_server_is_classified(server: servers.Server) -> None:
    unclassified = known_to(server) - set(Table().classified())
    assert not unclassified, f"spec/commands.json does not say what becomes of {sorted(unclassified)}"


def test_no_command_is_classified_twice() -> None:
    classified = Table().classified()
    assert len(classified) == len(set(classified))


def test_a_command_that_the_server_does_not_know_is_marked_as_newer(server: servers.Server) -> None:
    table = Table()
    assert set(table.classified()) - known_to(server) == set(table.data["newer"])


def test_the_table_follows_its_schema() -> None:
    schema = json.loads((servers.ROOT / "spec" / "commands.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(Table().data, schema)


def test_every_row_with_values_has_a_scenario() -> None:
    table = Table()
    rows = {name for name, row in table.data["commands"].items() if "type" in row}
    assert rows - set(table.data["newer"]) == set(SCENARIOS)


@pytest.mark.parametrize(("count", "commands"), scenarios())
def test_what_is_written_is_what_is_read(connection: Connection, count: int, commands: list[str]) -> None:
    """Encoding is a mark here: any value that is not restored, or restored without having been encoded, shows."""
    table = Table(ALL_TYPES)
    restored = []

    def decode(value: bytes, _key: bytes | None) -> bytes:
        assert value.startswith(MARK), f"{value!r} is no value, but the table's shape found it"
        restored.append(value)
        return value.removeprefix(MARK)

    reply: Reply = None
    for command in commands:
        sent = table.request(words(command), lambda value, _key: MARK + value)
        marked = [arg.removeprefix(MARK) for arg in sent if arg.startswith(MARK)]
        assert marked == [arg for arg in words(command) if arg[:1] == b"v" and arg[1:].isdigit()]
        reply = connection.command(*sent)
        assert "Failure" not in type(reply).__name__, f"{command}: {reply!r}"
        restored.clear()
        reply = table.reply(sent, reply, decode)
    assert len(restored) == count
    assert not any(isinstance(item, bytes) and MARK in item for item in scalars(reply))


@pytest.mark.parametrize(("count", "commands"), scenarios())
def test_a_transaction_restores_each_reply_by_its_own_command(
    connection: Connection, count: int, commands: list[str]
) -> None:
    table = Table(ALL_TYPES)
    *setup, last = (table.request(words(command), lambda value, _key: MARK + value) for command in commands)
    for command in setup:
        connection.command(*command)
    queued = [[b"ECHO", MARK], last]
    assert connection.command("MULTI") == Simple(b"OK")
    for command in queued:
        assert table.reply(command, connection.command(*command), lambda _value, _key: b"") == Simple(b"QUEUED")
    restored: list[bytes] = []

    def decode(value: bytes, _key: bytes | None) -> bytes:
        restored.append(value)
        return value.removeprefix(MARK)

    reply = table.transaction(queued, connection.command("EXEC"), decode)
    assert isinstance(reply, list)
    assert reply[0] == MARK
    assert len(restored) == count
    assert not any(isinstance(item, bytes) and MARK in item for item in scalars(reply[1]))


@pytest.mark.parametrize("command", [commands[-1] for cases in SCENARIOS.values() for _, commands in cases])
def test_the_pattern_finds_the_keys_that_the_server_finds(server: servers.Server, command: str) -> None:
    table, args = Table(ALL_TYPES), words(command)
    found = table.arguments(args)
    assert found is not None, "the pattern does not fit"
    with server.connect() as connection:
        keys = connection.command("COMMAND", "GETKEYS", *args)
    assert isinstance(keys, list)
    row = table.row(args[0])
    if row["arguments"] == ["rest"]:
        assert table.data["shapes"][row["reply"]["shape"]].get("key") == "reply", "nobody could name the key"
    else:
        assert [args[position] for position in found.keys] == keys


def tokens(arguments: list[Row]) -> Iterator[str]:
    for argument in arguments:
        if "token" in argument:
            yield argument["token"]
        yield from tokens(argument.get("arguments", []))


def plain(reply: Reply) -> Any:
    """COMMAND DOCS of RESP3 as dicts and lists of text."""
    match reply:
        case Map(pairs):
            return {plain(name): plain(item) for name, item in pairs}
        case Items(_, items):
            return [plain(item) for item in items]
        case list():
            return [plain(item) for item in reply]
        case bytes():
            return reply.decode()
        case Simple(text):
            return text.decode()
        case _:
            return reply


def docs(server: servers.Server) -> dict[str, Row]:
    with server.connect(protocol=3) as connection:
        documented = plain(connection.command("COMMAND", "DOCS"))
    return {name.upper(): row for name, row in documented.items()}


def test_every_option_of_a_command_is_in_its_row(server: servers.Server) -> None:
    documented = docs(server)
    for name, row in Table().data["commands"].items():
        if "options" in row and name in documented:
            known = set(tokens(documented[name]["arguments"])) - {"=", "~", "*", ""}
            assert known <= set(row["options"]), name


def test_no_untouched_command_takes_a_value(server: servers.Server) -> None:
    documented, table = docs(server), Table()
    handled = set(table.data["commands"]) | set(table.data["numbers"])
    for name, row in documented.items():
        if row["group"] in {"string", "hash", "list", "stream", "bitmap"} and name not in handled:
            names = {argument["name"] for argument in row.get("arguments", [])}
            assert not names & {"value", "element", "data"}, name


REFUSED = [
    ("strings", command)
    for command in (
        "APPEND k v1",
        "STRLEN k",
        "GETRANGE k 0 1",
        "SUBSTR k 0 1",
        "SETRANGE k 0 v1",
        "LCS k l",
        "GETBIT k 1",
        "SETBIT k 1 1",
        "BITCOUNT k",
        "BITPOS k 1",
        "BITFIELD k GET u8 0",
        "BITFIELD_RO k GET u8 0",
        "BITOP AND d k l",
        "SET k v1 IFEQ v2",
        "set k v1 ex 10 ifne v2 get",
        "SET k v1 IFDEQ 00",
        "DELIFEQ k v1",
        "DELEX k IFEQ v1",
        "DIGEST k",
        "SORT l GET k:*",
    )
] + [
    ("hashes", "HSTRLEN h f"),
    ("hashes", "SORT l BY w:*->f"),
    ("hashes", "SORT_RO l GET h:*->f"),
    ("lists", "LREM l 0 v1"),
    ("lists", "LPOS l v1"),
    ("lists", "LINSERT l BEFORE a-pivot-of-thirty-two-bytes-or-more v1"),
    ("lists", "SORT l BY nosort"),
    ("lists", "SORT l LIMIT 0 5 ALPHA"),
]


@pytest.mark.parametrize(("kind", "command"), REFUSED)
def test_a_command_on_compressed_bytes_is_refused_by_name(kind: str, command: str) -> None:
    name = command.split()[0].upper()
    with pytest.raises(Refused, match=f"^{name} is refused because compression is on: the server would "):
        Table({kind}).request(words(command), lambda value, _key: value)


@pytest.mark.parametrize(("kind", "command"), REFUSED)
def test_a_refusal_needs_its_type_of_values(kind: str, command: str) -> None:
    others = Table(ALL_TYPES - {"strings", "hashes", "lists"} if command.startswith("SORT") else ALL_TYPES - {kind})
    args = words(command)
    assert others.request(args, lambda _value, _key: b"") == args


def test_every_refusing_row_is_tested() -> None:
    refusing = {name for name, row in Table().data["commands"].items() if "refuse" in row}
    assert refusing <= {command.split()[0].upper() for _, command in REFUSED}


def test_without_the_opt_in_hashes_lists_and_streams_pass_untouched() -> None:
    table = Table({"strings"})
    for name, cases in SCENARIOS.items():
        if table.row(name.encode())["type"] != "strings":
            args = words(cases[0][1][-1])
            assert table.request(args, lambda _value, _key: b"") == args


@pytest.mark.parametrize("command", ["SET k", "MSET k v1 l", "XADD x FUTURE f v1", "XADD x * f", "MSETEX x k v1"])
def test_arguments_that_do_not_fit_go_out_as_they_are(connection: Connection, command: str) -> None:
    table, args = Table(ALL_TYPES), words(command)
    assert table.arguments(args) is None
    assert table.request(args, lambda _value, _key: b"") == args
    assert "Failure" in type(connection.command(*args)).__name__


def test_numbers_pass_both_ways() -> None:
    table = Table(ALL_TYPES)
    for name in table.data["numbers"]:
        args = [name.encode(), b"k", b"1"]
        assert table.request(args, lambda _value, _key: b"") == args
        assert table.reply(args, b"2.5", lambda _value, _key: b"") == b"2.5"


def test_an_error_can_name_the_key_of_each_value(connection: Connection) -> None:
    table = Table(ALL_TYPES)
    connection.command("MSET", "k", "1", "l", "2")
    connection.command("RPUSH", "list", "3")
    connection.command("XADD", "x", "*", "f", "4")
    connection.command("XADD", "y", "*", "f", "5")
    seen: list[tuple[bytes | None, bytes]] = []

    def decode(value: bytes, key: bytes | None) -> bytes:
        seen.append((key, value))
        return value

    for command in ("MGET k none l", "LMPOP 2 none list LEFT", "XREAD STREAMS x y 0 0", "XRANGE y - +"):
        args = words(command)
        table.reply(args, connection.command(*args), decode)
    named = [(b"k", b"1"), (b"l", b"2"), (b"list", b"3"), (b"x", b"4"), (b"y", b"5"), (b"y", b"5")]
    assert seen == named


def test_an_unknown_pattern_item_is_an_error_in_the_table() -> None:
    with pytest.raises(ValueError, match="nobody defined"):
        Pattern({"arguments": ["typo"]}, [b"SET", b"k"])
    with pytest.raises(Misfit):
        Pattern({"arguments": ["key"]}, [b"SET"])
