"""The binary protocol of memcached, packet by packet: conversations hold with a real memcached, and with snugly."""

from __future__ import annotations

import dataclasses
import struct

import pytest

from memcached import (
    ADD,
    ADDQ,
    APPEND,
    APPENDQ,
    DECREMENT,
    DECREMENTQ,
    DELETE,
    DELETEQ,
    FLUSH,
    FLUSHQ,
    GAT,
    GATK,
    GATKQ,
    GATQ,
    GET,
    GETK,
    GETKQ,
    GETQ,
    INCREMENT,
    INCREMENTQ,
    NO_OP,
    PREPEND,
    PREPENDQ,
    QUIT,
    QUITQ,
    REPLACE,
    REPLACEQ,
    SASL_BEGIN,
    SASL_MECHANISMS,
    SASL_STEP,
    SET,
    SETQ,
    STAT,
    TOO_LARGE,
    TOUCH,
    VERSION,
    Cache,
    Client,
    Packet,
)

UNUSED = 0x40
NO_FLAGS = bytes(4)
NEVER = 0xFFFF_FFFF
MAXIMUM, HALF = (1 << 64) - 1, 1 << 63
# Names of numbers that the server chooses: any number where one is first met in a reply, that number ever after, and
# another one than those before. ANY is one that nobody asks about again.
OLD, NEW, NEWER, NEWEST, ANY = -1, -2, -3, -4, -5
# Errors of the server, by their status.
MISSING, EXISTS, LARGE, INVALID, NOT_STORED, NOT_A_NUMBER, UNKNOWN = *range(0x01, 0x07), 0x81
WORDS = {
    MISSING: b"Not found",
    EXISTS: b"Data exists for key.",
    LARGE: b"Too large.",
    INVALID: b"Invalid arguments",
    NOT_STORED: b"Not stored.",
    NOT_A_NUMBER: b"Non-numeric server-side value for incr or decr",
    UNKNOWN: b"Unknown command",
}


def flags(number: int = 0, seconds: int = 0) -> bytes:
    return struct.pack(">II", number, seconds)


def count(by: int, first: int = 0, seconds: int = 0) -> bytes:
    return struct.pack(">QQI", by, first, seconds)


def number(value: int) -> bytes:
    return struct.pack(">Q", value)


def seconds(value: int) -> bytes:
    return struct.pack(">I", value)


def no(opcode: int, status: int, opaque: int = 0) -> Packet:
    return Packet(opcode, value=WORDS[status], status=status, opaque=opaque)


