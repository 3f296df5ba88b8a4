"""A loopback that transmits only so many bits a second: one of its own, which the kernel's traffic control limits.

It is in a network namespace that ends with this process and its children, so nobody else's loopback is touched. Knows
nothing of what is measured.
"""

from __future__ import annotations

import ctypes
import os
import subprocess

from snugly_bench.servers.peers import find_program

CLONE_NEWNET = 0x40000000
"""From Linux's sched.h; Python has `os.unshare` from 3.12 on."""
BURST = "15k"
"""Bytes that may be sent at once after a pause."""
QUANTUM = "60000"
"""Bytes that a class may send in its turn; the two never wait for each other, and tc warns of the default."""


def run(program: str, *words: str) -> None:
    """The program says itself what is wrong."""
    if subprocess.run([find_program(program, "install iproute2"), *words], check=False).returncode != 0:
        raise SystemExit(f"the network was not limited: this failed: {program} {' '.join(words)}")


def separate() -> None:
    """Moves this process to a network that has a loopback and nothing else."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise SystemExit(f"a network of one's own takes Linux and root: {os.strerror(ctypes.get_errno())}")
    run("ip", "link", "set", "lo", "up")


def limit(rate: str, port: int) -> None:
    """Transmits `rate`, such as 100mbit, from a port, and as much to it, headers included."""
    run("tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb", "default", "1")
    for class_id in ("1:1", "1:2"):
        shape = ("rate", rate, "burst", BURST, "cburst", BURST, "quantum", QUANTUM)
        run("tc", "class", "add", "dev", "lo", "parent", "1:", "classid", class_id, "htb", *shape)
    match = ("u32", "match", "ip", "sport", str(port), "0xffff")
    run("tc", "filter", "add", "dev", "lo", "parent", "1:", "protocol", "ip", *match, "flowid", "1:2")
