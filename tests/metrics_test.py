"""The admin endpoint: what Prometheus reads is well-formed, says what INFO says, and costs clients nothing."""

from __future__ import annotations

import contextlib
import random
import re
import socket
import subprocess
from pathlib import Path

import pytest

import servers
import waiting
from admin import Series, begin, parse, request, scrape, value
from resp import Connection, Failure, encode
from tested import Start
from threads import in_threads
from trained import dictionary

pytestmark = pytest.mark.snugly_only
REFERENCE = servers.ROOT / "docs" / "reference.md"


def documented() -> list[str]:
    section = REFERENCE.read_text().split("\n## Metrics\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(snugly_\w+)` ", section, re.MULTILINE)


def fields(connection: Connection) -> dict[str, str]:
    text = connection.command("INFO", "everything")
    assert isinstance(text, bytes)
    return dict(line.split(":", 1) for line in text.decode().split("\r\n") if ":" in line)


def word(line: str, name: str) -> float:
    return float(dict(pair.split("=", 1) for pair in line.split(","))[name])


def work(connection: Connection) -> None:
    """A little of everything that is counted."""
    text = b"to be or not to be, that is the question. " * 50
    for number in range(50):
        connection.command("SET", f"text:{number}", text + str(number).encode())
        connection.command("SET", f"small:{number}", number, "EX", 1000)
        connection.command("SET", f"noise:{number}", random.Random(number).randbytes(1000))
        connection.command("GET", f"text:{number}")
        connection.command("GET", f"missing:{number}")
    connection.command("CONFIG", "SET", "compression", "lz4")
    connection.command("SET", "lz4", text)
    connection.command("GET", "lz4")
    connection.command("GETRANGE", "lz4", "x", 1)
    connection.command("NOSUCH")
    connection.command("SELECT", 3)
    connection.command("SET", "other", "database")
    connection.command("SELECT", 0)


def test_all_that_is_documented_is_there_under_a_name_of_its_own(start: Start, admin: int) -> None:
    begin(start, admin)
    status, text = request(admin, "GET", "/metrics")
    assert status == 200
    named = []
    for family in parse(text):
        suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}[family.type]
        assert family.documentation
        assert {sample.name for sample in family.samples} <= {family.name + suffix for suffix in suffixes}
        named.append(family.name + ("_total" if family.type == "counter" else ""))
    assert named == documented()
    assert len(set(named)) == len(named) > 70


# Fields of INFO, and the metrics that say the same.
SAME = {
    "connected_clients": "connected_clients",
    "maxclients": "max_clients",
    "maxmemory": "max_memory_bytes",
    "used_memory_startup": "memory_startup_bytes",
    "used_memory_dataset": "memory_dataset_bytes",
    "total_system_memory": "system_memory_bytes",
    "total_connections_received": "connections_received_total",
    "expired_keys": "expired_keys_total",
    "evicted_keys": "evicted_keys_total",
    "keyspace_hits": "keyspace_hits_total",
    "keyspace_misses": "keyspace_misses_total",
    "compression_saved_bytes": "compression_saved_bytes",
    "encode_failures": "encode_failures_total",
    "decode_failures": "decode_failures_total",
    "dictionary_hits": "dictionary_hits_total",
    "dictionary_misses": "dictionary_misses_total",
    "dictionaries_enabled": "dictionaries_enabled",
    "dictionary_trainings": "dictionary_trainings_total",
    "dictionaries": "dictionaries",
    "disk_max_bytes": "disk_max_bytes",
    "disk_reads": "disk_reads_total",
    "disk_journal_records": "disk_journal_records_total",
    "disk_commit_bytes": "disk_commit_bytes_total",
    "disk_failed_commits": "disk_failed_commits_total",
    "recompression_passes": "recompression_passes_total",
    "reencoded_records": "reencoded_records_total",
}


def told_and_found(connection: Connection, admin: int) -> tuple[dict[str, str], dict[Series, float]]:
    """INFO and the metrics of a moment in which nothing changed: the journal takes what expires a little later."""
    told = fields(connection)
    found: dict[Series, float] = {}

    def is_quiet() -> bool:
        nonlocal told, found
        before = told
        found = scrape(admin)
        told = fields(connection)
        return all(told[field] == before[field] for field in SAME)

    waiting.until(is_quiet)
    return told, found


