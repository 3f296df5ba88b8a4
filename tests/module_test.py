"""Valkey with the module: every command on compressed values, alone, in transactions and in scripts, beside Valkey
without it; values of every kind, settings, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

import dumps
import valkey_module
from info import info
from plays import assert_alike, each, each_protocol_at_length, emptied, played, request, rows, script
from resp import Argument, Failure, Reply, Simple, encode
from servers import Server
from threads import in_threads
from valkey_module import ENVELOPE, TEXT, VALUES, enveloped, size_in_memory, text

OK = Simple(b"OK")
# Each is right or wrong for what is there.
COMMANDS = rows("""
reads:
  SET k TEXT | GET k | MGET k none k | STRLEN k | EXISTS k | TYPE k | GETEX k | GET none | GET | GET k k
parts:
  SET k TEXT | GETRANGE k 0 9 | GETRANGE k -10 -1 | GETRANGE k 0 -1 | GETRANGE k 5 2 | GETRANGE k 990 2000
  SUBSTR k 3 7 | GETRANGE k x 1 | GETRANGE k 1 | GETRANGE none 0 1
set:
  SET k TEXT | SET k OTHER XX | SET k TEXT NX | GET k | SET k TEXT foo | SET k | SET TEXT TEXT | GET TEXT
set and get:
  SET k TEXT GET | SET k OTHER GET | SET k small GET | SET k TEXT XX GET | SET k OTHER NX GET | GET k
a value that is a word:
  SET k GET | SET GET TEXT | GET GET | SET GET GET GET | SET k TEXT get EX 100 | GET k
set if equal:
  SET k TEXT | SET k OTHER IFEQ SHORT | SET k OTHER IFEQ TEXT | GET k | SET k small IFEQ OTHER GET
  SET k TEXT IFEQ small | SET k OTHER GET IFEQ TEXT | SET none TEXT IFEQ TEXT | SET k TEXT IFEQ | GET k
delete if equal:
  SET k TEXT | DELIFEQ k OTHER | DELIFEQ k TEXT | GET k | DELIFEQ k TEXT | DELIFEQ k
expiry:
  SET k TEXT EXAT 4102444800 | EXPIRETIME k | SET k OTHER KEEPTTL | EXPIRETIME k | GET k | SET k TEXT | TTL k
  SETEX k 100 OTHER | PERSIST k | PSETEX k 10000 TEXT | PERSIST k | GET k | SETEX k 0 TEXT | SETEX k x TEXT
the past:
  SET k TEXT PXAT 1 | GET k | SET k TEXT | GETEX k PXAT 1 | GET k | SET k TEXT | EXPIRE k -1 | GET k
getex:
  SET k TEXT | GETEX k EXAT 4102444800 | EXPIRETIME k | GETEX k | GETEX k PERSIST | TTL k | GETEX k EX 0
  GETEX k EX | GETEX none PERSIST | GET k
partial writes keep the time:
  SET k TEXT EXAT 4102444800 | APPEND k x | SETRANGE k 1 yy | SETBIT k 7 1 | EXPIRETIME k | GETSET k OTHER
  EXPIRETIME k
setnx:
  SETNX k TEXT | SETNX k OTHER | GET k | SETNX k
getset:
  GETSET k TEXT | GETSET k OTHER | GETSET k small | GET k
getdel:
  SET k TEXT | GETDEL k | GETDEL k | EXISTS k
mset:
  MSET a TEXT b small a OTHER | MGET a b | MSETNX c TEXT d OTHER | MSETNX e TEXT a small | MGET a b c d e | MSET a
  MSET a TEXT b
msetex:
  MSETEX 2 a TEXT b OTHER EXAT 4102444800 | MGET a b | EXPIRETIME a | MSETEX 1 a OTHER KEEPTTL | EXPIRETIME a
  MSETEX 1 a TEXT NX | MSETEX 2 a TEXT | MSETEX x a TEXT | MGET a b
append:
  APPEND k TEXT | GET k | APPEND k OTHER | STRLEN k | GET k | APPEND k '' | APPEND k
