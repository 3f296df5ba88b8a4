"""The package for Debian: its files, and what installing and removing it does to a system, which is a folder here."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers

PROGRAMS = ("dpkg-deb", "dpkg-shlibdeps", "systemd-sysusers", "deb-systemd-helper")
pytestmark = [
    pytest.mark.snugly_only,
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)), reason="this is no Debian with systemd"),
]

VERSION = "1.2.3"


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="snugly-test-") as folder:
        build = servers.ROOT / "packaging" / "debian" / "build.sh"
        program = str(servers.snugly_binary())
        # Packed quickly, not well.
        quick = {"DPKG_DEB_COMPRESSOR_TYPE": "gzip", "DPKG_DEB_COMPRESSOR_LEVEL": "1"}
        yield Path(run("sh", build, folder, PROGRAM=program, VERSION=VERSION, **quick).strip())


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """The root folder of a system that has nothing but a database of packages and the user root."""
    for path in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "etc"):
        (tmp_path / path).mkdir(parents=True)
    for path, content in (
        ("var/lib/dpkg/status", ""),
        ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
        ("etc/group", "root:x:0:\n"),
    ):
        (tmp_path / path).write_text(content)
    return tmp_path


def dpkg(system: Path, *words: str | Path) -> None:
    # Scripts are run outside, on the folder that DPKG_ROOT names, and what the package needs is not in there.
    log = f"--log={system}/dpkg.log"
    run("dpkg", f"--root={system}", log, "--force-script-chrootless", "--force-depends", *words)


def test_the_package_tells_what_it_is_and_needs_and_its_settings_are_of_the_administrator(package: Path) -> None:
    def field(name: str) -> str:
        return run("dpkg-deb", "--field", package, name).strip()

    assert (field("Package"), field("Version")) == ("snugly", VERSION)
    assert field("Architecture") == run("dpkg", "--print-architecture").strip()
    assert "libc6 (>= " in field("Depends")
    assert "@" not in run("dpkg-deb", "--field", package).replace("<maintainers@", "")
    assert run("dpkg-deb", "--info", package, "conffiles") == "/etc/snugly/snugly.toml\n"


def test_files_are_of_root_and_pages_are_compressed(package: Path) -> None:
    rows = [line.split() for line in run("dpkg-deb", "--contents", package).splitlines()]
    assert {row[1] for row in rows} == {"root/root"}
    paths = {row[5] for row in rows}
    assert {
        "./usr/bin/snugly",
        "./usr/share/man/man1/snugly-serve.1.gz",
        "./usr/share/zsh/vendor-completions/_snugly",
        "./usr/share/doc/snugly/copyright",
        "./usr/share/doc/snugly/changelog.gz",
        "./usr/lib/systemd/system/snugly.service",
        "./usr/lib/systemd/system/snugly.socket",
    } <= paths


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can install")
def test_installing_creates_the_user_and_enables_the_service_and_removing_keeps_the_settings(
    package: Path, system: Path
) -> None:
    dpkg(system, "--install", package)
    assert "snugly:" in (system / "etc/passwd").read_text()
    wanted = system / "etc/systemd/system/multi-user.target.wants/snugly.service"
    assert wanted.is_symlink()
    assert run(system / "usr/bin/snugly", "--version").startswith("snugly ")
    settings = system / "etc/snugly/snugly.toml"
    settings.write_text("port = 7000\n")
    dpkg(system, "--force-confold", "--install", package)
    assert settings.read_text() == "port = 7000\n"
    store = system / "var/lib/snugly/store"
    store.mkdir(parents=True)
    dpkg(system, "--remove", "snugly")
    assert not (system / "usr/bin/snugly").exists()
    assert settings.exists()
    assert store.exists()
    dpkg(system, "--purge", "snugly")
    assert not settings.exists()
    assert not store.exists()
    assert not wanted.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can install")
def test_a_service_that_was_disabled_stays_so_through_an_upgrade(package: Path, system: Path) -> None:
    dpkg(system, "--install", package)
    wanted = system / "etc/systemd/system/multi-user.target.wants/snugly.service"
    wanted.unlink()
    dpkg(system, "--install", package)
    assert not wanted.is_symlink()
