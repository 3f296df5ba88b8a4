"""A loopback that is limited, with the kernel's own traffic control."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

PROGRAM = """
import socket, subprocess
from snugly_bench.java import loopback
loopback.separate()
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
loopback.limit("1gbit", port)
client = socket.create_connection(("127.0.0.1", port))
server, _ = listener.accept()
client.sendall(bytes(300_000))
received = 0
while received < 300_000:
    received += len(server.recv(1 << 20))
server.sendall(bytes(200_000))
while received < 500_000:
    received += len(client.recv(1 << 20))
subprocess.run(["tc", "-s", "class", "show", "dev", "lo"], check=True)
"""
"""Sends 300 kB to a port and gets 200 kB from it, and shows what went through each class."""


def is_allowed() -> bool:
    """Whether this machine has what it takes."""
    if not all(map(shutil.which, ("unshare", "ip", "tc"))):
        return False
    tried = "ip link set lo up && tc qdisc add dev lo root htb"
    return subprocess.run(["unshare", "--net", "sh", "-c", tried], check=False, capture_output=True).returncode == 0


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def qdiscs() -> str:
    return subprocess.run(["tc", "qdisc", "show"], check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(not is_allowed(), reason="takes root, and tc with htb")
def test_each_direction_is_limited_by_itself_and_nobody_elses_network_is() -> None:
    before = qdiscs()
    shown = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, stdout=subprocess.PIPE, text=True, env=environment()
    )
    lines = [line.split() for line in shown.stdout.splitlines()]
    sent = {words[2]: int(after[1]) for words, after in pairwise(lines) if words[:2] == ["class", "htb"]}
    rates = [words[words.index("rate") + 1] for words in lines if "rate" in words and words[0] == "class"]
    assert rates == ["1Gbit", "1Gbit"]
    assert 300_000 < sent["1:1"] < 350_000
    assert 200_000 < sent["1:2"] < 250_000
    assert qdiscs() == before


WRONG_RATE = """
from snugly_bench.java import loopback
loopback.separate()
loopback.limit("fast", 7684)
"""


@pytest.mark.skipif(not is_allowed(), reason="takes root, and tc with htb")
def test_a_rate_that_is_none_is_refused_in_words() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", WRONG_RATE], check=False, capture_output=True, text=True, env=environment()
    )
    assert shown.returncode == 1
    assert "rate fast" in shown.stderr
    assert "Traceback" not in shown.stderr
