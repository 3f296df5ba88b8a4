"""`snugly train`: dictionaries from the values of live servers, published in the catalogue, listed and forgotten."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import live
import servers
import threads
import waiting
from alike import user
from live import url
from resp import Connection
from servers import Server

pytestmark = pytest.mark.snugly_only
USERS = 2000
CATALOGUE = b"{snugly}:dicts"
FAST = ["--rate", "100000"]
MAGIC = b"\x37\xa4\x30\xec"


@pytest.fixture
def filled() -> Iterator[Server]:
    # A replica that is there need not wait for others before it gets the data.
    with servers.valkey("--repl-diskless-sync-delay", "0") as server, server.connect() as connection:
        live.put_users(connection, USERS)
        yield server


def train(server: Server, *options: str, pattern: str = "user:*") -> str:
    return live.tool("train", url(server), "--pattern", pattern, *FAST, *options)


def catalogue(connection: Connection) -> dict[str, Any]:
    document = connection.command("GET", CATALOGUE)
    assert isinstance(document, bytes)
    read = json.loads(document)
    assert isinstance(read, dict)
    return read


def published(server: Server) -> int:
    """The ID of the dictionary that is published first."""
    train(server, "--publish", "--yes")
    with server.connect() as connection:
        identity = catalogue(connection)["active"][0]["id"]
        assert isinstance(identity, int)
        return identity


def test_a_training_measures_and_writes_nothing(filled: Server) -> None:
    with filled.connect() as connection:
        before = live.calls(connection)
        told = train(filled)
        after = live.calls(connection)
        assert connection.command("DBSIZE") == USERS
    called = {name for name, count in after.items() if count > before.get(name, 0)}
    assert not called & {"set", "del", "watch", "multi", "exec", "touch"}
    ratios = {row.split("  ")[0]: row for row in told.splitlines()}
    assert {"lz4", "zstd 3"} <= set(ratios)
    assert sum("dictionary of" in row for row in ratios) >= 3
    assert "Trained from" in told
    assert "nothing was written" in told


def test_a_dictionary_is_published_where_clients_look_for_it(filled: Server, tmp_path: Path) -> None:
    file = tmp_path / "users.dict"
    told = train(filled, "--publish", "--yes", "--out", str(file), "--size", "4096")
    with filled.connect() as connection:
        document = catalogue(connection)
        [active], [entry] = document["active"], document["dictionaries"]
        assert document["version"] == 1
        assert active == {"pattern": "user:*", "id": entry["id"]}
        assert 0 < entry["ratio_after"] < entry["ratio_before"] < 1
        assert entry["samples"] > 1000
        assert entry["trained_at"].endswith("Z")
        assert entry["published_at"] > 1_700_000_000
        dictionary = connection.command("GET", f"{{snugly}}:dict:{entry['id']}")
        assert connection.command("TTL", f"{{snugly}}:dict:{entry['id']}") == -1
    assert dictionary == file.read_bytes()
    assert dictionary.startswith(MAGIC)
    assert len(dictionary) == entry["bytes"] <= 4096
    assert f"{{snugly}}:dict:{entry['id']}" in told
    assert str(entry["id"]) in live.tool("train", url(filled), "--list")


def test_a_more_precise_pattern_comes_first_and_the_older_dictionary_stays(filled: Server) -> None:
    with filled.connect() as connection:
        train(filled, "--publish", "--yes", "--size", "2048", pattern="*")
        train(filled, "--publish", "--yes", "--size", "4096")
        train(filled, "--publish", "--yes", "--size", "8192")
        document = catalogue(connection)
        assert [row["pattern"] for row in document["active"]] == ["user:*", "*"]
        assert len(document["dictionaries"]) == 3
        assert document["active"][0]["id"] == document["dictionaries"][-1]["id"]


def test_nobody_is_asked_where_nobody_can_answer(filled: Server) -> None:
    done = live.run("train", url(filled), "--pattern", "user:*", "--publish", *FAST)
    assert done.returncode == 1
    assert "say --yes" in done.stderr
    with filled.connect() as connection:
        assert connection.command("DBSIZE") == USERS


@pytest.mark.parametrize(("answer", "is_published"), [(b"y\n", True), (b"n\n", False), (b"\n", False)])
def test_somebody_on_a_terminal_is_asked(filled: Server, answer: bytes, is_published: bool) -> None:
    ours, theirs = pty.openpty()
    command = [str(servers.snugly_binary()), "train", url(filled), "--pattern", "user:*", "--publish", *FAST]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        os.write(ours, answer)
        out, err = process.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    assert b"[y/N]" in err
    assert (process.returncode == 0) == is_published
    assert (b"published as" in out) == is_published
    with filled.connect() as connection:
        assert (connection.command("EXISTS", CATALOGUE) == 1) == is_published


def test_several_who_publish_at_once_lose_nothing(filled: Server) -> None:
    patterns = ["user:*", "user:1*", "user:2*", "user:3*"]

    def publish(pattern: str) -> Callable[[], None]:
        return lambda: print(train(filled, "--publish", "--yes", pattern=pattern))

    threads.in_threads(*map(publish, patterns))
    with filled.connect() as connection:
        document = catalogue(connection)
        assert sorted(row["pattern"] for row in document["active"]) == sorted(patterns)
        for row in document["active"]:
            assert connection.command("EXISTS", f"{{snugly}}:dict:{row['id']}") == 1


def test_fields_of_newer_programs_stay_in_the_catalogue(filled: Server) -> None:
    with filled.connect() as connection:
        connection.command("SET", CATALOGUE, '{"version": 1, "note": "newer"}')
        train(filled, "--publish", "--yes")
        assert catalogue(connection)["note"] == "newer"
        connection.command("SET", CATALOGUE, '{"version": 2}')
        done = live.run("train", url(filled), "--pattern", "user:*", "--publish", "--yes", *FAST)
    assert done.returncode == 1
    assert "version 2" in done.stderr


def test_a_replica_has_the_dictionary_before_the_catalogue_names_it(filled: Server) -> None:
    with servers.valkey("--replicaof", f"127.0.0.1 {filled.port}") as replica, replica.connect() as connection:
        waiting.until(lambda: connection.command("DBSIZE") == USERS)
        identity = published(filled)
        assert connection.command("EXISTS", f"{{snugly}}:dict:{identity}") == 1
        with filled.connect() as primary:
            assert live.calls(primary)["wait"] == 1


def test_a_server_that_may_evict_dictionaries_gets_a_warning() -> None:
    with servers.valkey("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") as server:
        with server.connect() as connection:
            live.put_users(connection, 200)
        done = live.run("train", url(server), "--pattern", "user:*", *FAST)
        assert "maxmemory-policy is allkeys-lru" in done.stderr


def test_a_forgotten_dictionary_stays_until_it_is_deleted(filled: Server) -> None:
    identity = published(filled)
    key = f"{{snugly}}:dict:{identity}"
    with filled.connect() as connection:
        assert "is not used for new values" in live.tool("train", url(filled), "--forget", str(identity), "--yes")
        document = catalogue(connection)
        assert document["active"] == []
        assert [row["id"] for row in document["dictionaries"]] == [identity]
        assert connection.command("EXISTS", key) == 1
        live.tool("train", url(filled), "--forget", str(identity), "--delete", "--yes", *FAST)
        document = catalogue(connection)
        assert (document["dictionaries"], document["forgotten"]) == ([], [identity])
        assert connection.command("EXISTS", key) == 0
        assert "no dictionaries are published" in live.tool("train", url(filled), "--list")


def test_a_dictionary_that_a_value_needs_is_not_deleted(filled: Server) -> None:
    identity = published(filled)
    with filled.connect() as connection:
        frame = bytes.fromhex("28b52ffd 03 58") + identity.to_bytes(4, "little")
        connection.command("SET", "needs:it", b"\x00\x01\x02\x00\x81" + frame + b"\x00" * 100)
        options = ["--forget", str(identity), "--delete", "--yes", *FAST]
        done = live.run("train", url(filled), *options)
        assert done.returncode == 1
        assert f"1 of {USERS + 1} sampled values need dictionary {identity}: nothing was deleted" in done.stderr
        assert connection.command("EXISTS", f"{{snugly}}:dict:{identity}") == 1
        assert catalogue(connection)["active"] != []


def test_what_no_catalogue_has_is_listed_and_can_be_forgotten(filled: Server) -> None:
    identity = published(filled)
    with filled.connect() as connection:
        assert "is in the catalogue" in live.tool("train", url(filled), "--orphans")
        connection.command("DEL", "{snugly}:dicts")
        connection.command("SET", "{snugly}:dict:40000", "something else")
        listed = live.tool("train", url(filled), "--orphans")
        assert str(identity) in listed
        assert "not this dictionary" in next(line for line in listed.splitlines() if "40000" in line)
        refused = live.run("train", url(filled), "--forget", str(identity), "--yes")
        assert "--delete forgets it" in refused.stderr
        for each in (identity, 40000):
            live.tool("train", url(filled), "--forget", str(each), "--delete", "--yes", *FAST)
            assert connection.command("EXISTS", f"{{snugly}}:dict:{each}") == 0
        assert catalogue(connection)["forgotten"] == [identity, 40000]


def test_dictionaries_that_are_not_there_cannot_be_forgotten(filled: Server) -> None:
    done = live.run("train", url(filled), "--forget", "40000")
    assert done.returncode == 1
    assert "there is no dictionary 40000" in done.stderr


def test_values_in_envelopes_are_decoded_before_they_are_learned_from(filled: Server) -> None:
    zstandard = pytest.importorskip("zstandard")
    compressor = zstandard.ZstdCompressor(level=3)
    plain = train(filled)
    with filled.connect() as connection:
        envelopes = [b"\x00\x01\x02\x00\x01" + compressor.compress(user(number)) for number in range(USERS)]
        live.write(connection, [("SET", f"user:{number}", value) for number, value in enumerate(envelopes)])
    assert ratios(train(filled)) == pytest.approx(ratios(plain), abs=0.03)


def ratios(told: str) -> list[float]:
    """The figures of lz4, zstd and the best dictionary."""
    rows = [row.replace(" *", "  ").split() for row in told.splitlines()]
    [lz4] = [float(row[1]) for row in rows if row[:1] == ["lz4"] and "+" not in row]
    [zstd] = [float(row[2]) for row in rows if row[:2] == ["zstd", "3"] and "+" not in row]
    return [lz4, zstd, min(float(row[row.index("+") + 5]) for row in rows if "+" in row)]


def test_too_little_to_learn_from_is_said(filled: Server) -> None:
    done = live.run("train", url(filled), "--pattern", "nothing:*", *FAST)
    assert done.returncode == 1
    assert "0 of the sampled values" in done.stderr
    assert "does the pattern match keys of strings?" in done.stderr


def test_noise_gets_no_dictionary_that_is_worth_it() -> None:
    with servers.valkey() as server, server.connect() as connection:
        live.write(connection, [("SET", f"noise:{number}", os.urandom(300)) for number in range(1000)])
        done = live.run("train", url(server), "--pattern", "noise:*", *FAST)
        assert "saves no more than" in done.stderr or "no dictionary" in done.stderr


def test_publishing_without_permission_names_the_command(filled: Server) -> None:
    with filled.connect() as connection:
        connection.command("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@read", "+info", "+ping")
    login = url(filled, "reader:secret@")
    done = live.run("train", login, "--pattern", "user:*", "--publish", "--yes", *FAST)
    assert done.returncode == 1
    assert "refuses SET, which is needed to publish a dictionary" in done.stderr
    assert "ACL SETUSER reader +set" in done.stderr


def test_a_cluster_has_all_of_its_dictionaries_on_one_node() -> None:
    with servers.valkey_cluster() as nodes:
        for node in nodes:
            with node.connect() as connection:
                live.put_users(connection, USERS)  # those of other nodes are refused
        train(nodes[0], "--publish", "--yes", "--samples", "100000")
        held = []
        for node in nodes:
            with node.connect() as connection:
                keys = connection.command("KEYS", "{snugly}*")
                assert isinstance(keys, list)
                held.append(len(keys))
        assert sorted(held) == [0, 0, 2]
        for node in nodes:
            assert "user:*" in live.tool("train", url(node), "--list")


def test_a_prefix_of_their_own_keeps_tenants_apart(filled: Server) -> None:
    train(filled, "--publish", "--yes", "--prefix", "{tenant}")
    with filled.connect() as connection:
        assert connection.command("EXISTS", "{tenant}:dicts", CATALOGUE) == 1
    assert "user:*" in live.tool("train", url(filled), "--list", "--prefix", "{tenant}")
