"""Memory and cost of values in snugly, Valkey and Redis: `make demo`.

Starts valkey-server, redis-server where it is installed, and `snugly serve` for each codec; loads every data set
through valkey-py, reads every value back and compares it byte for byte, and prints the memory of the values and the
cost of a SET and a GET. A last row is for zstd with dictionaries: the values are written once to learn from, and
again, to be measured, when nothing more is learned. The values are generated, the same in every run, or come from a
folder of `.jsonl` files (`--data`; one value a line, as JSON or as a JSON string that holds it).
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import valkey

from snugly_bench.corpora import generated, read_lines
from snugly_bench.progress import Progress
from snugly_bench.servers.info import allocator, cpu_seconds, dataset_bytes, dictionary_bytes, grown_bytes
from snugly_bench.servers.learning import learned
from snugly_bench.servers.peers import (
    BUILT_SNUGLY,
    CODECS,
    REDIS,
    VALKEY,
    Server,
    find_snugly,
    learning_snugly_peer,
    redis_peer,
    snugly_peer,
    start,
    valkey_peer,
)

GENERATED = {"json": 900, "html": 3000, "csv": 1300, "session": 500}
"""Generated data without --data: the kind of value, and the approximate bytes of each."""
GENERATED_VALUES = 5000
BATCH = 50
LEARNING = "snugly zstd + dict"
"""The name of zstd with dictionaries in the table."""


@dataclass
class Result:
    """One data set under one codec."""

    data: str
    server: str
    """With its codec."""
    values: int
    given: int
    """Bytes of the values, as the client gave them."""
    resident: int
    """Bytes that keys, values and dictionaries take in the server, overhead included."""
    set_us: float
    """Microseconds of the server's processor time for a SET."""
    get_us: float
    """The same for a GET."""

    @property
    def saved(self) -> float:
        """The share of the given bytes that memory was saved; negative where overhead outweighs the savings."""
        return 1 - self.resident / self.given


def resident(server: Server, client: valkey.Valkey) -> int:
    """Memory of keys, values and dictionaries, overhead included."""
    if server.peer.name in (VALKEY, REDIS):
        return grown_bytes(client)
    return dataset_bytes(client) + dictionary_bytes(client)


def measure(
    server: Server, client: valkey.Valkey, data: str, name: str, values: list[bytes], progress: Progress
) -> Result:
    """Writes and reads a data set in pipelines of `BATCH`, and checks each value that comes back."""
    # Synchronously: keys freed later would count as saved.
    client.execute_command("FLUSHALL", "SYNC")  # type: ignore[no-untyped-call]
    batches = [range(start, min(start + BATCH, len(values))) for start in range(0, len(values), BATCH)]

    def write(task: str) -> None:
        for batch in batches:
            with progress.step(len(batch), f"{data}, {name}: {task}"):
                pipeline = client.pipeline(transaction=False)
                for number in batch:
                    pipeline.set(f"{data}:{number}", values[number])
                pipeline.execute()  # type: ignore[no-untyped-call]

    empty = resident(server, client)
    if name == LEARNING:
        write("learning")
        learned(server, client)
    cpu = cpu_seconds(client)
    write("SET")
    written = cpu_seconds(client)
    full = resident(server, client)
    for batch in batches:
        with progress.step(len(batch), f"{data}, {name}: GET"):
            pipeline = client.pipeline(transaction=False)
            for number in batch:
                pipeline.get(f"{data}:{number}")
            replies = pipeline.execute()  # type: ignore[no-untyped-call]
        for number, reply in zip(batch, replies, strict=True):
            if reply != values[number]:
                raise SystemExit(f"{data}:{number} came back different from {name}")
    read = cpu_seconds(client)
    count = len(values)
    return Result(
        data=data,
        server=name,
        values=count,
        given=sum(map(len, values)),
        resident=full - empty,
        set_us=(written - cpu) / count * 1e6,
        get_us=(read - written) / count * 1e6,
    )


def table(results: list[Result]) -> str:
    """The results as people read them."""
    width = max(len(result.data) for result in results)
    columns = f"{'server':<18} {'values':>7} {'given':>11} {'resident':>11} {'saved':>7} {'SET':>8} {'GET':>8}"
    head = f"{'data':<{width}} {columns}"
    lines = [head, "-" * len(head)]
    for result, before in zip(results, [results[0], *results], strict=False):
        if result.data != before.data:
            lines.append("")
        lines.append(
            f"{result.data:<{width}} {result.server:<18} {result.values:>7,} {result.given:>11,} "
            f"{result.resident:>11,} {result.saved:>7.1%} {result.set_us:>5.1f} us {result.get_us:>5.1f} us"
        )
    return "\n".join(lines)


def read_folder(folder: Path, most: int | None) -> dict[str, list[bytes]]:
    """The values of all `.jsonl` files in a folder; exits where there are none."""
    found = {path.stem: read_lines(path, most) for path in sorted(folder.glob("*.jsonl"))}
    sets = {name: values for name, values in found.items() if values}
    if not sets:
        raise SystemExit(f"{folder} has no .jsonl files with values: write a value a line, or leave --data out")
    return sets


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="snugly_bench demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", default=BUILT_SNUGLY, help="program to run (default: %(default)s)")
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("SNUGLY_DATA"),
        help="folder of .jsonl files (default: the environment variable SNUGLY_DATA, else generated values)",
    )
    parser.add_argument("--values", type=int, help="most values of each data set")
    return parser.parse_args(words)


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    program = find_snugly(arguments.program)
    if arguments.data:
        sets = read_folder(arguments.data, arguments.values)
        print(f"Values from {arguments.data}")
    else:
        count = arguments.values or GENERATED_VALUES
        sets = {kind: generated(program, kind, size, count) for kind, size in GENERATED.items()}
        print("Generated values; --data FOLDER takes your own")
    others = [peer for peer in (valkey_peer(), redis_peer()) if peer is not None]
    servers = {peer.name: peer for peer in (*others, *(snugly_peer(program, codec) for codec in CODECS))}
    results: dict[tuple[str, str], Result] = {}
    built = []
    # Written and read; for dictionaries written once more.
    with Progress((2 * len(servers) + 3) * sum(map(len, sets.values()))) as progress:
        for name, peer in servers.items():
            with start(peer) as server, valkey.Valkey(port=server.port) as client:
                if peer in others:
                    built.append(f"{peer.name}: {peer.version.partition(' sha=')[0]} with {allocator(client)}")
                for data, values in sets.items():
                    results[data, name] = measure(server, client, data, name, values, progress)
        # A server of its own for each data set, which knows nothing of the others.
        for data, values in sets.items():
            with start(learning_snugly_peer(program)) as server, valkey.Valkey(port=server.port) as client:
                results[data, LEARNING] = measure(server, client, data, LEARNING, values, progress)
    print(table([results[data, name] for data in sets for name in (*servers, LEARNING)]))
    print(
        "\nEvery value came back byte for byte. Resident counts keys, values, dictionaries and overhead. SET\n"
        f"and GET are the server's processor time in pipelines of {BATCH}, the network's share included."
    )
    print("\n".join(built))
    if REDIS not in servers:
        print("There is no redis-server here to compare with: apt-get install redis-server")
