"""`snugly dictionaries`: what it prints, which files it writes, and what it says when it cannot."""

from __future__ import annotations

import os
import pty
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
import waiting
from alike import dictionaries, learn_users, user
from servers import Server
from tested import Start

pytestmark = pytest.mark.snugly_only


@pytest.fixture(scope="module")
def learned() -> Iterator[Server]:
    """A server whose dictionary 1 is for `user:*`."""
    with servers.snugly("--background-cpu-percent", "100") as server:
        with server.connect() as connection:
            learn_users(connection)
        yield server


def command(server: Server, *arguments: str) -> list[str]:
    return [str(servers.snugly_binary()), "dictionaries", "--url", f"snugly://127.0.0.1:{server.port}", *arguments]


def run(server: Server, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(server, *arguments), check=False, capture_output=True)


def printed(server: Server, *arguments: str) -> str:
    done = run(server, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def said(server: Server, *arguments: str) -> str:
    """The output on failing."""
    done = run(server, *arguments)
    assert (done.returncode, done.stdout) == (1, b"")
    return done.stderr.decode()


def cells(server: Server, *arguments: str) -> list[str]:
    return [" ".join(line.split()) for line in printed(server, *arguments).splitlines()]


def test_a_list_says_what_each_dictionary_is_for_and_what_it_takes(learned: Server) -> None:
    head, *rows = cells(learned, "list")
    assert head == "number in use value bytes before after values memory size samples age pattern"
    [row] = [row for row in rows if " yes " in row]
    assert re.search(r" 128-511 [01]\.\d{3} 0\.\d{3} 10,000 \S+ KiB \S+ KiB \S+ \d+ (second|minute)s? user:\*$", row)


def test_everything_about_one_has_units_and_no_more_digits_than_say_something(learned: Server) -> None:
    shown = dict(line.split(": ", 1) for line in printed(learned, "show", "1").splitlines())
    assert shown["keys"] == "user:*"
    assert shown["values"] == "of 128-511 bytes"
    assert shown["trained"].endswith(" ago")
    assert shown["size"].endswith(" KiB")
    assert len(shown["ratio after"]) == len("0.123")


def test_classes_are_listed_with_those_that_have_no_dictionary(learned: Server) -> None:
    with learned.connect() as connection:
        for number in range(300):
            connection.command("SET", f"käse:{number}", user(number))
    head, *rows = cells(learned, "list", "--classes")
    assert head == "dictionary value bytes written samples pattern"
    assert any(re.fullmatch(r"- 128-511 \d+ \d+ käse:\*", row) for row in rows)
    assert any(row[0].isdigit() and row.endswith(" user:*") for row in rows)
    assert "known so far: 1" in printed(learned, "train", "käse:*")
    assert "known so far: 1" in printed(learned, "train", "k\\xc3\\xa4se:*")


def test_a_server_without_values_has_neither(start: Start) -> None:
    server = start()
    assert printed(server, "list").startswith("no dictionaries yet")
    assert printed(server, "list", "--classes").startswith("no classes yet")


def test_a_dictionary_goes_from_one_server_to_another_and_is_forgotten(
    learned: Server, start: Start, tmp_path: Path
) -> None:
    file, second = tmp_path / "users.dict", start("--threads", "1")
    assert printed(learned, "export", "1", str(file)) == ""
    assert run(learned, "export", "1").stdout == file.read_bytes()
    with second.connect() as connection:
        told = printed(second, "import", str(file), "--pattern", "user:*", "--length", str(len(user(1))))
        assert told == "it is dictionary 1 of the server, for new values of user:* from now on\n"
        connection.command("SET", "user:7", user(7))
        assert dictionaries(connection, "dictionary_records") == 1
        assert " imported " in printed(second, "list")
        assert "ratio before: -" in printed(second, "show", "1")
        assert "another one may be learned" in printed(second, "forget", "1")
        assert connection.command("GET", "user:7") == user(7)
        waiting.until(lambda: dictionaries(connection, "dictionaries") == 0)
        assert connection.command("GET", "user:7") == user(7)


def test_a_file_is_for_the_owner_alone_and_not_written_over_by_mistake(learned: Server, tmp_path: Path) -> None:
    file = tmp_path / "users.dict"
    printed(learned, "export", "1", str(file))
    content = file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_bytes(b"mine")
    file.chmod(0o644)
    assert f"cannot write {file} without --force" in said(learned, "export", "1", str(file))
    assert file.read_bytes() == b"mine"
    printed(learned, "export", "1", str(file), "--force")
    assert file.read_bytes() == content
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_terminal_is_spared(learned: Server) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(command(learned, "export", "1"), check=False, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 1
    assert b"a dictionary is nothing for a terminal" in done.stderr


@pytest.mark.parametrize("task", ["show", "export", "forget"])
def test_a_number_that_there_is_not_is_told_with_where_to_look(learned: Server, task: str) -> None:
    assert "there is no dictionary 99: see `snugly dictionaries list`" in said(learned, task, "99")


def test_what_cannot_be_done_is_told_without_codes_of_the_protocol(
    learned: Server, start: Start, tmp_path: Path
) -> None:
    missing, other = tmp_path / "missing" / "users.dict", tmp_path / "other"
    other.write_text("no dictionary")
    options = ("--pattern", "user:*", "--length")
    for arguments, words in [
        (("import", str(missing), *options, "300"), f"cannot read {missing}"),
        (("import", str(other), *options, "300"), "not a zstd dictionary"),
        (("export", "1", str(missing)), f"cannot write {missing}: No such file"),
        (
            ("train", "nobody:*"),
            "no class of values has the pattern nobody:*: see `snugly dictionaries list --classes`",
        ),
    ]:
        text = said(learned, *arguments)
        assert words in text
        assert "ERR" not in text
    assert "dictionaries are switched off: CONFIG SET dictionaries yes" in said(start("--dictionaries", "no"), "train")


def test_a_server_that_is_not_snugly_is_told(peer: Server) -> None:
    for arguments in (["list"], ["show", "1"], ["train"], ["export", "1"], ["forget", "1"]):
        assert "this is no snugly server, or an older one" in said(peer, *arguments)


def test_an_address_that_means_nothing_is_told_with_one_that_does() -> None:
    words = [str(servers.snugly_binary()), "dictionaries", "--url", "foo", "list"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "snugly://" in done.stderr
