"""The requests to valkey-server with and without the module, and their tables."""

from __future__ import annotations

from pathlib import Path

import pytest

import servers
from snugly_bench.module import command, measure
from snugly_bench.module.batches import Client, Exchange, getting, in_batches, request, setting
from snugly_bench.module.measure import ACTIVE, ANONYMOUS, GIVEN, LOGGED, REPLICATED, USED, keyed, repeated
from snugly_bench.module.peers import AGAIN, MODULE, pair
from snugly_bench.module.requests import DEPTHS, all_loads
from snugly_bench.module.saving import COPIED
from snugly_bench.module.verdict import MOST_MEMORY, report_bytes, report_time
from snugly_bench.results import Results
from snugly_bench.servers.loads import CPU
from snugly_bench.servers.peers import VALKEY, start
from snugly_bench.splits import Split
from tables import line

VALUES = [b'{"id":%d,"name":"a product"}' % number for number in range(40)]


@pytest.fixture(autouse=True)
def stock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNUGLY_VALKEY_SERVER", str(servers.valkey_binary()))
    monkeypatch.delenv("SNUGLY_DATA", raising=False)


def test_the_servers_differ_in_the_module_alone(tmp_path: Path) -> None:
    library = tmp_path / "libsnugly_module.so"
    library.touch()
    servers = pair(library, ["codec=lz4", "min-size=64"], io_threads=2)
    loaded = ("--loadmodule", str(library), "--snugly.codec", "lz4", "--snugly.min-size", "64")
    assert servers.subject.command == (*servers.stock.command, *loaded)
    assert servers.stock.command[-2:] == ("--io-threads", "2")
    assert (servers.subject.name, servers.core) == (MODULE, None)
    with pytest.raises(SystemExit, match=r"missing\.so is no library: build it with"):
        pair(Path("missing.so"), [], io_threads=1)


def test_batches_are_full_and_every_kind_of_request_has_as_many() -> None:
    loads = all_loads(VALUES)
    assert {len(load.exchanges) for load in loads} == {32}
    batches = list(in_batches(loads[0].exchanges, 16))
    assert len(batches) == 2
    assert batches[0].sent.startswith(b"*2\r\n$3\r\nGET\r\n$6\r\njson:0\r\n*2\r\n")
    assert batches[0].reply.startswith(b"$%d\r\n%b\r\n$" % (len(VALUES[0]), VALUES[0]))


def test_values_are_repeated_until_there_are_enough_values_or_bytes() -> None:
    assert list(repeated([b"1", b"22"], 3)) == [b"1", b"22", b"1"]
    assert list(repeated([b"1", b"22"], 9, most_bytes=5)) == [b"1", b"22", b"1"]
    assert [key for key, _ in keyed(Split("s", (b"0",), (b"1", b"2")), 3)] == ["s:0", "s:1", "s:2"]


def test_another_value_ends_the_measurement_and_so_does_an_error() -> None:
    with start(pair(None, [], io_threads=1).stock) as server, Client(server.port, connections=2) as client:
        client.compare([setting("key", b"value")])
        client.ask([getting("key", b"value")] * 3)
        with pytest.raises(SystemExit, match=r"GET.* was answered .*value.* was due"):
            client.compare([getting("key", b"other")])
        with pytest.raises(SystemExit, match=r"1,000 bytes were due, and .* begin with b.-ERR unknown command"):
            client.ask([Exchange(request("NOTHING"), bytes(1_000))])


def test_time_is_judged_by_what_the_module_has_to_do_with_a_request() -> None:
    results, loads = Results(VALKEY), all_loads(VALUES)
    for load in loads:
        for depth in DEPTHS:
            results.add(load.workload(depth), VALKEY, {CPU: 10.0})
            results.add(load.workload(depth), MODULE, {CPU: 11.0})
    text = report_time(CPU, results, loads, MODULE)
    assert line(text, "SET of JSON, one at a time").endswith("at most 1.15 of valkey: met (1.1)")
    assert line(text, "GET of JSON, one at a time").endswith("at most 1.05 of valkey: MISSED (1.1)")
    assert line(text, "SET of JSON, pipelined by 16").endswith("at most 2.00 of valkey: met (1.1)")
    assert line(text, "ZADD, pipelined by 16").startswith("ZADD, pipelined by 16 | 10.00 | 11.00 | 1.10 |")
    assert line(text, "ZADD, pipelined by 16").endswith("at most 1.02 of valkey: MISSED (1.1)")


def test_each_number_of_a_set_has_a_line_and_used_memory_no_aim() -> None:
    results = Results(VALKEY)
    results.add("json", VALKEY, {GIVEN: 900.0, ANONYMOUS: 1000.0, USED: 950.0})
    results.add("json", MODULE, {GIVEN: 900.0, ANONYMOUS: 510.0, USED: 475.0})
    text = report_bytes("Memory", results, MODULE, MOST_MEMORY)
    anonymous, used = (row for row in text.splitlines() if row.startswith("| json"))
    assert "1,000.0 | " in anonymous
    assert "at most 0.50 of valkey: MISSED (0.51)" in anonymous
    assert " 0.50 |" in used
    assert "at most" not in used


def test_all_but_replicas_is_measured_and_the_results_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "QUICK_JSON_VALUES", 50)
    (tmp_path / "some.jsonl").write_bytes(b"\n".join(VALUES))
    words = ["--program", str(servers.snugly_binary()), "--output", str(tmp_path), "--data", str(tmp_path)]
    command.main(["--control", "--quick", "--only", "processor,memory,saving", *words])
    assert (tmp_path / "module.md").read_text() in capsys.readouterr().out
    results = Results.read(tmp_path / "module.csv")
    assert results.spread("GET of JSON, one at a time", AGAIN, CPU).median > 0
    assert results.ratio("some", AGAIN, USED, VALKEY).median > 0
    assert results.spread("json", AGAIN, COPIED).median > 0


def test_a_control_has_no_module_and_nothing_else_goes_without_one(capsys: pytest.CaptureFixture[str]) -> None:
    control = command.parse_arguments(["--module", "some.so", "--set", "codec=lz4", "--control"])
    assert (control.module, control.set, command.scale(control).settle) == (None, [], 0)
    threaded = command.scale(command.parse_arguments(["--module", "some.so", "--io-threads", "2"]))
    assert (threaded.connections, threaded.settle) == (16, 3)
    with pytest.raises(SystemExit):
        command.parse_arguments(["--quick"])
    assert "give the library with --module, or --control" in capsys.readouterr().err


def test_threads_that_wait_in_a_loop_are_not_active() -> None:
    extent = command.scale(command.parse_arguments(["--control", "--quick", "--io-threads", "2"]))
    loads = all_loads(VALUES)[:1]
    results = measure.measure_time(pair(None, [], io_threads=2), Split("json", (), tuple(VALUES)), loads, extent)
    assert {name for _, name, _ in results.samples} == {VALKEY, AGAIN}
    assert results.spread(loads[0].workload(1), AGAIN, ACTIVE).median > 0


@pytest.mark.slow
def test_a_replica_and_a_file_get_the_whole_request() -> None:
    extent = command.scale(command.parse_arguments(["--control", "--quick"]))
    split = Split("some", tuple(VALUES[:8]), tuple(VALUES[8:]))
    found = measure.log(pair(None, [], io_threads=1).stock, split, extent)
    overhead = len(request("SET", "some:100", VALUES[-1])) - len(VALUES[-1])
    assert found[REPLICATED] == pytest.approx(found[GIVEN] + overhead, abs=5)
    assert found[LOGGED] == pytest.approx(found[REPLICATED], abs=1)
