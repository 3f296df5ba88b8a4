"""Small records that are alike, for which a server learns a dictionary: written, read back, and asked about."""

from __future__ import annotations

import json
import random

from info import info
from resp import Connection, encode
from waiting import until

USERS = 10_000


def user(number: int) -> bytes:
    rng = random.Random(number)
    name = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=8))
    record = {
        "id": number,
        "name": name,
        "email": f"{name}@example.com",
        "address": {"city": name[::-1], "country": "Iceland", "postal_code": rng.randrange(100_000)},
        "preferences": {"language": "is", "newsletter": rng.random() < 0.5, "theme": "dark"},
    }
    return json.dumps(record).encode()


def pipeline(connection: Connection, commands: list[bytes]) -> list[object]:
    connection.send(b"".join(commands))
    return [connection.read() for _ in commands]


def batches() -> list[range]:
    return [range(start, start + 500) for start in range(0, USERS, 500)]


def put_users(connection: Connection) -> None:
    for numbers in batches():
        pipeline(connection, [encode("SET", f"user:{number}", user(number)) for number in numbers])


def learn_users(connection: Connection) -> None:
    """Puts the users and has a dictionary learned from all of them at once, so that no other one follows."""
    connection.command("CONFIG", "SET", "dictionaries", "no")
    put_users(connection)
    connection.command("CONFIG", "SET", "dictionaries", "yes")
    connection.command("DICTIONARY", "TRAIN")
    until(lambda: dictionaries(connection, "dictionary_records") == USERS)


def assert_users(connection: Connection) -> None:
    for numbers in batches():
        replies = pipeline(connection, [encode("GET", f"user:{number}") for number in numbers])
        assert replies == [user(number) for number in numbers]


def dictionaries(connection: Connection, field: str) -> int:
    return info(connection, "dictionaries", field)
