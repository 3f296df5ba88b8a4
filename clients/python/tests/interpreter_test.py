"""The interpreter of the command table, for Python's commands and replies: the vectors that every client plays, and the
reference interpreter of the specification.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import commands_test
import servers
import table as reference
from make_commands import reply_of
from resp import Failure, Items, Map, Reply, Simple, encode
from rules import expand
from snugly import CommandRefusedError, _native
from snugly.codec import Codec

VECTORS = json.loads((servers.ROOT / "spec" / "vectors" / "commands.json").read_text())
ALL = ["hashes", "lists", "streams", "strings"]
MARK = b"\0<encoded>"
UNREADABLE = b"\0\1\2\0\x1f"
"""How an envelope begins that is from the future."""
ROWS = sorted(reference.Table().data["commands"])


def interpreter(*types: str) -> _native.Interpreter:
    return _native.Interpreter(list(types), CommandRefusedError)


def arguments(case: Any) -> tuple[bytes, ...]:
    return tuple(each.encode() if isinstance(each, str) else expand(each) for each in case["arguments"])


def pair(value: Any, key: Any) -> tuple[Any, Any]:
    return value, key


@pytest.mark.parametrize("case", VECTORS["commands"])
def test_values_are_where_the_vectors_say(case: Any) -> None:
    args, refused = arguments(case), case.get("refused", {})
    rules = interpreter(*(each for each in ALL if each not in refused))
    wanted: list[Any] = list(args)
    if rules.carries_values(args[0]):
        for value, key in case.get("values", []):
            wanted[value] = pair(args[value], args[key])
    assert rules.request(args, pair)[0] == tuple(wanted)


@pytest.mark.parametrize("value_type", ALL)
def test_refusals_have_the_words_of_the_vectors(value_type: str) -> None:
    rules = interpreter(value_type)
    for case in VECTORS["commands"]:
        refusal, command = None, None
        try:
            rules.request(arguments(case), pair)
        except CommandRefusedError as error:
            refusal, command = str(error), error.command
        assert refusal == case.get("refused", {}).get(value_type), case
        assert command is None or command == _native.command_name(arguments(case)[0])


def values_of(case: Any) -> list[tuple[bytes, bytes | None]]:
    return [(value.encode(), key if key is None else key.encode()) for value, key in case["values"]]


@pytest.mark.parametrize("case", VECTORS["replies"])
def test_values_in_replies_are_those_of_the_vectors(case: Any) -> None:
    found = []

    def decode(value: bytes, key: Any, _budget: Any) -> bytes:
        found.append((value, key))
        return MARK + value

    reply, before = objects(reply_of(case["reply"])), objects(reply_of(case["reply"]))
    restored = interpreter(*ALL).restored(arguments(case), reply, decode, Codec().native.budget())
    assert found == values_of(case)
    assert reply == before
    assert unmarked(restored) == before


@pytest.mark.parametrize("case", VECTORS["replies"])
def test_values_in_replies_on_the_wire_are_those_of_the_vectors(case: Any) -> None:
    found = []

    def unreadable(stored: bytes, key: Any, _error: Any, _budget: Any) -> bytes:
        key = key.encode() if isinstance(key, str) else key
        found.append((stored.removeprefix(UNREADABLE), key and key.removeprefix(UNREADABLE)))
        return MARK + stored

    wire = _native.Wire(
        codec=Codec().native,
        interpreter=interpreter(*ALL),
        encode=str.encode,
        sends_utf8=True,
        decodes=None,
        parse_error=Exception,
        unreadable=unreadable,
        as_text=lambda value, _stored, _key: value,
    )
    request = wire.request(tuple(each.decode() for each in arguments(case)))
    if request is None:
        pytest.skip("the command is not for this transport")
    reply = reply_of(case["reply"])
    replies = request.receiver().take(packed(reply))
    assert replies is not None
    assert found == values_of(case)
    if not isinstance(reply, Failure):
        assert unmarked(replies[0]) == received(reply)


def objects(reply: Reply) -> Any:
    """A reply as a client library has it. Whatever is no string, list or dictionary has no values."""
    match reply:
        case Map(pairs):
            return {objects(first): objects(second) for first, second in pairs}
        case Items(_, items):
            return {objects(item) for item in items}
        case list():
            return [objects(item) for item in reply]
    return reply


def packed(reply: Reply) -> bytes:
    """A reply as it is sent, with each bulk string unreadable."""
    match reply:
        case Map(pairs):
            items = [packed(item) for pair in pairs for item in pair]
            return b"%%%d\r\n%b" % (len(pairs), b"".join(items))
        case Items(kind, items):
            return b"%b%d\r\n%b" % (kind, len(items), b"".join(map(packed, items)))
        case list():
            return b"*%d\r\n%b" % (len(reply), b"".join(map(packed, reply)))
        case Simple(text):
            return b"+%b\r\n" % text
        case Failure(text):
            return b"-%b\r\n" % text
        case bytes():
            return encode(UNREADABLE + reply).partition(b"\r\n")[2]
        case int():
            return b":%d\r\n" % reply
    assert reply is None
    return b"_\r\n"


def received(reply: Reply) -> Any:
    """The same as it is read, without values."""
    match reply:
        case Map(pairs):
            return {received(first): received(second) for first, second in pairs}
        case Items(_, items) | list(items):
            return [received(item) for item in items]
        case Simple(text):
            return text
        case bytes():
            return UNREADABLE + reply
    return reply


def unmarked(reply: Any) -> Any:
    match reply:
        case dict():
            return {name: unmarked(value) for name, value in reply.items()}
        case list():
            return [unmarked(item) for item in reply]
        case bytes():
            return reply.removeprefix(MARK)
    return reply


def marked(rules: _native.Interpreter, args: list[bytes]) -> list[bytes] | str:
    """The arguments with a mark at each value, or why the command is refused."""
    try:
        return list(rules.request(tuple(args), lambda value, _key: MARK + value)[0])
    except CommandRefusedError as refused:
        return str(refused)


def marked_by_reference(rules: reference.Table, args: list[bytes]) -> list[bytes] | str:
    try:
        return rules.request(args, lambda value, _key: MARK + value)
    except reference.Refused as refused:
        return str(refused)


def words() -> st.SearchStrategy[bytes]:
    known = [b"k", b"l", b"0", b"1", b"2", b"*", b"1-1", b"=", b"~", b"v", b"\0\1\2", b"x" * 31, b"x" * 32]
    options = {name for row in reference.Table().data["commands"].values() for name in row.get("options", {})}
    return st.sampled_from([*known, *(name.encode() for name in sorted(options)), b"get", b"fields", b"Nx"])


@settings(max_examples=2000)
@given(
    name=st.sampled_from(ROWS),
    args=st.lists(words(), max_size=9),
    types=st.sets(st.sampled_from(ALL), min_size=1),
)
def test_any_arguments_are_taken_as_the_reference_takes_them(name: str, args: list[bytes], types: set[str]) -> None:
    command = [name.encode(), *args]
    assert marked(interpreter(*types), command) == marked_by_reference(reference.Table(types), command)


@pytest.mark.parametrize("command", [commands for cases in commands_test.SCENARIOS.values() for _, commands in cases])
@pytest.mark.parametrize("protocol", [2, 3])
def test_replies_of_a_server_are_restored_as_the_reference_restores_them(
    valkey_server: servers.Server, command: list[str], protocol: int
) -> None:
    rules, theirs, budget = interpreter(*ALL), reference.Table(set(ALL)), Codec().native.budget()

    def decode(value: bytes, key: bytes | None, _budget: Any = None) -> bytes:
        assert value.startswith(MARK), f"{value!r} is no value"
        return value.removeprefix(MARK) + b" at " + (key or b"?")

    with valkey_server.connect(protocol) as connection:
        connection.command("FLUSHALL")
        for line in command:
            args = marked(rules, line.encode().split())
            assert isinstance(args, list)
            reply = connection.command(*args)
            ours = rules.restored(tuple(args), objects(reply), decode, budget)
            assert ours == objects(theirs.reply(args, reply, decode))


def sent(*args: Any) -> tuple[Any, ...]:
    return interpreter(*ALL).request(args, pair)[0]


def test_words_may_be_text_or_bytes_in_any_case() -> None:
    for name in ("SET", "set", b"Set", bytearray(b"SET"), memoryview(b"set")):
        assert sent(name, "k", "v")[1:] == ("k", ("v", "k"))
    for get in ("GET", "get", b"Get", bytearray(b"GET"), memoryview(b"get")):
        assert interpreter(*ALL).request(("SET", "k", "v", get), pair)[1] is True
    assert sent("MSETEX", 2, "a", "1", "b", "2") == ("MSETEX", 2, "a", ("1", "a"), "b", ("2", "b"))
    assert sent("XADD", "x", "MAXLEN", "~", 100, "*", "f", 1.5)[-1] == (1.5, "x")
    for value in ("\ud800", None, True, 1.5):
        assert sent("SET", "k", "v", value, "\ud800")[2] == ("v", "k")


def test_a_name_may_have_the_first_arguments_in_the_same_string() -> None:
    assert sent("SET k", "v") == (b"SET", b"k", ("v", b"k"))
    assert sent(b" set\tk\n", "v", "EX", 1) == (b"set", b"k", ("v", b"k"), "EX", 1)
    assert sent("CLIENT LIST") == ("CLIENT LIST",)
    with pytest.raises(CommandRefusedError):
        sent("APPEND k", "v")


def test_what_the_table_does_not_have_is_left_alone() -> None:
    for args in ((), ("",), (" ",), (None, "k"), (5, "k"), ("GETT", "k"), ("PING",), ("EXEC",)):
        assert interpreter(*ALL).request(args, pair) == (args, None)


def test_untouched_commands_are_those_that_nothing_becomes_of() -> None:
    for value_type in ALL:
        rules = interpreter(value_type)
        reads = {name for name, row in reference.Table().data["commands"].items() if row.get("type") == value_type}
        refused = {
            name
            for name, row in reference.Table().data["commands"].items()
            if any(value_type in rule["types"] for rule in row.get("refuse", []))
        }
        assert set(rules.untouched()) == set(reference.Table().classified()) - reads - refused


def test_names_of_commands_are_those_of_the_table() -> None:
    for name in ("GET", "get", b"Get", bytearray(b"GET"), " get k"):
        assert _native.command_name(name) == "GET"
    for other in ("", " ", "GETT", None, 5, "x" * 1000):
        assert _native.command_name(other) is None
