"""The demo, on the program that is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import servers
from snugly_bench.servers import demo, mixed


def test_the_demo_leaves_the_store_of_a_server_alone_that_the_environment_configures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    monkeypatch.setenv("SNUGLY_STORAGE", str(store))
    program = str(servers.snugly_binary())
    demo.main(["--program", program, "--values", "5", "--data", str(tmp_path / "none")])
    shown = capsys.readouterr().out
    assert "Every value came back byte for byte" in shown
    assert shown.count("zstd + dict") == 4
    assert not store.exists()


@pytest.mark.parametrize("benchmark", [demo.main, mixed.main])
def test_where_there_is_no_program_it_says_how_to_build_one(benchmark: Callable[[list[str]], None]) -> None:
    with pytest.raises(SystemExit, match="missing/snugly is no program that can be run: build it"):
        benchmark(["--program", "missing/snugly"])