def test_the_numbers_are_those_of_info(start: Start, admin: int, tmp_path: Path) -> None:
    server = begin(start, admin, "--storage", str(tmp_path / "store"), "--durability", "fsync", "--max-memory", "1gb")
    with server.connect() as connection:
        work(connection)
        told, found = told_and_found(connection, admin)
    assert {field: float(told[field]) for field in SAME} == {field: value(found, name) for field, name in SAME.items()}
    assert value(found, "encode_seconds_total") == pytest.approx(int(told["encode_nanoseconds"]) / 1e9)
    for codec in ("none", "lz4", "zstd", "zstd_dictionary", "lzf", "lz4_dictionary"):
        for doing in ("encoded", "decoded"):
            assert value(found, f"{doing}_values_total", codec=codec) == int(told[f"{doing}_values_{codec}"])
            for end, direction in (("input", "in"), ("output", "out")):
                counted = int(told[f"{doing}_bytes_{direction}_{codec}"])
                assert value(found, f"{doing}_{end}_bytes_total", codec=codec) == counted
    for reason in ("small", "large", "compressed", "no_gain"):
        assert value(found, "skipped_values_total", reason=reason) == int(told[f"skipped_{reason}"])
    assert value(found, "error_replies_total", code="ERR") == word(told["errorstat_ERR"], "count") == 2
    for command in ("set", "get", "getrange", "config|set"):
        line = told[f"cmdstat_{command}"]
        assert value(found, "command_calls_total", command=command) == word(line, "calls") > 0
        assert value(found, "command_failed_calls_total", command=command) == word(line, "failed_calls")
        assert value(found, "command_seconds_total", command=command) == pytest.approx(word(line, "usec") / 1e6)
    for database in ("0", "3"):
        assert value(found, "keys", database=database) == word(told[f"db{database}"], "keys") > 0
        assert value(found, "volatile_keys", database=database) == word(told[f"db{database}"], "expires")
    assert value(found, "keys", database="1") == 0
    assert value(found, "build_info", version=told["snugly_version"]) == 1


def test_latencies_of_a_family_are_those_of_its_commands(start: Start, admin: int) -> None:
    with begin(start, admin).connect() as connection:
        work(connection)
        connection.command("RPUSH", "list", *"abc")
        connection.command("MULTI")
        connection.command("EXEC")
        connection.command("EVAL", "return 1", 0)
        found = scrape(admin)
        calls = {
            "read": ["get", "getrange"],
            "write": ["set"],
            "list": ["rpush"],
            "script": ["eval"],
            "transaction": ["multi", "exec"],
        }
        name = "command_duration_seconds"
        for family, commands in calls.items():
            counted = sum(value(found, "command_calls_total", command=command) for command in commands)
            assert value(found, f"{name}_count", family=family) == counted > 0
            assert value(found, f"{name}_sum", family=family) > 0
            assert value(found, f"{name}_bucket", family=family, le="+Inf") == counted
        families = {dict(labels)["family"] for series, labels in found if series == f"snugly_{name}_count"}
        assert families == {*calls, "admin", "connection"}
        for family in families:
            at = {
                float(dict(labels)["le"]): number
                for (series, labels), number in found.items()
                if series == f"snugly_{name}_bucket" and dict(labels)["family"] == family
            }
            counts = [at[bound] for bound in sorted(at)]
            assert counts == sorted(counts), "a bucket has all that is in those below it"
        connection.command("CONFIG", "SET", "latency-tracking", "no")
        connection.command("GET", "lz4")
        assert value(scrape(admin), f"{name}_count", family="read") == value(found, f"{name}_count", family="read")


def test_counters_only_go_up(start: Start, admin: int) -> None:
    with begin(start, admin).connect() as connection:
        work(connection)
        before = scrape(admin)
        work(connection)
        after = scrape(admin)
    counters = {series for series in before if series[0].endswith("_total")}
    assert all(after[series] >= before[series] for series in counters)
    grown = {name for name, labels in counters if after[(name, labels)] > before[(name, labels)]}
    expected = ["commands_processed", "net_input_bytes", "keyspace_hits", "encoded_input_bytes", "command_calls"]
    assert {f"snugly_{name}_total" for name in expected} <= grown


def test_a_dictionary_is_shown_whatever_its_pattern(start: Start, admin: int) -> None:
    content = dictionary()
    pattern = b'odd"} \r\n\x00\xff\xc3,=#:*'
    with begin(start, admin).connect() as connection:
        number = connection.command("DICTIONARY", "IMPORT", pattern, 100, content)
        assert isinstance(number, int)
        told, found = fields(connection), scrape(admin)
    line = told[f"dictionary_{number}"]
    line, shown = line.split(",pattern=", 1)
    labels = {"number": str(number), "pattern": shown, "min_len": str(int(word(line, "min_len")))}
    assert value(found, "dictionary_memory_bytes", **labels) == word(line, "memory")
    assert value(found, "dictionary_content_bytes", **labels) == word(line, "bytes")
    assert value(found, "dictionary_active", **labels) == 1
    assert value(found, "dictionary_records", **labels) == 0
    trained = value(found, "dictionary_trained_timestamp_seconds", **labels)
    assert trained == pytest.approx(word(line, "trained_at") / 1000)


def test_it_is_read_while_clients_write_and_statistics_are_reset(start: Start, admin: int) -> None:
    server = begin(start, admin)

    def write() -> None:
        with server.connect() as connection:
            for number in range(300):
                connection.command("SET", f"key:{number}", "x" * 1000)
                assert connection.command("GET", f"key:{number}") == b"x" * 1000

    def reset() -> None:
        with server.connect() as connection:
            for _ in range(300):
                connection.command("CONFIG", "RESETSTAT")

    def read() -> None:
        for _ in range(25):
            found = scrape(admin)
            assert value(found, "keys", database="0") <= 300
            assert all(0 <= number < 1e15 for number in found.values())

    in_threads(*[write] * 3, reset, *[read] * 8)
    assert "panicked" not in server.output()