Step = tuple[list[Packet], list[Packet]]
SET_K = Packet(SET, b"k", b"abc", flags(7))
CONVERSATIONS: dict[str, list[Step]] = {
    "a value is got as it was set, with its flags and number": [
        ([Packet(SET, b"k", b"abc", flags(0xDEADBEEF), opaque=9)], [Packet(SET, cas=OLD, opaque=9)]),
        ([Packet(GET, b"k", opaque=5)], [Packet(GET, b"", b"abc", b"\xde\xad\xbe\xef", opaque=5, cas=OLD)]),
        ([Packet(GETK, b"k")], [Packet(GETK, b"k", b"abc", b"\xde\xad\xbe\xef", cas=OLD)]),
        ([Packet(GETQ, b"k")], [Packet(GETQ, b"", b"abc", b"\xde\xad\xbe\xef", cas=OLD)]),
        ([Packet(GETKQ, b"k")], [Packet(GETKQ, b"k", b"abc", b"\xde\xad\xbe\xef", cas=OLD)]),
    ],
    "an empty value is one": [
        ([Packet(SET, b"k", b"", flags())], [Packet(SET, cas=OLD)]),
        ([Packet(GET, b"k")], [Packet(GET, b"", b"", NO_FLAGS, cas=OLD)]),
    ],
    "a key that is not there is an error, and its name if it was asked for": [
        ([Packet(GET, b"k", opaque=7)], [no(GET, MISSING, 7)]),
        ([Packet(GETK, b"k", opaque=7)], [Packet(GETK, b"k", status=MISSING, opaque=7)]),
    ],
    "the quiet forms of get are silent about what is not there": [
        ([Packet(GETQ, b"k"), Packet(GETKQ, b"k"), Packet(GATQ, b"k", extras=seconds(9))], []),
        ([Packet(GATKQ, b"k", extras=seconds(9))], []),
    ],
    "add stores what is not there": [
        ([Packet(ADD, b"k", b"a", flags(1))], [Packet(ADD, cas=OLD)]),
        ([Packet(ADD, b"k", b"b", flags()), Packet(ADDQ, b"k", b"b", flags())], [no(ADD, EXISTS), no(ADDQ, EXISTS)]),
        ([Packet(ADDQ, b"l", b"b", flags()), Packet(GET, b"l")], [Packet(GET, b"", b"b", NO_FLAGS, cas=ANY)]),
        ([Packet(GET, b"k")], [Packet(GET, b"", b"a", seconds(1), cas=OLD)]),
    ],
    "replace stores what is there": [
        ([Packet(REPLACE, b"k", b"a", flags())], [no(REPLACE, MISSING)]),
        ([Packet(REPLACEQ, b"k", b"a", flags())], [no(REPLACEQ, MISSING)]),
        ([SET_K, Packet(REPLACE, b"k", b"a", flags())], [Packet(SET, cas=OLD), Packet(REPLACE, cas=NEW)]),
        ([Packet(REPLACEQ, b"k", b"b", flags(3))], []),
        ([Packet(GET, b"k")], [Packet(GET, b"", b"b", seconds(3), cas=NEWER)]),
    ],
    "with a number only what nobody has changed is stored": [
        ([SET_K], [Packet(SET, cas=OLD)]),
        ([dataclasses.replace(SET_K, cas=OLD)], [Packet(SET, cas=NEW)]),
        ([dataclasses.replace(SET_K, cas=OLD)], [no(SET, EXISTS)]),
        ([Packet(SETQ, b"k", b"x", flags(), cas=OLD)], [no(SETQ, EXISTS)]),
        ([Packet(REPLACE, b"k", b"x", flags(), cas=OLD)], [no(REPLACE, EXISTS)]),
        ([Packet(APPEND, b"k", b"x", cas=OLD)], [no(APPEND, EXISTS)]),
        ([Packet(INCREMENT, b"k", extras=count(1), cas=OLD)], [no(INCREMENT, EXISTS)]),
        ([Packet(DELETE, b"k", cas=OLD)], [no(DELETE, EXISTS)]),
        ([Packet(SET, b"none", b"x", flags(), cas=OLD)], [no(SET, MISSING)]),
        ([Packet(GET, b"k")], [Packet(GET, b"", b"abc", seconds(7), cas=NEW)]),
        ([Packet(DELETE, b"k", cas=NEW)], [Packet(DELETE)]),
    ],
    "append and prepend keep flags, and store nothing where nothing is": [
        ([Packet(APPEND, b"k", b"x"), Packet(PREPEND, b"k", b"x")], [no(APPEND, NOT_STORED), no(PREPEND, NOT_STORED)]),
        ([Packet(APPENDQ, b"k", b"x")], [no(APPENDQ, NOT_STORED)]),
        ([Packet(PREPENDQ, b"k", b"x")], [no(PREPENDQ, NOT_STORED)]),
        ([SET_K, Packet(APPEND, b"k", b"d")], [Packet(SET, cas=OLD), Packet(APPEND, cas=NEW)]),
        ([Packet(PREPENDQ, b"k", b"-"), Packet(APPENDQ, b"k", b"+")], []),
        ([Packet(GET, b"k")], [Packet(GET, b"", b"-abcd+", seconds(7), cas=NEWER)]),
    ],
    "delete takes a key away once, and its quiet form is silent about success": [
        ([SET_K, Packet(DELETE, b"k", opaque=3)], [Packet(SET, cas=OLD), Packet(DELETE, opaque=3)]),
        ([Packet(DELETE, b"k", opaque=3)], [no(DELETE, MISSING, 3)]),
        ([SET_K, Packet(DELETEQ, b"k")], [Packet(SET, cas=NEW)]),
        ([Packet(DELETEQ, b"k")], [no(DELETEQ, MISSING)]),
    ],
    "increment and decrement answer eight bytes, and begin with what is asked for": [
        ([Packet(INCREMENT, b"n", extras=count(1, 10))], [Packet(INCREMENT, value=number(10), cas=OLD)]),
        ([Packet(INCREMENT, b"n", extras=count(5, 10))], [Packet(INCREMENT, value=number(15), cas=NEW)]),
        ([Packet(GET, b"n")], [Packet(GET, b"", b"15", NO_FLAGS, cas=NEW)]),
        ([Packet(DECREMENT, b"n", extras=count(20))], [Packet(DECREMENT, value=number(0), cas=NEWER)]),
        ([Packet(DECREMENT, b"m", extras=count(20, 3))], [Packet(DECREMENT, value=number(3), cas=ANY)]),
        ([Packet(INCREMENTQ, b"n", extras=count(7)), Packet(DECREMENTQ, b"n", extras=count(2))], []),
        ([Packet(INCREMENT, b"n", extras=count(0))], [Packet(INCREMENT, value=number(5), cas=NEWEST)]),
    ],
    "a count without a beginning makes no key": [
        ([Packet(INCREMENT, b"n", extras=count(1, 10, NEVER))], [no(INCREMENT, MISSING)]),
        ([Packet(DECREMENT, b"n", extras=count(1, 10, NEVER))], [no(DECREMENT, MISSING)]),
        ([Packet(INCREMENTQ, b"n", extras=count(1, 10, NEVER))], [no(INCREMENTQ, MISSING)]),
        ([Packet(DECREMENTQ, b"n", extras=count(1, 10, NEVER))], [no(DECREMENTQ, MISSING)]),
        (
            [Packet(INCREMENTQ, b"n", extras=count(1, 10)), Packet(GETQ, b"n")],
            [Packet(GETQ, b"", b"10", NO_FLAGS, cas=OLD)],
        ),
    ],
    "increment begins again behind 64 bits": [
        ([Packet(INCREMENT, b"n", extras=count(1, HALF - 1))], [Packet(INCREMENT, value=number(HALF - 1), cas=OLD)]),
        ([Packet(INCREMENT, b"n", extras=count(HALF + 2))], [Packet(INCREMENT, value=number(1), cas=NEW)]),
        ([Packet(INCREMENT, b"n", extras=count(MAXIMUM))], [Packet(INCREMENT, value=number(0), cas=NEWER)]),
    ],
    "what is no number is not counted": [
        ([SET_K, Packet(INCREMENT, b"k", extras=count(1))], [Packet(SET, cas=OLD), no(INCREMENT, NOT_A_NUMBER)]),
        ([Packet(DECREMENTQ, b"k", extras=count(1))], [no(DECREMENTQ, NOT_A_NUMBER)]),
    ],
    "a count with a number counts what nobody has changed": [
        ([Packet(SET, b"n", b"1", flags())], [Packet(SET, cas=OLD)]),
        ([Packet(INCREMENT, b"n", extras=count(1), cas=OLD)], [Packet(INCREMENT, value=number(2), cas=NEW)]),
        ([Packet(INCREMENT, b"n", extras=count(1), cas=OLD)], [no(INCREMENT, EXISTS)]),
    ],
    "touch answers flags, and the forms of gat the value, too": [
        ([SET_K], [Packet(SET, cas=OLD)]),
        ([Packet(TOUCH, b"k", extras=seconds(100))], [Packet(TOUCH, extras=seconds(7), cas=OLD)]),
        ([Packet(GAT, b"k", extras=seconds(100))], [Packet(GAT, b"", b"abc", seconds(7), cas=OLD)]),
        ([Packet(GATQ, b"k", extras=seconds(100))], [Packet(GATQ, b"", b"abc", seconds(7), cas=OLD)]),
        ([Packet(GATK, b"k", extras=seconds(100))], [Packet(GATK, b"k", b"abc", seconds(7), cas=OLD)]),
        ([Packet(GATKQ, b"k", extras=seconds(0))], [Packet(GATKQ, b"k", b"abc", seconds(7), cas=OLD)]),
        (
            [Packet(TOUCH, b"l", extras=seconds(9)), Packet(GAT, b"l", extras=seconds(9))],
            [no(TOUCH, MISSING), no(GAT, MISSING)],
        ),
        ([Packet(GATK, b"l", extras=seconds(9))], [Packet(GATK, b"l", status=MISSING)]),
    ],
    "times are seconds for thirty days, and then dates": [
        (
            [Packet(SET, b"k", b"a", flags(0, 2_592_000)), Packet(GETQ, b"k")],
            [Packet(SET, cas=OLD), Packet(GETQ, b"", b"a", NO_FLAGS, cas=OLD)],
        ),
        ([Packet(SET, b"k", b"a", flags(0, 2_592_001)), Packet(GETQ, b"k")], [Packet(SET, cas=NEW)]),
        (
            [Packet(SET, b"k", b"a", flags()), Packet(TOUCH, b"k", extras=seconds(2_592_001))],
            [Packet(SET, cas=NEWER), Packet(TOUCH, extras=NO_FLAGS, cas=NEWER)],
        ),
        ([Packet(GETQ, b"k")], []),
    ],
    "a key may have any bytes": [
        ([Packet(SET, b"a b\r\n\x00\xff", b"v", flags())], [Packet(SET, cas=OLD)]),
        ([Packet(GETK, b"a b\r\n\x00\xff")], [Packet(GETK, b"a b\r\n\x00\xff", b"v", NO_FLAGS, cas=OLD)]),
        ([Packet(GET, b"k" * 250)], [no(GET, MISSING)]),
    ],
    "flush takes everything away, and with a delay nothing at once": [
        ([SET_K, Packet(FLUSH, opaque=2), Packet(GETQ, b"k")], [Packet(SET, cas=OLD), Packet(FLUSH, opaque=2)]),
        ([SET_K, Packet(FLUSHQ), Packet(GETQ, b"k")], [Packet(SET, cas=NEW)]),
        ([SET_K, Packet(FLUSH, extras=seconds(1000))], [Packet(SET, cas=NEWER), Packet(FLUSH)]),
        ([Packet(GET, b"k")], [Packet(GET, b"", b"abc", seconds(7), cas=NEWER)]),
        ([Packet(FLUSH, extras=seconds(0)), Packet(GETQ, b"k")], [Packet(FLUSH)]),
    ],
    "a no-op answers itself, and what is unknown is an error": [
        ([Packet(NO_OP, opaque=7)], [Packet(NO_OP, opaque=7)]),
        ([Packet(UNUSED, opaque=7)], [no(UNUSED, UNKNOWN, 7)]),
    ],
    "without a password there is nothing to log into": [
        ([Packet(SASL_MECHANISMS)], [no(SASL_MECHANISMS, UNKNOWN)]),
        ([Packet(SASL_BEGIN, b"PLAIN", b"\0user\0secret")], [no(SASL_BEGIN, UNKNOWN)]),
        ([Packet(SASL_STEP, b"PLAIN", b"\0user\0secret")], [no(SASL_STEP, UNKNOWN)]),
        ([Packet(NO_OP)], [Packet(NO_OP)]),
    ],
    "a value that is too large is read over, and takes the one before away": [
        ([SET_K], [Packet(SET, cas=OLD)]),
        ([Packet(ADD, b"k", bytes(TOO_LARGE), flags(), opaque=4)], [no(ADD, LARGE, 4)]),
        ([Packet(APPEND, b"k", bytes(TOO_LARGE))], [no(APPEND, LARGE)]),
        ([Packet(GET, b"k")], [Packet(GET, b"", b"abc", seconds(7), cas=OLD)]),
        ([Packet(SETQ, b"k", bytes(TOO_LARGE), flags())], [no(SETQ, LARGE)]),
        ([Packet(GET, b"k")], [no(GET, MISSING)]),
    ],
    "nobody looks at the bucket and the type of data": [
        ([dataclasses.replace(SET_K, status=3)], [Packet(SET, cas=OLD)]),
        ([Packet(GET, b"k", status=0xFFFF)], [Packet(GET, b"", b"abc", seconds(7), cas=OLD)]),
    ],
}


