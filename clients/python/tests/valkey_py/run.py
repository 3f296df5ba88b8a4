"""Runs valkey-py's own tests with this package's clients, and compares what fails with what may.

    python run.py DEPENDENCIES

DEPENDENCIES is a folder with the packages of requirements.txt. The tests come from valkey-py's source distribution.
They run with valkey-py's classes and with ours (`compressing.py`), against a valkey-server and against a cluster.
What fails only with ours must be in the table of docs/python.md, and what is in the table must fail with a server or a
cluster.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import trustme

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
sys.path.insert(0, str(ROOT / "tests"))

import servers  # noqa: E402

GUIDE = ROOT / "docs" / "python.md"
SECTION = "## valkey-py's own tests"
# Modules are not there, and of TLS only what needs no server.
LEFT_OUT = "not valkeymod and not ssl"
SUITES = {"server": f"not onlycluster and {LEFT_OUT}", "cluster": f"not onlynoncluster and {LEFT_OUT}"}
CLASSES = {"valkey-py": [], "snugly": ["-p", "compressing"]}

Outcomes: TypeAlias = dict[str, set[str]]
"""By the name of a test what its variants did: `passed`, `failed`, or `skipped`."""


def download(folder: Path) -> Path:
    """valkey-py's source distribution in the version that is installed, with the certificates that its tests read."""
    release = f"valkey-{version('valkey')}"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-binary",
        ":all:",
        "--no-deps",
        "--dest",
        str(folder),
    ]
    subprocess.run([*pip, release.replace("-", "==")], check=True)
    with tarfile.open(folder / f"{release}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    made = folder / release
    # The package that is tested is the one that is installed.
    (made / "valkey").rename(made / "source")
    keys = made / "dockers" / "stunnel" / "keys"
    keys.mkdir(parents=True)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(keys / "ca-cert.pem")
    for name in ("server", "client"):
        issued = authority.issue_cert("127.0.0.1", "localhost")
        issued.private_key_pem.write_to_path(keys / f"{name}-key.pem")
        issued.cert_chain_pems[0].write_to_path(keys / f"{name}-cert.pem")
    return made


@contextmanager
def started(suite: str) -> Iterator[int]:
    """The port of a new server, or of a node of a new cluster."""
    if suite == "cluster":
        with servers.valkey_cluster(3, 1) as nodes:
            yield nodes[0].port
    else:
        with servers.valkey() as server:
            yield server.port


def outcomes(source: Path, dependencies: Path, suite: str, classes: str, tests: Iterable[str] = ("tests",)) -> Outcomes:
    """Returns the outcomes of these tests with these classes."""
    with started(suite) as port, tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        command = [
            sys.executable,
            "-m",
            "pytest",
            *CLASSES[classes],
            *tests,
            "-q",
            "-p",
            "no:cacheprovider",
            "--tb=native",
        ]
        command += ["-m", SUITES[suite], f"--valkey-url=valkey://127.0.0.1:{port}/0", f"--report-log={report}"]
        environment = {**os.environ, "SUITE": suite, "PYTHONPATH": os.pathsep.join([str(dependencies), str(HERE)])}
        done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"pytest could not run the tests of valkey-py:\n{done.stdout}{done.stderr}")
        found: Outcomes = {}
        for line in report.read_text().splitlines():
            entry = json.loads(line)
            if entry["$report_type"] == "TestReport" and (entry["when"] == "call" or entry["outcome"] != "passed"):
                found.setdefault(name_of(entry["nodeid"]), set()).add(entry["outcome"])
        return found


def name_of(test: str) -> str:
    """The test without the variant that it runs in: a protocol, a kind of connection, an argument."""
    return test.partition("[")[0].removeprefix("tests/")


def failing(found: Outcomes) -> set[str]:
    return {name for name, seen in found.items() if "failed" in seen}


def allowed() -> list[str]:
    """The patterns of the table, for names of functions, or of modules with what is in them."""
    section = GUIDE.read_text().partition(SECTION)[2].partition("\n## ")[0]
    return [
        pattern
        for row in re.findall(r"^\| (`test_.*`) \|", section, re.MULTILINE)
        for pattern in row[1:-1].split("`, `")
    ]


def matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name if "::" in pattern else name.rpartition("::")[2], pattern)


def compared(suite: str, source: Path, dependencies: Path) -> tuple[Outcomes, set[str]]:
    """Returns the outcomes of the tests with snugly's classes, and those that fail with them only."""
    with ThreadPoolExecutor() as pool:
        theirs, ours = pool.map(lambda classes: outcomes(source, dependencies, suite, classes), CLASSES)
    only = failing(ours) - failing(theirs)
    if only:
        # Some depend on time, and fail once in a while with any class.
        only &= failing(outcomes(source, dependencies, suite, "snugly", sorted(f"tests/{name}" for name in only)))
    print(f"{suite}: {len(ours)} tests, {len(failing(theirs))} fail with valkey-py, {len(only)} only with snugly")
    return ours, only


def main(dependencies: Path) -> int:
    ours: Outcomes = {}
    only: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        source = download(Path(folder))
        for suite in SUITES:
            seen, differing = compared(suite, source, dependencies)
            only |= differing
            for name, done in seen.items():
                ours.setdefault(name, set()).update(done)
    patterns = allowed()
    listed = {name for name in ours if any(matches(name, pattern) for pattern in patterns)}
    passing = {name for name in listed - failing(ours) if "passed" in ours[name]}
    unused = [pattern for pattern in patterns if not any(matches(name, pattern) for name in only)]
    found = [f"{name} fails with snugly only, and is not in the table" for name in sorted(only - listed)]
    found += [f"{name} is in the table, and passes" for name in sorted(passing)]
    found += [f"{pattern} is in the table, and is no test that fails" for pattern in unused]
    print("\n".join(found) or f"as the table of {GUIDE.name} says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
