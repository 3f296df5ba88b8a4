"""A compile cache in snugly: sccache over memcached and over Redis finds everything again, also after a restart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import servers

SCCACHE = Path(sys.executable).parent / "sccache"
CARGO_HOME = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
# C that the program is built of: files of lz4, from the smallest on.
SOURCES = sorted(
    CARGO_HOME.glob("registry/src/*/lz4-sys-*/liblz4/lib/lz4*.c"), key=lambda path: (path.stat().st_size, path)
)

pytestmark = [
    pytest.mark.skipif(not SCCACHE.exists(), reason="sccache is not installed"),
    pytest.mark.skipif(not SOURCES, reason="cargo has not fetched lz4-sys"),
]


class Compiler:
    """A compiler behind sccache, whose daemon has a cache server of our own."""

    def __init__(self, endpoint: dict[str, str], port: int, folder: Path) -> None:
        # Other settings of sccache would choose other caches.
        usual = {name: value for name, value in os.environ.items() if not name.startswith("SCCACHE_")}
        self.environment = {**usual, **endpoint, "SCCACHE_SERVER_PORT": str(port), "SCCACHE_DIR": str(folder / "local")}
        self.folder = folder

    def sccache(self, *arguments: str) -> str:
        command = [str(SCCACHE), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def compile(self, source: Path) -> bytes:
        compiled = self.folder / f"{source.stem}.o"
        self.sccache("cc", "-O0", "-c", str(source), "-o", str(compiled))
        return compiled.read_bytes()

    def count(self, what: str) -> int:
        stats = json.loads(self.sccache("--show-stats", "--stats-format", "json"))["stats"]
        return sum(stats[what]["counts"].values())


@contextmanager
def compiler(endpoint: dict[str, str], folder: Path) -> Iterator[Compiler]:
    with servers.reserved_port() as port:
        behind = Compiler(endpoint, port, folder)
        behind.sccache("--start-server")
        try:
            yield behind
        finally:
            behind.sccache("--stop-server")


@pytest.mark.parametrize("protocol", ["memcached", "redis"])
@pytest.mark.parametrize("count", [1, pytest.param(len(SOURCES), marks=pytest.mark.slow)])
def test_everything_is_found_again_after_a_restart(protocol: str, count: int, tmp_path: Path) -> None:
    with servers.reserved_port() as memcached_port:
        flags = ["--storage", str(tmp_path / "store"), "--memcached-port", str(memcached_port)]

        def endpoint(server: servers.Server) -> dict[str, str]:
            if protocol == "redis":
                return {"SCCACHE_REDIS_ENDPOINT": f"redis://127.0.0.1:{server.port}"}
            return {"SCCACHE_MEMCACHED_ENDPOINT": f"tcp://127.0.0.1:{memcached_port}"}

        with servers.snugly(*flags) as server, compiler(endpoint(server), tmp_path) as first:
            compiled = [first.compile(source) for source in SOURCES[:count]]
            assert (first.count("cache_hits"), first.count("cache_misses")) == (0, count)
            assert [first.compile(source) for source in SOURCES[:count]] == compiled
            assert (first.count("cache_hits"), first.count("cache_misses")) == (count, count)
        with servers.snugly(*flags) as server, compiler(endpoint(server), tmp_path) as second:
            assert [second.compile(source) for source in SOURCES[:count]] == compiled
            assert (second.count("cache_hits"), second.count("cache_misses")) == (count, 0)
