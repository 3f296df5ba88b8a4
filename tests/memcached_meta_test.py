"""The meta commands of memcached, byte by byte: each conversation holds with a real memcached, and with snugly."""

from __future__ import annotations

import base64
import re

import pytest

import memcached
from memcached import TOO_LARGE, Cache, Step
from waiting import until

FORMAT = b"CLIENT_ERROR bad command line format\r\n"
BAD_FLAG = b"CLIENT_ERROR invalid flag\r\n"
DOUBLE_FLAG = b"CLIENT_ERROR duplicate flag\r\n"
# What mg and ms tell apart is one error of md and ma.
BAD_OR_DOUBLE_FLAG = b"CLIENT_ERROR invalid or duplicate flag\r\n"
BAD_TOKEN = b"CLIENT_ERROR bad token in command line format\r\n"
BAD_KEY = b"CLIENT_ERROR error decoding key\r\n"
BAD_CHUNK = b"CLIENT_ERROR bad data chunk\r\n"
NOT_A_NUMBER = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
LARGE = b"SERVER_ERROR object too large for cache\r\n"
TOO_LONG = b"k" * 251
MAXIMUM = b"18446744073709551615"

CONVERSATIONS: dict[str, list[Step]] = {
    # mg
    "mg is a head, with v a value, and nothing else where nothing is": [
        (b"mg k\r\nmg k v\r\n", b"EN\r\nEN\r\n"),
        (b"ms k 3\r\nabc\r\nmg k\r\nmg k v\r\n", b"HD\r\nHD\r\nVA 3\r\nabc\r\n"),
        (b"ms k 0\r\n\r\nmg k v\r\n", b"HD\r\nVA 0\r\n\r\n"),
    ],
    "mg answers flags in the order in which they are asked for": [
        (b"ms k 3 F5\r\nabc\r\n", b"HD\r\n"),
        (b"mg k s f t k Oab c\r\n", b"HD s3 f5 t-1 kk Oab c<#k>\r\n"),
        (b"mg k c Oab v k t f s\r\n", b"VA 3 c<#k> Oab kk t-1 f5 s3\r\nabc\r\n"),
    ],
    "mg answers key and opaque of what is not there, and nothing else": [
        (b"mg k s f k t Oab c\r\n", b"EN kk Oab\r\n"),
    ],
    "mg with q is silent about what is not there": [
        (b"mg k q\r\nmg k v q k Oa\r\n", b""),
        (b"ms k 1\r\na\r\nmg k q\r\nmg k v q k Oa\r\n", b"HD\r\nHD\r\nVA 1 kk Oa\r\na\r\n"),
    ],
    "mg tells whether and when a value was read": [
        (b"ms k 1\r\na\r\nmg k h l\r\nmg k h\r\n", b"HD\r\nHD h0 l0\r\nHD h1\r\n"),
        (b"ms k 1\r\na\r\nget k\r\nmg k h\r\n", b"HD\r\nVALUE k 0 1\r\na\r\nEND\r\nHD h1\r\n"),
        (b"ms k 1\r\na\r\nmg k h\r\n", b"HD\r\nHD h0\r\n"),
    ],
    "mg with T changes the time, and answers the new one": [
        (b"ms k 1 T50\r\na\r\nmg k t\r\n", b"HD\r\nHD t50\r\n"),
        (b"mg k T100 t\r\nmg k t\r\nmg k T0 t\r\n", b"HD t100\r\nHD t100\r\nHD t-1\r\n"),
        (b"mg k T-1 v\r\nmg k v\r\n", b"VA 1\r\na\r\nEN\r\n"),
    ],
    "mg answers the time that flags before have made": [
        (b"ms k 1\r\na\r\nmg k T200 t\r\n", b"HD\r\nHD t200\r\n"),
        (b"mg m N30 t\r\n", b"HD t30 W\r\n"),
    ],
    "mg takes no notice of flags that are for other commands": [
        (b"ms k 1\r\na\r\nmg k I\r\nmg k M0\r\nmg k F0\r\nmg k C1\r\nmg k D1\r\n", b"HD\r\n" * 6),
    ],
    # Vivifying and recaching.
    "mg with N makes an empty value once, and the first one wins": [
        (b"mg k N30 v t\r\n", b"VA 0 t30 W\r\n\r\n"),
        (b"mg k N30 v t\r\nmg k v\r\n", b"VA 0 t30 Z\r\n\r\nVA 0 Z\r\n\r\n"),
        (b"get k\r\nadd k 0 0 1\r\na\r\n", b"VALUE k 0 0\r\n\r\nEND\r\nNOT_STORED\r\n"),
        (b"ms k 1\r\na\r\nmg k v N30\r\n", b"HD\r\nVA 1\r\na\r\n"),
    ],
    "what is made with a time that has passed is told of once": [
        (b"mg k N-1\r\nget k\r\nmg k\r\n", b"HD W\r\nEND\r\nEN\r\n"),
        (b"ma n N-1 v\r\nget n\r\n", b"VA 1\r\n0\r\nEND\r\n"),
    ],
    "mg with N and q answers the winner": [
        (b"mg k N30 q k O1 s f v\r\n", b"VA 0 kk O1 s0 f0 W\r\n\r\n"),
        (b"mg k N0 t\r\nmg other N0 t\r\n", b"HD t30 Z\r\nHD t-1 W\r\n"),
    ],
    "what was vivified is as good as any value for append, and then has no winner any more": [
        (b"mg k N30\r\nappend k 0 0 1\r\nx\r\n", b"HD W\r\nSTORED\r\n"),
        (b"mg k v\r\n", b"VA 1\r\nx\r\n"),
    ],
    "mg with R has one winner once less is left": [
        (b"ms k 1 T100\r\na\r\nmg k R10 t\r\n", b"HD\r\nHD t100\r\n"),
        (b"mg k R200 t\r\nmg k R200 t\r\nmg k t\r\n", b"HD t100 W\r\nHD t100 Z\r\nHD t100 Z\r\n"),
        (b"ms k 1 T100\r\na\r\nmg k R200\r\n", b"HD\r\nHD W\r\n"),
    ],
    "mg with R and T compares what is left in the order in which they stand": [
        (b"ms k 1 T100\r\na\r\nmg k R200 T1000\r\nmg k t\r\n", b"HD\r\nHD W\r\nHD t1000 Z\r\n"),
        (b"ms k 1 T100\r\na\r\nmg k T1000 R200\r\nmg k t\r\n", b"HD\r\nHD\r\nHD t1000\r\n"),
    ],
    "mg with N and T makes a value with the time that stands last": [
        (b"mg k N30 T60\r\nmg k t\r\nmg l T60 N30\r\nmg l t\r\n", b"HD W\r\nHD t60 Z\r\nHD W\r\nHD t30 Z\r\n"),
    ],
    "who makes a value has read it": [(b"mg k N30\r\nmg k h\r\n", b"HD W\r\nHD h1 Z\r\n")],
    "mg with R has no winner where nothing expires": [(b"ms k 1\r\na\r\nmg k R1000\r\n", b"HD\r\nHD\r\n")],
    # Stale values.
    "md with I leaves the value, stale, and one wins": [
        (b"ms k 1 T100\r\na\r\nmg k c\r\n", b"HD\r\nHD c<#k>\r\n"),
        (b"md k I\r\n", b"HD\r\n"),
        (b"mg k v t c\r\n", b"VA 1 t100 c<#stale> X W\r\na\r\n"),
        (b"mg k v t c\r\n", b"VA 1 t100 c<#stale> Z X\r\na\r\n"),
        (b"get k\r\n", b"VALUE k 0 1\r\na\r\nEND\r\n"),
        (b"ms k 1 C<#stale>\r\nb\r\nmg k v\r\n", b"HD\r\nVA 1\r\nb\r\n"),
    ],
    "md with I and T changes the time": [
        (b"ms k 1\r\na\r\nmd k I T30\r\nmg k t\r\n", b"HD\r\nHD\r\nHD t30 X W\r\n"),
        (b"md k I T-1\r\nmg k\r\n", b"HD\r\nEN\r\n"),
    ],
    "a stale value is made stale again for another winner": [
        (b"ms k 1\r\na\r\nmd k I\r\nmg k\r\nmg k\r\n", b"HD\r\nHD\r\nHD X W\r\nHD Z X\r\n"),
        (b"md k I\r\nmg k\r\nmg k\r\n", b"HD\r\nHD X W\r\nHD Z X\r\n"),
    ],
    "touching a stale value leaves it stale": [
        (b"ms k 1\r\na\r\nmd k I\r\ntouch k 100\r\nmg k t\r\n", b"HD\r\nHD\r\nTOUCHED\r\nHD t100 X W\r\n"),
    ],
    "appending and replacing make a stale value a good one": [
        (b"ms k 1\r\n2\r\nmd k I\r\nms k 1 MA\r\n3\r\nmg k v\r\n", b"HD\r\nHD\r\nHD\r\nVA 2\r\n23\r\n"),
        (b"md k I\r\nms k 1 MR\r\n4\r\nmg k v\r\n", b"HD\r\nHD\r\nVA 1\r\n4\r\n"),
    ],
    "ms with I and an older number stores a value that is stale": [
        (b"ms k 1 c\r\na\r\n", b"HD c<#old>\r\n"),
        (b"ms k 1\r\nb\r\nms k 1 C<#old>\r\nc\r\n", b"HD\r\nEX\r\n"),
        (b"ms k 1 C<#old> I\r\nc\r\nmg k v\r\nmg k v\r\n", b"HD\r\nVA 1 X W\r\nc\r\nVA 1 Z X\r\nc\r\n"),
    ],
    "a value that is stale from the start keeps the time and the winner of the one that it replaces": [
        (b"ms k 1 c\r\na\r\nms k 1 T100\r\nb\r\nmd k I\r\nmg k\r\n", b"HD c<#old>\r\nHD\r\nHD\r\nHD X W\r\n"),
        (b"ms k 1 T-1 C<#old> I\r\nc\r\nmg k v t h\r\n", b"HD\r\nVA 1 t100 h0 Z X\r\nc\r\n"),
    ],
    "ms with I and the right number or none stores a good value": [
        (b"ms k 1 I c\r\na\r\n", b"HD c<#k>\r\n"),
        (b"ms k 1 C<#k> I\r\nb\r\nmg k v\r\n", b"HD\r\nVA 1\r\nb\r\n"),
    ],
    "ms with I stores nothing for a number that is newer": [
        (b"ms k 1\r\na\r\nms k 1 I C%b\r\nb\r\nmg k v\r\n" % MAXIMUM, b"HD\r\nEX\r\nVA 1\r\na\r\n"),
    ],
    # ms
    "ms takes time and flags": [
        (b"ms k 3 T100 F4294967295\r\nabc\r\nmg k t f\r\n", b"HD\r\nHD t100 f4294967295\r\n"),
        (b"ms k 3\r\nabc\r\nmg k t f\r\n", b"HD\r\nHD t-1 f0\r\n"),
        (b"ms k 3 T-1\r\nabc\r\nmg k\r\n", b"HD\r\nEN\r\n"),
    ],
    "ms answers key, opaque and number": [
        (b"ms k 3 k Oab c\r\nabc\r\nmg k c\r\n", b"HD kk Oab c<#k>\r\nHD c<#k>\r\n"),
    ],
    "ms with q is silent about success": [
        (b"ms k 1 q\r\na\r\nms k 1 k O1 c q\r\nb\r\nmg k v\r\n", b"VA 1\r\nb\r\n"),
        (b"ms k 1 ME q\r\nc\r\nms k 1 C1 q k O1\r\nc\r\nms none 1 C1 q\r\nc\r\n", b"NS\r\nEX kk O1\r\nNF\r\n"),
        (b"ms k 3 q\r\nabcd\n", BAD_CHUNK),
    ],
    "ms with C stores what nobody has changed": [
        (b"ms k 1 c\r\na\r\n", b"HD c<#old>\r\n"),
        (b"ms k 1 C<#old> c\r\nb\r\n", b"HD c<#new>\r\n"),
        (b"ms k 1 C<#old>\r\nc\r\nms none 1 C<#old>\r\nc\r\n", b"EX\r\nNF\r\n"),
        (b"mg k v c\r\n", b"VA 1 c<#new>\r\nb\r\n"),
    ],
    "ms adds, replaces, appends, prepends and sets by its mode": [
        (b"ms k 1 MR\r\n1\r\nms k 1 MA\r\n1\r\nms k 1 MP\r\n1\r\nmg k\r\n", b"NS\r\nNS\r\nNS\r\nEN\r\n"),
        (b"ms k 1 ME F5 T100\r\nb\r\nms k 1 ME\r\nx\r\n", b"HD\r\nNS\r\n"),
        (b"ms k 1 MA F9 T5\r\nc\r\nms k 1 MP F9 T5\r\na\r\nmg k v f t\r\n", b"HD\r\nHD\r\nVA 3 f5 t100\r\nabc\r\n"),
        (b"ms k 1 MR\r\nr\r\nmg k v f t\r\n", b"HD\r\nVA 1 f0 t-1\r\nr\r\n"),
        (b"ms k 1 MS\r\ns\r\nmg k v\r\n", b"HD\r\nVA 1\r\ns\r\n"),
    ],
    "a mode is one letter that the command knows": [
        (b"ms k 1 Mx\r\na\r\n", b"CLIENT_ERROR invalid mode for ms M token\r\n"),
        (b"ms k 1 M\r\na\r\nms k 1 Mappend\r\na\r\n", b"CLIENT_ERROR incorrect length for M token\r\n" * 2),
        (b"mg k\r\n", b"EN\r\n"),
        (b"ma k Mx\r\n", b"CLIENT_ERROR invalid mode for ma M token\r\n"),
        (b"ma k M\r\nma k Mincr\r\n", BAD_OR_DOUBLE_FLAG * 2),
    ],
    "the value of a refused ms is read over": [
        (b"ms k 6 z\r\nmn\r\nmn\r\n", BAD_FLAG),
        (b"ms k 4 Tx\r\nmg k\r\n", BAD_TOKEN),
        (b"ms k 4 Cx\r\nmg k\r\n", BAD_TOKEN),
        (b"ms k 4 Fx\r\nmg k\r\nms k 4 F-1\r\nmg k\r\n", FORMAT * 2),
        (b"ms k 4 T0 T0\r\nmg k\r\n", DOUBLE_FLAG),
        (b"ms k 4 b\r\nmg k\r\n", BAD_KEY),
        (b"ms k 4 MX\r\nmg k\r\n", b"CLIENT_ERROR invalid mode for ms M token\r\n"),
        (b"mg k\r\n", b"EN\r\n"),
    ],
    "ms wants a length behind its key, without which nothing is read over": [
        (b"ms\r\n", b"ERROR\r\n"),
        (b"ms k\r\n", FORMAT),
        (b"ms k x\r\n", FORMAT),
        (b"ms k -1\r\n", FORMAT),
        (b"ms k S1\r\n", FORMAT),
        (b"ms k 3\r\nabcd\n", BAD_CHUNK),
    ],
    "a value that is too large is read over, and takes the one before away": [
        (b"ms k 1\r\na\r\n", b"HD\r\n"),
        (b"ms k %d\r\n" % TOO_LARGE + b"x" * TOO_LARGE + b"\r\n", LARGE),
        (b"mg k v\r\n", b"EN\r\n"),
        (b"ms k %d q k O1\r\n" % TOO_LARGE + b"x" * TOO_LARGE + b"\r\n", LARGE),
    ],
    # md
    "md takes a key away once": [
        (b"ms k 1\r\na\r\nmd k\r\nmd k\r\nmg k\r\n", b"HD\r\nHD\r\nNF\r\nEN\r\n"),
        (b"ms k 1\r\na\r\nmd k k O1\r\nmd k O1 k\r\n", b"HD\r\nHD kk O1\r\nNF O1 kk\r\n"),
    ],
    "md with q is silent about success": [
        (b"ms k 1\r\na\r\nmd k q\r\nmd k q\r\nmd k q k\r\n", b"HD\r\nNF\r\nNF kk\r\n")
    ],
    "md with C takes away what nobody has changed": [
        (b"ms k 1 c\r\na\r\n", b"HD c<#k>\r\n"),
        (b"md k C0\r\nmd k C0 q k O1\r\n", b"EX\r\nEX kk O1\r\n"),
        (b"md k C0 I\r\nmg k\r\n", b"EX\r\nHD\r\n"),
        (b"md k C<#k>\r\nmg k\r\n", b"HD\r\nEN\r\n"),
        (b"md k C<#k>\r\nmd k I\r\n", b"NF\r\nNF\r\n"),
    ],
    # ma
    "ma counts, and answers the number with v": [
        (b"ms n 2 F5\r\n10\r\nma n\r\nma n v\r\n", b"HD\r\nHD\r\nVA 2\r\n12\r\n"),
        (b"ma n D5 v\r\nma n MD D2 v\r\nma n MI v\r\n", b"VA 2\r\n17\r\nVA 2\r\n15\r\nVA 2\r\n16\r\n"),
        (b"ma n M- v\r\nma n M+ D3 v\r\n", b"VA 2\r\n15\r\nVA 2\r\n18\r\n"),
        (b"ma n MD D100 v\r\nmg n f\r\n", b"VA 1\r\n0\r\nHD f5\r\n"),
    ],
    "ma begins again behind 64 bits": [
        (b"ms n 19\r\n9223372036854775807\r\nma n D9223372036854775809 v\r\n", b"HD\r\nVA 1\r\n0\r\n"),
        (b"ma n D%b v\r\n" % MAXIMUM, b"VA 20\r\n%b\r\n" % MAXIMUM),
    ],
    "ma answers key, opaque, time and number in their order, and counts as a write": [
        (b"ms n 1 T100 c\r\n1\r\n", b"HD c<#old>\r\n"),
        (b"ma n t k Oab c\r\n", b"HD t100 kn Oab c<#new>\r\n"),
        (b"ma n T50 c v Oab t k\r\n", b"VA 1 c<#newer> Oab t50 kn\r\n3\r\n"),
    ],
    "ma with N makes a number that was not there": [
        (b"ma n\r\nma n k O1\r\nma n v\r\n", b"NF\r\nNF kn O1\r\nNF\r\n"),
        (b"ma n N30 J13 v t\r\nma n N50 J13 v t\r\n", b"VA 2 t30\r\n13\r\nVA 2 t30\r\n14\r\n"),
        (b"ma m N0 v t\r\n", b"VA 1 t-1\r\n0\r\n"),
    ],
    "ma with q is silent about success, even with v": [
        (b"ms n 1\r\n1\r\nma n q\r\nma n q v k\r\nma n v\r\nma none q\r\n", b"HD\r\nVA 1\r\n4\r\nNF\r\n"),
    ],
    "ma with C counts what nobody has changed": [
        (b"ms n 1 c\r\n1\r\n", b"HD c<#n>\r\n"),
        (b"ma n C%b\r\nma n C%b q k\r\nma n C<#n> v\r\n" % (MAXIMUM, MAXIMUM), b"EX\r\nEX kn\r\nVA 1\r\n2\r\n"),
        (b"ma n C<#n> v\r\n", b"EX\r\n"),
    ],
    "ma does not count what is no number": [
        (b"ms t 3\r\nabc\r\nma t\r\nma t q k O1\r\nma t N0 v\r\n", b"HD\r\n" + NOT_A_NUMBER * 3),
        (b"mg n N30\r\nma n\r\n", b"HD W\r\n" + NOT_A_NUMBER),
    ],
    "ma wants numbers of 64 bits": [
        (
            b"ma n Dx\r\nma n D-1\r\nma n D\r\nma n D18446744073709551616\r\nma n Jx\r\nma n N\r\n",
            BAD_OR_DOUBLE_FLAG * 6,
        ),
    ],
    # Keys, flags and lines.
    "a key in base64 may have any bytes, and is the same key": [
        (b"ms Zm9v 3 b k\r\nabc\r\nmg foo v f\r\n", b"HD kZm9v b\r\nVA 3 f0\r\nabc\r\n"),
        (b"mg Zm9v b k v O1\r\nget foo\r\n", b"VA 3 kZm9v b O1\r\nabc\r\nVALUE foo 0 3\r\nabc\r\nEND\r\n"),
        (b"ms IGEgDQo= 1 b\r\nx\r\nmg IGEgDQo= b k v\r\n", b"HD\r\nVA 1 kIGEgDQo= b\r\nx\r\n"),
        (b"md IGEgDQo= b k O7\r\nmg IGEgDQo= k b\r\n", b"HD kIGEgDQo= b O7\r\nEN kIGEgDQo= b\r\n"),
        (b"ma IGEgDQo= b N0 k v\r\n", b"VA 1 kIGEgDQo= b\r\n0\r\n"),
    ],
    "what is no base64 is no key": [
        (b"mg Zm9 b\r\nmg !!!! b\r\nmg Zm9v= b\r\n", BAD_KEY * 3),
        (b"md Zm9 b\r\nma Zm9 b\r\n", BAD_OR_DOUBLE_FLAG * 2),
        (b"me Zm9 b\r\n", FORMAT),
    ],
    "keys have 250 bytes at most, as they stand in the request": [
        (b"mg %b k\r\n" % TOO_LONG[:-1], b"EN k%b\r\n" % TOO_LONG[:-1]),
        (b"mg %b\r\nmd %b\r\nma %b\r\nme %b\r\n" % (TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG), FORMAT * 4),
        (b"mg %b b v\r\n" % base64.b64encode(b"k" * 187), FORMAT),
        (b"mg %b b v\r\n" % base64.b64encode(b"k" * 186), b"EN\r\n"),
    ],
    "an opaque token has 31 bytes at most": [
        (b"mg k O%b\r\nmg k O\r\n" % (b"1" * 31), b"EN O%b\r\nEN O\r\n" % (b"1" * 31)),
        (b"mg k O%b\r\n" % (b"1" * 32), b"CLIENT_ERROR opaque token too long\r\n"),
    ],
    "a flag that a command does not know, or twice, is an error": [
        (b"mg k z\r\nmg k 5\r\nmg k S5\r\n", BAD_FLAG * 3),
        (b"md k z\r\nmd k q q\r\nma k z\r\nma k q q\r\n", BAD_OR_DOUBLE_FLAG * 4),
        (b"mg k v v\r\nmg k T1 T2\r\n", DOUBLE_FLAG * 2),
        (b"mg k Tx\r\nmg k T\r\nmg k Nx\r\nmg k N\r\nmg k Rx\r\nmg k R\r\nmg k Cx\r\n", BAD_TOKEN * 7),
        (b"md k Tx\r\nmd k C\r\nmd k Cx\r\n", BAD_OR_DOUBLE_FLAG * 3),
        (b"ms k 1 C\r\na\r\nms k 1 T\r\na\r\n", BAD_TOKEN * 2),
        (b"mg k v%b\r\n" % (b" q" * 100), b"CLIENT_ERROR options flags are too long\r\n"),
    ],
    "of several errors a flag that is there twice is told first, then a key, then a token": [
        (b"mg k Tx v v b\r\nms k 1 Tx v v\r\na\r\n", DOUBLE_FLAG * 2),
    ],
    "a command without its key is an error": [
        (b"mg\r\nmg \r\nmd\r\nma\r\nms\r\nmz k\r\nMG k\r\n", b"ERROR\r\n" * 7),
        (b"me\r\n", FORMAT),
    ],
    "spaces may be many": [(b"ms  k  1\r\na\r\nmg  k   v  \r\n", b"HD\r\nVA 1\r\na\r\n")],
    "me tells of a key": [
        (b"me k\r\n", b"EN\r\n"),
        (b"ms k 3\r\nabc\r\nmg k c\r\n", b"HD\r\nHD c<#k>\r\n"),
    ],
    "meta commands and others see the same keys": [
        (b"set k 7 100 3\r\nabc\r\nmg k v f t\r\n", b"STORED\r\nVA 3 f7 t100\r\nabc\r\n"),
        (b"ms k 2 F9 c\r\nab\r\n", b"HD c<#k>\r\n"),
        (b"gets k\r\ncas k 1 0 1 <#k>\r\nx\r\n", b"VALUE k 9 2 <#k>\r\nab\r\nEND\r\nSTORED\r\n"),
        (b"md k\r\nget k\r\n", b"HD\r\nEND\r\n"),
    ],
}

