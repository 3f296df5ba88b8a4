"""The measured values, the requests, and the reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import valkey

import servers
import waiting
from snugly_bench.corpora import read_lines
from snugly_bench.dictionaries import cold, data, memory, mixed, speed, stages
from snugly_bench.dictionaries.cold import Moment, figures
from snugly_bench.dictionaries.command import parse_arguments
from snugly_bench.dictionaries.lessons import Lessons
from snugly_bench.results import Results
from snugly_bench.servers.info import info
from snugly_bench.servers.learning import THREAD, key_prefix, write
from snugly_bench.servers.loads import CPU, RATE
from snugly_bench.servers.peers import (
    AUTO_LEARNING,
    LEARNING,
    PLAIN,
    VALKEY,
    dictionary_snugly_peer,
    snugly_peer,
    start,
)
from snugly_bench.servers.process import thread_seconds
from snugly_bench.splits import Split

VALUES = Split(
    "json:900", tuple(b'{"id": %d}' % n for n in range(9)), tuple(b'{"id": %d, "n": 1}' % n for n in range(9))
)


def write_set(folder: Path, name: str, values: list[str]) -> None:
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(value) + "\n" for value in values))


def test_sets_of_small_values_are_measured_and_others_left_out(tmp_path: Path) -> None:
    write_set(tmp_path, "small", [f"a value {number}" for number in range(50)])
    write_set(tmp_path, "smaller", [f"another {number}" for number in range(40)])
    write_set(tmp_path, "large", ["x" * 3000 + str(number) for number in range(50)])
    found = data.read(tmp_path, "no program is needed", None)
    assert [values.name for values in found] == ["small", "smaller"]
    assert data.largest(found).name == "small"


def test_a_folder_without_small_values_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"has no \.jsonl file"):
        data.read(tmp_path, "no program is needed", None)


def test_measured_values_are_handed_on_byte_for_byte() -> None:
    values = Split("x", (b"1",), (b'"quoted"', "line\nbreak \u00e4".encode(), b"{}"))
    with data.measured_file(values) as path:
        assert tuple(read_lines(path, None)) == values.measured
    assert not path.exists()


def test_all_keys_of_a_set_are_of_one_pattern() -> None:
    assert key_prefix("json:900") == "json:"
    assert key_prefix("html-fragments") == "html-fragments:"


def test_aims_are_for_the_server_that_learns_beside_the_one_that_does_not() -> None:
    found = speed.loads_of(VALUES, ())
    aims = (*memory.aims(("x",)), *speed.aims(found))
    assert {(aim.subject, aim.base) for aim in aims} == {(LEARNING, PLAIN)}
    assert {workload.partition(",")[0] for aim in aims[1:] for workload in aim.workloads} == {"SET", "GET"}
    assert len({workload for aim in aims[1:] for workload in aim.workloads}) == 2 * len(found)


def test_quick_is_less_of_everything_unless_it_is_given() -> None:
    assert parse_arguments(["--quick"]).keys < parse_arguments([]).keys
    assert parse_arguments(["--quick", "--rounds", "7"]).rounds == 7
    assert parse_arguments(["--only", "saved,cold"]).only == ("saved", "cold")


def course(adopted_from: int, anonymous: list[int]) -> list[Moment]:
    return [
        Moment(0.1 * n, 100 * n, size, 0.5 * n, trainings=n, adoptions=int(n >= adopted_from))
        for n, size in enumerate(anonymous)
    ]


def test_a_cold_start_is_told_by_the_first_moment_with_a_dictionary_and_the_most_memory_beside_the_other() -> None:
    found = figures(course(2, [10, 90, 70, 60]), course(9, [10, 20, 60, 90]))
    assert found[cold.FIRST] == pytest.approx(0.2)
    assert (found[cold.WRITTEN], found[cold.FIRST_CPU], found[cold.ALL_CPU]) == (200, 1.0, 1.5)
    assert found[cold.GROWTH] == 70


def test_where_no_dictionary_came_the_report_says_so() -> None:
    results = Results(PLAIN)
    found = figures(course(9, [1, 2]), course(9, [1, 2]))
    assert cold.FIRST not in found
    results.add("x", AUTO_LEARNING, found | {cold.SERVER_CPU: 2.0})
    results.add("x", cold.PLAIN, {cold.SERVER_CPU: 1.0})
    assert "none" in cold.report(results, quick=True)


def test_mixed_requests_are_told_with_the_bytes_that_a_microsecond_saves() -> None:
    results = Results(VALKEY)
    for server, cpu, each in ((VALKEY, 2.0, 1000.0), (AUTO_LEARNING, 4.0, 400.0)):
        results.add("x, while passes run", server, {RATE: 10.0, mixed.P99: 50.0, CPU: cpu, mixed.EACH: each})
    (told,) = (line for line in mixed.report(results, 100, rounds=1).splitlines() if AUTO_LEARNING in line)
    assert [cell.strip() for cell in told.split("|")[1:-1]] == [
        *("x, while passes run", AUTO_LEARNING, "10", "1.00", "50", "1.00", "4.00", "2.00", "400", "150")
    ]


def test_stages_are_told_beside_valkey_with_what_was_measured_of_each() -> None:
    results = Results(VALKEY)
    for server, each in ((VALKEY, 1000.0), ("snugly auto", 450.0)):
        results.add("x, as written", server, {stages.EACH: each, stages.GET: 1.0, stages.SET: 2.0})
        results.add("x, after the passes", server, {stages.EACH: each, stages.SECONDS: 20.0})
    told = [line.split("|") for line in stages.report(results, 100, rounds=1).splitlines() if "snugly auto" in line]
    assert [[cell.strip() for cell in line[1:-1]] for line in told] == [
        ["x, as written", "snugly auto", "450.00", "0.45", "1.00", "1.00", "2.00", "1.00", "", ""],
        ["x, after the passes", "snugly auto", "450.00", "0.45", "", "", "", "", "20", ""],
    ]


def test_a_server_is_taught_and_left_without_keys_whether_it_learns_or_not() -> None:
    program = str(servers.snugly_binary())
    for peer in (snugly_peer(program, "zstd"), dictionary_snugly_peer(program)):
        lessons = Lessons()
        with start(peer) as server, valkey.Valkey(port=server.port) as client:
            with lessons.given(server, VALUES, 100):
                assert client.dbsize() == 0
                write(client, [("other:1", b"x")])
            assert info(client, "dictionaries")["dictionaries"] == 0
            assert thread_seconds(server.pid, THREAD) >= 0
        learns = peer.name == LEARNING
        assert ("no dictionary was worth it" in lessons.text()) is learns
        assert "that were measured" not in lessons.text()


def test_a_thread_is_called_as_it_is_looked_for() -> None:
    with start(dictionary_snugly_peer(str(servers.snugly_binary()))) as server:
        tasks = Path(f"/proc/{server.pid}/task")
        # A thread gives itself its name, when it gets to run.
        waiting.until(lambda: THREAD in {path.read_text().strip() for path in tasks.glob("*/comm")})