def sent(packets: list[Packet], numbers: dict[int, int]) -> bytes:
    """The bytes of requests; numbers that are not known yet are zero."""
    return b"".join(known(packet, numbers).request() for packet in packets)


def known(packet: Packet, numbers: dict[int, int]) -> Packet:
    return dataclasses.replace(packet, cas=numbers.get(packet.cas, 0) if packet.cas < 0 else packet.cas)


def play(client: Client, steps: list[Step], witness: Client | None = None, cut: int = 0) -> None:
    """Fails at a reply that is not the expected one; with a witness, requests are sent in two pieces."""
    numbers: dict[int, int] = {}
    for requests, expected in steps:
        data = sent(requests, numbers)
        if witness and 0 < cut < len(data):
            client.send(data[:cut])
            # Has the server read this piece by the time the next one comes.
            witness.ask(b"")
            data = data[cut:]
        replies = client.packets(data)
        for reply, hoped in zip(replies, expected, strict=False):
            if hoped.cas == ANY:
                numbers[ANY] = reply.cas
            elif hoped.cas < 0:
                assert reply.cas > 0
                numbers.setdefault(hoped.cas, reply.cas)
        assert replies == [known(packet, numbers) for packet in expected]
        numbers.pop(ANY, None)
        assert len(set(numbers.values())) == len(numbers), f"numbers come again in {numbers}"


