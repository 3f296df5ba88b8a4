"""Valkey with the module and lists of access: users may do what they may do without it, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import acl_test
import servers
import valkey_module
from plays import Line, each, emptied, request
from resp import Argument, Connection, Failure, Reply, Simple, encode
from servers import Server
from valkey_module import ENVELOPE, TEXT, VALUES
from waiting import until

OK = Simple(b"OK")
# What each user may do beside that: run scripts and transactions.
ALWAYS = ("on", "nopass", "+eval", "+multi", "+exec", "+discard")
USERS = {
    "everything": "~* +@all",
    "nothing": "~*",
    "GET alone": "~* +get",
    "reads": "~* +@read",
    "reads without GET": "~* +@read -get",
    "GET that reads bring back": "~* -get +@read",
    "everything but GET": "~* +@all -get",
    "everything but GET and SET": "~* +@all -get -set",
    "everything but reads": "~* +@all -@read",
    "everything but strings": "~* +@all -@string",
    "everything but writes": "~* +@all -@write",
    "everything but bitmaps": "~* +@all -@bitmap",
    "everything but what is slow": "~* +@all -@slow",
    "everything but what is fast": "~* +@all -@fast",
    "strings": "~* +@string",
    "what is fast": "~* +@fast",
    "writes": "~* +@write",
    "some commands": "~* +get +set +mget +strlen",
    "writes of parts": "~* +append +setrange +bitfield +getdel",
    "keys that begin with a": "~a* +@all",
    "reading of all keys": "%R~* +@all",
    "writing of all keys": "%W~* +@all",
    "reading of some and writing of others": "%R~a* %W~b* +@all",
    "no keys": "+@all",
    "a selector for GET": "(~a* +get)",
    "selectors that are not one": "~a* +@write (~b* +@read) (%R~a* +get +strlen)",
    "a selector for everything": "(~* +@all)",
    "a database": "~* +@all db=0",
    "another database": "~* +@all db=1",
}
REQUESTS = [
    *[
        "GET a",
        "GET b",
        "GET none",
        "GET",
        "MGET a",
        "MGET a b",
        "STRLEN a",
        "STRLEN b",
        "GETRANGE a 0 3",
        "SUBSTR b 0 3",
    ],
    *["SET a TEXT", "SET b TEXT", "SET a TEXT GET", "SET b small GET", "SET b TEXT IFEQ small", "SETNX b TEXT"],
    *["MSET a TEXT b OTHER", "SETEX a 100 TEXT", "GETSET a TEXT", "GETSET b OTHER", "GETEX a", "GETEX a PERSIST"],
    *["APPEND a x", "APPEND b x", "SETRANGE a 0 x", "INCRBYFLOAT a 1", "GETBIT a 1", "SETBIT b 1 1", "BITCOUNT a"],
    *["BITPOS a 1", "BITFIELD a GET u8 0", "BITFIELD a SET u8 0 1", "BITFIELD_RO a GET u8 0", "BITFIELD_RO b GET u8 0"],
    *["BITOP NOT b a", "BITOP AND a a b", "LCS a b LEN", "DUMP a", "SORT l BY w* GET v*", "SORT l BY nosort", "SORT l"],
    *["SORT_RO l GET v*", "SORT_RO l", "SORT l STORE b", "DELIFEQ a x", "COPY a b REPLACE", "SUBSTR a 0 1", "EXISTS a"],
    *["GETDEL a", "GETDEL b", "INCR a", "TYPE b", "NOSUCH a", "ACL WHOAMI", "SELECT 1", "GET a", "SELECT 0"],
]
CALL = "return redis.pcall(unpack(ARGV))"
# The fields of ACL LOG that tell of neither clients nor clocks; the context is that of the module's command.
LOGGED = (b"reason", b"object", b"username")


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Server, Server]]:
    """Valkey with the module and without it."""
    with valkey_module.pair() as servers:
        yield servers


def set_user(admin: Connection, rules: str, always: Sequence[str] = ALWAYS) -> None:
    """The user u, with these rules alone."""
    assert admin.command("ACL", "SETUSER", "u", "reset", *split(rules), *always) == OK


def split(rules: str) -> list[str]:
    """The rules between blanks; a selector is one rule."""
    parts: list[str] = []
    for part in rules.split():
        if parts and parts[-1].startswith("(") and not parts[-1].endswith(")"):
            parts[-1] += f" {part}"
        else:
            parts.append(part)
    return parts


def prepared(server: Server) -> Connection:
    """An administrator of an emptied server with a few values, whose log is empty."""
    emptied(server)
    admin = server.connect()
    for line in ("MSET a TEXT b OTHER w1 TEXT w2 OTHER v1 TEXT v2 small", "RPUSH l 2 1", "ACL LOG RESET"):
        admin.command(*request(line, VALUES)[1])
    return admin


def logged(admin: Connection) -> Counter[tuple[Reply, ...]]:
    """How often what was refused, by the log."""
    entries = admin.command("ACL", "LOG")
    assert isinstance(entries, list)
    counted: Counter[tuple[Reply, ...]] = Counter()
    for entry in entries:
        assert isinstance(entry, list)
        fields = dict(zip(entry[::2], entry[1::2], strict=True))
        count = fields[b"count"]
        assert isinstance(count, int)
        counted[tuple(fields[name] for name in LOGGED)] += count
    return counted


def outcome(server: Server, rules: str, lines: Sequence[Line], protocol: int = 2) -> list[Any]:
    """What user u is answered, what its refusals leave in the log, and what is told of it."""
    with prepared(server) as admin, server.connect(protocol) as client:
        set_user(admin, rules)
        assert client.command("AUTH", "u", "") == OK
        replies: list[Any] = [(line, client.command_raw(*request(line, VALUES)[1])) for line in lines]
        told = [admin.command_raw("ACL", *words.split()) for words in ("GETUSER u", "LIST", "USERS")]
        keys = [admin.command(*words.split()) for words in ("MGET a b", "LRANGE l 0 -1", "DBSIZE")]
        refused = logged(admin)
        admin.command("ACL", "DELUSER", "u")
        return [*replies, refused, told, keys]


def assert_alike(pair: tuple[Server, Server], rules: str, lines: Sequence[Line], protocol: int = 2) -> None:
    ours, theirs = (outcome(server, rules, lines, protocol) for server in pair)
    for left, right in zip(ours, theirs, strict=True):
        assert left == right


def assert_alike_but_for_words(pair: tuple[Server, Server], rules: str, lines: Sequence[Line]) -> None:
    """The same is refused, but in a script the server looks at the keys of the module's command before its rights."""
    refused = b"-ERR ACL failure in script"
    ours, theirs = (outcome(server, rules, lines)[: len(lines)] for server in pair)
    for (line, left), (_, right) in zip(ours, theirs, strict=True):
        assert left == right or (left.startswith(refused) and right.startswith(refused)), line


