"""The requests to every server, and the evaluation of the answers."""

from __future__ import annotations

import pytest
import valkey

import servers
from snugly_bench.adaptive.choices import AUTO, FIXED, refused
from snugly_bench.adaptive.command import parse_arguments, scale
from snugly_bench.adaptive.driver import CONNECTIONS, connected
from snugly_bench.adaptive.measure import CPU, EACH, RATE, SAVED, STORED, WORTH, measure, running, warm_up
from snugly_bench.adaptive.verdict import AIMS, INCOMPRESSIBLE, MIXED, best, report, report_incompressible
from snugly_bench.adaptive.workload import KINDS, MAGIC, PIPELINE, counters, images, mixed, writing
from snugly_bench.progress import Progress
from snugly_bench.results import Results
from snugly_bench.servers.peers import configured_snugly_peer, start

PAIRS = [(b"user:%d" % number, b'{"number": %d}' % number * 30) for number in range(50)]
SUBJECTS = {"none": (1000, 1.0), "lz4": (800, 1.25), "zstd 3": (500, 2.0), "auto balanced": (550, 1.5)}
"""Stored bytes and processor time of each."""


def recorded() -> Results:
    results = Results("none")
    for subject, (stored, cpu) in SUBJECTS.items():
        metrics = {STORED: stored, CPU: cpu, RATE: 100.0, SAVED: 1000 - stored, WORTH: (1000 - stored) / cpu}
        results.add(MIXED, subject, metrics)
        results.add(INCOMPRESSIBLE, subject, {RATE: 100.0, EACH: 10.0 if subject == "none" else 10.2})
    return results


def test_kinds_are_all_of_the_keys_and_each_has_a_pattern_of_its_own() -> None:
    assert sum(kind.eighths for kind in KINDS) == 8
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_images_begin_as_images_and_are_of_2_to_20_kilobytes_the_same_each_time() -> None:
    found = images("no program is needed", 200)
    assert all(value.startswith(MAGIC) for value in found)
    assert {next(magic for magic in MAGIC if value.startswith(magic)) for value in found} == set(MAGIC)
    assert min(map(len, found)) < 4_000
    assert max(map(len, found)) > 18_000
    assert found == images("nor here", 200)
    assert all(value.isdigit() for value in counters("nor here", 50))


def test_as_many_requests_write_as_are_asked_for() -> None:
    for percent, least, most in ((0, 0, 0), (50, 400, 600), (100, 1000, 1000)):
        batches = mixed(PAIRS, percent, 1000, seed=1)
        assert sum(batch.requests for batch in batches) == 1000
        assert all(batch.requests <= PIPELINE for batch in batches)
        assert least <= sum(batch.request.count(b"\r\nSET\r\n") for batch in batches) <= most


def test_every_reply_is_compared() -> None:
    peer = configured_snugly_peer(str(servers.snugly_binary()), "none", FIXED["none"])
    batches = mixed(PAIRS, 50, 300, seed=2)
    with start(peer) as server, connected(server) as driver, valkey.Valkey(port=server.port) as client:
        driver.run(writing(PAIRS))
        assert client.get(PAIRS[7][0]) == PAIRS[7][1]
        assert driver.run(batches, 3)[0] == 900
        assert len(driver.sockets) == CONNECTIONS
        for key, value in PAIRS:
            client.set(key, value[:-1] + b"?")
        with pytest.raises(SystemExit, match="none answered otherwise"):
            driver.run(mixed(PAIRS, 0, 300, seed=2))


def test_servers_are_asked_in_turn_and_what_they_save_is_beside_no_compression() -> None:
    program, results = str(servers.snugly_binary()), Results("none")
    peers = [configured_snugly_peer(program, name, FIXED[name]) for name in ("none", "zstd 3")]
    batches = mixed(PAIRS, 50, 100, seed=3)
    with Progress(4) as progress, running(peers) as subjects:
        assert all(warm_up(subject, PAIRS, batches, most_seconds=60) for subject in subjects)
        assert [subject.client.config_get("background-cpu-percent") for subject in subjects] == [
            {"background-cpu-percent": "10"}
        ] * 2
        measure(subjects, batches, 2, 2, MIXED, results, progress)
    assert results.samples[MIXED, "none", SAVED] == [0, 0]
    assert all(saved > 0 for saved in results.samples[MIXED, "zstd 3", SAVED])


def test_the_best_fixed_choice_is_one_that_compresses() -> None:
    results = recorded()
    assert (best(results, SAVED), best(results, WORTH), best(results, CPU)) == ("zstd 3", "zstd 3", "lz4")


def test_the_servers_own_choice_is_told_beside_the_best_fixed_one() -> None:
    text = report(recorded())
    assert "| auto balanced | saved bytes" in text
    assert next(line for line in text.splitlines() if "auto balanced | saved bytes  " in line).endswith("0.90 |")
    results = recorded()
    for workload, subject, metric in list(results.samples):
        if subject in AUTO:
            del results.samples[workload, subject, metric]
    assert "does not choose by itself" in report(results)


def test_what_cannot_be_compressed_may_cost_a_hundredth() -> None:
    assert {aim.workloads for aim in AIMS} == {(INCOMPRESSIBLE,)}
    line = next(line for line in report_incompressible(recorded()).splitlines() if "auto balanced" in line)
    assert "at most 1.01 of none: MISSED" in line
    assert "at least 0.99 of none: met" in line


def test_a_choice_that_the_program_refuses_is_told_with_what_it_says() -> None:
    program = str(servers.snugly_binary())
    assert refused(configured_snugly_peer(program, "known", FIXED["lz4"])) is None
    refusal = refused(configured_snugly_peer(program, "unknown", ("--compression", "best")))
    assert refusal is not None
    assert "best" in refusal


def test_quick_is_less_of_everything_unless_it_is_given() -> None:
    assert scale(parse_arguments(["--quick"])).keys < scale(parse_arguments([])).keys
    assert scale(parse_arguments(["--quick", "--rounds", "7"])).rounds == 7
    with pytest.raises(SystemExit):
        parse_arguments(["--write-percent", "101"])


def test_every_pair_is_written_once() -> None:
    assert sum(batch.request.count(b"SET") for batch in writing(PAIRS)) == len(PAIRS)
