"""Writes commands.json: command lines and replies, by hand and at random, and what the reference finds in them."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "tests"), str(HERE.parent.parent / "tests")]

import positions  # noqa: E402
from resp import Failure, Items, Map, Reply, Simple  # noqa: E402
from rules import Rule, expand  # noqa: E402
from table import Refused, Row, Table  # noqa: E402

FILE = HERE / "commands.json"
TABLE = Table()
LONG = "0123456789abcdef0123456789abcdef"
TYPES = ["strings", "hashes", "lists", "streams"]
RANDOM_CASES = 120

LINES = f"""
GET k|get k|GeT k|GET|GET a b|SET k v|set k v ex 10 nx|SET k v GET KEEPTTL|SET k v EX|SET k|SET EX EX EX EX
SET GET v|SET k v IFEQ w|SET k v ex 10 ifne w get|SET k v IFDEQ 00|SET k v NX IFEQ|SET k v one two GET
SETNX k v|SETNX k v w|SETEX k 10 v|PSETEX k 10 v|MSET a 1 b 2|MSET a 1 b|MSET|MSETNX a 1
MSETEX 2 a 1 b 2 EX 10|MSETEX 2 a 1 b|MSETEX x a 1|MSETEX 0|MSETEX 0 EX 10|MSETEX 1 a 1|MSETEX -1 a 1|MSETEX 01 a 1
MSETEX 999999999 a 1|MSETEX 1000000000 a 1|MSETEX 1 1 1|MSETEX 0000000001 a 1
GETSET k v|GETEX k EX 10|GETEX|GETDEL k|MGET a b c|MGET
APPEND k v|GETRANGE k 0 1|SUBSTR k 0 1|SETRANGE k 0 v|GETBIT k 1|SETBIT k 1 1|BITFIELD k|BITFIELD_RO k|strlen k
BITCOUNT k|BITPOS k 1|BITOP AND d a b|LCS a b|DELIFEQ k v|DELEX k|DIGEST k|APPEND|INCR k|INCRBYFLOAT k 1.5
HSET k f v g w|HSET k f v g|HSET k f|HMSET k f v|HSETNX k f v|HSETEX k FIELDS 2 f v g w|HSETEX k FNX EX 10 FIELDS 1 f v
HSETEX k FIELDS 2 f v|HSETEX k FIELDS 1 FIELDS v|HSETEX k fields 1 f v FIELDS 1 g w|HSETEX k|HGET k f|HMGET k f g
HGETDEL k FIELDS 1 f|HGETEX k EX 1 FIELDS 1 f|HVALS k|HGETALL k|HSCAN k 0|HSCAN k 0 MATCH NOVALUES COUNT 10
HSCAN k 0 novalues|HRANDFIELD k|HRANDFIELD k 2|HRANDFIELD k 2 WITHVALUES|HSTRLEN k f|HINCRBY k f 1
LPUSH k a b|RPUSH k|LPUSHX k a|RPUSHX k a|LSET k 0 v|LINSERT k BEFORE pivot v|LINSERT k BEFORE {LONG} v
LINSERT k BEFORE {LONG[1:]} v|LINSERT k BEFORE {LONG}|LINDEX k 0|LRANGE k 0 -1|LPOP k|LPOP k 5|RPOP k
LMPOP 2 a b LEFT|LMPOP 2 a|BLMPOP 1 2 a b LEFT COUNT 3|BLPOP a b 1|BRPOP a 1|LMOVE a b LEFT RIGHT
BLMOVE a b LEFT RIGHT 1
LMOVEM a b LEFT RIGHT COUNT 2|BLMOVEM a b|RPOPLPUSH a b|BRPOPLPUSH a b 1|LREM k 0 v|LPOS k v
SORT k|SORT k BY w|SORT k GET p|SORT k by w get p|SORT k LIMIT 0 5 ALPHA STORE d|SORT k LIMIT 0
SORT_RO k GET p|SORT_RO k STORE d
XADD k * f v g w|XADD k NOMKSTREAM MAXLEN ~ 1000 LIMIT 10 * f v|XADD k MINID = 1 5-* f v|XADD k maxlen 9 77 MAXLEN v
XADD k 5-5 f v|XADD k 5- f v|XADD k -5 f v|XADD k 5-x f v|XADD k *-1 f v|XADD k ** f v|XADD k 5*6 f v|XADD k 5-** f v
XADD k * f|XADD k *|XADD k FUTURE * f v|XADD k IDMP a b * f v|XADD k MAXLEN * f v|XADD k MAXLEN|XADD
XRANGE k - +|XREVRANGE k + - COUNT 1|XREAD COUNT 5 STREAMS a b 0 0|XREADGROUP GROUP g me STREAMS a >|XCLAIM k g me 0 1
XAUTOCLAIM k g me 0 0|EXEC|MULTI|DEL a b|PING|OBJECT ENCODING k|EVAL script 1 a b|HIMPORT k
FT.SEARCH index query|VADD k v
"""

BYTES: list[list[Rule]] = [
    [{"text": "SET"}, {"hex": "00ff80"}, {"hex": "000102"}],
    [{"text": "GET"}, {"text": ""}],
    [{"text": ""}],
    [{"text": "GET\0"}, {"text": "k"}],
    [{"hex": "e7e5f4"}, {"text": "k"}],
    [{"repeat": {"text": "GET"}, "size": 1000}, {"text": "k"}],
    [{"text": "SET"}, {"text": "k"}, {"text": "v"}, {"repeat": {"text": "GET"}, "size": 1000}],
    [{"text": "SET"}, {"text": "k"}, {"text": "v"}, {"text": "GET\0"}],
    [{"text": "LINSERT"}, {"text": "k"}, {"text": "AFTER"}, {"hex": "000102"}, {"text": "v"}],
    [{"text": "LINSERT"}, {"text": "k"}, {"text": "AFTER"}, {"hex": "0001"}, {"text": "v"}],
    [{"text": "XADD"}, {"text": "k"}, {"hex": "d9a1"}, {"text": "f"}, {"text": "v"}],
    [{"text": "XADD"}, {"text": "k"}, {"text": "5\n"}, {"text": "f"}, {"text": "v"}],
    [{"text": "MSETEX"}, {"hex": "d9a1"}, {"text": "a"}, {"text": "1"}],
    [{"text": "MSETEX"}, {"text": "1\n"}, {"text": "a"}, {"text": "1"}],
]

POSITIONS = """
DEL a b c|PING|COPY a b REPLACE|OBJECT ENCODING k|object Freq k|OBJECT HELP|OBJECT|XGROUP CREATE k g 0|MEMORY USAGE k
EVAL s 2 a b c|EVAL s 0|EVAL s 3 a b|EVAL s x a|EVAL s -1 a|EVAL s 01 a|ZUNIONSTORE d 2 a b WEIGHTS 1 2|ZINTER 2 a b
BZMPOP 1 2 a b MIN|SINTERCARD 2 a b LIMIT 1|XREAD COUNT 5 STREAMS a b 0 0|xread streams a 0|XREAD COUNT 5|XREAD STREAMS
XREADGROUP GROUP STREAMS me STREAMS a >|GEORADIUS a 1 2 3 km STORE d|GEORADIUSBYMEMBER a m 3 km ASC STOREDIST d
GEORADIUS a 1 2 3 km STORE|MIGRATE host 1 a 0 9
MIGRATE host 1  0 9 COPY KEYS a b|BLPOP a b 1|BLPOP a
PFMERGE d a b|MSETEX 2 a 1 b 2|GETRANGE a 0 1|SET a b|MSET a 1 b|MGET
ZUNION 999999999 a|FT.SEARCH index query|DIGEST k|PUBLISH channel message|BITOP AND d a b|LCS a b
"""

REPLIES: list[tuple[str, Any]] = [
    ("GET k", "v1"),
    ("GET k", None),
    ("GET k", {"error": "WRONGTYPE"}),
    ("GET k", {"simple": "QUEUED"}),
    ("GET k", 5),
    ("GET k", ["v1"]),
    ("GET", "v1"),
    ("SET k v GET", "v1"),
    ("SET k v", "v1"),
    ("SET k v NX", {"simple": "OK"}),
    ("GETEX k EX 5", "v1"),
    ("MGET a b c", ["v1", None, "v3"]),
    ("MGET a b", ["v1", "v2", "v3"]),
    ("MGET a b", ["v1"]),
    ("MGET a b", "v1"),
    ("MGET a b", {"error": "ERR"}),
    ("MGET a b", {"set": ["v1", "v2"]}),
    ("INCR k", "5"),
    ("DEL k", 1),
    ("FT.SEARCH i", ["v1"]),
    ("HGET k f", "v1"),
    ("HMGET k f g", ["v1", None]),
    ("HVALS k", ["v1", "v2"]),
    ("HVALS k", []),
    ("HGETALL k", ["f", "v1", "g", "v2"]),
    ("HGETALL k", {"map": [["f", "v1"], ["g", "v2"]]}),
    ("HGETALL k", ["f", "v1", "g"]),
    ("HGETALL k", ["f"]),
    ("HGETALL k", []),
    ("HGETALL k", {"map": []}),
    ("HGETALL k", "v1"),
    ("HSCAN k 0", ["0", ["f", "v1", "g", "v2"]]),
    ("HSCAN k 0", ["0"]),
    ("HSCAN k 0", "v1"),
    ("HSCAN k 0 NOVALUES", ["0", ["f", "g"]]),
    ("HRANDFIELD k", "f"),
    ("HRANDFIELD k 2 WITHVALUES", ["f", "v1", "g", "v2"]),
    ("HRANDFIELD k 2 WITHVALUES", [["f", "v1"], ["g", "v2"]]),
    ("HRANDFIELD k 2 WITHVALUES", [["f", "v1"], "g", ["h"], ["i", "v2", "x"], ["j", "v3"]]),
    ("HRANDFIELD k 2 WITHVALUES", ["f", ["g", "v1"]]),
    ("LPOP k", "v1"),
    ("LPOP k 2", ["v1", "v2"]),
    ("LPOP k 2", None),
    ("LRANGE k 0 -1", ["v1", ["v2"], {"map": [["f", "v3"]]}, "v4"]),
    ("LMPOP 2 a b LEFT", ["b", ["v1", "v2"]]),
    ("LMPOP 2 a b LEFT", [5, ["v1"]]),
    ("LMPOP 2 a b LEFT", None),
    ("BLPOP a b 1", ["b", "v1"]),
    ("BLPOP a b 1", ["b"]),
    ("BLPOP a b 1", [None, "v1"]),
    ("LMOVE a b LEFT RIGHT", "v1"),
    ("XRANGE k - +", [["1-0", ["f", "v1", "g", "v2"]], ["2-0", ["f", "v3"]]]),
    ("XRANGE k - +", [["1-0", None], ["2-0", ["f", "v1"], 5, 1]]),
    ("XCLAIM k g me 0 1 JUSTID", ["1-0", "2-0"]),
    ("XAUTOCLAIM k g me 0 0", ["0-0", [["1-0", ["f", "v1"]]], ["2-0"]]),
    ("XREAD STREAMS a b 0 0", [["a", [["1-0", ["f", "v1"]]]], ["b", [["2-0", ["f", "v2"]]]]]),
    ("XREAD STREAMS a b 0 0", {"map": [["a", [["1-0", ["f", "v1"]]]], ["b", [["2-0", ["f", "v2"]]]]]}),
    ("XREAD STREAMS a 0", None),
]


def lines(text: str) -> Iterator[list[str]]:
    for line in text.split("\n"):
        yield from (command.split(" ") for command in line.split("|") if command)


def random_lines() -> Iterator[list[str]]:
    """Words of a row's own and of others, in any order."""
    chance = random.Random(9)
    rows: dict[str, Row] = TABLE.data["commands"]
    for _ in range(RANDOM_CASES):
        name = chance.choice(list(rows))
        options = list(rows[name].get("options", {}))
        pool = ["k", "v", "1", "2", "*", "=", "5-1", *options, *map(str.lower, options)]
        yield [name, *chance.choices(pool, k=chance.randint(0, 8))]


