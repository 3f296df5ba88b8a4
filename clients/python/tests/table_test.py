"""The command table in Python clients, held against the reference interpreter of the specification."""

from __future__ import annotations

from importlib import resources
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import commands_test
import servers
import table as reference
from resp import Map
from snugly.table import Table, text

SPEC = servers.ROOT / "spec" / "commands.json"
ALL = frozenset({"strings", "hashes", "lists", "streams"})
MARK = b"\0<encoded>"
ROWS = sorted(reference.Table().data["commands"])


def test_the_table_in_the_package_is_that_of_the_specification() -> None:
    assert resources.files("snugly").joinpath("commands.json").read_text() == SPEC.read_text()


def marked(rules: Table, args: list[bytes]) -> list[bytes] | str:
    """The arguments with a mark at each value, or why the command is refused."""
    row = rules.rows.get(args[0].decode("latin-1").upper())
    if row is None:
        return args
    found = row.find(args)
    refusal = row.refusal(args, found)
    if refusal is not None:
        return refusal
    positions = {position for position, _ in found.values} if row.carries_values else set()
    return [MARK + arg if position in positions else arg for position, arg in enumerate(args)]


def marked_by_reference(rules: reference.Table, args: list[bytes]) -> list[bytes] | str:
    try:
        return rules.request(args, lambda value, _key: MARK + value)
    except reference.Refused as refused:
        return str(refused)


def wire(reply: Any) -> Any:
    """A reply of the tests' connection as a client library has it."""
    if isinstance(reply, Map):
        return {wire(first): wire(second) for first, second in reply.pairs}
    return [wire(item) for item in reply] if isinstance(reply, list) else reply


def words() -> st.SearchStrategy[bytes]:
    known = [b"k", b"l", b"0", b"1", b"2", b"*", b"1-1", b"=", b"~", b"v", b"\0\1\2", b"x" * 31, b"x" * 32]
    options = {name for row in reference.Table().data["commands"].values() for name in row.get("options", {})}
    return st.sampled_from([*known, *(name.encode() for name in sorted(options)), b"get", b"fields", b"Nx"])


@settings(max_examples=2000)
@given(
    name=st.sampled_from(ROWS),
    args=st.lists(words(), max_size=9),
    types=st.sets(st.sampled_from(sorted(ALL)), min_size=1),
)
def test_any_arguments_are_taken_as_the_reference_takes_them(name: str, args: list[bytes], types: set[str]) -> None:
    command = [name.encode(), *args]
    rules = Table(types)
    for _ in range(2):
        assert marked(rules, command) == marked_by_reference(reference.Table(types), command)


@pytest.mark.parametrize("command", [commands for cases in commands_test.SCENARIOS.values() for _, commands in cases])
@pytest.mark.parametrize("protocol", [2, 3])
def test_replies_of_a_server_are_restored_as_the_reference_restores_them(
    valkey_server: servers.Server, command: list[str], protocol: int
) -> None:
    rules, theirs = Table(ALL), reference.Table(set(ALL))

    def decode(value: Any, key: Any) -> Any:
        if not isinstance(value, bytes):
            return value
        assert value.startswith(MARK), f"{value!r} is no value"
        return value.removeprefix(MARK) + b" at " + (key or b"?")

    with valkey_server.connect(protocol) as connection:
        connection.command("FLUSHALL")
        for line in command:
            sent = marked(rules, line.encode().split())
            assert isinstance(sent, list)
            reply = connection.command(*sent)
            row = rules.rows.get(text(sent[0]).upper())
            ours = wire(reply)
            if row is not None:
                found = row.find(sent)
                shape = row.shape_given(found)
                keys = [sent[position] for position in found.keys]
                if shape is not None:
                    ours = shape(wire(reply), decode, keys[0] if keys else None, keys)
            assert ours == wire(theirs.reply(sent, reply, decode))


def test_words_may_be_text_or_bytes_in_any_case() -> None:
    rules = Table(ALL)
    for get in ("GET", "get", b"Get", bytearray(b"GET"), memoryview(b"get")):
        assert rules.rows["SET"].find(["SET", "k", "v", get]).options == {"GET"}
    assert rules.rows["MSETEX"].find(["MSETEX", 2, "a", "1", "b", "2"]).values == [(3, 2), (5, 4)]
    assert rules.rows["XADD"].find(["XADD", "x", "MAXLEN", "~", 100, "*", "f", "v"]).values == [(7, 1)]