# Requests that snugly answers otherwise on purpose: what memcached answers, and what snugly does.
DIFFERENT = {
    "t tells the time that the request sets, wherever it stands": (
        b"ms k 1\r\na\r\nmg k t T100\r\n", b"HD\r\nHD t-1\r\n", b"HD\r\nHD t100\r\n"
    ),
    "t tells the time of what is made": (b"mg l t N30\r\n", b"HD t-1 W\r\n", b"HD t30 W\r\n"),
    "ma sets the time of a number that gets longer, too": (
        b"ms n 1\r\n9\r\nma n T100\r\nmg n t\r\n", b"HD\r\nHD\r\nHD t-1\r\n", b"HD\r\nHD\r\nHD t100\r\n"
    ),
    "what is not stored has no number": (b"ms k 1 MR c\r\na\r\n", b"NS c0\r\n", b"NS\r\n"),
    "modes of ms are small letters, too": (
        b"ms k 1 Ms\r\na\r\n", b"CLIENT_ERROR invalid mode for ms M token\r\n", b"HD\r\n"
    ),
    "modes of ma are small letters, too": (
        b"ma k Mi\r\n", b"CLIENT_ERROR invalid mode for ma M token\r\n", b"NF\r\n"
    ),
    "ma with q is silent about a number that it makes": (b"ma n N0 q v\r\n", b"VA 1\r\n0\r\n", b""),
    "of two errors the first in the line is told": (
        b"mg k Tx b\r\n", BAD_KEY, b"CLIENT_ERROR bad token in command line format\r\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("sentence", DIFFERENT)
def test_what_is_different_is_so_on_purpose(cache: Cache, sentence: str) -> None:
    request, theirs, ours = DIFFERENT[sentence]
    with cache.connect() as client:
        memcached.play(client, [(request, ours if cache.name == "snugly" else theirs)])


@pytest.mark.parametrize("sentence", CONVERSATIONS)
def test_replies_are_byte_by_byte(cache: Cache, sentence: str) -> None:
    with cache.connect() as client:
        memcached.play(client, CONVERSATIONS[sentence])


def test_a_request_in_two_pieces_is_answered_as_one(cache: Cache) -> None:
    memcached.play_in_pieces(cache, CONVERSATIONS)


def test_a_thousand_requests_in_one_write_are_answered_in_order(cache: Cache) -> None:
    requests = [b"ms k%d 1 O%d\r\nx\r\nmg k%d O%d k v\r\n" % ((number,) * 4) for number in range(500)]
    expected = [b"HD O%d\r\nVA 1 O%d kk%d\r\nx\r\n" % ((number,) * 3) for number in range(500)]
    with cache.connect() as client:
        assert client.ask(b"".join(requests)) == b"".join(expected)


def test_mn_ends_a_pipeline_of_silent_requests(cache: Cache) -> None:
    requests = b"mg k v q\r\nmg l v q\r\nmn\r\nms k 1 q\r\na\r\nmd k q\r\nmn\r\nmg k\r\n"
    with cache.connect() as client:
        client.send(requests)
        assert [client.line() for _ in range(3)] == [b"MN\r\n", b"MN\r\n", b"EN\r\n"]


def test_me_tells_the_time_to_live_the_last_use_the_number_and_whether_it_was_read(cache: Cache) -> None:
    with cache.connect() as client:
        client.ask(b"ms k 3 T100\r\nabc\r\n")
        unread = client.ask(b"me k\r\n")
        number = client.ask(b"mg k c\r\n").removeprefix(b"HD c").strip()
        read = client.ask(b"me k\r\n")
        for reply, fetched in (unread, b"no"), (read, b"yes"):
            form = rb"ME k exp=-?(99|100) la=\d+ cas=%b fetch=%b( cls=\d+)? size=\d+.*\r\n" % (number, fetched)
            assert re.fullmatch(form, reply), reply


@pytest.mark.slow
def test_what_nobody_reads_is_idle(cache: Cache) -> None:
    with cache.connect() as client:
        client.ask(b"ms k 1\r\na\r\nmg k\r\n")
        # Reading it with l would be a use.
        until(lambda: b" la=0 " not in client.ask(b"me k\r\n"), seconds=10)
        idle = int(client.ask(b"mg k l\r\n").removeprefix(b"HD l"))
        assert idle >= 1


@pytest.mark.slow
def test_one_client_wins_once_less_is_left_than_it_asks_for(cache: Cache) -> None:
    with cache.connect() as client:
        client.ask(b"ms k 1 T12\r\na\r\n")
        assert client.ask(b"mg k R10\r\n") == b"HD\r\n"
        until(lambda: client.ask(b"mg k R10\r\n") == b"HD W\r\n", seconds=10)
        assert client.ask(b"mg k R10\r\n") == b"HD Z\r\n"
