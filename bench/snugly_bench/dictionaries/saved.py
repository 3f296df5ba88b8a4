"""Bytes saved by each codec, and by zstd with dictionaries that were learned from other values of the same kind."""

from __future__ import annotations

import textwrap

import valkey

from snugly_bench.dictionaries.lessons import Lessons
from snugly_bench.progress import Progress
from snugly_bench.results import Results, table
from snugly_bench.servers.info import dataset_bytes, dictionary_bytes, info
from snugly_bench.servers.learning import check, key_prefix, write
from snugly_bench.servers.loads import WIDTH
from snugly_bench.servers.peers import PLAIN, Peer, dictionary_snugly_peer, snugly_peer, start
from snugly_bench.splits import Split

VALUES, GIVEN, STORED, RESIDENT, OWN = (
    *("values", "given bytes", "stored bytes", "resident bytes", "bytes of dictionaries"),
)


def measure(program: str, splits: list[Split], population: int, lessons: Lessons) -> Results:
    """Writes the measured values of each set into a fresh server of each kind, and reads them back."""
    results = Results(PLAIN)
    peers = [snugly_peer(program, "lz4"), snugly_peer(program, "zstd"), dictionary_snugly_peer(program)]
    with Progress(len(splits) * len(peers)) as progress:
        for values in splits:
            for peer in peers:
                with progress.step(1, f"saved bytes: {values.name} in {peer.name}"):
                    results.add(values.name, peer.name, measure_one(peer, values, population, lessons))
    return results


def measure_one(peer: Peer, values: Split, population: int, lessons: Lessons) -> dict[str, float]:
    prefix = key_prefix(values.name)
    pairs = [(f"{prefix}{number}", value) for number, value in enumerate(values.measured)]
    with (
        start(peer) as server,
        valkey.Valkey(port=server.port) as client,
        lessons.given(server, values, population),
    ):
        empty = dataset_bytes(client)
        client.config_resetstat()
        write(client, pairs)
        check(client, pairs)
        encoded = info(client, "compression")
        return {
            VALUES: len(pairs),
            GIVEN: sum(len(value) for _, value in pairs),
            STORED: sum(size for name, size in encoded.items() if name.startswith("encoded_bytes_out_")),
            RESIDENT: dataset_bytes(client) - empty,
            OWN: dictionary_bytes(client),
        }


def report(results: Results) -> str:
    header = ["data", "server", VALUES, GIVEN, STORED, "saved", f"of {PLAIN}'s", RESIDENT, f"of {PLAIN}'s", OWN]
    rows = []
    for data, server in results.rows():
        given, stored = (results.spread(data, server, metric).median for metric in (GIVEN, STORED))
        rows.append(
            [
                data,
                server,
                *(results.spread(data, server, metric).show(0) for metric in (VALUES, GIVEN, STORED)),
                f"{1 - stored / given:.1%}",
                results.ratio(data, server, STORED, PLAIN).show(),
                results.spread(data, server, RESIDENT).show(0),
                results.ratio(data, server, RESIDENT, PLAIN).show(),
                results.spread(data, server, OWN).show(0),
            ]
        )
    how = textwrap.fill(
        "Levels are the defaults: zstd 3. Stored are the encoded values, as INFO compression counts them; resident are "
        "keys and values with all overhead, without dictionaries, whose memory is beside it: it is the same however "
        "many values there are. Every value came back byte for byte.",
        WIDTH,
    )
    return f"""## Saved bytes

{table(header, rows, texts=(0, 1))}

{how}
"""