@each(USERS)
def test_users_are_answered_as_in_valkey(pair: tuple[Server, Server], row: str) -> None:
    assert_alike(pair, row, REQUESTS)


@each(USERS)
def test_users_are_answered_as_in_valkey_in_transactions(pair: tuple[Server, Server], row: str) -> None:
    assert_alike(pair, row, [line for each in REQUESTS for line in ("MULTI", each, "EXEC")])


@each(USERS)
def test_users_are_answered_as_in_valkey_in_scripts(pair: tuple[Server, Server], row: str) -> None:
    scripts: list[Line] = [["EVAL", CALL, 0, *request(line, VALUES)[1]] for line in REQUESTS]
    has_selectors = "(" in row
    (assert_alike_but_for_words if has_selectors else assert_alike)(pair, row, scripts)


@pytest.mark.slow
@each(USERS)
def test_users_are_answered_as_in_valkey_in_resp3(pair: tuple[Server, Server], row: str) -> None:
    assert_alike(pair, row, REQUESTS, protocol=3)


@each(USERS)
def test_it_is_told_what_a_user_might_run_as_in_valkey(pair: tuple[Server, Server], row: str) -> None:
    ours, theirs = pair
    with prepared(ours) as left, prepared(theirs) as right:
        for admin in (left, right):
            set_user(admin, row)
        for line in REQUESTS:
            arguments = ["ACL", "DRYRUN", "u", *request(line, VALUES)[1]]
            assert left.command_raw(*arguments) == right.command_raw(*arguments), line


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_random_rules_allow_the_same_as_in_valkey(pair: tuple[Server, Server], seed: int) -> None:
    rng = random.Random(seed)
    names = ["get", "set", "mget", "append", "strlen", "getdel", "sort", "bitfield_ro", "@read", "@write", "@string"]
    keys = ["~*", "~a*", "%R~*", "%W~*", "%R~b* %W~a", "~a %R~b"]
    for _ in range(10):
        rules = [rng.choice("+-") + rng.choice(names) for _ in range(rng.randrange(1, 5))]
        selector = f"({rng.choice(keys)} +{rng.choice(names)})" if rng.random() < 0.3 else ""
        lines = rng.sample(REQUESTS, 12)
        assert_alike(pair, " ".join([rng.choice(keys), *rules, selector]), [*lines, "MULTI", *lines, "EXEC"])


