"""Values that are alike, dictionaries for them, and a catalogue beside the data."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import snugly
import snugly.codec

WITH_DICTIONARY = b"\x00\x01\x02\x00\x81"
WITH_LZ4_AND_DICTIONARY = WITH_DICTIONARY[:4] + b"\x82"
PREFIX = "{snugly}"
LONG_AGO = 3600.0


def user(number: int) -> bytes:
    record = {
        "id": number,
        "name": f"customer number {number * 7919 % 10007}",
        "address": {"street": f"{number * 31 % 400} Long Acre", "city": "London", "country": "United Kingdom"},
        "subscriptions": ["newsletter", "offers", "reminders"][: 1 + number % 3],
        "is_active": number % 4 > 0,
    }
    return json.dumps(record).encode()


def page(number: int) -> bytes:
    link = f"<a href='/articles/{number * 37}'>Article {number}</a>"
    return f"<li class='hit'>{link}<p>by author {number % 97}</p></li>".encode()


USERS = snugly.Dictionary.train([user(number) for number in range(2000)], 8192)
PAGES = snugly.Dictionary.train([page(number) for number in range(3000)], 4096)
STORED = snugly.codec.Codec(snugly.CompressionConfiguration(dictionary=USERS)).encode(user(1))
"""The first user, written with their dictionary."""

Send = Callable[..., Any]
"""Sends a command, without compression."""


def sender(client: Any) -> Send:
    """Sends by a client that does not compress."""
    return lambda name, *args: getattr(client, name)(*args)


def publish(send: Send, *rows: tuple[str, snugly.Dictionary], at: float | None = None, **more: Any) -> None:
    """Publishes dictionaries for patterns of keys, in their order, long ago or `at` a time."""
    published_at = int(at if at is not None else time.time() - LONG_AGO)
    for _, dictionary in rows:
        send("set", dictionary_key(dictionary), dictionary.bytes)
    document = {
        "version": 1,
        "active": [{"pattern": pattern, "id": dictionary.id} for pattern, dictionary in rows],
        "dictionaries": [
            {"id": dictionary.id, "pattern": pattern, "published_at": published_at} for pattern, dictionary in rows
        ],
        **more,
    }
    send("set", f"{PREFIX}:dicts", json.dumps(document))


def dictionary_key(dictionary: snugly.Dictionary) -> str:
    return f"{PREFIX}:dict:{dictionary.id}"
