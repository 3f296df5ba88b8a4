"""The text protocol of memcached, byte by byte: each conversation holds with a real memcached, and with snugly."""

from __future__ import annotations

import re
import time

import pytest

import memcached
from memcached import TOO_LARGE, Cache, Client, Step
from waiting import until

LONG = b"k" * 250
TOO_LONG = b"k" * 251
FORMAT = b"CLIENT_ERROR bad command line format\r\n"
NOT_A_NUMBER = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
BAD_DELTA = b"CLIENT_ERROR invalid numeric delta argument\r\n"
BAD_TIME = b"CLIENT_ERROR invalid exptime argument\r\n"
BAD_DELETE = b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
BAD_CHUNK = b"CLIENT_ERROR bad data chunk\r\n"
LARGE = b"SERVER_ERROR object too large for cache\r\n"
MAXIMUM = b"18446744073709551615"
# What memcached has stored may be less: in a number from here on it looks for a minus sign, and behind its end.
HALF = 1 << 63

CONVERSATIONS: dict[str, list[Step]] = {
    # Reading and writing.
    "a value is got as it was set, with its flags": [
        (b"set k 5 0 3\r\nabc\r\n", b"STORED\r\n"),
        (b"get k\r\n", b"VALUE k 5 3\r\nabc\r\nEND\r\n"),
    ],
    "a key that is not there is not in the reply": [(b"get k\r\n", b"END\r\n"), (b"gets k\r\n", b"END\r\n")],
    "an empty value is one": [
        (b"set k 0 0 0\r\n\r\n", b"STORED\r\n"),
        (b"get k\r\n", b"VALUE k 0 0\r\n\r\nEND\r\n"),
    ],
    "several keys are got in the order in which they are asked for, twice if asked twice": [
        (b"set a 1 0 1\r\n1\r\nset b 2 0 1\r\n2\r\n", b"STORED\r\nSTORED\r\n"),
        (b"get b none a b\r\n", b"VALUE b 2 1\r\n2\r\nVALUE a 1 1\r\n1\r\nVALUE b 2 1\r\n2\r\nEND\r\n"),
    ],
    "flags have 32 bits": [
        (b"set k 4294967295 0 1\r\na\r\n", b"STORED\r\n"),
        (b"get k\r\n", b"VALUE k 4294967295 1\r\na\r\nEND\r\n"),
        (b"set k 2147483648 0 1\r\na\r\n", b"STORED\r\n"),
        (b"get k\r\n", b"VALUE k 2147483648 1\r\na\r\nEND\r\n"),
    ],
    "a value that contains commands is not read as commands": [
        (b"set k 0 0 25\r\nset other 0 0 1\r\nx\r\nget k\r\n", b"STORED\r\n"),
        (b"get k\r\n", b"VALUE k 0 25\r\nset other 0 0 1\r\nx\r\nget k\r\nEND\r\n"),
        (b"get other\r\n", b"END\r\n"),
    ],
    "all bytes are kept": [
        (b"set k 0 0 256\r\n" + bytes(range(256)) + b"\r\n", b"STORED\r\n"),
        (b"get k\r\n", b"VALUE k 0 256\r\n" + bytes(range(256)) + b"\r\nEND\r\n"),
    ],
    "add stores what is not there": [
        (b"add k 1 0 1\r\na\r\nadd k 2 0 1\r\nb\r\n", b"STORED\r\nNOT_STORED\r\n"),
        (b"get k\r\n", b"VALUE k 1 1\r\na\r\nEND\r\n"),
    ],
    "replace stores what is there": [
        (b"replace k 1 0 1\r\na\r\n", b"NOT_STORED\r\n"),
        (b"set k 1 0 1\r\na\r\nreplace k 2 0 2\r\nbb\r\n", b"STORED\r\nSTORED\r\n"),
        (b"get k\r\n", b"VALUE k 2 2\r\nbb\r\nEND\r\n"),
    ],
    "append and prepend keep flags and expiry": [
        (b"set k 7 100 1\r\nb\r\n", b"STORED\r\n"),
        (b"append k 9 5 1\r\nc\r\nprepend k 9 -1 1\r\na\r\n", b"STORED\r\nSTORED\r\n"),
        (b"get k\r\nmg k t\r\n", b"VALUE k 7 3\r\nabc\r\nEND\r\nHD t100\r\n"),
    ],
    "append and prepend store nothing where nothing is": [
        (b"append k 0 0 1\r\na\r\nprepend k 0 0 1\r\na\r\nget k\r\n", b"NOT_STORED\r\nNOT_STORED\r\nEND\r\n"),
    ],
    # Compare and swap.
    "cas stores what nobody has changed": [
        (b"set k 0 0 1\r\na\r\ngets k\r\n", b"STORED\r\nVALUE k 0 1 <#first>\r\na\r\nEND\r\n"),
        (b"cas k 3 0 1 <#first>\r\nb\r\n", b"STORED\r\n"),
        (b"cas k 0 0 1 <#first>\r\nc\r\n", b"EXISTS\r\n"),
        (b"gets k\r\n", b"VALUE k 3 1 <#second>\r\nb\r\nEND\r\n"),
        (b"cas none 0 0 1 <#second>\r\nc\r\n", b"NOT_FOUND\r\n"),
        (b"cas k 0 0 1 0\r\nc\r\n", b"EXISTS\r\n"),
    ],
    "each write of a key has a number of its own": [
        (b"set k 0 0 1\r\n1\r\ngets k\r\n", b"STORED\r\nVALUE k 0 1 <#k>\r\n1\r\nEND\r\n"),
        (b"set k 0 0 1\r\n1\r\ngets k\r\n", b"STORED\r\nVALUE k 0 1 <#set>\r\n1\r\nEND\r\n"),
        (b"append k 0 0 1\r\n1\r\ngets k\r\n", b"STORED\r\nVALUE k 0 2 <#append>\r\n11\r\nEND\r\n"),
        (b"incr k 1\r\ngets k\r\n", b"12\r\nVALUE k 0 2 <#incr>\r\n12\r\nEND\r\n"),
        (b"delete k\r\nadd k 0 0 1\r\n1\r\ngets k\r\n", b"DELETED\r\nSTORED\r\nVALUE k 0 1 <#add>\r\n1\r\nEND\r\n"),
    ],
    "reading and touching leave the number": [
        (b"set k 0 0 1\r\n1\r\ngets k\r\n", b"STORED\r\nVALUE k 0 1 <#k>\r\n1\r\nEND\r\n"),
        (
            b"touch k 100\r\nget k\r\ngats 0 k\r\n",
            b"TOUCHED\r\nVALUE k 0 1\r\n1\r\nEND\r\nVALUE k 0 1 <#k>\r\n1\r\nEND\r\n",
        ),
    ],
    # Deleting.
    "delete takes a key away once": [
        (b"set k 0 0 1\r\na\r\ndelete k\r\ndelete k\r\nget k\r\n", b"STORED\r\nDELETED\r\nNOT_FOUND\r\nEND\r\n"),
    ],
    "delete takes the zero of old clients and no other word": [
        (b"set k 0 0 1\r\na\r\n", b"STORED\r\n"),
        (b"delete k 5\r\ndelete k 0 x\r\ndelete k x\r\n", BAD_DELETE * 3),
        (b"delete k 0\r\n", b"DELETED\r\n"),
    ],
    "flush_all takes everything away, and later writes stay": [
        (b"set k 0 0 1\r\na\r\nflush_all\r\nget k\r\n", b"STORED\r\nOK\r\nEND\r\n"),
        (b"add k 0 0 1\r\nb\r\nget k\r\n", b"STORED\r\nVALUE k 0 1\r\nb\r\nEND\r\n"),
        (b"flush_all 0\r\nget k\r\n", b"OK\r\nEND\r\n"),
    ],
    "flush_all with a delay takes nothing away at once": [
        (b"set k 0 0 1\r\na\r\nflush_all 1000\r\nget k\r\n", b"STORED\r\nOK\r\nVALUE k 0 1\r\na\r\nEND\r\n"),
        (b"flush_all\r\nget k\r\n", b"OK\r\nEND\r\n"),
    ],
    "flush_all wants a number": [(b"flush_all x\r\n", BAD_TIME), (b"flush_all 0 x y\r\n", b"ERROR\r\n")],
    # Counting.
    "incr and decr answer the number": [
        (b"set n 9 0 2\r\n10\r\n", b"STORED\r\n"),
        (b"incr n 5\r\ndecr n 3\r\nincr n 0\r\n", b"15\r\n12\r\n12\r\n"),
        (b"get n\r\n", b"VALUE n 9 2\r\n12\r\nEND\r\n"),
    ],
    "incr and decr make no key": [(b"incr n 1\r\ndecr n 1\r\nget n\r\n", b"NOT_FOUND\r\nNOT_FOUND\r\nEND\r\n")],
    "decr ends at zero": [(b"set n 0 0 1\r\n5\r\ndecr n 3\r\ndecr n 3\r\n", b"STORED\r\n2\r\n0\r\n")],
    "incr begins again behind 64 bits": [
        (b"set n 0 0 19\r\n%d\r\nincr n %d\r\n" % (HALF - 1, HALF + 1), b"STORED\r\n0\r\n"),
        (b"set n 0 0 19\r\n%d\r\nincr n %d\r\n" % (HALF - 1, HALF), b"STORED\r\n%b\r\n" % MAXIMUM),
    ],
    "a number that gets longer is longer": [
        (b"set n 0 0 2\r\n99\r\nincr n 1\r\nget n\r\n", b"STORED\r\n100\r\nVALUE n 0 3\r\n100\r\nEND\r\n"),
    ],
    "a number that gets shorter keeps its length, with spaces behind it": [
        (b"set n 0 0 3\r\n100\r\ndecr n 1\r\nget n\r\n", b"STORED\r\n99\r\nVALUE n 0 3\r\n99 \r\nEND\r\n"),
        (b"decr n 95\r\nget n\r\n", b"4\r\nVALUE n 0 3\r\n4  \r\nEND\r\n"),
        (b"incr n 6\r\nget n\r\n", b"10\r\nVALUE n 0 3\r\n10 \r\nEND\r\n"),
        (b"set n 0 0 4\r\n0007\r\nincr n 1\r\nget n\r\n", b"STORED\r\n8\r\nVALUE n 0 4\r\n8   \r\nEND\r\n"),
    ],
    "spaces around a number and a plus are part of no number": [
        (b"set n 0 0 3\r\n 1 \r\nincr n 1\r\n", b"STORED\r\n2\r\n"),
        (b"set n 0 0 2\r\n+1\r\nincr n 1\r\n", b"STORED\r\n2\r\n"),
    ],
    "what is no number is not counted": [
        (b"set n 0 0 1\r\na\r\nincr n 1\r\ndecr n 1\r\n", b"STORED\r\n" + NOT_A_NUMBER * 2),
        (b"set n 0 0 0\r\n\r\nincr n 1\r\n", b"STORED\r\n" + NOT_A_NUMBER),
        (b"set n 0 0 2\r\n-1\r\nincr n 1\r\n", b"STORED\r\n" + NOT_A_NUMBER),
        (b"set n 0 0 3\r\n1.5\r\nincr n 1\r\n", b"STORED\r\n" + NOT_A_NUMBER),
        (b"set n 0 0 20\r\n18446744073709551616\r\nincr n 1\r\n", b"STORED\r\n" + NOT_A_NUMBER),
        (b"get n\r\n", b"VALUE n 0 20\r\n18446744073709551616\r\nEND\r\n"),
    ],
    "a difference is a number of 64 bits": [
        (b"incr n x\r\nincr n -1\r\nincr n 1x\r\nincr n 18446744073709551616\r\ndecr n x\r\n", BAD_DELTA * 5),
        (b"incr n\r\ndecr n\r\nincr\r\n", b"ERROR\r\n" * 3),
    ],
    "counting keeps flags and expiry": [
        (b"set n 9 100 1\r\n1\r\nincr n 99\r\n", b"STORED\r\n100\r\n"),
        (b"mg n t f v\r\n", b"VA 3 t100 f9\r\n100\r\n"),
    ],
    # Time to live.
    "zero is for ever, and set forgets an expiry": [
        (b"set k 0 100 1\r\na\r\nmg k t\r\n", b"STORED\r\nHD t100\r\n"),
        (b"set k 0 0 1\r\na\r\nmg k t\r\n", b"STORED\r\nHD t-1\r\n"),
    ],
    "a negative time has passed": [
        (b"set k 0 -1 1\r\na\r\nget k\r\n", b"STORED\r\nEND\r\n"),
        (b"set k 0 0 1\r\na\r\ntouch k -1\r\nget k\r\n", b"STORED\r\nTOUCHED\r\nEND\r\n"),
        (b"set k 0 0 1\r\na\r\ngat -1 k\r\nget k\r\n", b"STORED\r\nVALUE k 0 1\r\na\r\nEND\r\nEND\r\n"),
    ],
    "what has expired is not there for any request": [
        (b"set k 0 -1 1\r\n1\r\nadd k 0 -1 1\r\n1\r\nadd k 0 -1 1\r\n1\r\n", b"STORED\r\n" * 3),
        (b"replace k 0 0 1\r\n1\r\nappend k 0 0 1\r\n1\r\n", b"NOT_STORED\r\n" * 2),
        (b"incr k 1\r\ndelete k\r\ntouch k 0\r\ncas k 0 0 1 1\r\n1\r\n", b"NOT_FOUND\r\n" * 4),
        (b"gets k\r\ngat 0 k\r\n", b"END\r\nEND\r\n"),
    ],
    "thirty days are seconds, and more is a date": [
        (b"set k 0 2592000 1\r\na\r\nmg k t\r\n", b"STORED\r\nHD t2592000\r\n"),
        (b"set k 0 2592001 1\r\na\r\nget k\r\n", b"STORED\r\nEND\r\n"),
        (b"set k 0 0 1\r\na\r\ntouch k 2592001\r\nget k\r\n", b"STORED\r\nTOUCHED\r\nEND\r\n"),
    ],
    "touch, gat and gats change the time": [
        (b"set k 3 0 1\r\na\r\ntouch k 100\r\nmg k t\r\n", b"STORED\r\nTOUCHED\r\nHD t100\r\n"),
        (b"gat 200 none k\r\nmg k t\r\n", b"VALUE k 3 1\r\na\r\nEND\r\nHD t200\r\n"),
        (b"gats 0 k\r\nmg k t c\r\n", b"VALUE k 3 1 <#k>\r\na\r\nEND\r\nHD t-1 c<#k>\r\n"),
        (b"touch none 0\r\n", b"NOT_FOUND\r\n"),
    ],
    "a time is a number": [
        (b"touch k x\r\ngat x k\r\ngats x\r\n", BAD_TIME * 3),
        (b"touch k\r\ngat\r\ntouch k 0 0 0\r\n", b"ERROR\r\n" * 3),
    ],
    # Requests that want no reply.
    "noreply is heard by all that change something": [
        (b"set a 1 0 1 noreply\r\n1\r\nadd b 0 0 1 noreply\r\n2\r\nadd b 0 0 1 noreply\r\n3\r\n", b""),
        (b"replace a 2 0 1 noreply\r\n2\r\nappend a 0 0 1 noreply\r\n3\r\nprepend a 0 0 1 noreply\r\n1\r\n", b""),
        (b"incr b 8 noreply\r\ndecr a 3 noreply\r\ntouch a 100 noreply\r\n", b""),
        (b"gets a b\r\n", b"VALUE a 2 3 <#a>\r\n120\r\nVALUE b 0 2 <#b>\r\n10\r\nEND\r\n"),
        (b"cas a 0 0 1 1 noreply\r\n0\r\ncas a 3 0 1 <#a> noreply\r\n9\r\ndelete b noreply\r\n", b""),
        (b"get a b\r\n", b"VALUE a 3 1\r\n9\r\nEND\r\n"),
        (b"delete a 0 noreply\r\nverbosity 1 noreply\r\nflush_all noreply\r\nflush_all 0 noreply\r\n", b""),
        (b"get a\r\n", b"END\r\n"),
    ],
    "noreply hides that something was not there or was wrong": [
        (b"delete k noreply\r\nincr k 1 noreply\r\nincr k x noreply\r\ntouch k 0 noreply\r\n", b""),
        (b"delete k 5 noreply\r\ntouch k x noreply\r\nreplace k 0 0 1 noreply\r\na\r\n", b""),
        (b"set k 0 0 x noreply\r\n", b""),
        (b"set k 0 0 %d noreply\r\n" % TOO_LARGE + bytes(TOO_LARGE) + b"\r\n", b""),
    ],
    "noreply in capitals is not heard": [(b"set k 0 0 1 NOREPLY\r\na\r\n", b"STORED\r\n")],
    "get takes noreply for a key": [
        (b"set noreply 0 0 1\r\na\r\nget k noreply\r\n", b"STORED\r\nVALUE noreply 0 1\r\na\r\nEND\r\n"),
    ],
    # Words of the protocol.
    "what is unknown is an error": [
        (b"bogus\r\n\r\n \r\nGET k\r\nset\r\n\n", b"ERROR\r\n" * 6),
        (b"get\r\ngets\r\nget \r\nset k 0 0\r\ndelete\r\nslabs\r\n", b"ERROR\r\n" * 6),
    ],
    "a line may end without a carriage return, and a value must not": [
        (b"set k 0 0 1\na\r\nget k\n", b"STORED\r\nVALUE k 0 1\r\na\r\nEND\r\n"),
    ],
    "spaces may be many": [
        (b"set  k  0  0   1 \r\na\r\n get   k  \r\n", b"STORED\r\nVALUE k 0 1\r\na\r\nEND\r\n"),
    ],
    "keys have 250 bytes at most": [
        (b"set %b 0 0 1\r\na\r\n" % LONG, b"STORED\r\n"),
        (b"get %b\r\n" % LONG, b"VALUE %b 0 1\r\na\r\nEND\r\n" % LONG),
        (b"get %b\r\n" % TOO_LONG, FORMAT),
        (b"get a %b\r\n" % TOO_LONG, FORMAT),
        (b"gat 0 %b\r\n" % TOO_LONG, FORMAT),
        (b"delete %b\r\n" % TOO_LONG, FORMAT),
        (b"incr %b 1\r\n" % TOO_LONG, FORMAT),
        (b"touch %b 1\r\n" % TOO_LONG, FORMAT),
    ],
    "keys may have any bytes but spaces and ends of lines": [
        (b"set k\x01\x7f\xff 0 0 1\r\na\r\n", b"STORED\r\n"),
        (b"get k\x01\x7f\xff\r\n", b"VALUE k\x01\x7f\xff 0 1\r\na\r\nEND\r\n"),
        (b"set k\tl 0 0 1\r\na\r\n", b"STORED\r\n"),
        (b"get k\tl k\r\n", b"VALUE k\tl 0 1\r\na\r\nEND\r\n"),
    ],
    "verbosity is heard and changes nothing": [
        (b"verbosity 1\r\nverbosity 0\r\n", b"OK\r\nOK\r\n"),
        (b"verbosity\r\n", b"ERROR\r\n"),
        (b"verbosity x\r\n", FORMAT),
    ],
    "cache_memlimit wants megabytes, of which it says when they are too few": [
        (b"cache_memlimit\r\ncache_memlimit x\r\n", b"ERROR\r\nERROR\r\n"),
        (b"cache_memlimit 1\r\n", b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n"),
    ],
    # Lengths that are wrong, and bodies.
    "a value with another end is refused, and leaves the one before": [
        (b"set k 0 0 3\r\nabcx\nget k\r\n", BAD_CHUNK + b"END\r\n"),
        (b"set k 0 0 3\r\nold\r\nset k 0 0 3\r\nnew\n\n", b"STORED\r\n" + BAD_CHUNK),
        (b"get k\r\n", b"VALUE k 0 3\r\nold\r\nEND\r\n"),
    ],
    "a length is a number": [
        (b"set k 0 0 x\r\nset k 0 0 -1\r\nset k 0 0 3x\r\n", FORMAT * 3),
        (b"get k\r\n", b"END\r\n"),
    ],
    "a value that is too large is read over, and takes the one before away": [
        (b"set k 0 0 1\r\na\r\n", b"STORED\r\n"),
        (b"add k 0 0 %d\r\n" % TOO_LARGE + b"x" * TOO_LARGE + b"\r\n", LARGE),
        (b"append k 0 0 %d\r\n" % TOO_LARGE + b"x" * TOO_LARGE + b"\r\n", LARGE),
        (b"cas k 0 0 %d 1\r\n" % TOO_LARGE + b"x" * TOO_LARGE + b"\r\n", LARGE),
        (b"get k\r\n", b"VALUE k 0 1\r\na\r\nEND\r\n"),
        (b"set k 0 0 %d\r\n" % TOO_LARGE + (b"get k\r\n" * TOO_LARGE)[:TOO_LARGE] + b"\r\n", LARGE),
        (b"get k\r\n", b"END\r\n"),
    ],
    "a value that gets too large is not stored": [
        (b"set k 0 0 600000\r\n" + b"x" * 600000 + b"\r\n", b"STORED\r\n"),
        (b"append k 0 0 600000\r\n" + b"x" * 600000 + b"\r\n", b"NOT_STORED\r\n"),
        (b"mg k s\r\n", b"HD s600000\r\n"),
    ],
}
# Requests that snugly answers otherwise on purpose: what memcached answers, and what snugly does. What a refused write
# brings as its value, memcached takes for requests, and snugly never does.
DIFFERENT = {
    "a value is longer than it says": (b"set k 0 0 3\r\nabcd\r\n", BAD_CHUNK + b"ERROR\r\n", BAD_CHUNK),
    "a value is much longer": (b"set k 0 0 3\r\nabcdeget k\r\n", BAD_CHUNK + b"END\r\n", BAD_CHUNK),
    "flags are no number": (b"set k x 0 7\r\nget x y\r\n", FORMAT + b"END\r\n", FORMAT),
    "flags are negative": (b"set k -1 0 5\r\nget k\r\n", FORMAT + b"END\r\n", FORMAT),
    "flags have more than 32 bits": (b"set l 4294967296 0 1\r\na\r\n", b"STORED\r\n", FORMAT),
    "a time is no number": (b"set k 0 x 1\r\na\r\n", FORMAT + b"ERROR\r\n", FORMAT),
    "the number of cas is none": (b"cas k 0 0 1 x\r\na\r\n", FORMAT + b"ERROR\r\n", FORMAT),
    "the number of cas is negative": (b"cas k 0 0 1 -1\r\na\r\n", FORMAT + b"ERROR\r\n", FORMAT),
    "the number of cas is missing": (b"cas k 0 0 1\r\na\r\n", b"ERROR\r\n" * 2, b"ERROR\r\n"),
    "a write has too many words": (b"set k 0 0 1 noreply x\r\na\r\n", b"ERROR\r\n" * 2, b"ERROR\r\n"),
    "a key is too long": (b"set %b 0 0 1\r\na\r\n" % TOO_LONG, FORMAT + b"ERROR\r\n", FORMAT),
    "a key of cas is too long": (b"cas %b 0 0 1 1\r\na\r\n" % TOO_LONG, FORMAT + b"ERROR\r\n", FORMAT),
    "a key of ms is too long": (b"ms %b 1\r\na\r\n" % TOO_LONG, FORMAT + b"ERROR\r\n", FORMAT),
    "a value of ms is longer than it says": (b"ms k 3 q\r\nabcd\r\n", BAD_CHUNK + b"ERROR\r\n", BAD_CHUNK),
    "gat has no keys": (b"gat 0\r\n", b"END\r\n", b"ERROR\r\n"),
}
CLOSING = {"quit": b"quit\r\n", "quit with more words": b"quit now\r\n"}


@pytest.mark.parametrize("sentence", CONVERSATIONS)
def test_replies_are_byte_by_byte(cache: Cache, sentence: str) -> None:
    with cache.connect() as client:
        memcached.play(client, CONVERSATIONS[sentence])


@pytest.mark.parametrize("sentence", DIFFERENT)
def test_snugly_takes_no_value_of_a_refused_write_for_requests(cache: Cache, sentence: str) -> None:
    request, theirs, ours = DIFFERENT[sentence]
    with cache.connect() as client:
        assert client.ask(request) == (ours if cache.name == "snugly" else theirs)
        assert client.ask(b"get k\r\n") == b"END\r\n"


def test_a_request_in_two_pieces_is_answered_as_one(cache: Cache) -> None:
    memcached.play_in_pieces(cache, CONVERSATIONS)


@pytest.mark.parametrize("name", CLOSING)
def test_quit_closes_after_what_was_asked_before(cache: Cache, name: str) -> None:
    with cache.connect() as client:
        client.send(b"set k 0 0 1\r\na\r\nget k\r\n" + CLOSING[name] + b"get k\r\n")
        assert client.rest() == b"STORED\r\nVALUE k 0 1\r\na\r\nEND\r\n"


def test_a_thousand_requests_in_one_write_are_answered_in_order(cache: Cache) -> None:
    requests = [b"set k%d %d 0 %d\r\n%d\r\n" % (number, number, len(b"%d" % number), number) for number in range(500)]
    requests += [b"get k%d\r\n" % number for number in range(500)]
    expected = [b"STORED\r\n"] * 500
    expected += [
        b"VALUE k%d %d %d\r\n%d\r\nEND\r\n" % (number, number, len(b"%d" % number), number) for number in range(500)
    ]
    with cache.connect() as client:
        assert client.ask(b"".join(requests)) == b"".join(expected)


def test_a_request_for_thousands_of_keys_is_answered(cache: Cache) -> None:
    keys = [b"key:%d" % number for number in range(5_000)]
    with cache.connect() as client:
        assert client.ask(b"".join(b"set %b 0 0 1 noreply\r\nx\r\n" % key for key in keys)) == b""
        expected = b"".join(b"VALUE %b 0 1\r\nx\r\n" % key for key in keys) + b"END\r\n"
        assert client.ask(b"get " + b" ".join(keys) + b"\r\n") == expected


def test_a_client_that_goes_in_the_middle_of_a_value_stores_nothing(cache: Cache) -> None:
    with cache.connect() as client:
        client.send(b"set k 0 0 10\r\nabc")
    with cache.connect() as client:
        assert client.ask(b"get k\r\n") == b"END\r\n"


def test_the_version_is_one_line(cache: Cache) -> None:
    with cache.connect() as client:
        assert re.fullmatch(rb"VERSION [0-9]+\.[0-9]+\.[0-9]+\S*\r\n", client.ask(b"version\r\n"))


def stats(client: Client, of: bytes = b"") -> dict[bytes, bytes]:
    answer = client.ask(b"stats" + of + b"\r\n")
    assert answer.endswith(b"END\r\n")
    lines = answer.removesuffix(b"END\r\n").splitlines()
    assert all(line.startswith(b"STAT ") for line in lines)
    return {line.split()[1]: line.split(maxsplit=2)[2] for line in lines}


def test_stats_count_requests(cache: Cache) -> None:
    with cache.connect() as client:
        before = stats(client)
        client.ask(b"set k 0 0 1\r\n1\r\nget k none k\r\nincr k 1\r\ndelete k\r\ndelete k\r\ntouch none 0\r\n")
        after = stats(client)
        names = (b"cmd_set", b"cmd_get", b"get_hits", b"get_misses", b"incr_hits", b"delete_hits", b"delete_misses")
        grown = {name: int(after[name]) - int(before[name]) for name in (*names, b"cmd_touch", b"touch_misses")}
    assert list(grown.values()) == [1, 3, 2, 1, 1, 1, 1, 1, 1]


def test_stats_tell_what_clients_look_for(cache: Cache) -> None:
    names = (
        *(b"pid", b"uptime", b"time", b"version", b"pointer_size", b"curr_connections", b"total_connections"),
        *(b"curr_items", b"total_items", b"bytes", b"limit_maxbytes", b"evictions", b"threads"),
    )
    with cache.connect() as client:
        client.ask(b"set k 0 0 1\r\n1\r\n")
        told = stats(client)
        assert [name for name in names if name not in told] == []
        assert int(told[b"curr_items"]) >= 1
        assert b"VERSION " + told[b"version"] + b"\r\n" == client.ask(b"version\r\n")
        assert client.ask(b"stats bogus\r\n") == b"ERROR\r\n"
        assert client.ask(b"stats reset\r\n") == b"RESET\r\n"


def test_a_date_is_a_time_to_live(cache: Cache) -> None:
    with cache.connect() as client:
        client.ask(b"set k 0 %d 1\r\na\r\n" % (int(time.time()) + 5_000))
        left = int(client.ask(b"mg k t\r\n").removeprefix(b"HD t"))
        assert 4_000 < left <= 5_001
        client.ask(b"touch k %d\r\n" % (int(time.time()) - 100))
        assert client.ask(b"get k\r\n") == b"END\r\n"


@pytest.mark.slow
def test_what_expires_in_a_second_is_gone_then(cache: Cache) -> None:
    with cache.connect() as client:
        client.ask(b"set k 0 1 1\r\na\r\nset l 0 0 1\r\na\r\ntouch l 1\r\nset m 0 0 1\r\na\r\ngat 1 m\r\n")
        until(lambda: client.ask(b"get k l m\r\n") == b"END\r\n", seconds=5)


@pytest.mark.slow
def test_flush_all_with_a_delay_takes_everything_away_then(cache: Cache) -> None:
    with cache.connect() as client:
        client.ask(b"set k 0 0 1\r\na\r\nflush_all 2\r\nset l 0 0 1\r\na\r\n")
        assert client.ask(b"mg k\r\nmg l\r\n") == b"HD\r\nHD\r\n"
        until(lambda: client.ask(b"get k l\r\n") == b"END\r\n", seconds=10)
        # A write of the same second is taken away, too.
        until(lambda: client.ask(b"set k 0 0 1\r\na\r\nmg k\r\n") == b"STORED\r\nHD\r\n", seconds=10)
