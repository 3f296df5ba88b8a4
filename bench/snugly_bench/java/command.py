"""`java`: client libraries for Java, with and without compression: `make bench-java`.

Starts a valkey-server, and has the program in clients/java/benchmark measure it; all other options are those of that
program, which `--help` shows. With an option that names a server, that one is measured, and none is started.
`--tc 1gbit` limits the network in the kernel, where `--link` has a relay for it; this takes root.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from snugly_bench.java import loopback
from snugly_bench.machine import machine
from snugly_bench.servers.peers import find_program, start, valkey_peer

MAIN = "dev.snugly.benchmark.Main"
RESULTS = "bench-results/java.json"
ELSEWHERE = {"--host", "--port", "--tls", "--tlsCa", "--clusterModeEnabled"}
"""Options of the program that only make sense with a server that is there already."""

OUR_HELP = f"""
`make bench-java` starts a valkey-server of its own, unless there is one of
{", ".join(sorted(ELSEWHERE))}.
It writes to {RESULTS} by default, and has one more option:

      --tc RATE              Have the kernel limit the network to so much, such as
                             1gbit, in place of --link: with Linux, root and tc."""


def parse_arguments(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our arguments, and those of the program."""
    parser = argparse.ArgumentParser(prog="snugly_bench java", add_help=False, allow_abbrev=False)
    parser.add_argument("--module", type=Path, default=Path("clients/java/benchmark"))
    parser.add_argument("--tc")
    parser.add_argument("--resultsFile", default=RESULTS)
    return parser.parse_known_args(words)


def program(module: Path) -> list[str]:
    """The command that runs the program built by Maven."""
    built = module / "target" / "class-path"
    if not built.is_file():
        raise SystemExit(f"{built} is not there: build it with `make bench-java`")
    java = find_program("java", "install a JDK, 17 or later")
    return [java, "-cp", f"{module / 'target' / 'classes'}:{built.read_text().strip()}", MAIN]


def main(words: list[str]) -> None:
    arguments, others = parse_arguments(words)
    command = [*program(arguments.module), *others, "--resultsFile", arguments.resultsFile]
    if {"--help", "-h"} & set(others):
        code = subprocess.run(command, check=False).returncode
        print(OUR_HELP)
        sys.exit(code)
    options = {word.partition("=")[0] for word in others}
    if arguments.tc and options & {"--link", *ELSEWHERE}:
        raise SystemExit("--tc limits a network with a server of its own: leave out --link, and what names a server")
    with ExitStack() as afterwards:
        if ELSEWHERE.isdisjoint(options):
            if arguments.tc:
                loopback.separate()
            peer = valkey_peer()
            print(f"# Java clients\n\n{machine()}. {peer.version}.\n", flush=True)
            server = afterwards.enter_context(start(peer))
            if arguments.tc:
                loopback.limit(arguments.tc, server.port)
                command += ["--link", f"tc:{arguments.tc}"]
            command += ["--host", "127.0.0.1", "--port", str(server.port)]
        code = subprocess.run(command, check=False).returncode
    sys.exit(code)
