"""Users and their permissions: ACL beside valkey-server, denials, the file of users, memcached's protocols."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

import pytest

import servers
from info import info
from resp import Connection, Failure, Reply, Simple
from servers import Server
from tested import Start

OK = Simple(b"OK")
RULES = [
    *["on", "off", "nopass", "resetpass", ">p", ">q", "<p", "<r", "ON", "reset", "clearselectors", "foo", ""],
    *["~*", "~a:*", "~b?", "allkeys", "resetkeys", "%R~r", "%W~w", "%RW~b", "%wr~c", "%X~x", "%~x", "%R~a:*"],
    *["&*", "&c:*", "&d", "allchannels", "resetchannels", "+@all", "-@all", "allcommands", "nocommands"],
    *["+get", "-get", "+GET", "+set", "+config", "-config|set", "+config|get", "+config|nosuch", "+nosuch"],
    *["+@read", "-@read", "+@write", "-@dangerous", "+@nosuch", "+@hash", "+select|0", "-select|0", "+config|get|x"],
    *["+memory|usage", "-memory", "db=0", "db=1,2", "db=x", "db=-1", "alldbs", "resetdbs", "sanitize-payload"],
    *["(+get ~x:*)", "(+@all -set)", "(%R~a", "+mget)", "( )", "(on)", "#12", "!12"],
    "#" + "0" * 64,
    "!" + "0" * 64,
]
USERS = ["u", "v", "default", "a b"]
REQUESTS = [
    *["GET a:1", "SET a:1 x", "SET a:1 x GET", "MGET a:1 b1", "DEL w", "COPY r w", "COPY a:1 b1 DB 1", "RENAME a:1 w"],
    *["LMOVE r w LEFT LEFT", "GETDEL r", "EXISTS r", "TTL x:1", "INCR w", "APPEND b1 x", "STRLEN r", "CONFIG GET x"],
    *[
        "CONFIG SET timeout 0",
        "SELECT 0",
        "SELECT 1",
        "SWAPDB 0 1",
        "MOVE a:1 2",
        "PING",
        "KEYS *",
        "SCAN 0",
        "FLUSHDB",
    ],
    *["ACL WHOAMI", "CLIENT LIST", "SORT r", "SORT r BY x", "SORT a:1 GET x", "SORT a:1 STORE w", "OBJECT ENCODING r"],
    *["MEMORY USAGE b1", "INFO", "DBSIZE", "LPUSH w 1", "TYPE r", "MSET a:1 1 w 2", "BITOP AND w r a:1"],
    *["GETEX r PERSIST", "FLUSHALL", "FLUSHDB", "WATCH r", "OBJECT HELP", "NOSUCH", "GET"],
]


def set_user(connection: Connection, name: str, *rules: str) -> None:
    assert connection.command("ACL", "SETUSER", name, *rules) == OK


def log_in(server: Server, name: str, password: str = "p") -> Connection:
    connection = server.connect()
    assert connection.command("AUTH", name, password) == OK
    return connection


def denied(reply: Reply) -> bytes:
    assert isinstance(reply, Failure), reply
    assert reply.text.startswith(b"NOPERM "), reply
    return reply.text


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("protocol", [2, 3])
def test_rules_make_the_same_users_as_in_valkey(server: Server, peer: Server, seed: int, protocol: int) -> None:
    chance = random.Random(seed * 10 + protocol)
    with server.connect(protocol) as ours, peer.connect(protocol) as theirs:
        try:
            for _ in range(60):
                user = chance.choice(USERS[:2])
                commands: list[list[str]] = [
                    ["ACL", "SETUSER", user, *chance.choices(RULES, k=chance.randrange(4))],
                    ["ACL", "LIST"],
                    ["ACL", "GETUSER", user],
                    ["ACL", "DRYRUN", user, *chance.choice(REQUESTS).split()],
                ]
                for command in commands:
                    assert ours.command_raw(*command) == theirs.command_raw(*command), command
        finally:
            for connection in (ours, theirs):
                connection.command("ACL", "DELUSER", *USERS[:2])


@pytest.mark.parametrize("protocol", [2, 3])
def test_replies_are_those_of_valkey(server: Server, peer: Server, protocol: int) -> None:
    lines = [
        *["SETUSER", "SETUSER a\\ b on", "SETUSER u", "USERS", "GETUSER nosuch", "CAT nosuch", "CAT", "CAT x y"],
        *["GENPASS 0", "GENPASS 4097", "GENPASS x", "GENPASS 1 2", "WHOAMI", "DELUSER default", "DELUSER nosuch"],
        *["DELUSER u", "LOG RESET", "LOG", "LOG x", "LOG 1 2", "LOAD", "SAVE", "DRYRUN nosuch GET x"],
        *["DRYRUN default NOSUCH", "DRYRUN default GET", "DRYRUN default GET x", "HELP", ""],
    ]
    commands = [["ACL", *shlex.split(line)] for line in lines]
    with server.connect(protocol) as ours, peer.connect(protocol) as theirs:
        for command in commands:
            assert ours.command_raw(*command) == theirs.command_raw(*command), command


def test_a_user_may_do_what_the_rules_say_and_nothing_else(server: Server, peer: Server) -> None:
    lines = [
        *["GET r:1", "SET r:1 x", "SET w:1 x", "SET w:1 x GET", "KEYS *", "GET other", "MGET r:1 other"],
        *["CONFIG GET port", "ACL WHOAMI", "MULTI", "SET w:1 y", "GET other", "EXEC", "SORT r:1 BY x*", "PING"],
        *["AUTH app wrong", "AUTH nosuch p", "HELLO 3", "RESET", "GET other"],
    ]
    replies: list[list[Reply]] = []
    for each in (server, peer):
        with each.connect() as admin:
            set_user(admin, "app", "on", ">p", "%R~r:*", "%W~w:*", "+@read", "+@write", "+multi", "+exec", "-keys")
            with log_in(each, "app") as app:
                replies.append([app.command(*line.split()) for line in lines])
            admin.command("ACL", "DELUSER", "app")
    ours, theirs = replies
    # HELLO tells of servers, and GET of what is stored.
    assert ours[:-3] == theirs[:-3]
    assert ours[-2:] == theirs[-2:]


def test_permissions_that_are_changed_hold_for_connections_that_there_are(server: Server) -> None:
    with server.connect() as admin:
        set_user(admin, "app", "on", ">p", "~*", "+@all")
        with log_in(server, "app") as app, log_in(server, "app") as other:
            assert app.command("SET", "k", "v") == OK
            set_user(admin, "app", "-set")
            assert b"'set' command" in denied(app.command("SET", "k", "v"))
            assert app.command("MULTI") == OK
            assert app.command("GET", "k") == Simple(b"QUEUED")
            set_user(admin, "app", "-get")
            reply = app.command("EXEC")
            assert isinstance(reply, list)
            assert b"rules changed" in denied(reply[0])
            set_user(admin, "app", "off")
            assert app.command("PING") == Simple(b"PONG"), "who has logged in stays"
            assert admin.command("ACL", "DELUSER", "app") == 1
            for connection in (app, other):
                with pytest.raises((EOFError, OSError)):
                    connection.command("PING")


def test_denials_are_logged_counted_and_told_apart(server: Server) -> None:
    with server.connect() as admin:
        admin.command("ACL", "LOG", "RESET")
        before = info(admin, "stats", "acl_access_denied_key")
        set_user(admin, "app", "on", ">p", "~a", "+get", "db=0")
        with log_in(server, "app") as app:
            for line in ("GET b", "GET b", "SET a 1", "SELECT 1", "AUTH app x"):
                app.command(*line.split())
            assert b"user=app" in client_list(admin)
            assert len(client_list(admin, "USER", "app").splitlines()) == 1
            assert admin.command("CLIENT", "KILL", "USER", "app") == 1
            assert isinstance(admin.command("CLIENT", "LIST", "USER", "nosuch"), Failure)
        entries = admin.command("ACL", "LOG")
        assert isinstance(entries, list)
        shown = []
        for entry in entries:
            assert isinstance(entry, list)
            fields = dict(zip(entry[::2], entry[1::2], strict=True))
            shown.append((fields[b"reason"], fields[b"object"], fields[b"count"], fields[b"username"]))
        assert shown == [
            (b"auth", b"AUTH", 1, b"app"),
            (b"database", b"1", 1, b"app"),
            (b"command", b"set", 1, b"app"),
            (b"key", b"b", 2, b"app"),
        ]
        assert info(admin, "stats", "acl_access_denied_key") == before + 2
        assert admin.command("ACL", "LOG", "RESET") == OK
        assert admin.command("ACL", "LOG") == []
        admin.command("ACL", "DELUSER", "app")


def client_list(admin: Connection, *filters: str) -> bytes:
    told = admin.command("CLIENT", "LIST", *filters)
    assert isinstance(told, bytes)
    return told


@pytest.mark.snugly_only
def test_the_password_is_that_of_the_default_user(start: Start) -> None:
    server = start("--password", "hush")
    with server.connect() as connection:
        assert isinstance(connection.command("PING"), Failure)
        assert connection.command("AUTH", "hush") == OK
        assert connection.command("CONFIG", "SET", "requirepass", "new") == OK
        assert connection.command("ACL", "SETUSER", "default", ">another") == OK
    with server.connect() as connection:
        for password in ("hush", "new", "another"):
            expected = Failure if password == "hush" else Simple
            assert isinstance(connection.command("AUTH", password), expected)
        assert connection.command("CONFIG", "SET", "requirepass", "") == OK
    with server.connect() as connection:
        assert connection.command("PING") == Simple(b"PONG")


@pytest.mark.snugly_only
def test_users_are_read_from_a_file_and_written_to_it(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "users.acl"
    file.write_text("# Ours.\nuser app on >p ~app:* +@all -@dangerous\nuser default on >root ~* &* +@all\n")
    server = start("--acl-file", str(file))
    with log_in(server, "app") as app, server.connect() as admin:
        assert app.command("SET", "app:1", "x") == OK
        denied(app.command("SET", "other", "x"))
        assert admin.command("AUTH", "root") == OK
        set_user(admin, "new", "on", "nopass", "+ping", "(+get ~x)")
        assert admin.command("ACL", "SAVE") == OK
        listed = admin.command("ACL", "LIST")
        assert isinstance(listed, list)
        assert file.read_bytes().splitlines() == listed
        file.write_text("user other on nopass +ping\nuser app on +nosuch\n")
        refused = admin.command("ACL", "LOAD")
        assert isinstance(refused, Failure)
        assert b"line 2: +nosuch" in refused.text
        assert admin.command("ACL", "LIST") == listed
        file.write_text("user other on nopass +ping\n")
        assert admin.command("ACL", "LOAD") == OK
        assert admin.command("ACL", "USERS") == [b"default", b"other"]
        with pytest.raises((EOFError, OSError)):
            app.command("PING")


@pytest.mark.snugly_only
def test_a_wrong_file_of_users_keeps_the_server_from_starting(tmp_path: Path) -> None:
    file = tmp_path / "users.acl"
    file.write_text("user a on\nuser a off\n")
    with pytest.raises(RuntimeError, match="line 2: user a is there twice"), servers.snugly("--acl-file", str(file)):
        pass


@pytest.mark.snugly_only
def test_users_hold_for_memcacheds_protocols_too(start: Start) -> None:
    with servers.reserved_port() as port:
        server = start("--memcached-port", str(port), "--password", "root")
        with server.connect() as admin:
            assert admin.command("AUTH", "root") == OK
            set_user(admin, "app", "on", ">p", "%R~r:*", "~w:*", "+get", "+set", "+del")
            assert admin.command("SET", "r:1", "one") == OK
            assert admin.command("SET", "other", "two") == OK
        with Connection(port) as app:
            for request, reply in (
                (b"set x 0 0 5\r\napp p\r\n", b"STORED\r\n"),
                (b"get r:1\r\n", b"VALUE r:1 0 3\r\none\r\nEND\r\n"),
                (b"get other r:1\r\n", b"VALUE r:1 0 3\r\none\r\nEND\r\n"),
                (b"set w:1 0 0 1\r\n1\r\n", b"STORED\r\n"),
                (b"set r:1 0 0 1\r\n1\r\n", b"CLIENT_ERROR the user has no permission for this\r\n"),
                (b"incr w:1 1\r\n", b"CLIENT_ERROR the user has no permission for this\r\n"),
                (b"delete w:1\r\n", b"DELETED\r\n"),
                (b"flush_all\r\n", b"CLIENT_ERROR the user has no permission for this\r\n"),
                (b"version\r\n", b"VERSION "),
            ):
                app.send(request)
                received = b""
                while len(received) < len(reply):
                    received += app.socket.recv(1000)
                assert received.startswith(reply), request
