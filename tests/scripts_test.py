"""Scripts as a part of the server: their commands, what they may call, and what they do to keys.

Every row is played on this server and on valkey-server; scripts_*_test.py have what is inside of a script.
"""

from __future__ import annotations

import hashlib

import pytest

from plays import Line, assert_alike, each, each_protocol_at_length, script
from servers import Server


def digest(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


ONE = digest("return 1")
GET = "return redis.call('get', KEYS[1])"

COMMANDS: dict[str, list[Line]] = {
    "no arguments": ["EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "SCRIPT", "SCRIPT NOTHING"],
    "no number of keys": ["EVAL 'return 1'", f"EVALSHA {ONE}", "EVAL_RO 'return 1'", f"EVALSHA_RO {ONE}"],
    "a negative number of keys": ["EVAL 'return 1' -1", f"EVALSHA {ONE} -1", "EVAL_RO 'return 1' -1 a b"],
    "too many keys": ["EVAL 'return 1' 1", "EVAL 'return 1' 3 a b", f"EVALSHA {ONE} 1", "EVALSHA_RO x 9 a"],
    "a number of keys that is none": [
        *["EVAL 'return 1' x", "EVAL 'return 1' ''", "EVAL 'return 1' 1.0 a", "EVAL 'return 1' ' 1' a"],
        *["EVAL 'return 1' +1 a", "EVAL 'return 1' 01 a", f"EVALSHA {ONE} x", "EVAL 'return 1' 0x1 a"],
    ],
    "a number of keys that is too large": [
        *[
            "EVAL 'return 1' 9223372036854775807",
            "EVAL 'return 1' 99999999999999999999",
            "EVAL 'return 1' 4294967297 a",
        ],
        "EVAL 'return 1' -9223372036854775808",
    ],
    "case": ["eval 'return 1' 0", "Eval_Ro 'return 1' 0", "script Load 'return 1'", f"evalsha {ONE.upper()} 0"],
    "a script that is not there": [f"EVALSHA {ONE} 0", f"EVALSHA_RO {ONE} 0", "EVALSHA '' 0", "EVALSHA x 0"],
    "digests of other lengths": [f"EVALSHA {ONE[:39]} 0", f"EVALSHA {ONE}0 0", ["EVALSHA", b"\xff" * 40, 0]],
    "keeping": ["EVAL 'return 1' 0", f"EVALSHA {ONE} 0", f"EVALSHA {ONE.upper()} 0", f"EVALSHA_RO {ONE} 0"],
    "keeping of EVAL_RO": ["EVAL_RO 'return 1' 0", f"EVALSHA {ONE} 0"],
    "keeping of a script that fails": [
        *[script("error('x')"), ["SCRIPT", "EXISTS", digest("error('x')")]],
        *["EVAL 'return return' 0", f"SCRIPT EXISTS {digest('return return')}"],
    ],
    "keeping of a script with too many keys": ["EVAL 'return 1' 5", f"SCRIPT EXISTS {ONE}"],
    "load": ["SCRIPT LOAD 'return 1'", f"EVALSHA {ONE} 0", f"SCRIPT EXISTS {ONE} x {ONE}", "SCRIPT LOAD 'return 1'"],
    "load of nothing": ["SCRIPT LOAD ''", f"EVALSHA {digest('')} 0"],
    "load of what is wrong": ["SCRIPT LOAD 'return return'", "SCRIPT LOAD 'hello'", "SCRIPT LOAD '#!lua'"],
    "load with mistakes": ["SCRIPT LOAD", "SCRIPT LOAD a b", "SCRIPT LOAD a b c"],
    "load runs nothing": ["SCRIPT LOAD \"redis.call('set', 'x', 1)\"", "EXISTS x"],
    "exists": ["SCRIPT EXISTS", f"SCRIPT EXISTS {ONE}", "SCRIPT LOAD 'return 1'", f"SCRIPT EXISTS {ONE.upper()} '' x"],
    "flush": ["SCRIPT LOAD 'return 1'", "SCRIPT FLUSH", f"SCRIPT EXISTS {ONE}", f"EVALSHA {ONE} 0"],
    "flush in ways": ["SCRIPT FLUSH SYNC", "SCRIPT FLUSH ASYNC", "SCRIPT FLUSH sync", "EVAL 'return 1' 0"],
    "flush with mistakes": ["SCRIPT FLUSH x", "SCRIPT FLUSH SYNC ASYNC", "SCRIPT FLUSH ''", "SCRIPT FLUSH SYNC x y"],
    "show": ["SCRIPT LOAD 'return 1'", f"SCRIPT SHOW {ONE}", f"SCRIPT SHOW {ONE.upper()}"],
    "show with mistakes": [
        "SCRIPT SHOW",
        "SCRIPT SHOW x",
        f"SCRIPT SHOW {ONE}",
        f"SCRIPT SHOW {ONE} x",
        "SCRIPT SHOW ''",
    ],
    "show of a header": [["SCRIPT", "LOAD", "#!lua\nreturn 1"], ["SCRIPT", "SHOW", digest("#!lua\nreturn 1")]],
    "kill": ["SCRIPT KILL", "SCRIPT KILL x", "FUNCTION KILL"],
    "help": ["SCRIPT HELP x"],
    "debug": ["SCRIPT DEBUG", "SCRIPT DEBUG x"],
    "scripts are of all databases": [
        "SELECT 1",
        "SCRIPT LOAD 'return 1'",
        "SELECT 0",
        f"EVALSHA {ONE} 0",
        "FLUSHALL",
        f"EVALSHA {ONE} 0",
    ],
    "scripts are of all clients": [
        "a: SCRIPT LOAD 'return 1'",
        f"b: EVALSHA {ONE} 0",
        "b: SCRIPT FLUSH",
        f"a: EVALSHA {ONE} 0",
    ],
    "keys of requests": [
        *["COMMAND GETKEYS EVAL 'return 1' 2 a b c", "COMMAND GETKEYS EVALSHA x 1 a b", "COMMAND GETKEYS EVAL x 0 a"],
        *["COMMAND GETKEYS EVAL x 5 a", "COMMAND GETKEYS EVAL x -1 a", "COMMAND GETKEYS EVAL x y a"],
        *["COMMAND GETKEYS EVAL_RO x 1 a", "COMMAND GETKEYS EVALSHA_RO x 2 a a", "COMMAND GETKEYS FCALL f 2 a b c"],
        *["COMMAND GETKEYS FCALL_RO f 1 a", "COMMAND GETKEYS SCRIPT LOAD x", "COMMAND GETKEYSANDFLAGS EVAL x 1 a"],
        "COMMAND GETKEYSANDFLAGS FCALL_RO x 1 a",
    ],
    "what is told of them": [
        *["COMMAND INFO EVAL EVALSHA EVAL_RO EVALSHA_RO", "COMMAND INFO SCRIPT|LOAD SCRIPT|EXISTS SCRIPT|FLUSH"],
        *["COMMAND INFO SCRIPT|KILL SCRIPT|SHOW SCRIPT|HELP", "COMMAND DOCS EVAL EVALSHA EVAL_RO EVALSHA_RO"],
        "COMMAND DOCS SCRIPT|LOAD SCRIPT|KILL SCRIPT|SHOW SCRIPT|FLUSH SCRIPT|EXISTS",
    ],
}

HEADERS: dict[str, str] = {
    "none": "#!lua\nreturn 1",
    "empty flags": "#!lua flags=\nreturn 1",
    "every flag": "#!lua flags=no-writes,allow-oom,allow-stale,no-cluster,allow-cross-slot-keys\nreturn 1",
    "a flag that is not known": "#!lua flags=nothing\nreturn 1",
    "a flag that is not known among others": "#!lua flags=no-writes,nothing,allow-oom\nreturn 1",
    "a flag twice": "#!lua flags=no-writes,no-writes\nreturn 1",
    "flags with a blank": "#!lua flags=no-writes, allow-oom\nreturn 1",
    "flags twice": "#!lua flags=no-writes flags=allow-oom\nreturn 1",
    "flags in capitals": "#!lua FLAGS=no-writes\nreturn 1",
    "a flag in capitals": "#!lua flags=NO-WRITES\nreturn 1",
    "flags that end with a comma": "#!lua flags=no-writes,\nreturn 1",
    "no value": "#!lua flags\nreturn 1",
    "a name": "#!lua name=library\nreturn 1",
    "another option": "#!lua other=1\nreturn 1",
    "another engine": "#!python\nreturn 1",
    "no engine": "#!\nreturn 1",
    "no engine but flags": "#! flags=no-writes\nreturn 1",
    "an engine behind a blank": "#! lua\nreturn 1",
    "the engine in capitals": "#!LUA\nreturn 1",
    "blanks": "#!lua   flags=no-writes  \nreturn 1",
    "a tab": "#!lua\tflags=no-writes\nreturn 1",
    "a carriage return": "#!lua\r\nreturn 1",
    "no line": "#!lua",
    "no line but flags": "#!lua flags=no-writes",
    "nothing behind the line": "#!lua\n",
    "a line before": "\n#!lua\nreturn 1",
    "a blank before": " #!lua\nreturn 1",
    "one sign": "#lua\nreturn 1",
    "half a sign": "#",
    "a line that counts": "#!lua\nreturn redis.call('nothing')",
    "an error of syntax": "#!lua\nreturn return",
    "no writes that writes": "#!lua flags=no-writes\nreturn redis.call('set', 'x', 1)",
    "no writes that tries to": "#!lua flags=no-writes\nreturn redis.pcall('set', 'x', 1)",
    "no writes that reads": "#!lua flags=no-writes\nreturn redis.call('get', 'text')",
    "no writes that publishes": "#!lua flags=no-writes\nreturn redis.call('publish', 'c', 'x')",
    "no writes that sorts": "#!lua flags=no-writes\nreturn redis.call('sort', 'list', 'alpha')",
    "no writes that gets and sets": "#!lua flags=no-writes\nreturn redis.call('getset', 'text', 'x')",
    "no writes that flushes": "#!lua flags=no-writes\nreturn redis.call('flushall')",
    "writes of a header": "#!lua\nreturn redis.call('set', 'x', 1)",
    "an undeclared key": "#!lua\nreturn redis.call('get', 'text')",
}

REFUSED = [
    *["multi", "exec", "discard", "watch x", "unwatch", "subscribe x", "psubscribe x", "ssubscribe x", "unsubscribe"],
    *["monitor", "eval x 0", "evalsha x 0", "eval_ro x 0", "script load x", "script exists x", "script flush"],
    *["function list", "fcall f 0", "fcall_ro f 0", "auth x", "hello", "hello 3", "client id", "client setname x"],
    *["client no-touch on", "reset", "quit", "config get x", "config set timeout 0", "debug sleep 0", "shutdown"],
    *["save", "bgsave", "replicaof no one", "slaveof no one", "acl whoami", "acl list", "latency latest"],
    *["client tracking on", "client reply off", "client kill x", "client pause 1"],
]
ALLOWED = [
    *[
        "ping",
        "ping x",
        "echo x",
        "select 1",
        "select 99",
        "swapdb 0 1",
        "move text 1",
        "flushdb",
        "flushall",
        "dbsize",
    ],
    *["publish c x", "spublish c x", "pubsub numpat", "pubsub channels", "wait 0 0", "object freq text"],
    *["scan 0 match text", "keys text", "command count x", "dump nothing", "restore x 0 x", "touch text"],
    *["copy text y", "rename text y", "rename nothing y", "sort list alpha", "sort_ro list alpha", "getex text ex 100"],
    *[
        "expire text 100",
        "ttl nothing",
        "persist text",
        "type text",
        "exists text list",
        "unlink text",
        "bitcount text",
    ],
    *["object encoding text", "lpos list a", "lcs text text", "setrange text 1 x", "append text x", "incr text"],
    *["memory usage nothing", "slowlog len x", "commandlog nothing"],
]
BLOCKING = [
    *["blpop nothing 0", "brpop nothing 0", "blpop nothing list 0", "brpop list 0", "blmove nothing x left left 0"],
    *["blmove list x left right 0", "brpoplpush nothing x 0", "brpoplpush list x 0", "blmpop 0 1 nothing left"],
    *["blmpop 0 2 nothing list left count 2", "blpop text 0", "blpop nothing x", "blpop nothing -1", "wait 1 0"],
]
READ_ONLY = [
    *["get text", "set x 1", "lrange list 0 -1", "lpush list x", "del text", "sort list alpha store x", "incr n"],
    *[
        "sort list alpha",
        "sort_ro list alpha",
        "getex text",
        "publish c x",
        "spublish c x",
        "flushall",
        "ping",
        "time x",
    ],
    *["blpop list 0", "select 1", "bitfield text get u8 0", "bitfield text set u8 0 1", "copy text x"],
    *["getdel text", "expire text 1", "touch text", "dbsize", "randomkey x", "swapdb 0 1", "rename text x"],
]


def call(words: str, by: str = "call") -> str:
    return f"return redis.{by}({', '.join(repr(word) for word in words.split())})"


FILL: list[Line] = ["SET text hello", "RPUSH list c a b"]


@each_protocol_at_length
@each(COMMANDS)
def test_the_commands_of_scripts_answer_as_in_valkey(
    server: Server, peer: Server, protocol: int, row: list[Line]
) -> None:
    assert_alike(server, peer, protocol, row)


@each_protocol_at_length
@each(HEADERS)
def test_headers_of_scripts_are_read_as_in_valkey(server: Server, peer: Server, protocol: int, row: str) -> None:
    by_eval = [*FILL, script(row), script(row, "text", keys=1), ["EVAL_RO", row, 0], ["SCRIPT", "EXISTS", digest(row)]]
    loaded: list[Line] = [*FILL, ["SCRIPT", "LOAD", row], ["EVALSHA", digest(row), 0], ["EVALSHA_RO", digest(row), 0]]
    for lines in (by_eval, loaded):
        assert_alike(server, peer, protocol, [*lines, "EXISTS x"])


@each_protocol_at_length
@pytest.mark.parametrize("words", REFUSED + ALLOWED + BLOCKING)
def test_a_command_is_refused_or_allowed_in_scripts_as_in_valkey(
    server: Server, peer: Server, protocol: int, words: str
) -> None:
    for by in ("call", "pcall"):
        lines = [*FILL, script(call(words, by)), "PING", "GET text", "EXISTS x y list text", "DBSIZE"]
        assert_alike(server, peer, protocol, lines)


@each_protocol_at_length
@pytest.mark.parametrize("words", READ_ONLY)
def test_a_script_that_may_only_read_is_refused_what_writes(
    server: Server, peer: Server, protocol: int, words: str
) -> None:
    text = call(words)
    reading: list[Line] = [
        ["EVAL_RO", text, 0],
        script(f"#!lua flags=no-writes\n{text}"),
        ["EVALSHA_RO", digest(text), 0],
    ]
    for line in reading:
        lines: list[Line] = [*FILL, ["SCRIPT", "LOAD", text], line, "GET text", "LLEN list", "DBSIZE"]
        assert_alike(server, peer, protocol, lines)


PLAYS: dict[str, list[Line]] = {
    "a database that is selected": [
        *["SELECT 3", "SET k three", "SELECT 0", "SET k zero"],
        script("redis.call('select', 3) return redis.call('get', 'k')"),
        *["GET k", script("return redis.call('get', 'k')")],
        *[script("redis.call('select', 3) redis.call('set', 'k', 'new') error('x')"), "GET k", "SELECT 3", "GET k"],
        script("redis.call('select', 99)"),
    ],
    "a transaction": [
        *["MULTI", script("return redis.call('incr', KEYS[1])", "n", keys=1), "GET n", "EVALSHA x 0", "EXEC"],
        *["MULTI", "EVAL 'return return' 0", "EXEC", "MULTI", "EVAL", "EXEC"],
        *["MULTI", "SCRIPT LOAD 'return 1'", f"EVALSHA {ONE} 0", "SCRIPT FLUSH", f"EVALSHA {ONE} 0", "EXEC"],
    ],
    "a script in a transaction selects": [
        *["MULTI", script("return redis.call('select', 4)"), "SET k 1", "EXEC", "GET k", "SELECT 4", "GET k"],
    ],
    "a watched key that a script writes": [
        *["a: WATCH k", script("redis.call('set', 'k', 1)"), "a: MULTI", "a: PING", "a: EXEC"],
        *["a: WATCH k", "b: EVAL \"redis.call('set', 'k', 1)\" 0", "a: MULTI", "a: PING", "a: EXEC"],
    ],
    "a watched key that a script reads": [
        *["a: WATCH k", "b: EVAL \"redis.call('get', 'k')\" 0", "a: MULTI", "a: PING", "a: EXEC"],
    ],
    "a watched key of another database": [
        *["a: WATCH k", "b: EVAL \"redis.call('select', 1) redis.call('set', 'k', 1)\" 0", "a: MULTI", "a: EXEC"],
    ],
    "a script that fails keeps what it wrote": [
        script("redis.call('set', 'a', 1) redis.call('rpush', 'l', 1, 2) error('x')"),
        *["GET a", "LRANGE l 0 -1", script("redis.call('set', 'a', 2) redis.call('incr', 'l') return 1"), "GET a"],
    ],
    "keys that are computed": [
        script("for n = 1, 10 do redis.call('set', 'k' .. n, n) end return redis.call('mget', 'k1', 'k10', 'k11')"),
        *[
            "DBSIZE",
            script("return #redis.call('keys', 'k*')"),
            script("return redis.call('del', unpack(KEYS))", keys=0),
        ],
    ],
    "a key that expires does not do so within a script": [
        script(
            "redis.call('set', 'k', 'v', 'px', 30) local t = os.clock() while os.clock() < t + 0.1 do end "
            "return {redis.call('get', 'k'), redis.call('exists', 'k'), redis.call('pttl', 'k')}"
        ),
        *["GET k", "EXISTS k"],
    ],
    "the time does not go on within a script": [
        script(
            "local a = redis.call('time') local t = os.clock() while os.clock() < t + 0.05 do end "
            "local b = redis.call('time') return a[1] == b[1] and a[2] == b[2]"
        ),
    ],
    "a key with a time in the past": [
        script("redis.call('set', 'k', 1) redis.call('pexpireat', 'k', 1) return redis.call('exists', 'k')"),
        script("return redis.call('set', 'k', 1, 'px', -1)"),
    ],
    "the largest number of arguments": [
        script("local t = {} for n = 1, 7000 do t[n] = n end return redis.call('rpush', 'l', unpack(t))"),
        "LLEN l",
    ],
    "a reply that is not taken": [script("redis.call('get', 'k') redis.pcall('incr', 'x')"), "GET x"],
    "messages": [
        "a: SUBSCRIBE c",
        "b: EVAL \"return {redis.call('publish', 'c', 'x'), redis.call('pubsub', 'numsub', 'c')}\" 0",
    ],
}


@each_protocol_at_length
@each(PLAYS)
def test_scripts_and_other_commands_play_together_as_in_valkey(
    server: Server, peer: Server, protocol: int, row: list[Line]
) -> None:
    assert_alike(server, peer, protocol, row)