@pytest.mark.parametrize(
    "change",
    [
        *["-get", "-@read", "-@all", "resetkeys", "off", "+get", "reset ~* +@all", "-append", "-@all +get +exec"],
        *["-@string +append +strlen", "resetkeys ~b*", "resetkeys %R~a"],
    ],
)
@pytest.mark.parametrize("before", ["~* +@all", "~* +get +append", "~a* +@read +@write"])
def test_rights_that_change_hold_at_once_and_for_what_is_queued(
    pair: tuple[Server, Server], before: str, change: str
) -> None:
    lines = ["GET a", "APPEND a x", "STRLEN a"]
    replies = []
    for server in pair:
        with prepared(server) as admin, server.connect() as client:
            set_user(admin, before)
            client.command("AUTH", "u", "")
            told = [client.command_raw(*line.split()) for line in (*lines, "MULTI", *lines)]
            assert admin.command("ACL", "SETUSER", "u", *change.split()) == OK
            told += [client.command_raw(*line.split()) for line in ("EXEC", *lines, "MULTI", *lines, "EXEC")]
            replies.append([told, logged(admin)])
            admin.command("ACL", "DELUSER", "u")
    assert replies[0] == replies[1]


@pytest.mark.parametrize("rules", ["~* +@all", "~a* +get +strlen", "~* +append", "~b* +@all"])
def test_a_transaction_that_logs_in_goes_on_with_the_rights_of_that_user(
    pair: tuple[Server, Server], rules: str
) -> None:
    lines = ["MULTI", "GET a", "AUTH u ''", "GET a", "APPEND a x", "STRLEN a", "EXEC", "GET a", "APPEND a x"]
    replies = []
    for server in pair:
        with prepared(server) as admin, server.connect() as client:
            set_user(admin, rules)
            replies.append([client.command_raw(*request(line)[1]) for line in lines])
    assert replies[0] == replies[1]


def test_a_user_that_is_deleted_is_disconnected_as_in_valkey(pair: tuple[Server, Server]) -> None:
    for server in pair:
        with prepared(server) as admin, server.connect() as client:
            set_user(admin, "~* +get")
            client.command("AUTH", "u", "")
            assert client.command("GET", "a") == TEXT
            assert admin.command("ACL", "DELUSER", "u") == 1
            with pytest.raises((EOFError, OSError)):
                client.command("GET", "a")


def test_functions_and_read_only_scripts_run_with_the_rights_of_who_calls_them(pair: tuple[Server, Server]) -> None:
    library = "#!lua name=f\nserver.register_function('f', function(_, words) return redis.pcall(unpack(words)) end)"
    lines: list[Line] = [
        line
        for requested in ("GET a", "APPEND a x", "GETRANGE a 0 3", "SET a TEXT GET")
        for line in (f"FCALL f 0 {requested}", ["EVAL_RO", CALL, 0, *request(requested, VALUES)[1]])
        # A write that is refused to the user, too, is refused as a write.
        if isinstance(line, str) or requested.startswith("GET")
    ]
    for rules in ("~* +get", "~* +@all -get", "~b* +@all", "~* +append"):
        told = []
        for server in pair:
            with prepared(server) as admin, server.connect() as client:
                admin.command("FUNCTION", "LOAD", library)
                set_user(admin, f"{rules} +fcall +eval_ro")
                client.command("AUTH", "u", "")
                told.append([client.command_raw(*request(line, VALUES)[1]) for line in lines])
        assert told[0] == told[1]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("protocol", [2, 3])
def test_rules_make_the_same_users_as_in_valkey(pair: tuple[Server, Server], seed: int, protocol: int) -> None:
    acl_test.test_rules_make_the_same_users_as_in_valkey(*pair, seed, protocol)


# Without a login, and by the names of the module.


def own_names(admin: Connection) -> list[str]:
    names = admin.command("COMMAND", "LIST", "FILTERBY", "MODULE", "snugly")
    assert isinstance(names, list)
    assert names
    return [name.decode() for name in names if isinstance(name, bytes)]


@pytest.fixture(scope="module")
def locked() -> Iterator[tuple[Server, Server]]:
    """A pair that wants the password `secret`."""
    with valkey_module.pair("--requirepass", "secret") as servers:
        for server in servers:
            with server.connect() as admin:
                admin.command("AUTH", "secret")
                admin.command(*request("MSET a TEXT b OTHER k ENVELOPE", VALUES)[1])
        yield servers