@pytest.mark.parametrize("sentence", CONVERSATIONS)
def test_replies_are_packet_by_packet(cache: Cache, sentence: str) -> None:
    with cache.connect() as client:
        play(client, CONVERSATIONS[sentence])


def test_a_request_in_two_pieces_is_answered_as_one(cache: Cache) -> None:
    with cache.connect() as client, cache.connect() as witness:
        for steps in CONVERSATIONS.values():
            longest = max(len(sent(requests, {})) for requests, _ in steps)
            for cut in range(1, longest) if longest < 1_000 else (1, 10, 25, 100, 1_000):
                assert witness.ask(b"flush_all\r\n") == b"OK\r\n"
                play(client, steps, witness, cut)


def test_a_thousand_requests_in_one_write_are_answered_in_order(cache: Cache) -> None:
    requests = b"".join(
        Packet(SETQ, b"k%d" % at, b"%d" % at, flags(at)).request() + Packet(GETKQ, b"k%d" % at, opaque=at).request()
        for at in range(500)
    )
    with cache.connect() as client:
        replies = client.packets(requests)
    assert [(reply.key, reply.value, reply.extras, reply.opaque) for reply in replies] == [
        (b"k%d" % at, b"%d" % at, seconds(at), at) for at in range(500)
    ]


# Requests that contradict themselves, and the error after which the connection is closed.
HOPELESS = {
    "get with extras": (Packet(GET, b"k", extras=b"x", opaque=7).request(), GET, INVALID),
    "get with a value": (Packet(GET, b"k", b"v", opaque=7).request(), GET, INVALID),
    "get without a key": (Packet(GET, opaque=7).request(), GET, INVALID),
    "get of a key that is too long": (Packet(GET, b"k" * 251, opaque=7).request(), GET, INVALID),
    "set without flags": (Packet(SET, b"k", b"abcdefgh", opaque=7).request(), SET, INVALID),
    "set without a key": (Packet(SET, b"", b"abc", flags(), opaque=7).request(), SET, INVALID),
    "set of a key that is too long": (Packet(SET, b"k" * 251, b"abc", flags(), opaque=7).request(), SET, INVALID),
    "append with flags": (Packet(APPEND, b"k", b"abc", flags(), opaque=7).request(), APPEND, INVALID),
    "delete with extras": (Packet(DELETE, b"k", extras=b"\0\0\0\0", opaque=7).request(), DELETE, INVALID),
    "delete with a value": (Packet(DELETE, b"k", b"v", opaque=7).request(), DELETE, INVALID),
    "increment without numbers": (Packet(INCREMENT, b"k", opaque=7).request(), INCREMENT, INVALID),
    "increment with a value": (Packet(INCREMENT, b"k", b"v", count(1), opaque=7).request(), INCREMENT, INVALID),
    "touch without a time": (Packet(TOUCH, b"k", opaque=7).request(), TOUCH, INVALID),
    "gat without a time": (Packet(GAT, b"k", opaque=7).request(), GAT, INVALID),
    "flush with a key": (Packet(FLUSH, b"k", opaque=7).request(), FLUSH, INVALID),
    "flush with half a time": (Packet(FLUSH, extras=b"\0\0", opaque=7).request(), FLUSH, INVALID),
    "no-op with a key": (Packet(NO_OP, b"k", opaque=7).request(), NO_OP, INVALID),
    "no-op with a value": (Packet(NO_OP, b"", b"v", opaque=7).request(), NO_OP, INVALID),
    "version with a key": (Packet(VERSION, b"k", opaque=7).request(), VERSION, INVALID),
    "quit with a key": (Packet(QUIT, b"k", opaque=7).request(), QUIT, INVALID),
    "a body of four gigabytes for a get": (Packet(GET, b"k", opaque=7).request(body_bytes=0xFFFF_FFFF), GET, INVALID),
    "a key that is longer than the body": (Packet(GET, b"kkkkk", opaque=7).request(body_bytes=4), GET, UNKNOWN),
    "a body that is shorter than the key": (Packet(GET, b"kkk", opaque=7).request(body_bytes=1), GET, UNKNOWN),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_a_request_that_contradicts_itself_ends_the_connection(cache: Cache, name: str) -> None:
    request, opcode, status = HOPELESS[name]
    with cache.connect() as client:
        client.send(request)
        assert client.packet() == no(opcode, status, 7)
        assert client.rest() == b""
    with cache.connect() as client:
        assert client.packets(Packet(GET, b"k").request()) == [no(GET, MISSING)]


@pytest.mark.parametrize(
    "data", [Packet(GET, b"k").request(magic=0x81), b"get k\r\n" + bytes(24)], ids=["reply", "text"]
)
def test_what_is_no_request_ends_the_connection(cache: Cache, data: bytes) -> None:
    with cache.connect() as client:
        assert client.packets(b"") == []
        client.send(data)
        assert client.rest() == b""


def test_a_body_of_two_gigabytes_is_waited_for_and_takes_no_memory(cache: Cache) -> None:
    with cache.connect() as client, cache.connect() as other:
        client.send(SET_K.request(body_bytes=0x7FFF_FFFF))
        assert other.ask(b"set k 0 0 1\r\na\r\nget k\r\n") == b"STORED\r\nVALUE k 0 1\r\na\r\nEND\r\n"


def test_the_first_byte_of_a_connection_chooses_its_protocol(cache: Cache) -> None:
    with cache.connect() as binary, cache.connect() as text:
        assert text.ask(b"set k 7 0 3\r\nabc\r\n") == b"STORED\r\n"
        found = binary.packets(Packet(GET, b"k").request())
        assert found == [Packet(GET, b"", b"abc", seconds(7), cas=found[0].cas)]
        assert text.ask(b"gets k\r\n") == b"VALUE k 7 3 %d\r\nabc\r\nEND\r\n" % found[0].cas
        # Is no packet where text was spoken before.
        assert text.ask(b"\x80\r\n") == b"ERROR\r\n"


def test_quit_is_answered_and_closes_the_connection_and_its_quiet_form_closes_it(cache: Cache) -> None:
    with cache.connect() as client:
        client.send(Packet(QUIT, opaque=5).request())
        assert client.packet() == Packet(QUIT, opaque=5)
        assert client.rest() == b""
    with cache.connect() as client:
        client.send(Packet(QUITQ, opaque=5).request())
        assert client.rest() == b""


def test_the_version_is_that_of_the_text_protocol(cache: Cache) -> None:
    with cache.connect() as client, cache.connect() as text:
        [reply] = client.packets(Packet(VERSION, opaque=4).request())
        assert reply == Packet(VERSION, value=reply.value, opaque=4)
        assert text.ask(b"version\r\n") == b"VERSION %b\r\n" % reply.value


def test_stat_is_a_packet_for_each_figure_and_an_empty_one_at_the_end(cache: Cache) -> None:
    with cache.connect() as client:
        replies = client.packets(Packet(STAT, opaque=4).request())
        assert {reply.opcode for reply in replies} == {STAT}
        assert {reply.opaque for reply in replies} == {4}
        assert replies[-1] == Packet(STAT, opaque=4)
        assert all(reply.key and reply.value for reply in replies[:-1])
        assert {b"pid", b"version", b"curr_items", b"cmd_get"} <= {reply.key for reply in replies}
        assert client.packets(Packet(STAT, b"bogus").request()) == [no(STAT, MISSING)]
