"""Raw requests of memcached's protocols, a real memcached, and snugly as one.

It knows how requests and replies are laid out (https://docs.memcached.org/protocols/) and how the servers are started;
it knows nothing of what a request means.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import servers
import waiting
from servers import Server

# Largest value of both servers in these tests, and what is larger with any overhead.
VALUE_BYTES = "1mb"
TOO_LARGE = 2 << 20
# Without the threads of memcached that look at keys in the background: a number that one of them looks at while decr
# shortens it has no spaces behind it.
STEADY = ("-o", "no_lru_maintainer,no_lru_crawler")
NOTHING = b"mn\r\n"
NOTHING_DONE = b"MN\r\n"


class Client:
    """One socket; requests go out as given, replies come back as bytes."""

    def __init__(self, port: int, timeout: float = 60.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = bytearray()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Bytes as they are; what the server refuses to read any more is not an error here."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def receive(self) -> bool:
        """Whether more has come before the server closed the connection."""
        with contextlib.suppress(ConnectionResetError):
            piece = self.socket.recv(1 << 20)
            self.pending += piece
            return piece != b""
        return False

    def take(self, size: int) -> bytes:
        taken = bytes(self.pending[:size])
        del self.pending[:size]
        return taken

    def read(self, size: int) -> bytes:
        while len(self.pending) < size:
            if not self.receive():
                raise EOFError(f"the server closed the connection after {bytes(self.pending)!r}")
        return self.take(size)

    def line(self) -> bytes:
        while b"\n" not in self.pending:
            if not self.receive():
                raise EOFError(f"the server closed the connection after {bytes(self.pending)!r}")
        return self.take(self.pending.index(b"\n") + 1)

    def rest(self) -> bytes:
        """Everything until the server closes the connection."""
        while self.receive():
            pass
        return self.take(len(self.pending))

    def replies(self) -> bytes:
        """What was answered until now, or until the server has closed the connection. No value ends with `MN`."""
        self.send(NOTHING)
        while not self.pending.endswith(NOTHING_DONE):
            if not self.receive():
                return self.take(len(self.pending))
        return self.take(len(self.pending)).removesuffix(NOTHING_DONE)

    def ask(self, requests: bytes) -> bytes:
        """The replies to requests of the text and meta protocols."""
        self.send(requests)
        return self.replies()

    def packet(self) -> Packet:
        """The next reply of the binary protocol."""
        header = struct.unpack(">BBHBBHIIQ", self.read(24))
        magic, opcode, key_bytes, extras_bytes, datatype, status, body_bytes, opaque, cas = header
        assert (magic, datatype) == (0x81, 0)
        body = self.read(body_bytes)
        extras, key, value = body[:extras_bytes], body[extras_bytes:][:key_bytes], body[extras_bytes + key_bytes :]
        return Packet(opcode, key, value, extras, status, opaque, cas)

    def packets(self, requests: bytes) -> list[Packet]:
        """The replies to requests of the binary protocol, up to that of a no-op that it sends behind them."""
        self.send(requests + Packet(NO_OP, opaque=LAST).request())
        found = [self.packet()]
        while found[-1].opcode != NO_OP or found[-1].opaque != LAST:
            found.append(self.packet())
        return found[:-1]


# Requests of the binary protocol, by their opcodes; Q stands for quiet, K for a reply with its key.
GET, SET, ADD, REPLACE, DELETE, INCREMENT, DECREMENT, QUIT, FLUSH, GETQ = range(0x0A)
NO_OP, VERSION, GETK, GETKQ, APPEND, PREPEND, STAT, SETQ, ADDQ, REPLACEQ = range(0x0A, 0x14)
DELETEQ, INCREMENTQ, DECREMENTQ, QUITQ, FLUSHQ, APPENDQ, PREPENDQ = range(0x14, 0x1B)
TOUCH, GAT, GATQ = range(0x1C, 0x1F)
SASL_MECHANISMS, SASL_BEGIN, SASL_STEP, GATK, GATKQ = range(0x20, 0x25)
# Opaque of the no-op that ends the replies.
LAST = 0xFFFF_FFFF


@dataclass(frozen=True)
class Packet:
    """A request or a reply of the binary protocol."""

    opcode: int
    key: bytes = b""
    value: bytes = b""
    extras: bytes = b""
    # The status of a reply; the bucket, which nobody looks at, of a request.
    status: int = 0
    opaque: int = 0
    cas: int = 0

    def request(
        self, *, magic: int = 0x80, key_bytes: int | None = None, body_bytes: int | None = None, datatype: int = 0
    ) -> bytes:
        """The bytes of a request, whose lengths may lie."""
        body = self.extras + self.key + self.value
        lengths = len(self.key) if key_bytes is None else key_bytes, len(self.extras), datatype, self.status
        size = len(body) if body_bytes is None else body_bytes
        return struct.pack(">BBHBBHIIQ", magic, self.opcode, *lengths, size, self.opaque, self.cas) + body


# A step of a conversation: a request, and its reply byte by byte. `<#name>` is a number: of any value where the name is
# first met in a reply, the same one ever after, and another than all numbers before.
Step = tuple[bytes, bytes]
NAME = re.compile(rb"<#(\w+)>")


def play(client: Client, steps: list[Step], witness: Client | None = None, cut: int = 0) -> None:
    """Fails at a reply that is not the expected one; with a witness, requests are sent in two pieces."""
    numbers: dict[bytes, bytes] = {}
    for request, expected in steps:
        filled = NAME.sub(lambda name: numbers[name[1]], request)
        if witness and 0 < cut < len(filled):
            client.send(filled[:cut])
            # Has the server read this piece by the time the next one comes.
            witness.ask(b"")
            filled = filled[cut:]
        reply = client.ask(filled)
        found = re.fullmatch(pattern(expected, numbers), reply, re.DOTALL)
        assert found, f"{request[:200]!r} was answered {reply[:2000]!r}, and should be {expected[:2000]!r}"
        numbers.update({name.encode(): number for name, number in found.groupdict().items()})
        assert len(set(numbers.values())) == len(numbers), f"{request!r}: numbers come again in {numbers}"


def play_in_pieces(cache: Cache, conversations: dict[str, list[Step]]) -> None:
    """Plays each conversation once for every byte behind which its requests can be cut."""
    with cache.connect() as client, cache.connect() as witness:
        for sentence, steps in conversations.items():
            lengths = [len(request) for request, _ in steps]
            for cut in range(1, max(lengths)) if max(lengths) < 1_000 else (1, 10, 100, 1_000):
                assert witness.ask(b"flush_all\r\n") == b"OK\r\n"
                try:
                    play(client, steps, witness, cut)
                except AssertionError as error:
                    raise AssertionError(f"{sentence}, cut behind {cut} bytes") from error


def pattern(expected: bytes, numbers: dict[bytes, bytes]) -> bytes:
    """The regular expression of a reply; numbers that are known stand in it, and of seconds two may be over."""
    parts = NAME.split(expected)
    met: set[bytes] = set()
    found = literal(parts[0])
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        first = b"(?P<%b>[1-9][0-9]*)" % name
        found += numbers[name] if name in numbers else b"(?P=%b)" % name if name in met else first
        found += literal(text)
        met.add(name)
    return found


def literal(text: bytes) -> bytes:
    def late(seconds: re.Match[bytes]) -> bytes:
        return b"(?:%b)" % b"|".join(b"%d" % (int(seconds[0]) - passed) for passed in range(3))

    return re.sub(rb"(?<=\\ t)[1-9][0-9]+\b", late, re.escape(text))


@dataclass
class Cache:
    """A server that speaks memcached's protocols: memcached itself, or snugly, which speaks RESP, too."""

    name: str
    port: int
    server: Server

    def connect(self) -> Client:
        return Client(self.port)

    def empty(self) -> None:
        with self.connect() as client:
            assert client.ask(b"flush_all\r\n") == b"OK\r\n"


def answers(port: int) -> bool:
    """Whether a server is there; one that wants a password says so, which is an answer, too."""
    try:
        with Client(port, timeout=1.0) as client:
            client.send(NOTHING)
            return client.line() in (NOTHING_DONE, b"CLIENT_ERROR unauthenticated\r\n")
    except (OSError, EOFError):
        return False


@contextlib.contextmanager
def real(*options: str) -> Iterator[Cache]:
    """The memcached that is installed."""
    program = shutil.which("memcached")
    if program is None:
        pytest.skip("no memcached is installed")
    with servers.reserved_port() as port:
        command = [program, "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-U", "0", *STEADY, *options]
        with servers.running("memcached", command, port, answers) as server:
            yield Cache("memcached", port, server)


@contextlib.contextmanager
def spoken_by_snugly(*options: str) -> Iterator[Cache]:
    """`snugly serve` with a second port for memcached's protocols."""
    limit = [] if "--max-value-bytes" in options else ["--max-value-bytes", VALUE_BYTES]
    with (
        servers.reserved_port() as port,
        servers.snugly("--memcached-port", str(port), *limit, *options) as server,
    ):
        waiting.until(lambda: answers(port))
        yield Cache("snugly", port, server)
