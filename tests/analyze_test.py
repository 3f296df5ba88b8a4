"""`snugly analyze` and `snugly explain` on live servers: what they find, that they only read, how they end early."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

import live
import servers
import waiting
from alike import user
from live import analysis, pattern, url
from resp import Argument
from servers import Server

pytestmark = pytest.mark.snugly_only
USERS = 2000
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def filled() -> Iterator[Server]:
    """A valkey-server with keys of many kinds."""
    with servers.valkey() as server, server.connect() as connection:
        live.put_users(connection, USERS)
        requests: list[tuple[Argument, ...]] = []
        for number in range(200):
            requests += [
                ("SET", f"page:{number}", user(number) * 10, "EX", 3600),
                ("SET", f"image:{number}", PNG + os.urandom(2000)),
                ("SET", f"count:{number}", number),
                ("SET", b"bin\xff\x00:%d" % number, b"\x00\xff" * 100),
                ("HSET", f"hash:{number}", "field", user(number)),
                ("ZADD", f"ranks:{number}", 1, "member"),
            ]
        requests += [("SET", f"huge:{number}", user(number) * 5000) for number in range(20)]
        requests += [("APPEND", "log", "x"), ("GET", "user:1")]
        live.write(connection, requests)
        yield server


def test_an_analysis_counts_what_is_there_and_says_what_is_worth_it(filled: Server) -> None:
    # For memory processor time counts little, so that the choice is the same on any machine.
    found = analysis(url(filled), "--sample", "1000000", "--goal", "memory")
    keys = USERS + 6 * 200 + 20 + 1
    assert (found["keys"], found["sampled"]) == (keys, keys)
    assert found["software"].startswith("Valkey 9")
    users = pattern(found, "user:*")
    assert (users["keys"], users["types"]) == (USERS, ["string"])
    assert users["stored"] == users["raw"] == sum(len(user(number)) for number in range(USERS))
    ways = {way["name"]: way for way in users["ways"]}
    assert ways["as it is"]["saved"] == 0
    best = users["ways"][users["best"]]
    assert best["dictionary"] is not None
    assert best["saved"] > ways["zstd 3"]["saved"] > 0
    images = pattern(found, "image:*")
    assert images["compressed"] == 1
    assert images["ways"][images["best"]]["name"] == "as it is"
    assert pattern(found, "page:*")["expiring"] == 1
    assert pattern(found, r"bin\xff\x00:*")["keys"] == 200
    types = {row["name"]: row["compression"] for row in found["types"]}
    assert types == {"string": "compressed", "hash": "with value_types: hashes", "zset": "never"}
    refused = {row["command"]: row for row in found["traffic"]["refused"] if not row["with"]}
    assert refused["APPEND"]["calls"] == 1
    assert "a part of the compressed bytes" in refused["APPEND"]["reason"]
    assert [row["value_type"] for row in found["traffic"]["opt_in"]] == ["hashes"]
    clients = {row["language"]: row["configuration"] for row in found["advice"]["clients"]}
    assert 'backend="zstd"' in clients["Python"]
    assert 'dictionary="catalogue"' in clients["Python"]
    assert "UseCatalogue: true" in clients["Go"]
    assert ".catalogue(true)" in clients["Java"]
    assert "user:*" in found["advice"]["dictionaries"]


@pytest.mark.slow
def test_seconds_bound_the_sampling(filled: Server) -> None:
    found = analysis(url(filled), "--sample", "1000000", "--seconds", "1", rate=400)
    assert 0 < found["sampled"] < USERS
    assert 3000 < found["keys"] < 3500
    told = live.run("train", url(filled), "--pattern", "user:*", "--rate", "400", "--seconds", "1").stderr
    assert "as there were after 1 seconds (--seconds)" in told


def test_a_part_of_the_keys_stands_for_all(filled: Server) -> None:
    found = analysis(url(filled), "--sample", "1000")
    assert found["sampled"] == 1000
    assert 3000 < found["keys"] < 3500
    assert 3000 < analysis(url(filled), "--sample", "130")["keys"] < 3500
    assert 0.7 * USERS < pattern(found, "user:*")["keys"] < 1.3 * USERS


def test_nothing_is_written_and_long_values_are_not_read_whole(filled: Server) -> None:
    with filled.connect() as connection:
        keys, before = connection.command("DBSIZE"), live.calls(connection)
        sent_before = sent(filled)
        found = analysis(url(filled), "--sample", "1000000")
        after = live.calls(connection)
        assert connection.command("DBSIZE") == keys
        called = {name for name, count in after.items() if count > before.get(name, 0)}
        assert called <= {
            *["scan", "type", "pttl", "memory|usage", "strlen", "get", "getrange", "dbsize", "info", "ping", "select"],
        }
        assert after["getrange"] - before.get("getrange", 0) == 20
    huge = sum(len(user(number)) * 5000 for number in range(20))
    assert sent(filled) - sent_before < huge / 4
    assert any("20 sampled values are longer than 64.00 KiB" in note for note in found["notes"])
    assert pattern(found, "huge:*")["raw"] == huge


def sent(server: Server) -> int:
    with server.connect() as connection:
        text = connection.command("INFO", "stats")
        assert isinstance(text, bytes)
        return int(text.split(b"total_net_output_bytes:")[1].split(b"\r\n")[0])


def test_the_text_and_the_page_have_the_same_findings(filled: Server, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    text = live.tool("analyze", url(filled), "--observe", "0", "--rate", "100000", "--html", str(page))
    html = page.read_text()
    for told in ("user:*", "page:*", r"bin\xff\x00:*", "APPEND", "CompressionConfiguration"):
        assert told in text
        assert told in html
    for told in ("of strings", "of memory"):
        assert told in text
        assert f"<th>{told}</th>" in html
    assert "<svg" in html
    assert "prefers-color-scheme: dark" in html
    assert not re.search(r"(src|href)=|https?://|<script", html)


@pytest.mark.slow
def test_rates_are_those_of_the_time_that_was_observed(filled: Server) -> None:
    process = live.started("analyze", url(filled), "--json", "--observe", "2", "--rate", "100000", "--sample", "100")
    with process, filled.connect() as connection:
        while process.poll() is None:
            connection.command("GET", "user:1")
            time.sleep(0.01)
        found = json.loads(process.communicate()[0])
    assert found["traffic"]["reads_per_second"] > 5
    assert found["traffic"]["writes_per_second"] == 0
    assert found["traffic"]["observed"].endswith("s just now")


@pytest.mark.slow
def test_ctrl_c_evaluates_what_was_sampled_and_no_more_was_asked_than_the_rate_allows(filled: Server) -> None:
    rate = 100
    with filled.connect() as connection:
        before = live.calls(connection).get("type", 0)
        began = time.monotonic()
        options = ["--json", "--observe", "0", "--rate", str(rate)]
        with live.started("analyze", url(filled), *options) as process:
            waiting.until(lambda: live.calls(connection).get("type", 0) - before >= 100)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        asked, seconds = live.calls(connection)["type"] - before, time.monotonic() - began
    assert process.returncode == 0, err
    assert err == "", "nothing is drawn where nobody looks"
    found = json.loads(out)
    assert found["sampling"].endswith("until Ctrl-C")
    assert found["sampled"] == asked
    # SCAN may give a few more keys than it is asked for.
    assert asked <= 1.5 * rate * (seconds + 1)


@pytest.mark.slow
def test_ctrl_c_before_the_first_key_is_an_error_and_leaves_the_last_report(filled: Server, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("the last report")
    with filled.connect() as connection:

        def is_counting() -> bool:
            clients = connection.command("CLIENT", "LIST")
            return isinstance(clients, bytes) and clients.count(b"cmd=info") == 1

        with live.started("analyze", url(filled), "--observe", "60", "--html", str(page)) as process:
            waiting.until(is_counting)
            time.sleep(0.2)  # it may be at the sections before
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert "stopped before a key was sampled" in err
    assert page.read_text() == "the last report"


def test_a_page_for_which_there_is_no_folder_is_refused_before_anything_is_read(filled: Server, tmp_path: Path) -> None:
    done = live.run("analyze", url(filled), "--html", str(tmp_path / "missing" / "report.html"))
    assert done.returncode == 1
    assert "there is no such folder" in done.stderr


def test_a_few_large_values_of_many_patterns_are_judged_together_and_one_by_itself() -> None:
    with servers.valkey() as server, server.connect() as connection:
        for name in range(30):
            connection.command("SET", "page:" + "abcdefghij"[name % 10] * (name // 10 + 1), user(name) * 60)
        found = analysis(url(server), "--goal", "memory")
        together = [row for row in found["patterns"] if row["ways"]]
        assert found["advice"]["saved"] > 0
        assert sum(row["sampled"] for row in together) == 30
        text = live.tool("explain", url(server), "page:a", "--rate", "100000")
        assert "zstd 3" in text


def test_what_earlier_analyses_have_called_is_not_reported_as_use() -> None:
    with servers.valkey() as server, server.connect() as connection:
        live.put_users(connection, 100)
        connection.command("SET", "long", "x" * 100_000)
        for _ in range(2):
            found = json.loads(live.tool("analyze", url(server), "--json", "--observe", "0.1", "--rate", "100000"))
        commands = {row["command"] for row in found["traffic"]["refused"] if not row["with"]}
        assert not commands & {"STRLEN", "GETRANGE"}


def test_passwords_of_the_environment_are_used_where_the_url_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with servers.valkey("--requirepass", "secret") as server:
        monkeypatch.setenv("REDISCLI_AUTH", "secret")
        assert analysis(url(server))["keys"] == 0


def test_a_server_that_dies_leaves_the_findings_of_what_was_sampled_until_then() -> None:
    with servers.valkey() as server:
        with server.connect() as connection:
            live.put_users(connection, 5000)
            options = ["--json", "--observe", "0", "--rate", "200"]
            process = live.started("analyze", url(server), *options)
            waiting.until(lambda: live.calls(connection).get("type", 0) >= 60)
        server.process.kill()
        with process:
            out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    found = json.loads(out)
    assert 0 < found["sampled"] < 5000
    assert "lost the connection" in found["sampling"]
    assert "lost the connection" in err
    assert "panicked" not in err


def test_a_server_without_keys_has_nothing_to_compress() -> None:
    with servers.valkey() as server:
        assert "no keys" in live.tool("analyze", url(server), "--observe", "0")


def test_a_server_without_strings_is_counted_all_the_same() -> None:
    with servers.valkey() as server, server.connect() as connection:
        live.write(connection, [("LPUSH", f"queue:{number}", "x" * 100) for number in range(100)])
        text = live.tool("analyze", url(server), "--observe", "0", "--rate", "100000")
        assert "too few strings" in text
        assert "nothing here is worth compressing" in text
        assert "with value_types: lists" in text


def test_a_cluster_is_found_and_scanned_on_each_primary() -> None:
    with servers.valkey_cluster() as nodes:
        for node in nodes:
            with node.connect() as connection:
                live.put_users(connection, 3000)  # those of other nodes are refused
        for options in ([], ["--cluster"]):
            found = analysis(url(nodes[0]), "--sample", "100000", *options)
            assert (found["nodes"], found["keys"], found["sampled"]) == (3, 3000, 3000)
        text = live.tool("explain", url(nodes[1]), "user:7", "--rate", "100000")
        assert "kind: user:*" in text


def test_a_single_server_is_no_cluster(filled: Server) -> None:
    done = live.run("analyze", url(filled), "--cluster")
    assert done.returncode == 1
    assert "no node of a cluster: leave --cluster out" in done.stderr


def test_snugly_is_analyzed_and_explains_a_value_itself() -> None:
    with servers.snugly() as server, server.connect() as connection:
        live.put_users(connection, 500)
        connection.command("SET", "page", user(1) * 20)
        found = analysis(url(server, scheme="snugly"))
        assert found["software"].startswith("snugly ")
        assert found["compresses_itself"]
        assert found["advice"] is None
        text = live.tool("explain", url(server, scheme="snugly"), "page", "--rate", "100000")
        assert "kept by snugly:\n  codec: lz4\n" in text
        assert "explained by snugly:\n" in text
        assert "\n  reason: " in text


def test_a_report_that_nobody_reads_to_its_end_is_no_error(filled: Server) -> None:
    with live.started("analyze", url(filled), "--observe", "0", "--rate", "100000") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 0


@pytest.fixture(scope="module")
def locked(filled: Server) -> Iterator[Server]:
    """The filled server with users who may do less."""
    with filled.connect() as connection:
        rules = {
            "reader": ["~*", "+@read", "+info", "+ping"],
            "blind": ["~*", "+scan", "+type", "+strlen"],
            "users": ["~user:*", "+@read", "+ping"],
        }
        for name, allowed in rules.items():
            connection.command("ACL", "SETUSER", name, "on", ">secret", *allowed)
        yield filled


def test_a_user_who_may_read_is_enough(locked: Server) -> None:
    found = analysis(url(locked, "reader:secret@"))
    assert found["sampled"] > USERS


def test_a_command_that_is_not_allowed_is_named_with_its_purpose(locked: Server) -> None:
    done = live.run("analyze", url(locked, "blind:secret@"), "--observe", "0")
    assert done.returncode == 1
    assert "refuses GET, which is needed to read the values" in done.stderr
    assert "ACL SETUSER blind +get" in done.stderr


def test_keys_that_are_not_allowed_are_left_out_and_so_is_what_may_not_be_asked(locked: Server) -> None:
    found = analysis(url(locked, "users:secret@"), "--sample", "100000")
    assert [row["pattern"] for row in found["patterns"]] == ["user:*"]
    assert found["traffic"] is None
    assert any("commandstats" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("login", "told"),
    [
        ("", "it wants a password: redis://:password@host"),
        (":wrong@", "check user and password"),
    ],
)
def test_a_login_that_fails_says_what_to_do(login: str, told: str) -> None:
    with servers.valkey("--requirepass", "secret") as server:
        done = live.run("analyze", url(server, login))
        assert done.returncode == 1
        assert told in done.stderr
        assert "wrong" not in done.stderr.replace("WRONGPASS", "")
        assert "no keys" in live.tool("analyze", url(server, ":secret@"), "--observe", "0")


def test_a_server_that_is_not_there_is_a_clear_error() -> None:
    with servers.reserved_port() as port:
        done = live.run("analyze", f"redis://127.0.0.1:{port}")
    assert done.returncode == 1
    assert "Connection refused" in done.stderr
    assert "check host and port" in done.stderr


def test_a_unix_socket_is_an_address_too(tmp_path: Path) -> None:
    socket = tmp_path / "valkey.sock"
    with servers.valkey("--unixsocket", str(socket)) as server, server.connect() as connection:
        connection.command("SELECT", 3)
        connection.command("SET", "user:1", user(1))
        assert analysis(f"unix://{socket}?db=3")["keys"] == 1
        assert analysis(f"unix://{socket}")["keys"] == 0


def test_encrypted_connections_trust_whom_they_are_told_to(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    trustme.CA().cert_pem.write_to_path(tmp_path / "stranger.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    pem = str(tmp_path / "server.pem")
    options = ["--tls-ca-cert-file", str(tmp_path / "authority.pem"), "--tls-auth-clients", "no"]
    options += ["--tls-cert-file", pem, "--tls-key-file", pem]
    try:
        with (
            servers.reserved_port() as port,
            servers.redis("--tls-port", str(port), *options) as server,
            server.connect() as connection,
        ):
            live.put_users(connection, 10)
            address = f"rediss://127.0.0.1:{port}"
            assert analysis(address, "--ca-file", str(tmp_path / "authority.pem"))["keys"] == 10
            assert analysis(address, "--insecure")["keys"] == 10
            refused = live.run("analyze", address, "--ca-file", str(tmp_path / "stranger.pem"))
            assert refused.returncode == 1
            assert "--ca-file names the certificates to trust" in refused.stderr
            plain = live.run("analyze", url(server), "--insecure")
            assert "write rediss://" in plain.stderr
    except servers.NoProgram as error:
        pytest.skip(str(error))


def explained(server: Server, key: str) -> subprocess.CompletedProcess[str]:
    return live.run("explain", url(server), key, "--rate", "100000")


def test_a_value_is_explained_with_what_each_goal_would_take(filled: Server) -> None:
    told = explained(filled, "user:7").stdout
    assert "stored: plain, no envelope" in told
    about = re.search(r"kind: user:\*, about ([\d,]+) keys", told)
    assert about is not None
    assert 0.4 * USERS < int(about[1].replace(",", "")) < 1.6 * USERS
    for goal in ("memory", "balanced", "speed"):
        assert f"\n{goal}, for which a saved byte may cost" in told
    assert "in a compressed format or random" in explained(filled, "image:7").stdout
    assert "hashes among their value types" in explained(filled, "hash:7").stdout
    assert "has no key" in explained(filled, "nothing").stderr


def test_a_key_that_is_no_text_is_written_as_reports_show_it(filled: Server) -> None:
    told = explained(filled, r"bin\xff\x00:7").stdout
    assert r'"bin\xff\x00:7": a string of 200 B' in told
    assert r"kind: bin\xff\x00:*" in told


def test_an_envelope_is_explained_by_its_backend_and_dictionary(filled: Server) -> None:
    frame = bytes.fromhex("28b52ffd 03 58 409c0000")  # magic number, header, window, ID of the dictionary
    with filled.connect() as connection:
        connection.command("SET", "enveloped", b"\x00\x01\x02\x00\x81" + frame)
        told = explained(filled, "enveloped").stdout
        connection.command("DEL", "enveloped")
    assert "backend 81" in told
    assert "dictionary: 40000, not there beside the data" in told
