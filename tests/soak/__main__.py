"""The command line of the soak: how long, from which seed, and where the logs go."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from servers import ROOT
from soak.run import Failed, soak

LOGS = ROOT / "target" / "soak"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m soak", description="Soaks servers under load and disturbances.")
    parser.add_argument("--seconds", type=float, default=600.0, help="seconds of load (default: %(default)s)")
    parser.add_argument("--seed", default=str(int(time.time())), help="seed of load and plan (default: the time)")
    parser.add_argument("--logs", type=Path, default=LOGS, help="folder for the servers' logs (default: %(default)s)")
    chosen = parser.parse_args(words)
    # Unwinds, so that servers and small disks are gone.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        soak(chosen.seconds, chosen.seed, chosen.logs, lambda line: print(line, flush=True))
    except Failed as failure:
        print(f"FAILED: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