append to what is small:
  SET k 12 | APPEND k 3 | INCR k | APPEND k TEXT | GET k | SET s SHORT | APPEND s x | GET s
setrange:
  SET k TEXT | SETRANGE k 0 abc | SETRANGE k 999 zz | GET k | SETRANGE k 3000 x | GET k | SETRANGE k 0 ''
  SETRANGE k -1 x | SETRANGE k x x | SETRANGE k 536870912 x | STRLEN k | SETRANGE new 200 TEXT | GET new
bits:
  SET k TEXT | GETBIT k 1 | GETBIT k 7999 | GETBIT k 90000 | GETBIT k -1 | SETBIT k 1 0 | SETBIT k 9000 1 | GET k
  SETBIT k 1 2 | SETBIT k x 1 | STRLEN k
bitcount:
  SET k TEXT | BITCOUNT k | BITCOUNT k 0 9 | BITCOUNT k 5 -7 BIT | BITCOUNT k 0 | BITCOUNT k 0 x
bitpos:
  SET k TEXT | BITPOS k 1 | BITPOS k 0 5 | BITPOS k 1 2 -3 | BITPOS k 0 -9 -1 BIT | BITPOS k 2 | BITPOS k
bitfield:
  SET k TEXT | BITFIELD k GET u8 0 SET u8 #2 7 INCRBY i5 100 3 | GET k | BITFIELD k OVERFLOW FAIL INCRBY u2 0 9
  BITFIELD k GET u8 90000 | BITFIELD k GET u65 0 | BITFIELD k SET u8 20000 1 | STRLEN k | BITFIELD k
bitfield_ro:
  SET k TEXT | BITFIELD_RO k GET u8 0 GET i63 #3 | BITFIELD_RO k SET u8 0 1 | BITFIELD_RO none GET u8 0
bitop:
  MSET a TEXT b OTHER c small | BITOP AND d a b c | GET d | BITOP OR d a b | GET d | BITOP XOR d a a | GET d
  BITOP NOT d a | GET d | BITOP NOT d d | GET d | BITOP NOT d a b | BITOP DIFF d a c | GET d | BITOP AND d none
  GET d
lcs:
  MSET a TEXT b OTHER c small | LCS a b | LCS a b LEN | LCS a c | LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN
  LCS a none | LCS a b LEN IDX | LCS a
numbers:
  SET k TEXT | INCR k | DECRBY k 2 | INCRBYFLOAT k 1.5 | SET k DIGITS | INCR k | INCRBYFLOAT k 1 | SET k NUMBER
  INCR k | INCRBYFLOAT k 2 | GET k | SET k NUMBER | INCRBYFLOAT k NUMBER2 | GET k | INCRBYFLOAT k TEXT
sort:
  RPUSH l 1 2 3 | MSET w1 NUMBER2 w2 5 w3 NUMBER | MSET v1 TEXT v2 small v3 OTHER | HSET h1 f TEXT | SORT l BY w*
  SORT l BY w* GET v* GET # GET h*->f GET none* | SORT l BY v* ALPHA GET v*
  SORT_RO l BY w* DESC LIMIT 0 2 GET w* | SORT l BY v* | SORT l GET v* STORE d | LRANGE d 0 -1
  SORT l BY nosort GET v* | SORT_RO l GET v* STORE d
sort what is no list:
  SET k TEXT | SORT k BY w* | SORT k GET v* | SORT none BY w* GET v*
moves:
  SET k TEXT | RENAME k l | GET l | COPY l m | GET m | RENAMENX l m | RENAMENX l n | GET n | DEL m n | GET n
other types:
  RPUSH k x | GET k | MGET k | STRLEN k | GETRANGE k 0 1 | APPEND k TEXT | SETRANGE k 0 TEXT | GETSET k TEXT
  GETDEL k | GETEX k | SET k TEXT GET | SET k TEXT IFEQ x | DELIFEQ k x | GETBIT k 1 | SETBIT k 1 1 | BITCOUNT k
  BITPOS k 1 | BITFIELD k GET u8 0 | BITFIELD_RO k GET u8 0 | BITOP NOT d k | LCS k d | INCRBYFLOAT k 1
  LRANGE k 0 -1 | SET k TEXT | GET k
