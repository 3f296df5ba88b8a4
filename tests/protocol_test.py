"""Bytes that no client should send: the same answer and the same fate of the connection as with valkey-server."""

from __future__ import annotations

import contextlib
import time
from typing import TypeAlias

import pytest

from resp import Connection, Failure, Map, Simple, encode
from servers import Server
from tested import Start
from waiting import until

LONG = b"x" * (70 << 10)

STREAMS = {
    # requests as they should be, in unusual pieces
    "ping": b"*1\r\n$4\r\nPING\r\n",
    "nothing": b"",
    "empty array": b"*0\r\n*1\r\n$4\r\nPING\r\n",
    "null array": b"*-1\r\n*1\r\n$4\r\nPING\r\n",
    "empty lines": b"\r\n\r\nPING\r\n",
    "empty command name": b"*1\r\n$0\r\n\r\n",
    "empty argument": b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
    "binary argument": b"*2\r\n$4\r\nECHO\r\n$4\r\n\r\n\x00\xff\r\n",
    "many requests": b"*1\r\n$4\r\nPING\r\n" * 300,
    "incomplete": b"*2\r\n$4\r\nECHO\r\n$10\r\nabc",
    "incomplete length": b"*2\r\n$4\r\nECHO\r\n$1",
    # inline commands
    "inline": b"PING\r\n",
    "inline, line feed only": b"PING\n",
    "inline, no end": b"PING",
    "inline, spaces": b"  PING   hello  \r\n",
    "inline, only spaces": b"   \r\nPING\r\n",
    "inline, tabs": b"PING\thello\r\n",
    "inline, double quotes": b'ECHO "a b\\x41\\n\\t\\"\\\\"\r\n',
    "inline, single quotes": b"ECHO 'a b\\'c \\n'\r\n",
    "inline, quotes inside a word": b'ECHO a"b"\r\n',
    "inline, closed quotes and more": b'ECHO "a"b\r\n',
    "inline, unbalanced quotes": b'ECHO "a b\r\n',
    "inline, unbalanced single quotes": b"ECHO 'a b\r\n",
    "inline, bad hexadecimal": b'ECHO "\\xzz\\x4"\r\n',
    "inline, unknown": b"HELO there\r\n",
    "inline, letters that are not ASCII": "ECHO Zürich\r\n".encode(),
    "inline, too long": LONG,
    "inline, too long with its end": LONG + b"\r\n",
    "inline, then an array": b"PING\r\n*1\r\n$4\r\nPING\r\nPING\r\n",
    # lengths of arrays
    "array length abc": b"*abc\r\n",
    "array length empty": b"*\r\n",
    "array length 1.5": b"*1.5\r\n",
    "array length with a space": b"* 1\r\n$4\r\nPING\r\n",
    "array length with a plus": b"*+1\r\n$4\r\nPING\r\n",
    "array length with zeros": b"*01\r\n$4\r\nPING\r\n",
    "array length -2": b"*-2\r\n*1\r\n$4\r\nPING\r\n",
    "array length 2^31": b"*2147483648\r\n",
    "array length 2^20": b"*1048576\r\n",
    "array length 2^31 - 1": b"*2147483647\r\n",
    "array length 2^63": b"*9223372036854775808\r\n",
    "array length without end": b"*" + b"1" * (70 << 10),
    "array length, line feed only": b"*1\n$4\r\nPING\r\n",
    "array length, carriage return and letter": b"*1\rx$4\r\nPING\r\n",
    # lengths of arguments
    "argument without dollar": b"*1\r\n:4\r\n",
    "argument is inline": b"*1\r\nPING\r\n",
    "argument is an array": b"*1\r\n*1\r\n$4\r\nPING\r\n",
    "argument length abc": b"*1\r\n$abc\r\n",
    "argument length empty": b"*1\r\n$\r\nPING\r\n",
    "argument length -1": b"*1\r\n$-1\r\n",
    "argument length -5": b"*1\r\n$-5\r\n",
    "argument length with a plus": b"*1\r\n$+4\r\nPING\r\n",
    "argument length with zeros": b"*1\r\n$04\r\nPING\r\n",
    "argument length 512 MiB and a byte": b"*1\r\n$536870913\r\n",
    "argument length 2^63": b"*1\r\n$9223372036854775808\r\n",
    "argument length without end": b"*1\r\n$" + b"1" * (70 << 10),
    "argument longer than it says": b"*1\r\n$4\r\nPINGPONG\r\n*1\r\n$4\r\nPING\r\n",
    "argument without its end": b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n",
    "second argument wrong": b"*2\r\n$4\r\nECHO\r\n$x\r\n",
    "error after good requests": b"PING\r\n*1\r\n$4\r\nPING\r\n*1\r\n$x\r\nPING\r\n",
    # other protocols
    "HTTP GET": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP POST": b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP Host first": b"Host: localhost\r\nPING\r\n",
    "TLS": bytes.fromhex("160301020001000001fc0303") + bytes(200),
    "RESP3 map as a request": b"%1\r\n$4\r\nPING\r\n",
    "a reply as a request": b"+OK\r\n",
    "memcached": b"set key 0 0 5\r\nvalue\r\n",
    # commands
    "unknown command": encode("NOSUCH", "a", "b" * 200, "c" * 200),
    "unknown command, binary": encode(b"\xff\x00\r\n", b"\x00\x01"),
    "unknown command, long": encode("N" * 300, "a" * 300),
    "unknown command with many arguments": encode("NOSUCH", *("x" * 50)),
    "unknown subcommand": encode("CLIENT", "NOSUCH"),
    "wrong arity": encode("GET") + encode("GET", "a", "b"),
    "wrong arity of a subcommand": encode("CLIENT", "SETNAME"),
    "quit": encode("QUIT") + encode("PING"),
    "quit, inline": b"QUIT\r\nPING\r\n",
    "reset": encode("CLIENT", "SETNAME", "x") + encode("SELECT", 3) + encode("RESET") + encode("CLIENT", "GETNAME"),
    "no replies": encode("CLIENT", "REPLY", "OFF") + encode("PING") + encode("CLIENT", "REPLY", "ON") + encode("PING"),
    "skipped reply": encode("CLIENT", "REPLY", "SKIP") + encode("PING") + encode("ECHO", "a"),
    "replies skipped in turn": encode("CLIENT", "REPLY", "SKIP") * 3 + encode("PING") + encode("ECHO", "a"),
    "on behind skip": encode("CLIENT", "REPLY", "SKIP") + encode("CLIENT", "REPLY", "ON") + encode("PING"),
    "off behind skip": encode("CLIENT", "REPLY", "SKIP")
    + encode("CLIENT", "REPLY", "OFF")
    + encode("PING")
    + encode("CLIENT", "REPLY", "SKIP")
    + encode("CLIENT", "REPLY", "ON")
    + encode("PING"),
    "an error that is skipped": encode("CLIENT", "REPLY", "SKIP") + encode("NOSUCH") + encode("ECHO", "a"),
    "a bad mode behind skip": encode("CLIENT", "REPLY", "SKIP") + encode("CLIENT", "REPLY", "MAYBE") + encode("PING"),
    "hello, wrong": encode("HELLO", "3", "SETNAME", "bad name") + encode("HELLO", "9") + encode("HELLO", "3", "x"),
}
# For anything that should not come.
SETTLE_SECONDS = 0.5
# For what should come, of a busy machine.
ANSWER_SECONDS = 60.0
Outcomes: TypeAlias = dict[str, tuple[bytes, str]]