def test_who_has_not_logged_in_is_told_so_as_in_valkey(locked: tuple[Server, Server]) -> None:
    lines = [
        *REQUESTS,
        "MULTI",
        "GET a",
        "EXEC",
        "AUTH wrong",
        "GET a",
        "HELLO 3",
        "GET a",
        "EVAL 'return 1' 0",
        "RESET",
    ]
    replies = []
    for server in locked:
        with server.connect() as client:
            replies.append([client.command_raw(*request(line, VALUES)[1]) for line in lines])
            assert client.command("AUTH", "secret") == OK
            assert client.command("GET", "a") == TEXT
            client.command("RESET")
            assert isinstance(client.command("GET", "a"), Failure)
    assert replies[0] == replies[1]


@pytest.mark.parametrize("rules", ["+@all -get", "-@all +auth +@read -get", "-@all +auth +@string", "+@all -@string"])
def test_a_default_user_with_a_password_keeps_the_rights_that_categories_give(
    locked: tuple[Server, Server], rules: str
) -> None:
    lines = ["GET a", "AUTH secret", *REQUESTS]
    replies = []
    for server in locked:
        with server.connect() as admin:
            for command in ("AUTH secret", "ACL SETUSER root on nopass ~* +@all", "AUTH root ''"):
                admin.command(*request(command)[1])
            admin.command(*request(f"ACL SETUSER default {rules}")[1])
            try:
                with server.connect() as client:
                    replies.append([client.command_raw(*request(line, VALUES)[1]) for line in lines])
            finally:
                admin.command(*request("ACL SETUSER default +@all")[1])
                admin.command(*request("MSET a TEXT b OTHER k ENVELOPE", VALUES)[1])
    assert replies[0] == replies[1]


def test_nobody_is_the_default_user_while_that_is_off() -> None:
    lines = [
        "GET a",
        "MULTI",
        "GET a",
        "SET a x GET",
        "APPEND b y",
        "EXEC",
        "HELLO 3",
        "GET a",
        "GETDEL a",
        "AUTH root ''",
    ]
    for rules in ("off", "off nopass -flushall", "off nopass +@all"):
        replies = []
        with valkey_module.pair() as servers:
            for server in servers:
                with prepared(server) as admin, server.connect() as early:
                    for command in (
                        "ACL SETUSER root on nopass ~* +@all",
                        "AUTH root ''",
                        f"ACL SETUSER default {rules}",
                    ):
                        assert admin.command(*request(command)[1]) == OK
                    with server.connect() as client:
                        replies.append([client.command_raw(*request(line, VALUES)[1]) for line in lines])
                    replies[-1] += [early.command_raw(*request(line, VALUES)[1]) for line in ("GET a", "APPEND b y")]
        assert replies[0] == replies[1]


@pytest.mark.parametrize("words", ["CLUSTER SYNCSLOTS x", "CLUSTER SYNCSLOTS ESTABLISH", "CLUSTER syncslots"])
def test_nobody_is_taken_for_another_node_because_he_says_so(pair: tuple[Server, Server], words: str) -> None:
    rules = "~* +@all -append -getdel -cluster"
    lines = ["APPEND n 1", words, "APPEND n 1", "GETDEL a", "GET a", "SET c ENVELOPE", "GET c", "STRLEN c", "MGET a b"]
    assert_alike(pair, rules, lines)


@pytest.mark.parametrize("line", ["GETDEL a", "APPEND a x", "SET a x GET", "GETEX a PERSIST", "SET a OTHER IFEQ TEXT"])
def test_rights_that_are_taken_away_while_a_command_waits_hold_for_it(pair: tuple[Server, Server], line: str) -> None:
    replies = []
    for server in pair:
        with prepared(server) as admin, server.connect() as client:
            set_user(admin, "~* +@all")
            client.command("AUTH", "u", "")
            identity = client.command("CLIENT", "ID")
            assert isinstance(identity, int)
            admin.command("CLIENT", "PAUSE", 60_000, "WRITE")
            client.send(encode(*request(line, VALUES)[1]))
            until(partial(is_blocked, admin, identity))
            admin.command("ACL", "SETUSER", "u", "-" + line.split()[0].lower())
            admin.command("CLIENT", "UNPAUSE")
            replies.append((client.read_raw(), admin.command("GET", "a")))
    assert replies[0] == replies[1]


def is_blocked(admin: Connection, identity: Argument) -> bool:
    told = admin.command("CLIENT", "LIST", "ID", identity)
    return isinstance(told, bytes) and b" flags=b " in told