strings as other types:
  SET k TEXT | LPUSH k x | HGET k f | SADD k x | ZADD k 1 x | PFADD k x | PFCOUNT k | PFMERGE d k | XADD k * f v
  GEOSEARCH k FROMLONLAT 1 1 BYBOX 1 1 m | GET k
hyperloglogs:
  PFADD k a b c | PFCOUNT k | GET k | APPEND k TEXT | PFADD k d | DEL k | SETRANGE k 12303 x | SETRANGE k 0 HYLL
  PFCOUNT k | PFADD k a b | PFMERGE m k | PFCOUNT m | GET m | GETRANGE m 0 3 | SET copy TEXT | PFMERGE copy k
short and even values:
  MSET a SHORT b EVEN c '' d 12345 | MGET a b c d | INCR d | GET d | APPEND b x | STRLEN b | GET b
values that are envelopes:
  MSET a ENVELOPE b ENVELOPE_LZ4 c SHORT_ENVELOPE d UNKNOWN e DAMAGED | MGET a b c d e | STRLEN a | STRLEN b
  GETRANGE a 0 5 | GETRANGE e -5 -1 | APPEND a x | GET a | SET b ENVELOPE GET | GETDEL b
  SET a TEXT IFEQ ENVELOPE
envelopes that are named twice:
  SET c ENVELOPE | BITOP AND d c c | STRLEN c | GET d | BITOP OR c c c | STRLEN c | LCS c c LEN | MGET c c
  BITOP NOT c c | STRLEN c | GET c | RPUSH l k k | SET k ENVELOPE | SORT l BY nosort GET * GET * | GET k
values that become envelopes:
  APPEND a HEADER | APPEND a REST | GET a | SET b REST | SET c TURNED | BITOP NOT d c | GET d | STRLEN d
  SETRANGE e 9 REST | SETRANGE e 0 HEADER | GET e | SETBIT e 39 0 | GET e | BITFIELD e SET u8 32 2 | GET e
  GETRANGE e 0 9
elements are left alone:
  RPUSH l TEXT ENVELOPE | LRANGE l 0 -1 | HSET h f TEXT g ENVELOPE | HGETALL h | SADD s ENVELOPE | SMEMBERS s
  ZADD z 1 ENVELOPE | ZRANGE z 0 -1 | LPOS l ENVELOPE | SISMEMBER s ENVELOPE
big values:
  SET k BIG | GET k | GETRANGE k 49990 -1 | APPEND k BIG | STRLEN k | SETRANGE k 70000 TEXT | GET k
