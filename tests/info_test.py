"""INFO and MEMORY: fields that tools read are there, and say what is so."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from resp import Argument, Connection, Failure, Map, Other, Reply, Simple, encode
from servers import ROOT, Server
from tested import Start
from waiting import until


def content(reply: Reply) -> str:
    """A text for people: a bulk string in RESP2, a verbatim string in RESP3."""
    if isinstance(reply, Other):
        assert reply.text.startswith(b"txt:")
        return reply.text[4:].decode()
    assert isinstance(reply, bytes)
    return reply.decode()


def sections(connection: Connection, *asked: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for part in content(connection.command("INFO", *asked)).split("\r\n\r\n"):
        if part:
            head, *lines = part.removesuffix("\r\n").split("\r\n")
            assert head.startswith("# ")
            found[head[2:]] = dict(line.split(":", 1) for line in lines)
    return found


def fields(connection: Connection, *asked: str) -> dict[str, str]:
    return {name: value for section in sections(connection, *asked).values() for name, value in section.items()}


# Fields that redis_exporter turns into metrics and that mean something here.
EXPORTED = [
    *["uptime_in_seconds", "process_id", "connected_clients", "blocked_clients"],
    *["client_recent_max_output_buffer", "client_recent_max_input_buffer", "pubsub_clients", "maxclients"],
    *["allocator_active", "allocator_allocated", "allocator_resident", "allocator_frag_ratio"],
    *["allocator_frag_bytes", "allocator_rss_ratio", "allocator_rss_bytes", "used_memory", "used_memory_rss"],
    *["used_memory_peak", "used_memory_lua", "used_memory_overhead", "used_memory_startup"],
    *["used_memory_dataset", "used_memory_scripts", "number_of_cached_scripts", "maxmemory"],
    *["mem_fragmentation_ratio", "mem_fragmentation_bytes", "mem_clients_slaves", "mem_clients_normal"],
    *["mem_not_counted_for_evict", "total_system_memory", "loading", "rdb_bgsave_in_progress", "aof_enabled"],
    *["aof_rewrite_in_progress", "aof_rewrite_scheduled", "module_fork_in_progress", "pubsub_channels"],
    *["pubsub_patterns", "latest_fork_usec", "migrate_cached_sockets", "slave_expires_tracked_keys"],
    *["connected_slaves", "repl_backlog_size", "repl_backlog_active", "repl_backlog_first_byte_offset"],
    *["repl_backlog_histlen", "master_repl_offset", "second_repl_offset", "sync_full", "sync_partial_ok"],
    *["sync_partial_err", "cluster_enabled", "total_connections_received", "total_commands_processed"],
    *["rejected_connections", "total_net_input_bytes", "total_net_output_bytes", "total_net_repl_input_bytes"],
    *["total_net_repl_output_bytes", "expired_keys", "evicted_keys", "evicted_clients", "keyspace_hits"],
    *["keyspace_misses", "total_error_replies", "used_cpu_sys", "used_cpu_user", "used_cpu_sys_children"],
    *["used_cpu_user_children", "instantaneous_ops_per_sec", "instantaneous_input_kbps"],
    *["instantaneous_output_kbps"],
]
# And what it labels the server with.
LABELS = ["role", "redis_version", "os", "maxmemory_policy", "tcp_port", "run_id", "process_id"]


def test_the_fields_that_tools_read_are_numbers(connection: Connection) -> None:
    found = fields(connection)
    for name in EXPORTED:
        float(found[name])
    assert all(found[name] for name in LABELS)


def test_there_is_no_field_that_valkey_does_not_have_but_snuglys_own(server: Server, peer: Server) -> None:
    own = {
        "snugly_version",
        "refused_tls_handshakes",
        "redis_mode",
        "io_threads",
        "slab_slot_bytes",
        "slab_page_bytes",
        "thread_buffer_bytes",
        "dataset_given_bytes",
        "used_memory_dataset_human",
        "broken_connections",
    }
    with server.connect() as ours, peer.connect() as theirs:
        known = sections(theirs, "everything")
        for section, found in sections(ours, "everything").items():
            if section in ("Compression", "Lists", "Disk", "Memcached"):
                continue
            if section == "Dictionaries":
                assert all(name.startswith(("dictionary_", "dictionaries")) for name in found)
                continue
            if section in ("Commandstats", "Errorstats", "Latencystats", "Keyspace"):
                continue
            assert set(found) - set(known[section]) <= own, section


def test_sections_come_in_any_number_and_case(connection: Connection) -> None:
    assert list(sections(connection, "SERVER", "memory", "nosuch", "server")) == ["Server", "Memory"]
    assert sections(connection, "nosuch") == {}
    defaults = list(sections(connection))
    assert list(sections(connection, "default")) == defaults
    everything = list(sections(connection, "everything"))
    assert [name for name in everything if name in defaults] == defaults
    assert {"Commandstats", "Latencystats"} == set(everything) - set(defaults) - {"Keyspace", "Errorstats"}
    for name in ("Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "CPU", "Modules", "Cluster"):
        assert list(sections(connection, name)) == [name]


@pytest.mark.snugly_only
def test_what_is_learned_is_told_in_the_fields_of_the_reference(connection: Connection) -> None:
    reference = (ROOT / "docs" / "reference.md").read_text()
    table = reference.partition("## INFO dictionaries\n")[2].partition("### ")[0]
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    found = fields(connection, "dictionaries")
    told = {name: value for name, value in found.items() if not re.fullmatch(r"dictionary_\d+", name)}
    assert list(told) == named
    assert all(value.isdigit() for value in told.values())


@pytest.mark.snugly_only
def test_what_clients_gave_is_told_beside_what_it_takes(connection: Connection) -> None:
    def given() -> int:
        return int(fields(connection, "memory")["dataset_given_bytes"])

    text = b"the same words again and again, " * 100
    for number in range(10):
        connection.command("SET", f"key:{number}", text)
    assert given() == 10 * (len("key:0") + len(text))
    assert int(fields(connection, "memory")["used_memory_dataset"]) > 0
    connection.command("SET", "key:0", "short", "EX", 1000)
    connection.command("RENAME", "key:1", "longer:1")
    connection.command("DEL", "key:2")
    strings = len("key:0short") + len("longer:1") + len(text) + 7 * (len("key:0") + len(text))
    assert given() == strings
    connection.command("RPUSH", "list", *[text] * 50)
    assert given() > strings + 50 * len(text), "a list has some bytes of its own"
    connection.command("LTRIM", "list", 0, 9)
    assert given() < strings + 15 * len(text)
    connection.command("APPEND", "key:0", text)
    connection.command("SETRANGE", "key:0", 10_000, "x")
    assert given() > strings + 10_000
    connection.command("FLUSHALL")
    assert given() == 0


@pytest.mark.snugly_only
def test_the_disk_tier_says_what_it_does(start: Start, tmp_path: Path) -> None:
    with start().connect() as connection:
        assert fields(connection, "disk") == {"disk_enabled": "0"}
    options = ("--storage", str(tmp_path / "store"), "--durability", "fsync", "--max-memory", "1", "--max-disk", "16mb")
    with start(*options).connect() as connection:
        before = fields(connection, "disk")
        for number in range(20):
            connection.command("SET", number, random.Random(number).randbytes(100_000))
        connection.command("MGET", *range(20))
        after = fields(connection, "disk")
    grown = {name for name, value in after.items() if value.isdigit() and int(value) > int(before[name])}
    assert {"disk_used_bytes", "disk_commits", "disk_journal_records", "disk_reads"} <= grown
    assert (after["disk_max_bytes"], after["disk_last_commit_status"]) == (str(16 << 20), "ok")


# Requests, and the fields that they change by as much as in Valkey.
COUNTED: list[tuple[list[list[Argument]], list[str]]] = [
    ([["SET", "k", 1], ["EXPIRE", "k", -1]], ["expired_keys"]),
    ([["SET", "k", 1], ["PEXPIREAT", "k", 5]], ["expired_keys"]),
    ([["SET", "k", 1], ["GETEX", "k", "PXAT", 1]], ["expired_keys"]),
    ([["SET", "k", 1, "PXAT", 1]], ["expired_keys"]),
    ([["SET", "k", 1], ["SET", "k", 2, "PXAT", 1]], ["expired_keys"]),
    (
        [["SET", "k", 1], ["APPEND", "k", 2], ["DEL", "k", "none"], ["GET", "k"], ["RPUSH", "l", 1]],
        ["rdb_changes_since_last_save"],
    ),
    ([["SET", "a", 1], ["SET", "b", 1], ["FLUSHALL", "ASYNC"]], ["lazyfreed_objects", "lazyfree_pending_objects"]),
]


def wait_for_freeing(connection: Connection) -> None:
    """Waits until everything is freed that is freed in the background."""
    until(lambda: fields(connection, "memory").get("lazyfree_pending_objects", "0") == "0")


@pytest.mark.parametrize(("requests", "names"), COUNTED)
def test_what_is_counted_is_what_valkey_counts(
    start: Start, peer: Server, requests: list[list[Argument]], names: list[str]
) -> None:
    with start().connect() as ours, peer.connect() as theirs:
        before = {}
        for each in (ours, theirs):
            each.command("FLUSHALL")
            wait_for_freeing(each)
            before[each] = fields(each)
            for request in requests:
                each.command(*request)
            wait_for_freeing(each)

        def grown(each: Connection) -> dict[str, int]:
            after = fields(each)
            return {name: int(after[name]) - int(before[each][name]) for name in names}

        # More than valkey-server counts has had time to be counted too.
        time.sleep(0.2)
        until(lambda: grown(ours) == grown(theirs), 60)


def test_a_save_starts_the_count_of_changes_anew(start: Start, tmp_path: Path) -> None:
    with start("--dir", str(tmp_path)).connect() as connection:
        connection.command("SET", "a", 1)
        assert fields(connection)["rdb_changes_since_last_save"] == "1"
        assert connection.command("SAVE") == Simple(b"OK")
        assert fields(connection)["rdb_changes_since_last_save"] == "0"
        connection.command("CONFIG", "RESETSTAT")
        connection.command("SET", "a", 1)
        assert fields(connection)["rdb_changes_since_last_save"] == "1"


def test_a_write_that_is_refused_for_memory_is_a_rejected_call(start: Start) -> None:
    with start("--max-memory", "1mb").connect() as connection:
        value = random.Random(1).randbytes(2_000_000)
        assert isinstance(connection.command("SET", "k", value), Failure)
        assert fields(connection, "commandstats")["cmdstat_set"].endswith("rejected_calls=1,failed_calls=0")
        assert fields(connection, "commandstats")["cmdstat_set"].startswith("calls=0,")
        assert fields(connection, "errorstats")["errorstat_OOM"] == "count=1"


def test_a_connection_that_sends_too_much_is_counted(start: Start) -> None:
    server = start("--max-request-bytes", "1mb")
    with server.connect() as greedy, server.connect() as observer:
        greedy.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n")
        greedy.read_to_end()
        assert fields(observer)["client_query_buffer_limit_disconnections"] == "1"


def until_blocked(connection: Connection) -> None:
    until(lambda: fields(connection, "clients")["blocked_clients"] == "1")


def test_a_command_that_waits_is_counted_once_it_is_answered(server: Server, peer: Server) -> None:
    seen = []
    for each in (server, peer):
        with each.connect() as waiter, each.connect() as other:
            other.command("CONFIG", "RESETSTAT")
            waited = waiter.command("CLIENT", "ID")
            assert isinstance(waited, int)
            counts = []
            unblock: list[Argument] = ["CLIENT", "UNBLOCK", waited]
            ends: list[list[Argument]] = [["RPUSH", "l", 1], unblock, [*unblock, "ERROR"]]
            for end in ends:
                waiter.send(encode("BLPOP", "l", 0))
                until_blocked(other)
                counts.append(fields(other, "commandstats").get("cmdstat_blpop", "")[:7])
                other.command(*end)
                waiter.read()
            waiter.send(encode("BLPOP", "l", "0.01"))
            waiter.read()
            found = fields(other, "everything")
            blpop = re.sub("usec[a-z_]*=[0-9.]+,", "", found["cmdstat_blpop"])
            total = re.findall(r"tot-cmds=(\d+)", content(other.command("CLIENT", "LIST", "ID", waited)))
            seen.append((counts, blpop, found["errorstat_UNBLOCKED"], total))
    assert seen[0] == seen[1]


def test_every_section_is_ended_as_valkeys(server: Server, peer: Server) -> None:
    for section in ("replication", "cluster", "cpu"):
        with server.connect() as ours, peer.connect() as theirs:
            texts = [content(connection.command("INFO", section)) for connection in (ours, theirs)]
            assert [text[-4:] == "\r\n\r\n" for text in texts] == [False, False]
            assert all(text.endswith("\r\n") for text in texts)


def test_errors_are_counted_by_their_code(start: Start) -> None:
    server = start()
    with server.connect() as connection:
        assert sections(connection, "errorstats") == {"Errorstats": {}}
        with server.connect() as other:
            other.send(b"*x\r\n")
            assert other.read_to_end().startswith(b"-ERR Protocol error")
        for command in (["NOSUCH"], ["GET"], ["AUTH", "nobody", "nothing"], ["HELLO", 9]):
            assert isinstance(connection.command(*command), Failure)
        assert sections(connection, "errorstats")["Errorstats"] == {
            "errorstat_ERR": "count=3",
            "errorstat_NOPROTO": "count=1",
            "errorstat_WRONGPASS": "count=1",
        }
        assert fields(connection, "stats")["total_error_replies"] == "5"
        connection.command("CONFIG", "RESETSTAT")
        assert sections(connection, "errorstats") == {"Errorstats": {}}
        assert fields(connection, "stats")["total_error_replies"] == "0"


def test_calls_are_counted_by_command(start: Start) -> None:
    with start().connect() as connection:
        connection.command("SET", "key", "text")
        for command in (["GET", "key"], ["GET", "key"], ["GET"], ["INCR", "key"]):
            connection.command(*command)
        found = sections(connection, "commandstats")["Commandstats"]
        assert re.fullmatch(
            r"calls=2,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=1,failed_calls=0", found["cmdstat_get"]
        )
        assert found["cmdstat_incr"].endswith(",rejected_calls=0,failed_calls=1")
        assert set(sections(connection, "latencystats")["Latencystats"]) == {
            f"latency_percentiles_usec_{name}" for name in ("set", "get", "incr", "info", *starting_commands())
        }


def starting_commands() -> tuple[str, ...]:
    """The commands that the tests themselves send to a server that starts."""
    return ("ping",)


@pytest.mark.slow
def test_rates_follow_what_is_done(start: Start) -> None:
    with start().connect() as connection:
        deadline = time.monotonic() + 20
        while int(fields(connection, "stats")["instantaneous_ops_per_sec"]) < 10:
            assert time.monotonic() < deadline, "no rate was seen"
            for _ in range(50):
                connection.command("PING")
        assert float(fields(connection, "stats")["instantaneous_output_kbps"]) > 0


def test_memory_figures_fit_together(start: Start) -> None:
    with start().connect() as connection:
        before = {name: int(value) for name, value in fields(connection, "memory").items() if value.isdigit()}
        for number in range(50):
            connection.command("SET", f"key:{number}", random.Random(number).randbytes(100_000))
        connection.command("CONFIG", "SET", "maxmemory", "1gb")
        found = fields(connection, "memory")
        after = {name: int(value) for name, value in found.items() if value.isdigit()}
        assert after["used_memory_startup"] == before["used_memory_startup"] <= before["used_memory"]
        assert after["used_memory"] > before["used_memory"]
        assert after["used_memory_peak"] >= after["used_memory"]
        assert abs(after["used_memory_overhead"] + after["used_memory_dataset"] - after["used_memory"]) < 1 << 20
        assert (found["maxmemory"], found["maxmemory_human"]) == ("1073741824", "1.00G")
        assert re.fullmatch(r"\d+\.\d\d%", found["used_memory_peak_perc"])
        connection.command("FLUSHALL")
        connection.command("CONFIG", "SET", "maxmemory", 0)
        assert int(fields(connection, "memory")["used_memory_peak"]) >= after["used_memory"]


def figures(connection: Connection) -> dict[bytes, Reply]:
    reply = connection.command("MEMORY", "STATS")
    pairs = reply.pairs if isinstance(reply, Map) else []
    if isinstance(reply, list):
        pairs = list(zip(reply[::2], reply[1::2], strict=True))
    return {name: value for name, value in pairs if isinstance(name, bytes)}


def test_memory_stats_have_valkeys_names_and_types(connection: Connection, peer: Server) -> None:
    ours = figures(connection)
    resp3 = isinstance(ours[b"fragmentation"], Other)
    with peer.connect(protocol=3 if resp3 else 2) as valkey:
        theirs = figures(valkey)
    assert {name: type(value) for name, value in ours.items()} == {name: type(theirs[name]) for name in ours}
    assert len(ours) > 20
    assert ours[b"keys.count"] == 0
    connection.command("SET", "key", "value")
    assert figures(connection)[b"keys.count"] == 1


def test_the_doctor_has_nothing_to_say_about_an_empty_server(start: Start, peer: Server) -> None:
    server = start()
    for protocol in (2, 3):
        with server.connect(protocol) as ours, peer.connect(protocol) as theirs:
            assert ours.command("MEMORY", "DOCTOR") == theirs.command("MEMORY", "DOCTOR")


def test_memory_can_be_purged_and_reported_on(connection: Connection) -> None:
    assert connection.command("MEMORY", "PURGE") == Simple(b"OK")
    assert content(connection.command("MEMORY", "MALLOC-STATS"))


@pytest.mark.snugly_only
def test_the_allocator_reports_on_itself(connection: Connection) -> None:
    report = content(connection.command("MEMORY", "MALLOC-STATS"))
    assert "jemalloc" in report


@pytest.mark.parametrize(
    "command",
    [
        ["MEMORY"],
        ["MEMORY", "NOSUCH"],
        ["MEMORY", "HELP"],
        ["MEMORY", "STATS", "x"],
        ["MEMORY", "USAGE"],
        ["MEMORY", "USAGE", "nokey"],
        ["MEMORY", "USAGE", "nokey", "SAMPLES", "1", "SAMPLES", "2"],
        ["MEMORY", "USAGE", "nokey", "SAMPLES"],
        ["MEMORY", "USAGE", "nokey", "SAMPLES", "-1"],
        ["MEMORY", "USAGE", "nokey", "SAMPLES", "x"],
        ["MEMORY", "USAGE", "nokey", "NOSUCH", "1"],
        ["INFO", "nosuch"],
    ],
    ids=" ".join,
)
def test_mistakes_are_answered_as_valkey_answers_them(server: Server, peer: Server, command: list[Argument]) -> None:
    for protocol in (2, 3):
        with server.connect(protocol) as ours, peer.connect(protocol) as theirs:
            assert ours.command_raw(*command) == theirs.command_raw(*command)