def rule_of(argument: str | Rule) -> Rule:
    return {"text": argument} if isinstance(argument, str) else argument


def command_case(arguments: list[str] | list[Rule]) -> Row:
    """What the pattern finds, and why the command is refused, for each type of values for which it is."""
    args = [expand(rule_of(argument)) for argument in arguments]
    found = TABLE.arguments(args)
    case: Row = {"arguments": arguments, "fits": found is not None}
    if found:
        case |= {"keys": found.keys, "values": found.values, "compared": found.compared}
        case = {name: value for name, value in case.items() if value != []}
    refused = {}
    for kind in TYPES:
        try:
            Table({kind}).request(args, lambda value, _key: value)
        except Refused as refusal:
            refused[kind] = str(refusal)
    return case | ({"refused": refused} if refused else {})


def position_case(arguments: list[str]) -> Row:
    return {"arguments": arguments, "keys": positions.keys([argument.encode() for argument in arguments])}


def reply_of(written: Any) -> Reply:
    """A reply as the vectors write it down."""
    match written:
        case str(text):
            return text.encode()
        case list(items):
            return [reply_of(item) for item in items]
        case {"simple": text}:
            return Simple(text.encode())
        case {"error": text}:
            return Failure(text.encode())
        case {"map": pairs}:
            return Map([(reply_of(first), reply_of(second)) for first, second in pairs])
        case {"set": items}:
            return Items(b"~", [reply_of(item) for item in items])
    number: int | None = written
    return number


def reply_case(line: str, written: Any) -> Row:
    """Each value in the reply, in order, with its key."""
    values: list[list[str | None]] = []

    def decode(value: bytes, key: bytes | None) -> bytes:
        values.append([value.decode(), None if key is None else key.decode()])
        return value

    Table(set(TYPES)).reply([word.encode() for word in line.split(" ")], reply_of(written), decode)
    return {"arguments": line.split(" "), "reply": written, "values": values}


def document() -> str:
    commands: list[Any] = [*lines(LINES), *BYTES, *random_lines()]
    sections = {
        "commands": [command_case(arguments) for arguments in commands],
        "positions": [position_case(arguments) for arguments in lines(POSITIONS)],
        "replies": [reply_case(*case) for case in REPLIES],
    }
    parts = [
        f"  {json.dumps(name)}: [\n" + ",\n".join(f"    {json.dumps(case)}" for case in cases) + "\n  ]"
        for name, cases in sections.items()
    ]
    return '{\n  "version": 1,\n' + ",\n".join(parts) + "\n}\n"


def main() -> None:
    FILE.write_text(document())


if __name__ == "__main__":
    main()