""")
# Each request is an argument that says how many parts it has, and the parts.
IN_A_SCRIPT = """
local replies, at = {}, 1
while ARGV[at] do
    local count = tonumber(ARGV[at])
    replies[#replies + 1] = redis.pcall(unpack(ARGV, at + 1, at + count))
    at = at + count + 1
end
return replies
"""


@pytest.fixture(scope="module", params=["lz4", pytest.param("zstd", marks=pytest.mark.slow)])
def ours(request: pytest.FixtureRequest) -> Iterator[Server]:
    with valkey_module.serving(*valkey_module.EAGER, "--snugly.codec", request.param) as server:
        yield server


@each(COMMANDS)
@each_protocol_at_length
def test_commands_answer_as_in_valkey(ours: Server, peer: Server, protocol: int, row: list[str]) -> None:
    assert_alike(ours, peer, protocol, row, VALUES)


COUNTED = ("keyspace_hits", "keyspace_misses", "expired_keys", "total_error_replies")


@each(COMMANDS)
def test_commands_are_counted_as_in_valkey(ours: Server, peer: Server, row: list[str]) -> None:
    """But those by name, since the module's commands have their own, and SORT, which reads its list once more."""
    counts: list[list[list[int]]] = []
    for server in (ours, peer):
        emptied(server)
        with server.connect() as connection:
            counts.append([])
            for line in row:
                before = [info(connection, "stats", field) for field in COUNTED]
                connection.command(*request(line, VALUES)[1])
                after = [info(connection, "stats", field) for field in COUNTED]
                counts[-1].append([one - other for one, other in zip(after, before, strict=True)])
    for line, left, right in zip(row, *counts, strict=True):
        assert left == right or line.startswith("SORT"), line


@each(COMMANDS)
@each_protocol_at_length
def test_commands_answer_as_in_valkey_in_one_transaction(
    ours: Server, peer: Server, protocol: int, row: list[str]
) -> None:
    replies = played(peer, protocol, ["MULTI", *row, "DISCARD"], VALUES)
    # One request that is refused before it is queued would end the transaction.
    queued = [line for line, reply in zip(row, replies[1:-1], strict=True) if reply == b"+QUEUED\r\n"]
    assert_alike(ours, peer, protocol, ["MULTI", *queued, "EXEC"], VALUES)


@each(COMMANDS)
@each_protocol_at_length
def test_commands_answer_as_in_valkey_in_one_script(ours: Server, peer: Server, protocol: int, row: list[str]) -> None:
    requests = [request(line, VALUES)[1] for line in row]
    arguments = [part for parts in requests for part in (len(parts), *parts)]
    assert_alike(ours, peer, protocol, [script(IN_A_SCRIPT, *arguments)])


def test_functions_read_and_write_as_in_valkey(ours: Server, peer: Server) -> None:
    library = """#!lua name=texts
    local function write(keys, arguments)
        redis.call('SET', keys[1], arguments[1])
        return {redis.call('GETRANGE', keys[1], 0, 9), redis.call('GET', keys[1]), redis.call('STRLEN', keys[1])}
    end
    server.register_function('write', write)
    server.register_function{
        function_name = 'read',
        callback = function(keys) return {redis.call('GET', keys[1]), redis.call('MGET', keys[1], 'none')} end,
        flags = {'no-writes'},
    }
    """
    lines = [
        ["FUNCTION", "LOAD", library],
        *["FCALL write 1 k TEXT", "GET k", "FCALL_RO read 1 k", "FCALL_RO write 1 k TEXT", "FCALL write 1 k small"],
        *["FCALL read 1 k", "MULTI", "FCALL write 1 k OTHER", "FCALL read 1 k", "EXEC"],
    ]
    assert_alike(ours, peer, 2, lines, VALUES)


def test_scripts_see_values_as_clients_do(ours: Server, peer: Server) -> None:
    texts = [
        "return redis.call('GET', KEYS[1])",
        "redis.setresp(3) return redis.call('GET', KEYS[1])",
        "return #redis.call('GET', KEYS[1])",
        "return redis.sha1hex(redis.call('GET', KEYS[1]))",
        "redis.call('APPEND', KEYS[1], 'x') return redis.call('STRLEN', KEYS[1])",
        "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])",
        "#!lua flags=no-writes\nreturn redis.call('APPEND', KEYS[1], 'x')",
        "return redis.call('GET')",
        "return redis.call('APPEND', KEYS[1])",
        "return redis.call('INCR', KEYS[1])",
        "return redis.pcall('SETRANGE', KEYS[1], 'x', 'y')",
        "return redis.call('SNUGLY')",
        "redis.call('SET', KEYS[1], 'small') return redis.call('GET', KEYS[1])",
    ]
    for name in ("EVAL", "EVAL_RO"):
        for line in texts:
            assert_alike(ours, peer, 2, ["SET k TEXT", [name, line, 1, "k"], "GET k"], VALUES)


# What is stored.


@pytest.mark.snugly_only
@pytest.mark.parametrize(
    "write",
    [
        *["SET k TEXT", "SETNX k TEXT", "SETEX k 100 TEXT", "PSETEX k 100000 TEXT", "GETSET k TEXT", "MSET k TEXT"],
        *["MSETNX k TEXT", "MSETEX 1 k TEXT", "SET k TEXT GET", "SET k TEXT NX EX 100", "set k TEXT PX 100000 get"],
        "EVAL \"return redis.call('SET', KEYS[1], ARGV[1])\" 1 k TEXT",
    ],
)
def test_values_are_stored_smaller_whatever_writes_them(ours: Server, peer: Server, write: str) -> None:
    sizes = []
    for server in (ours, peer):
        with server.connect() as connection:
            connection.command("FLUSHALL")
            assert not isinstance(connection.command(*request(write, VALUES)[1]), Failure)
            sizes.append(size_in_memory(connection, "k"))
            assert connection.command("GET", "k") == TEXT
    assert sizes[0] < sizes[1] * 0.75


@pytest.mark.parametrize("size", [100_000, 5_000_000, pytest.param(100_000_000, marks=pytest.mark.slow)])
def test_big_values_are_read_back_and_changed(ours: Server, peer: Server, size: int) -> None:
    values = {"BIG": text(50_000) * (size // 50_000)}
    lines = ["SET k BIG", "GET k", "APPEND k x", "GETRANGE k -10 -1", f"SETRANGE k {size // 2} middle", "STRLEN k"]
    assert_alike(ours, peer, 2, [*lines, "GET k", "GETSET k small", "DEL k"], values)


@pytest.mark.parametrize("size", [*range(120, 137), 255, 256, 257])
def test_values_around_the_least_lengths_are_read_back(ours: Server, peer: Server, size: int) -> None:
    value = text(size, size)
    lines = ["SET k VALUE", "GET k", "STRLEN k", "APPEND k x", "GET k", "SETRANGE k 0 abc", "GET k"]
    assert_alike(ours, peer, 2, lines, {"VALUE": value})
    for backend in ("zstd", "lz4"):
        padded = enveloped(value, backend)
        assert_alike(ours, peer, 2, lines, {"VALUE": padded + b"\x00" * max(0, size - len(padded))})


@pytest.mark.snugly_only
def test_an_envelope_that_a_compressing_client_had_written_before_is_read_as_its_value(ours: Server) -> None:
    """RESTORE brings what was stored before, without a change."""
    for value in (ENVELOPE, enveloped(text(600, 3), "lz4")):
        with ours.connect() as connection:
            assert connection.command("RESTORE", "k", 0, dumped(value), "REPLACE") == OK
            plain = text(600, 3)
            assert connection.command("GET", "k") == plain
            assert connection.command("STRLEN", "k") == len(plain)
            assert connection.command("APPEND", "k", "x") == len(plain) + 1
            assert connection.command("GET", "k") == plain + b"x"


@pytest.mark.snugly_only
def test_what_is_stored_and_no_envelope_is_given_as_it_is(ours: Server) -> None:
    for name in ("UNKNOWN", "SHORT_ENVELOPE"):
        with ours.connect() as connection:
            assert connection.command("RESTORE", "k", 0, dumped(VALUES[name]), "REPLACE") == OK
            assert connection.command("GET", "k") == VALUES[name]
            assert connection.command("GETRANGE", "k", 0, 4) == VALUES[name][:5]
            assert connection.command("STRLEN", "k") == len(VALUES[name])


READS_OF_DAMAGE = """
GET k | GETEX k | GETDEL k | GETSET k x | SET k x GET | SET k x IFEQ y | DELIFEQ k x
GETRANGE k 0 9 | SUBSTR k 0 9 | APPEND k x | SETRANGE k 0 x | INCRBYFLOAT k 1 | GETBIT k 0 | SETBIT k 0 1 | BITCOUNT k
BITPOS k 1 | BITFIELD k GET u8 0 | BITFIELD_RO k GET u8 0 | BITOP NOT d k | LCS k k | SORT l BY k*
DUMP k
"""


@pytest.mark.snugly_only
@pytest.mark.parametrize("name", ["cut", "another length"])
@pytest.mark.parametrize("line", READS_OF_DAMAGE.strip().replace("\n", " | ").split(" | "))
def test_an_envelope_that_cannot_be_decoded_is_an_error_and_stays_as_it_is(ours: Server, name: str, line: str) -> None:
    lz4 = enveloped(text(600, 3), "lz4")
    longer = lz4[:5] + (601).to_bytes(4, "little") + lz4[9:]
    stored = {"cut": ENVELOPE[:-1], "another length": longer}[name]
    with ours.connect() as connection:
        for key in ("k", "k1"):
            connection.command("RESTORE", key, 0, dumped(stored), "REPLACE")
        connection.command("RPUSH", "l", 1)
        assert_undecodable(connection.command(*request(line)[1]))
        assert_undecodable(connection.command("GET", "k"))
        assert connection.command("SET", "k", TEXT) == OK
        assert connection.command("GET", "k") == TEXT


def test_an_envelope_that_needs_a_dictionary_is_a_string_of_the_client_that_has_it(ours: Server, peer: Server) -> None:
    dictionary = b"\x00\x01\x02\x00\x81\x28\xb5\x2f\xfd\x23\x00\x80\x00\x00\x10" + b"\x55" * 200
    for server in (ours, peer):
        with server.connect() as connection:
            connection.command("RESTORE", "k", 0, dumped(dictionary), "REPLACE")
            assert connection.command("GET", "k") == dictionary
            assert connection.command("STRLEN", "k") == len(dictionary)
            assert connection.command("SET", "k", dictionary) == OK
            assert connection.command("GETRANGE", "k", 0, 8) == dictionary[:9]
            assert connection.command("GETDEL", "k") == dictionary


@pytest.mark.snugly_only
def test_an_envelope_that_cannot_be_decoded_spoils_no_other_value(ours: Server) -> None:
    with ours.connect() as connection:
        connection.command("RESTORE", "damaged", 0, dumped(VALUES["DAMAGED"]), "REPLACE")
        connection.command("SET", "k", TEXT)
        reply = connection.command("MGET", "k", "damaged", "k")
        assert isinstance(reply, list)
        assert_undecodable(reply[1])
        assert [reply[0], reply[2]] == [TEXT, TEXT]


def assert_undecodable(reply: Reply) -> None:
    assert isinstance(reply, Failure), reply
    assert reply.text.startswith(b"SNUGLY"), reply


def dumped(value: bytes) -> bytes:
    return dumps.payload(dumps.raw(value))


# Limits.


def test_a_full_memory_refuses_the_same_commands() -> None:
    lines = [line for row in ("append", "mset", "getset", "bits", "reads", "getex", "getdel") for line in COMMANDS[row]]
    with valkey_module.pair() as (ours, theirs):
        for server in (ours, theirs):
            with server.connect() as connection:
                connection.command("MSET", "k", TEXT, "a", TEXT)
                connection.command("CONFIG", "SET", "maxmemory", 1)
        replies = []
        for server in (ours, theirs):
            with server.connect() as connection:
                replies.append([connection.command_raw(*request(line, VALUES)[1]) for line in lines])
        assert replies[0] == replies[1]
        assert any(b"OOM" in reply for reply in replies[0])


def test_keys_are_evicted_and_the_others_are_read_back() -> None:
    texts = [text(1000, seed) for seed in range(50)] * 200
    with valkey_module.serving(*valkey_module.EAGER) as server, server.connect() as connection:
        connection.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "6mb")
        for number, value in enumerate(texts):
            assert connection.command("SET", f"k{number}", value) == OK
        assert info(connection, "stats", "evicted_keys") > 0
        for number, value in enumerate(texts):
            assert connection.command("GET", f"k{number}") in (None, value)
        assert connection.command("DBSIZE") != 0


def test_threads_of_input_and_output_change_nothing(peer: Server) -> None:
    with valkey_module.serving(*valkey_module.EAGER, "--io-threads", "2", "--events-per-io-thread", "0") as server:
        for row in COMMANDS.values():
            assert_alike(server, peer, 3, row, VALUES)

        def work(thread: int) -> None:
            value = text(2000, thread)
            commands: list[list[Argument]] = [
                ["SET", f"k{thread}", value],
                ["GET", f"k{thread}"],
                ["SET", "shared", value],
                ["GET", "shared"],
            ]
            with server.connect() as connection:
                for _ in range(20):
                    connection.send(b"".join(encode(*command) for command in commands) * 10)
                    for _ in range(10):
                        assert [connection.read() for _ in range(3)] == [OK, value, OK]
                        assert connection.read() in values

        values = [text(2000, thread) for thread in range(6)]
        jobs = [partial(work, thread) for thread in range(6)]
        in_threads(*jobs)
