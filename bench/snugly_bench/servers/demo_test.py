"""The demo, on the program that is there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import servers
from snugly_bench.servers import demo, mixed


@pytest.mark.slow
def test_the_demo_leaves_the_store_of_a_server_alone_that_the_environment_configures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    monkeypatch.setenv("SNUGLY_STORAGE", str(store))
    program = str(servers.snugly_binary())
    monkeypatch.setenv("SNUGLY_VALKEY_SERVER", str(servers.valkey_binary()))
    monkeypatch.delenv("SNUGLY_DATA", raising=False)
    demo.main(["--program", program, "--values", "200"])
    shown = capsys.readouterr().out
    assert "Every value came back byte for byte" in shown
    assert shown.count("snugly zstd + dict") == 4
    assert "valkey: Valkey server v=" in shown
    assert re.search(r"valkey: .* with (libc|jemalloc)", shown)
    plain = re.findall(r"^\w+ +(?:valkey|redis|snugly none) .* (-?[\d.]+)% ", shown, re.MULTILINE)
    assert len(plain) >= 8
    assert not store.exists()


def test_a_folder_without_values_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(SystemExit, match=r"has no \.jsonl files with values"):
        demo.read_folder(tmp_path, None)


@pytest.mark.parametrize("benchmark", [demo.main, mixed.main])
def test_where_there_is_no_program_it_says_how_to_build_one(benchmark: Callable[[list[str]], None]) -> None:
    with pytest.raises(SystemExit, match="missing/snugly is no program that can be run: build it"):
        benchmark(["--program", "missing/snugly"])