class Streams:
    """The answer to each stream on a connection of its own, and whether the connection is then open."""

    def __init__(self, server: Server, streams: dict[str, bytes], stack: contextlib.ExitStack) -> None:
        self.outcomes: Outcomes = {}
        self.connections = {name: stack.enter_context(server.connect()) for name in streams}
        for name, connection in self.connections.items():
            connection.send(streams[name])
            connection.socket.setblocking(False)

    def read(self) -> Outcomes:
        """The bytes received until now."""
        for name, connection in self.connections.items():
            self.outcomes[name] = outcome(connection, *self.outcomes.get(name, (b"", "open")))
        return self.outcomes


def outcome(connection: Connection, answer: bytes, state: str) -> tuple[bytes, str]:
    while state == "open":
        try:
            piece = connection.socket.recv(1 << 20)
        except BlockingIOError:
            break
        except ConnectionResetError:
            piece = b""
        answer += piece
        state = "open" if piece else "closed"
    return answer, state


def outcomes(ours: Server, theirs: Server, streams: dict[str, bytes]) -> tuple[Outcomes, Outcomes]:
    """The answers of both servers, which have time until they are the same."""
    with contextlib.ExitStack() as stack:
        both = Streams(ours, streams, stack), Streams(theirs, streams, stack)
        deadline = time.monotonic() + ANSWER_SECONDS
        time.sleep(SETTLE_SECONDS)
        while both[0].read() != both[1].read() and time.monotonic() < deadline:
            time.sleep(0.05)
        return both[0].outcomes, both[1].outcomes


