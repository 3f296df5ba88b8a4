"""Writes or reads values with a client of Python, for languages_test.go.

    peer.py write|read snugly|glide BACKEND PORT [DICTIONARY]

Values are on standard input, or output: a JSON object from keys to base64. DICTIONARY is the path of one to write with.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Callable

import glide_shared
import glide_sync

import snugly


def snugly_client(backend: str, port: int, dictionary: str | None) -> snugly.Valkey:
    options = {"dictionary": dictionary, "dictionary_refresh": 0.2} if dictionary is not None else {}
    configuration = snugly.CompressionConfiguration(backend=backend, **options)
    return snugly.Valkey(port=port, compression=configuration)


def glide_client(backend: str, port: int, _dictionary: str | None) -> glide_sync.GlideClient:
    compression = glide_shared.CompressionConfiguration(
        enabled=True, backend=glide_shared.CompressionBackend[backend.upper()]
    )
    address = glide_sync.NodeAddress("127.0.0.1", port)
    # GLIDE gives a request 250 ms, which a busy machine can miss.
    configuration = glide_sync.GlideClientConfiguration([address], compression=compression, request_timeout=60_000)
    return glide_sync.GlideClient.create(configuration)


CLIENTS: dict[str, Callable[[str, int, str | None], snugly.Valkey | glide_sync.GlideClient]] = {
    "snugly": snugly_client,
    "glide": glide_client,
}


def await_dictionary(client: snugly.Valkey | glide_sync.GlideClient) -> None:
    """Waits until the client writes with its dictionary, which it puts beside the data first."""
    while not snugly.statistics(client)["encoded_values_zstd_dictionary"]:
        client.set("waiting", b'{"name": "name-1", "email": "email-2"}' * 3)
        time.sleep(0.05)


def main(action: str, library: str, backend: str, port: str, dictionary: str | None = None) -> None:
    client = CLIENTS[library](backend, int(port), dictionary)
    given: dict[str, str] = json.load(sys.stdin)
    if dictionary is not None:
        await_dictionary(client)
    read = {}
    for key, value in given.items():
        if action == "write":
            client.set(key, base64.b64decode(value))
        else:
            stored = client.get(key)
            read[key] = base64.b64encode(stored).decode() if isinstance(stored, bytes) else ""
    json.dump(read, sys.stdout)
    client.close()


main(*sys.argv[1:])
