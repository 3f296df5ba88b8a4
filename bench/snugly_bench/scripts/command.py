"""The cost of scripts: `make bench-scripts`.

Measures the processor time of requests of one connection, 16 at a time: single commands, and the scripts that locks,
counters and queues run, of snugly and of valkey-server (the environment variable SNUGLY_VALKEY_SERVER or the PATH).
"""

from __future__ import annotations

import argparse
import textwrap
from contextlib import ExitStack
from hashlib import sha1
from itertools import product

import valkey

from snugly_bench.arguments import measuring, parse_with_rounds, positive
from snugly_bench.machine import machine
from snugly_bench.progress import Progress
from snugly_bench.results import Aim, Results, judge, table, write_report
from snugly_bench.servers.compare import check_cores
from snugly_bench.servers.loads import CPU, SERVER_CORE, WIDTH
from snugly_bench.servers.peers import Peer, Server, find_snugly, snugly_peer, start, valkey_peer
from snugly_bench.servers.process import process_seconds

ROUNDS = 5
PIPELINE = 16
REQUESTS, QUICK_REQUESTS = 160_000, 160
VALUE = b"v" * 100
"""Too short to be compressed: what is left is the same work as Valkey's."""
JSON = b'{"id":17,"name":"a product","price":12.5,"tags":["a","b","c"],"stock":{"here":3,"there":null},"sold":true}'

Request = tuple[bytes | str | int, ...]
COMPARE_AND_DELETE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
COUNT = "local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end return n"
READ = "return redis.call('GET', KEYS[1])"
LOADS: dict[str, tuple[Request, ...]] = {
    "GET": (("GET", "key"),),
    "EVAL of nothing": (("EVAL", "return 1", 0),),
    "EVAL of a GET": (("EVAL", READ, 1, "key"),),
    "a lock that another one has": (("EVALSHA", COMPARE_AND_DELETE, 1, "key", "token"),),
    "a lock, taken and released": (
        ("SET", "lock", "token", "NX", "PX", 10_000),
        ("EVALSHA", COMPARE_AND_DELETE, 1, "lock", "token"),
    ),
    "a counter with a window": (("EVALSHA", COUNT, 1, "counter", 60_000),),
    "a loop of 1,000 additions": (("EVAL", "local s = 0 for i = 1, 1000 do s = s + i end return s", 0),),
    "JSON, read and written": (
        ("EVAL", "local t = cjson.decode(ARGV[1]) t.id = t.id + 1 return cjson.encode(t)", 0, JSON),
    ),
}
"""Requests that are repeated; where EVALSHA has a text, its digest is sent."""
AIMED = ("EVAL of a GET", "a lock that another one has", "a lock, taken and released")


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = measuring("scripts", __doc__)
    parser.add_argument("--rounds", type=positive, help=f"rounds (default: {ROUNDS}, or 1 with --quick)")
    return parse_with_rounds(parser, words, ROUNDS)


def prepared(client: valkey.Valkey, requests: tuple[Request, ...]) -> list[Request]:
    """As many of the requests as are sent at a time, with digests, and what they need on the server."""
    client.flushall()
    client.set("key", VALUE)
    sent: list[Request] = []
    for request in requests:
        if request[0] == "EVALSHA":
            client.script_load(str(request[1]))
            sent.append((request[0], sha1(str(request[1]).encode()).hexdigest(), *request[2:]))
        else:
            sent.append(request)
    return sent * (PIPELINE // len(sent))


def ask(server: Server, requests: tuple[Request, ...], count: int) -> dict[str, float]:
    """The server's processor time for a request."""
    with valkey.Valkey(port=server.port) as client:
        connection = client.connection_pool.get_connection("PING")
        batch = connection.pack_commands(prepared(client, requests))

        def send() -> None:
            connection.send_packed_command(batch)
            for _ in range(PIPELINE):
                connection.read_response()

        send()
        before = process_seconds(server.pid)
        for _ in range(count // PIPELINE):
            send()
        taken = process_seconds(server.pid) - before
    return {CPU: 1e6 * taken / count}


def measure(peers: list[Peer], rounds: int, count: int) -> Results:
    """Asks the servers in turn, each round with servers just started, and another one first."""
    results = Results(peers[0].name)
    with Progress(rounds * len(peers) * len(LOADS)) as progress, ExitStack() as running:
        for number in range(rounds):
            servers = [running.enter_context(start(peer, SERVER_CORE)) for peer in peers]
            first = number % len(servers)
            for (name, requests), server in product(LOADS.items(), servers[first:] + servers[:first]):
                with progress.step(1, f"round {number + 1} of {rounds}: {name}, {server.peer.name}"):
                    results.add(name, server.peer.name, ask(server, requests, count))
            running.close()
    return results


def report(results: Results, peers: list[Peer], rounds: int) -> str:
    valkey_name, snugly_name = (peer.name for peer in peers)
    aims = (Aim(snugly_name, CPU, "most", 1.2, valkey_name, AIMED),)
    rows = [
        [
            name,
            results.spread(name, valkey_name, CPU).show(),
            results.spread(name, snugly_name, CPU).show(),
            results.ratio(name, snugly_name, CPU, valkey_name).show(),
            judge(aims, results, name, snugly_name),
        ]
        for name in LOADS
    ]
    method = textwrap.fill(
        f"One connection sends {PIPELINE} requests at a time; each server has one thread on core {SERVER_CORE}, and "
        f"stores values as they are. Rounds: {rounds}, the servers in turn within each; shown are medians (lowest to "
        "highest), and ratios are medians of each round's ratio.",
        WIDTH,
    )
    header = ["requests", valkey_name, snugly_name, f"of {valkey_name}'s", "aim"]
    return f"## {CPU}\n\n{table(header, rows, texts=(0, 4))}\n\n{method}\n"


def main(words: list[str]) -> None:
    arguments = parse_arguments(words)
    program = find_snugly(arguments.program)
    check_cores()
    peers = [valkey_peer(), snugly_peer(program, "none")]
    results = measure(peers, arguments.rounds, QUICK_REQUESTS if arguments.quick else REQUESTS)
    parts = ["# What scripts cost\n", f"{machine()}. {'; '.join(peer.version for peer in peers)}.\n"]
    if arguments.quick:
        parts.append("Measured with --quick: these figures only show that everything runs.\n")
    text = "\n".join([*parts, report(results, peers, arguments.rounds)])
    print(text)
    print(write_report(arguments.output, "scripts", text, [results]))