@pytest.fixture(scope="module")
def both(shared_server: Server, peer: Server) -> tuple[Outcomes, Outcomes]:
    return outcomes(shared_server, peer, STREAMS)


@pytest.mark.parametrize("name", STREAMS)
def test_the_answer_and_the_fate_are_those_of_valkey(both: tuple[Outcomes, Outcomes], name: str) -> None:
    ours, theirs = both
    assert ours[name] == theirs[name]


def test_before_the_password_little_is_read(locked_pair: tuple[Server, Server]) -> None:
    streams = {
        "a command": encode("GET", "key"),
        "ping": encode("PING"),
        "inline": b"GET key\r\n",
        "unknown command": encode("NOSUCH"),
        "wrong arity": encode("GET"),
        "many arguments": encode("SET", *("x" * 10)),
        "a long argument": b"*2\r\n$4\r\nAUTH\r\n$16385\r\n",
        "an array that is too long": b"*11\r\n",
        "wrong password": encode("AUTH", "wrong") + encode("PING"),
        "wrong user": encode("AUTH", "nobody", "secret"),
        "right password": encode("AUTH", "secret") + encode("GET", "none"),
        "right user": encode("AUTH", "default", "secret") + encode("GET", "none"),
        "too many words": encode("AUTH", "default", "secret", "more"),
        "hello": encode("HELLO", "3"),
        "hello with a wrong password": encode("HELLO", "3", "AUTH", "default", "wrong"),
        "reset": encode("AUTH", "secret") + encode("RESET") + encode("GET", "none"),
        "quit": encode("QUIT"),
    }
    ours, theirs = outcomes(*locked_pair, streams)
    assert ours == theirs


def test_hello_chooses_the_protocol_and_reset_goes_back(server: Server) -> None:
    with server.connect() as connection:
        greeting = connection.command("HELLO", 3, "SETNAME", "tester")
        assert isinstance(greeting, Map)
        fields = {name: value for name, value in greeting.pairs if isinstance(name, bytes)}
        assert fields.keys() == {b"server", b"version", b"proto", b"id", b"mode", b"role", b"modules"}
        assert (fields[b"proto"], fields[b"mode"], fields[b"role"]) == (3, b"standalone", b"master")
        assert connection.command("CLIENT", "GETNAME") == b"tester"
        assert connection.command_raw("GET", "none") == b"_\r\n"
        assert connection.command("RESET") == Simple(b"RESET")
        assert connection.command_raw("GET", "none") == b"$-1\r\n"
        assert connection.command("CLIENT", "GETNAME") is None