@pytest.mark.snugly_only
def test_who_has_not_logged_in_is_refused_by_every_name_of_the_module(locked: tuple[Server, Server]) -> None:
    server = locked[0]
    with server.connect() as admin, server.connect() as client:
        admin.command("AUTH", "secret")
        for name in own_names(admin):
            refused = []
            for count in range(1, 8):
                for spelled in (name, name.upper()):
                    reply = client.command(spelled, *["a", "b", "0", "1", "u8", "0", "x"][:count])
                    assert isinstance(reply, Failure), (name, count, reply)
                    assert reply.text.startswith((b"NOAUTH ", b"ERR wrong number of arguments")), (name, reply)
                    refused.append(reply.text.startswith(b"NOAUTH "))
            assert any(refused), name
        assert admin.command("MGET", "a", "b") == [TEXT, VALUES["OTHER"]]


@pytest.mark.snugly_only
@pytest.mark.parametrize("rules", ["~*", "~* +@all -get -mget -append -strlen", "~* +@all -@read -@write", "~b* +@all"])
def test_nobody_gains_a_right_by_a_name_of_the_module(pair: tuple[Server, Server], rules: str) -> None:
    server = pair[0]
    with prepared(server) as admin, server.connect() as client:
        set_user(admin, rules)
        client.command("AUTH", "u", "")
        names = [name for name in own_names(admin) if name.rsplit(".", 1)[1] in ("get", "mget", "append", "strlen")]
        assert names
        for name in names:
            arguments = ["a", "x"] if name.endswith("append") else ["a"]
            for calls in (
                [[name, *arguments]],
                [["EVAL", CALL, 0, name, *arguments]],
                [["MULTI"], [name, *arguments], ["EXEC"]],
            ):
                replies = [client.command(*call) for call in calls]
                last = replies[-1]
                assert isinstance(last, Failure) or (isinstance(last, list) and isinstance(last[0], Failure)), (
                    calls,
                    replies,
                )
        assert admin.command("GET", "a") == TEXT


@pytest.mark.snugly_only
@pytest.mark.parametrize("rule", ["+snugly.get", "+snugly.checked.get", "+snugly.append +snugly.checked.append"])
def test_a_right_to_a_name_of_the_module_is_none_to_the_command(pair: tuple[Server, Server], rule: str) -> None:
    assert_no_difference(pair, "~*", rule)


@pytest.mark.snugly_only
@pytest.mark.parametrize("rule", ["-snugly.get -snugly.append", "-snugly.checked.get -snugly.checked.append"])
def test_who_may_run_a_command_needs_no_right_to_a_name_of_the_module(pair: tuple[Server, Server], rule: str) -> None:
    assert_no_difference(pair, "~* +@all", rule)


def assert_no_difference(pair: tuple[Server, Server], rules: str, rule: str) -> None:
    """A rule about the module's names changes nothing for a user with other rules."""
    replies = []
    for server, own in zip(pair, (f"{rules} {rule}", rules), strict=True):
        with prepared(server) as admin, server.connect() as client:
            set_user(admin, own)
            client.command("AUTH", "u", "")
            lines = ("GET a", "APPEND a x", "MGET a", "STRLEN a", "MULTI", "GET a", "EXEC")
            replies.append([client.command_raw(*line.split()) for line in lines])
    assert replies[0] == replies[1]


@pytest.mark.snugly_only
def test_users_that_were_there_before_the_module_keep_their_rights(tmp_path: Path) -> None:
    file = tmp_path / "users.acl"
    file.write_text(
        "user default on nopass ~* &* +@all\nuser u on nopass ~a* +get +append +eval\nuser v on nopass ~* +@read\n"
    )
    lines = [
        "GET a",
        "GET b",
        "APPEND a x",
        "STRLEN a",
        "MGET a",
        "SET a x",
        "EVAL \"return redis.pcall('GET', 'a')\" 0",
    ]
    outcomes: list[object] = []
    for module in (False, True, True):
        loaded = ["--enable-module-command", "yes", "--aclfile", str(file)]
        at_start = module and len(outcomes) == 2
        begin = valkey_module.serving(*loaded) if at_start else servers.valkey(*loaded)
        with begin as server, server.connect() as admin:
            clients = [server.connect() for _ in "uv"]
            for client, name in zip(clients, "uv", strict=True):
                assert client.command("AUTH", name, "") == OK
            if module and not at_start:
                assert admin.command("MODULE", "LOAD", str(valkey_module.library())) == OK
            admin.command("MSET", "a", TEXT, "b", ENVELOPE)
            replies = [client.command_raw(*request(line, VALUES)[1]) for client in clients for line in lines]
            outcomes.append([replies, admin.command("ACL", "LIST")])
            for client in clients:
                client.close()
    assert outcomes[1] == outcomes[0]
    assert outcomes[2] == outcomes[0]
