"""The files that an image of a container is built from. No engine runs here: they are read."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import servers

pytestmark = pytest.mark.snugly_only

DOCKER = servers.ROOT / "packaging" / "docker"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile and their words."""
    text = re.sub(r"\\\n\s*", "", (DOCKER / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, words) for name, _, words in (line.partition(" ") for line in lines)]


def reaches_the_build(path: str) -> bool:
    """Whether .dockerignore lets a path through: the last pattern counts that names it or a folder around it."""
    around = [path, *(str(parent) for parent in Path(path).parents if str(parent) != ".")]
    let_through = True
    for line in (servers.ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        if line and not line.startswith("#") and any(fnmatch.fnmatch(part, pattern) for part in around):
            let_through = line.startswith("!")
    return let_through


def test_the_image_is_built_from_files_that_exist_and_reach_the_build() -> None:
    copied = [words.split()[:-1] for name, words in instructions() if name == "COPY" and not words.startswith("--from")]
    sources = [source for sources in copied for source in sources]
    assert sources
    for source in sources:
        assert (servers.ROOT / source).exists(), source
        assert reaches_the_build(source), source
    # cargo reads the manifests of all members, whichever it builds.
    workspace = tomllib.loads((servers.ROOT / "Cargo.toml").read_text())["workspace"]
    for member in workspace["members"]:
        assert any(Path(member).is_relative_to(source) for source in sources), member
    assert not reaches_the_build("target/release/snugly")
    assert not reaches_the_build(".git")


def help_of(subcommand: str) -> str:
    command = [str(servers.snugly_binary()), subcommand, "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_image_runs_the_program_as_nobody_special_and_asks_it_for_its_health() -> None:
    of = dict(instructions())
    assert [name for name, _ in instructions()].count("FROM") == 2
    assert all(re.search(r":\d+\.\d+", words) for name, words in instructions() if name == "FROM"), "pinned"
    assert of["USER"].partition(":")[0].isdigit()
    assert int(of["USER"].partition(":")[0]) > 0
    assert f"[default: {of['EXPOSE']}]" in help_of("serve").partition("--port")[2]
    check = re.search(r'CMD \["snugly", "(\w+)"\]', of["HEALTHCHECK"])
    assert check
    assert help_of(check[1]).startswith("Tells whether a server answers")
    settings = tomllib.loads((DOCKER / "snugly.toml").read_text())
    assert Path(settings["storage"]).is_relative_to(of["VOLUME"])
