"""Clients of memcached's protocols and a password: logins of the text protocol, as memcached has them, and of SASL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import memcached
from memcached import GET, NO_OP, SASL_BEGIN, SASL_MECHANISMS, SASL_STEP, SET, SETQ, VERSION, Cache, Client, Packet
from resp import Simple

UNKNOWN = b"CLIENT_ERROR unauthenticated\r\n"
FAILED = b"CLIENT_ERROR authentication failure\r\n"
NO_TOKEN = b"CLIENT_ERROR bad authentication token format\r\n"
BAD_END = b"CLIENT_ERROR bad command line termination\r\n"
# Status and words of a binary reply.
REFUSED = (0x20, b"Auth failure.")


def login(words: bytes) -> bytes:
    """The request that is a login as long as nobody is logged in, whatever its key, flags and time."""
    return b"set any 0 0 %d\r\n%b\r\n" % (len(words), words)


def ask(client: Client, request: bytes) -> bytes:
    client.send(request)
    return client.line()


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        (b"get k\r\n", UNKNOWN),
        (b"mg k v\r\n", UNKNOWN),
        (b"mn\r\n", UNKNOWN),
        (b"version\r\n", UNKNOWN),
        (b"flush_all\r\n", UNKNOWN),
        (b"nosuch\r\n", UNKNOWN),
        (b"set any 0 0\r\n", UNKNOWN),
        (login(b"default wrong"), FAILED),
        (login(b"default secret1"), FAILED),
        (login(b"default secre"), FAILED),
        (login(b"default "), NO_TOKEN),
        (login(b"other secret"), FAILED),
        (login(b"secret"), NO_TOKEN),
        (login(b"x"), NO_TOKEN),
        (b"set any 0 0 14\r\ndefault secretxx", BAD_END),
    ],
)
def test_before_a_login_nothing_is_done(locked_cache: Cache, request_: bytes, reply: bytes) -> None:
    with locked_cache.connect() as client:
        assert ask(client, request_) == reply
    with locked_cache.connect() as client:
        assert ask(client, login(b"default secret")) == b"STORED\r\n"
        assert client.ask(b"get any k\r\n") == b"END\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        login(b"default secret"),
        b"set k 0 0 14\r\ndefault secret\r\n",
        b"set a 7 100 14 noreply\r\ndefault secret\r\n",
    ],
    ids=["any key", "another key", "flags, a time and noreply"],
)
def test_a_login_lets_in_and_stores_nothing(locked_cache: Cache, request_: bytes) -> None:
    with locked_cache.connect() as client:
        assert ask(client, request_) == b"STORED\r\n"
        assert client.ask(b"get any k a\r\n") == b"END\r\n"


def test_a_login_that_failed_can_be_tried_again(locked_cache: Cache) -> None:
    with locked_cache.connect() as client:
        assert ask(client, login(b"default wrong")) == FAILED
        assert ask(client, login(b"default secret")) == b"STORED\r\n"
        assert client.ask(b"mg any\r\n") == b"EN\r\n"


def test_behind_a_login_the_same_words_are_a_write(locked_cache: Cache) -> None:
    with locked_cache.connect() as client:
        assert ask(client, login(b"default secret")) == b"STORED\r\n"
        assert client.ask(login(b"default wrong") + b"get any\r\ndelete any\r\n") == (
            b"STORED\r\nVALUE any 0 13\r\ndefault wrong\r\nEND\r\nDELETED\r\n"
        )


def test_a_login_in_pieces_is_one(locked_cache: Cache) -> None:
    request = login(b"default secret")
    with locked_cache.connect() as witness:
        for cut in range(1, len(request)):
            with locked_cache.connect() as client:
                client.send(request[:cut])
                # Has the server read this piece by the time the next one comes.
                ask(witness, b"mn\r\n")
                assert ask(client, request[cut:]) == b"STORED\r\n"


def test_everything_may_come_in_one_write_with_the_login(locked_cache: Cache) -> None:
    with locked_cache.connect() as client:
        replies = client.ask(login(b"default secret") + b"set k 0 0 1\r\na\r\nget k\r\ndelete k\r\n")
        assert replies == b"STORED\r\nSTORED\r\nVALUE k 0 1\r\na\r\nEND\r\nDELETED\r\n"


# What memcached does with SASL, which needs a library and users of its own.


@pytest.fixture(scope="module")
def locked() -> Iterator[Cache]:
    with memcached.spoken_by_snugly("--password", "secret") as cache:
        yield cache


def plain(user: bytes, password: bytes, identity: bytes = b"") -> Packet:
    return Packet(SASL_BEGIN, b"PLAIN", b"%b\0%b\0%b" % (identity, user, password), opaque=5)


def packet(client: Client, request: Packet) -> Packet:
    client.send(request.request())
    return client.packet()


def refusal(opcode: int, opaque: int = 0) -> Packet:
    status, words = REFUSED
    return Packet(opcode, value=words, status=status, opaque=opaque)


@pytest.mark.snugly_only
@pytest.mark.parametrize("identity", [b"", b"default"])
def test_sasl_lets_in(locked: Cache, identity: bytes) -> None:
    with locked.connect() as client:
        mechanisms = packet(client, Packet(SASL_MECHANISMS, opaque=3))
        assert mechanisms == Packet(SASL_MECHANISMS, value=b"PLAIN", opaque=3)
        welcome = packet(client, plain(b"default", b"secret", identity))
        assert welcome == Packet(SASL_BEGIN, value=b"Authenticated", opaque=5)
        [stored, got] = client.packets(
            Packet(SET, b"k", b"v", bytes(8)).request() + Packet(GET, b"k").request(),
        )
        assert (stored.status, got.value) == (0, b"v")


@pytest.mark.snugly_only
@pytest.mark.parametrize(
    "request_",
    [
        plain(b"default", b"wrong"),
        plain(b"other", b"secret"),
        plain(b"", b""),
        Packet(SASL_BEGIN, b"PLAIN", b"default secret", opaque=5),
        Packet(SASL_BEGIN, b"PLAIN", b"", opaque=5),
        Packet(SASL_BEGIN, b"CRAM-MD5", b"\0default\0secret", opaque=5),
        Packet(SASL_STEP, b"PLAIN", b"\0default\0wrong", opaque=5),
    ],
    ids=["wrong password", "wrong user", "nothing", "no zeros", "no value", "unknown mechanism", "step"],
)
def test_sasl_refuses_and_can_be_tried_again(locked: Cache, request_: Packet) -> None:
    with locked.connect() as client:
        assert packet(client, request_) == refusal(request_.opcode, 5)
        assert packet(client, plain(b"default", b"secret")).status == 0
        assert client.packets(b"") == []


@pytest.mark.snugly_only
@pytest.mark.parametrize(
    "request_",
    [Packet(GET, b"k"), Packet(SET, b"k", b"v", bytes(8)), Packet(SETQ, b"k", b"v", bytes(8)), Packet(NO_OP)],
    ids=["get", "set", "quiet set", "no-op"],
)
def test_before_sasl_nothing_is_done(locked: Cache, request_: Packet) -> None:
    with locked.server.connect() as connection, locked.connect() as client:
        connection.command("AUTH", "secret")
        connection.command("DEL", "k")
        assert packet(client, request_) == refusal(request_.opcode)
        assert connection.command("EXISTS", "k") == 0


@pytest.mark.snugly_only
def test_before_sasl_the_version_is_told(locked: Cache) -> None:
    with locked.connect() as client:
        assert packet(client, Packet(VERSION)).status == 0


@pytest.mark.snugly_only
def test_a_new_password_is_asked_for_at_once(locked: Cache) -> None:
    with locked.server.connect() as connection:
        assert connection.command("AUTH", "secret") == Simple(b"OK")
        assert connection.command("CONFIG", "SET", "requirepass", "other") == Simple(b"OK")
        try:
            with locked.connect() as client:
                assert ask(client, login(b"default secret")) == FAILED
                assert ask(client, login(b"default other")) == b"STORED\r\n"
        finally:
            connection.command("CONFIG", "SET", "requirepass", "secret")
