"""What snugly does for real values: `make demo`.

Starts `snugly serve` for each codec, loads every data set through valkey-py, reads every value back and compares it
byte for byte, and prints what the values take in memory and what a SET and a GET cost. A last row is for zstd with
dictionaries: the values are written once to learn from, and again, to be measured, when nothing more is learned. The
values are those of a folder of `.jsonl` files (`--data`; one value a line, as JSON or as a JSON string that holds it),
or, where there is none, generated ones.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import valkey

from snugly_bench.corpora import generated, read_lines
from snugly_bench.progress import Progress
from snugly_bench.servers.info import cpu_seconds, dataset_bytes, dictionary_bytes
from snugly_bench.servers.learning import learned
from snugly_bench.servers.peers import CODECS, Server, find_snugly, learning_snugly_peer, snugly_peer, start

GENERATED = {"json": 900, "html": 3000, "csv": 1300, "session": 500}
"""What is generated where there is no folder of data: the kind of value, and about how many bytes each has."""
BATCH = 50
LEARNING = "zstd + dict"
"""What zstd with dictionaries is called in the table."""
DEFAULT_DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


@dataclass
class Result:
    """One data set under one codec."""

    data: str
    codec: str
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


def resident(client: valkey.Valkey) -> int:
    return dataset_bytes(client) + dictionary_bytes(client)


def measure(
    server: Server, client: valkey.Valkey, data: str, codec: str, values: list[bytes], progress: Progress
) -> Result:
    """Writes and reads a data set in pipelines of `BATCH`, and checks each value that comes back."""
    client.flushall()
    batches = [range(start, min(start + BATCH, len(values))) for start in range(0, len(values), BATCH)]

    def write(task: str) -> None:
        for batch in batches:
            with progress.step(len(batch), f"{data}, {codec}: {task}"):
                pipeline = client.pipeline(transaction=False)
                for number in batch:
                    pipeline.set(f"{data}:{number}", values[number])
                pipeline.execute()  # type: ignore[no-untyped-call]

    empty = resident(client)
    if codec == LEARNING:
        write("learning")
        learned(server, client)
    cpu = cpu_seconds(client)
    write("SET")
    written = cpu_seconds(client)
    full = resident(client)
    for batch in batches:
        with progress.step(len(batch), f"{data}, {codec}: GET"):
            pipeline = client.pipeline(transaction=False)
            for number in batch:
                pipeline.get(f"{data}:{number}")
            replies = pipeline.execute()  # type: ignore[no-untyped-call]
        for number, reply in zip(batch, replies, strict=True):
            if reply != values[number]:
                raise SystemExit(f"{data}:{number} came back different under {codec}")
    read = cpu_seconds(client)
    count = len(values)
    return Result(
        data=data,
        codec=codec,
        values=count,
        given=sum(map(len, values)),
        resident=full - empty,
        set_us=(written - cpu) / count * 1e6,
        get_us=(read - written) / count * 1e6,
    )


def table(results: list[Result]) -> str:
    """The results as people read them."""
    head = f"{'data':<18} {'codec':<11} {'values':>7} {'given':>11} {'resident':>11} {'saved':>7} {'SET':>8} {'GET':>8}"
    lines = [head, "-" * len(head)]
    for result in results:
        if result.codec == CODECS[0] and len(lines) > 2:
            lines.append("")
        lines.append(
            f"{result.data:<18} {result.codec:<11} {result.values:>7,} {result.given:>11,} {result.resident:>11,} "
            f"{result.saved:>7.1%} {result.set_us:>5.1f} us {result.get_us:>5.1f} us"
        )
    return "\n".join(lines)


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="snugly_bench demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", default="target/release/snugly", help="the snugly to run (default: %(default)s)")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("SNUGLY_DATA", DEFAULT_DATA)),
        help="a folder of .jsonl files; generated values where it does not exist (default: %(default)s)",
    )
    parser.add_argument("--values", type=int, help="at most so many values of each data set")
    return parser.parse_args(words)


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    program = find_snugly(arguments.program)
    if arguments.data.is_dir():
        sets = {path.stem: read_lines(path, arguments.values) for path in sorted(arguments.data.glob("*.jsonl"))}
        print(f"Real values from {arguments.data}")
    else:
        count = arguments.values or 5000
        sets = {kind: generated(program, kind, size, count) for kind, size in GENERATED.items()}
        print(f"Generated values, for there is no folder {arguments.data}")
    results: dict[tuple[str, str], Result] = {}
    # Written and read; for dictionaries written once more.
    with Progress((2 * len(CODECS) + 3) * sum(map(len, sets.values()))) as progress:
        for codec in CODECS:
            with start(snugly_peer(program, codec)) as server, valkey.Valkey(port=server.port) as client:
                for data, values in sets.items():
                    results[data, codec] = measure(server, client, data, codec, values, progress)
        # A server of its own for each data set, which knows nothing of the others.
        for data, values in sets.items():
            with start(learning_snugly_peer(program)) as server, valkey.Valkey(port=server.port) as client:
                results[data, LEARNING] = measure(server, client, data, LEARNING, values, progress)
    print(table([results[data, codec] for data in sets for codec in (*CODECS, LEARNING)]))
    print(
        "\nEvery value came back byte for byte. Resident counts keys, values, dictionaries and overhead. SET\n"
        f"and GET are the server's processor time in pipelines of {BATCH}, the network's share included."
    )
