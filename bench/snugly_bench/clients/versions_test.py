"""Versions of a library beside each other."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from snugly_bench.clients import versions
from snugly_bench.clients.command import parse_arguments
from snugly_bench.clients.peers import PEERS
from snugly_bench.clients.versions import BESIDE, installed_version, peer, peer_name


def test_peers_are_named_with_a_version_or_without() -> None:
    assert parse_arguments(["--peers", "snugly,valkey-glide==2.6.0"]).peers == ("snugly", "valkey-glide==2.6.0")
    assert parse_arguments([]).peers == (*PEERS, *BESIDE)


@pytest.mark.parametrize("name", ["glide", "glide==2.6.0", "valkey-glide==", "valkey-glide==../x", "valkey-glide==-e"])
def test_names_of_nothing_that_could_be_installed_are_refused(name: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is none of snugly"):
        peer_name(name)


def test_another_version_is_imported_from_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    lying = versions.folder("valkey-glide==9.9.9")
    (lying / "valkey_glide-9.9.9.dist-info").mkdir(parents=True)
    (lying / "valkey_glide-9.9.9.dist-info" / "METADATA").write_text("Name: valkey-glide\nVersion: 9.9.9\n")
    assert installed_version("valkey-glide==9.9.9") == "9.9.9"
    found = peer("valkey-glide==9.9.9")
    assert (found.name, found.backends) == ("valkey-glide==9.9.9", PEERS["valkey-glide"].backends)
    assert sys.path[0] == str(lying)


def test_a_version_that_cannot_be_installed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    asked: list[str] = []
    monkeypatch.setattr(versions, "install", asked.append)
    assert installed_version("redis-py==0.0.1") is None
    assert asked == ["redis-py==0.0.1"]
