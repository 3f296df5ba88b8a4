"""LATENCY: events that took long, and how long commands take; beside valkey-server's."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from resp import Argument, Connection, Failure, Map, Other, Reply, Simple
from servers import Server
from tested import Start, started, target_name


def text(reply: Reply) -> str:
    """A text for people: a bulk string in RESP2, a verbatim string in RESP3."""
    if isinstance(reply, Other):
        assert reply.text.startswith(b"txt:")
        return reply.text[4:].decode()
    assert isinstance(reply, bytes)
    return reply.decode()


def mapping(reply: Reply) -> dict[bytes | int, Reply]:
    pairs = reply.pairs if isinstance(reply, Map) else []
    if isinstance(reply, list):
        pairs = list(zip(reply[::2], reply[1::2], strict=True))
    return {name: value for name, value in pairs if isinstance(name, bytes | int)}


@pytest.fixture(scope="module")
def slow_server() -> Iterator[Server]:
    """A server that has seen a slow command in one second and two in another; for tests that only look."""
    with started(target_name()) as server:
        be_slow(server)
        yield server


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def slow(slow_server: Server, request: pytest.FixtureRequest) -> Iterator[Connection]:
    with slow_server.connect(protocol=request.param) as connection:
        yield connection


def be_slow(server: Server) -> None:
    """Sleeps that stay in their order and in their seconds on a busy machine, which adds to the length of each."""
    with server.connect() as connection:
        connection.command("CONFIG", "SET", "latency-monitor-threshold", 100)
        at_the_start_of_a_second()
        connection.command("DEBUG", "SLEEP", 0.12)
        at_the_start_of_a_second()
        connection.command("DEBUG", "SLEEP", 0.35)
        connection.command("DEBUG", "SLEEP", 0.15)
        connection.command("DEBUG", "SLEEP", 0.001)
        # From here on nothing is noted that such a machine makes slow.
        connection.command("CONFIG", "SET", "latency-monitor-threshold", 10_000)


def at_the_start_of_a_second() -> None:
    now = time.time()
    time.sleep(1 - now % 1 + 0.01)


@pytest.mark.slow
def test_the_latest_sample_of_an_event_comes_with_its_extremes(slow: Connection) -> None:
    reply = slow.command("LATENCY", "LATEST")
    assert isinstance(reply, list)
    (event,) = (event for event in reply if isinstance(event, list) and event[0] == b"command")
    name, at, latest, longest, total, count = event
    assert name == b"command"
    assert isinstance(at, int)
    assert isinstance(latest, int)
    assert isinstance(total, int)
    assert abs(at - time.time()) < 60
    assert 350 <= latest == longest
    assert (count, total >= 620) == (3, True)


@pytest.mark.slow
def test_the_history_has_the_longest_of_each_second(slow: Connection) -> None:
    reply = slow.command("LATENCY", "HISTORY", "command")
    assert isinstance(reply, list)
    assert len(reply) == 2
    (first, second) = reply
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert isinstance(first[1], int)
    assert isinstance(second[1], int)
    assert 120 <= first[1] < 350 <= second[1]


@pytest.mark.slow
def test_the_graph_shows_the_history(slow: Connection) -> None:
    graph = text(slow.command("LATENCY", "GRAPH", "command"))
    head, bars = graph.split("-" * 80 + "\n")
    assert re.fullmatch(r"command - high \d+ ms, low \d+ ms \(all time high \d+ ms\)\n", head)
    assert bars.split("\n")[:5] == [" #", " |", " |", "_|", "  "]


@pytest.mark.slow
def test_the_doctor_describes_the_events(slow: Connection) -> None:
    slow.command("CONFIG", "SET", "slowlog-log-slower-than", 20_000_000)
    report = text(slow.command("LATENCY", "DOCTOR"))
    assert report.startswith("Latency spikes are observed in this Valkey instance.\n\n1. command: 2 latency spikes ")
    assert "\n\nHere is some advice for you:\n\n- " in report
    assert "- Your current Slow Log configuration only logs events that are slower than" in report
    slow.command("CONFIG", "SET", "slowlog-log-slower-than", -1)
    assert "Try to enable the Slow Log" in text(slow.command("LATENCY", "DOCTOR"))
    slow.command("CONFIG", "SET", "slowlog-log-slower-than", 1000)
    assert "Slow Log configuration" not in text(slow.command("LATENCY", "DOCTOR"))


def test_events_can_be_forgotten_one_by_one_and_all_at_once(start: Start) -> None:
    with start().connect() as connection:
        connection.command("CONFIG", "SET", "latency-monitor-threshold", 50)
        connection.command("DEBUG", "SLEEP", 0.06)
        # From here on nothing is noted that a busy machine makes slow.
        connection.command("CONFIG", "SET", "latency-monitor-threshold", 10_000)
        reply = connection.command("LATENCY", "LATEST")
        assert isinstance(reply, list)
        assert [event[0] for event in reply if isinstance(event, list)] == [b"command"]
        assert connection.command("LATENCY", "RESET", "fork", "nosuch") == 0
        assert connection.command("LATENCY", "RESET", "Command", "fork") == 1
        assert connection.command("LATENCY", "HISTORY", "command") == []
        connection.command("LATENCY", "RESET")
        assert connection.command("LATENCY", "LATEST") == []
        assert "No latency spike was observed" in text(connection.command("LATENCY", "DOCTOR"))


def test_nothing_is_noted_while_the_monitor_is_off(start: Start) -> None:
    with start().connect() as connection:
        connection.command("DEBUG", "SLEEP", 0.05)
        assert connection.command("LATENCY", "LATEST") == []
        assert "I'm sorry, Dave" in text(connection.command("LATENCY", "DOCTOR"))


def test_the_times_of_commands_are_a_distribution(start: Start) -> None:
    with start().connect(protocol=3) as connection:
        for _ in range(100):
            connection.command("SET", "key", "value")
        connection.command("CONFIG", "GET", "port")
        found = mapping(connection.command("LATENCY", "HISTOGRAM", "SET", "config", "get", "nosuch"))
        assert set(found) == {b"set", b"config|get"}
        told = mapping(found[b"set"])
        distribution = mapping(told[b"histogram_usec"])
        assert told[b"calls"] == 100
        fast = {time for time in distribution if isinstance(time, int) and time <= 1056}
        assert fast <= {1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056}
        calls = [calls for calls in distribution.values() if isinstance(calls, int)]
        assert calls == sorted(set(calls))
        assert calls[-1] == 100
        assert b"latency|histogram" in mapping(connection.command("LATENCY", "HISTOGRAM"))
        connection.command("CONFIG", "RESETSTAT")
        assert mapping(connection.command("LATENCY", "HISTOGRAM", "set")) == {}


def test_a_slow_command_is_in_the_distribution_and_in_info(start: Start) -> None:
    with start().connect() as connection:
        connection.command("DEBUG", "SLEEP", 0.03)
        told = mapping(mapping(connection.command("LATENCY", "HISTOGRAM", "debug"))[b"debug"])
        (slowest,) = mapping(told[b"histogram_usec"])
        assert isinstance(slowest, int)
        assert slowest >= 30_000
        info = text(connection.command("INFO", "latencystats"))
        found = re.search(r"latency_percentiles_usec_debug:p50=([\d.]+),p99=[\d.]+,p99.9=[\d.]+\r\n", info)
        assert found
        assert float(found[1]) >= 30_000


def test_the_times_of_commands_can_be_left_alone(start: Start) -> None:
    with start().connect() as connection:
        assert connection.command("CONFIG", "SET", "latency-tracking", "no") == Simple(b"OK")
        connection.command("CONFIG", "RESETSTAT")
        connection.command("SET", "key", "value")
        assert mapping(connection.command("LATENCY", "HISTOGRAM")) == {}


def test_info_shows_the_percentiles_that_are_asked_for(start: Start) -> None:
    with start().connect() as connection:
        connection.command("SET", "key", "value")
        connection.command("CONFIG", "SET", "latency-tracking-info-percentiles", "12.5 100")
        info = text(connection.command("INFO", "latencystats"))
        assert re.search(r"latency_percentiles_usec_set:p12.5=[\d.]+,p100=[\d.]+\r\n", info)


@pytest.mark.parametrize(
    "command",
    [
        ["LATENCY"],
        ["LATENCY", "NOSUCH"],
        ["LATENCY", "HELP"],
        ["LATENCY", "LATEST", "x"],
        ["LATENCY", "HISTORY"],
        ["LATENCY", "HISTORY", "nosuch"],
        ["LATENCY", "GRAPH"],
        ["LATENCY", "GRAPH", "nosuch"],
        ["LATENCY", "RESET", "nosuch"],
        ["LATENCY", "HISTOGRAM", "nosuch"],
        ["LATENCY", "DOCTOR", "x"],
        ["LATENCY", "DOCTOR"],
        ["CONFIG", "SET", "latency-monitor-threshold", "-1"],
        ["CONFIG", "SET", "latency-tracking", "maybe"],
        ["CONFIG", "SET", "latency-tracking-info-percentiles", "50 x"],
        ["CONFIG", "SET", "latency-tracking-info-percentiles", "50 101"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])
def test_mistakes_are_answered_as_valkey_answers_them(
    server: Server, peer: Server, command: list[Argument], protocol: int
) -> None:
    with server.connect(protocol) as ours, peer.connect(protocol) as theirs:
        assert ours.command_raw(*command) == theirs.command_raw(*command)


def test_an_event_without_samples_has_no_graph(server: Server) -> None:
    with server.connect() as connection:
        assert connection.command("LATENCY", "GRAPH", "fork") == Failure(b"ERR No samples available for event 'fork'")
