"""Stores that programs of earlier formats have written, opened by this one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import memcached
import old_stores
import servers
from servers import check

pytestmark = pytest.mark.snugly_only
ARCHIVES = sorted(old_stores.FOLDER.glob("version-*.tar.xz"))
FORMAT = Path(servers.ROOT) / "crates" / "store" / "src" / "disk" / "FORMAT.md"


def version_now() -> int:
    """The version of the format that the document of it is about."""
    stated = re.search(r"^Version (\d+)\.", FORMAT.read_text(), re.MULTILINE)
    assert stated
    return int(stated[1])


def version_in(archive: Path) -> int:
    return int(archive.name.removeprefix("version-").removesuffix(".tar.xz"))


def test_there_is_a_store_of_the_format_before_this_one() -> None:
    assert version_now() - 1 in [version_in(archive) for archive in ARCHIVES]


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_a_store_of_an_earlier_format_is_upgraded_with_everything_in_it(archive: Path, tmp_path: Path) -> None:
    store = old_stores.unpack(archive, tmp_path)
    assert old_stores.version_of(store) == version_in(archive)
    assert "changes in the journal" in check(store)
    assert old_stores.version_of(store) == version_in(archive), "looking changes nothing"
    for _ in range(2):
        with servers.reserved_port() as port:
            command = old_stores.serving(str(servers.snugly_binary()), store, port)
            with servers.serving("snugly", command) as server, server.connect() as connection:
                old_stores.assert_filled(connection, memcached.Client(port))
        check(store)
        assert old_stores.version_of(store) == version_now()


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_a_backup_of_an_earlier_format_is_restored_and_upgraded(archive: Path, tmp_path: Path) -> None:
    backup, store = old_stores.unpack(archive, tmp_path / "backup"), tmp_path / "restored"
    command = [str(servers.snugly_binary()), "restore", str(backup), str(store)]
    subprocess.run(command, check=True, capture_output=True)
    assert old_stores.version_of(store) == version_in(archive)
    with servers.reserved_port() as port:
        command = old_stores.serving(str(servers.snugly_binary()), store, port)
        with servers.serving("snugly", command) as server, server.connect() as connection:
            old_stores.assert_filled(connection, memcached.Client(port))


def test_a_store_of_a_later_format_is_refused_by_its_version_and_stays_as_it_is(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with servers.snugly("--storage", str(store)) as server, server.connect() as connection:
        connection.command("SET", "key", "value")
    data = store / "data.mdb"
    content = data.read_bytes()
    # A downgrade meets the same: version and checksum of the identity are those of a later program.
    later = old_stores.with_version(content, version_now() + 1)
    data.write_bytes(later)
    for words in ["check"], ["compact"], ["serve", "--port", "0", "--storage"]:
        command = [str(servers.snugly_binary()), *words, str(store)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert f"has format version {version_now() + 1}" in done.stderr
        assert "use the program that wrote it" in done.stderr
    assert data.read_bytes() == later