def test_those_who_connect_and_ask_nothing_keep_nobody_out(start: Start, admin: int) -> None:
    server = begin(start, admin)
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", admin), 20)) for _ in range(300)]
        for half in idle[::2]:
            # The oldest of them are closed already.
            with contextlib.suppress(OSError):
                half.sendall(b"GET /metr")
        # The client that has seen the server start may be there still.
        waiting.until(lambda: value(scrape(admin), "connected_clients") == 0)
        with contextlib.suppress(ConnectionResetError):
            assert idle[0].recv(100) == b""
        with server.connect() as connection:
            assert connection.command("SET", "key", "value")


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\xff\xfe\r\n\r\n",
        b"PING\r\n\r\n",
        b"GET /metrics\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET /" + b"x" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\n" + b"Header: value\r\n" * 100_000 + b"\r\n",
        b"*1\r\n$4\r\nPING\r\n",
    ],
    ids=["bytes", "inline", "no version", "odd version", "odd length", "long path", "many headers", "RESP"],
)
def test_what_is_no_request_is_refused(start: Start, admin: int, garbage: bytes) -> None:
    server = begin(start, admin)
    with socket.create_connection(("127.0.0.1", admin), 20) as connection:
        answer = b""
        # It may be refused, and the connection closed, before all of it was sent.
        with contextlib.suppress(ConnectionError):
            connection.sendall(garbage)
            answer = connection.recv(1000)
    assert not answer or re.match(rb"HTTP/1\.[01] 4\d\d ", answer)
    assert request(admin, "GET", "/health") == (200, "ok")
    assert "panicked" not in server.output()


def test_other_paths_and_methods_are_refused(start: Start, admin: int) -> None:
    begin(start, admin)
    assert request(admin, "GET", "/health") == (200, "ok")
    assert request(admin, "HEAD", "/health") == (200, "")
    for path in ("/metrics/", "/Metrics", "/healthy", "/../metrics", "//metrics"):
        assert request(admin, "GET", path)[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "NOSUCH"):
        assert request(admin, method, "/metrics")[0] == 405
        assert request(admin, method, "/nosuch")[0] == 404


@pytest.mark.slow
def test_a_server_that_stops_is_not_healthy(start: Start, admin: int) -> None:
    server = begin(start, admin)
    with server.connect() as slow:
        # It stops only once its clients have their replies, and this one takes none.
        slow.command("SET", "key", "x" * 30_000_000)
        slow.send(encode("GET", "key"))
        with server.connect() as other:
            waiting.until(lambda: re.search(rb" obl=[1-9]", clients(other, "get")) is not None)
        server.process.terminate()
        waiting.until(lambda: request(admin, "GET", "/health") == (503, "stopping"))
        assert request(admin, "GET", "/readyz") == (503, "stopping")
        assert request(admin, "GET", "/healthz") == (200, "ok")
        assert server.process.wait(60) == 0
    assert "closing connections that did not take their last replies" in server.output()
    with pytest.raises(ConnectionRefusedError):
        request(admin, "GET", "/health")


def clients(connection: Connection, command: str) -> bytes:
    listed = connection.command("CLIENT", "LIST")
    assert isinstance(listed, bytes)
    return b"".join(line for line in listed.splitlines() if f"cmd={command}".encode() in line)


def test_config_shows_the_address_and_does_not_change_it(start: Start, admin: int) -> None:
    server = begin(start, admin)
    address = f"127.0.0.1:{admin}".encode()
    with server.connect() as connection:
        assert connection.command("CONFIG", "GET", "admin-address") == [b"admin-address", address]
        assert isinstance(connection.command("CONFIG", "SET", "admin-address", ""), Failure)
    assert server.says(f"http://127.0.0.1:{admin}/metrics")
    with start().connect() as connection:
        assert connection.command("CONFIG", "GET", "admin-address") == [b"admin-address", b""]


@pytest.mark.parametrize("address", ["7685", "localhost", "localhost:http", ":7685", "localhost:70000"])
def test_an_address_without_host_or_port_is_a_clear_error(address: str) -> None:
    done = serve("--admin-address", address)
    assert done.returncode == 2
    assert "--admin-address" in done.stderr
    assert "must be a host and a port, such as 127.0.0.1:7685" in done.stderr


def test_a_port_that_is_taken_is_a_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = serve("--port", "0", "--admin-address", address)
    assert done.returncode == 1
    for words in (address, "in use", "--admin-address"):
        assert words in done.stderr
    assert "panicked" not in done.stderr


def serve(*options: str) -> subprocess.CompletedProcess[str]:
    """`snugly serve` that is expected to end by itself."""
    command = [str(servers.snugly_binary()), "serve", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