def test_requests_may_come_byte_by_byte(server: Server) -> None:
    stream = encode("SET", "key", b"\r\nvalue\r\n") + b"PING\r\n" + encode("GET", "key") + b'ECHO "a b"\r\n'
    with server.connect() as connection:
        for at in range(len(stream)):
            connection.send(stream[at : at + 1])
            time.sleep(0.0005)
        replies = [connection.read() for _ in range(4)]
    assert replies == [Simple(b"OK"), Simple(b"PONG"), b"\r\nvalue\r\n", b"a b"]


@pytest.mark.snugly_only
def test_a_huge_claim_costs_no_memory(server: Server) -> None:
    """A hundred connections that each announce 512 MiB and send nothing (valkey-server counts 53 GB)."""
    with server.connect() as observer:
        before = used_memory(observer)
        idle = [server.connect() for _ in range(100)]
        for connection in idle:
            connection.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n")
        # Each has what was sent in its buffer, and the observer its request.
        until(lambda: clients(observer).count(" qbuf=0 ") <= 1)
        assert used_memory(observer) - before < 32 << 20
        for connection in idle:
            connection.close()


def clients(connection: Connection) -> str:
    listed = connection.command("CLIENT", "LIST")
    assert isinstance(listed, bytes)
    return listed.decode()


def used_memory(connection: Connection) -> int:
    info = connection.command("INFO", "memory")
    assert isinstance(info, bytes)
    fields = dict(line.split(b":", 1) for line in info.split(b"\r\n") if b":" in line)
    return int(fields[b"used_memory"])


def test_a_client_that_does_not_read_is_no_danger_to_others(server: Server) -> None:
    with server.connect() as greedy, server.connect() as other:
        other.command("SET", "key", b"x" * 100_000)
        greedy.socket.settimeout(0.2)
        for _ in range(200):
            try:
                greedy.socket.sendall(encode("GET", "key"))
            except (TimeoutError, OSError):
                break
        for number in range(50):
            assert other.command("INCR", "counter") == number + 1


def test_half_a_request_and_goodbye_leaves_nothing_behind(server: Server) -> None:
    for _ in range(50):
        with server.connect() as connection:
            connection.send(b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$100\r\nabc")
    with server.connect() as connection:
        assert connection.command("EXISTS", "half") == 0


def test_requests_before_the_end_of_input_are_answered(server: Server) -> None:
    with server.connect() as connection:
        connection.send(encode("SET", "key", "value") + encode("GET", "key"))
        connection.socket.shutdown(1)
        assert connection.read_to_end() == b"+OK\r\n$5\r\nvalue\r\n"


def test_a_killed_client_is_disconnected(server: Server) -> None:
    with server.connect() as victim, server.connect() as killer:
        identity = victim.command("CLIENT", "ID")
        assert isinstance(identity, int)
        assert killer.command("CLIENT", "KILL", "ID", identity) == 1
        assert victim.read_to_end() == b""
        assert isinstance(killer.command("CLIENT", "KILL", "127.0.0.1:1"), Failure)


def test_a_command_may_have_millions_of_arguments(server: Server) -> None:
    count = 1_500_000
    with server.connect() as connection:
        connection.send(b"*%d\r\n$5\r\nRPUSH\r\n$4\r\nlist\r\n" % (count + 2) + b"$1\r\nx\r\n" * count)
        assert connection.read() == count
        connection.send(b"*%d\r\n$3\r\nDEL\r\n$4\r\nlist\r\n" % (count + 2) + b"$1\r\nx\r\n" * count)
        assert connection.read() == 1


@pytest.mark.snugly_only
def test_what_a_request_is_refused_for_is_read_before_the_connection_ends(start: Start) -> None:
    server = start("--max-request-bytes", "1mb")
    for _ in range(20):
        with server.connect() as connection:
            connection.send(b"*1000000\r\n$3\r\nDEL\r\n" + b"$1\r\nx\r\n" * 999_999)
            refused = connection.read()
            assert isinstance(refused, Failure)
            assert b"request larger than 1048576 bytes" in refused.text
