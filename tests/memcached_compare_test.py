"""Replies to random requests of memcached's protocols, byte for byte beside memcached's."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

import comparison
import memcached
import memcached_comparison
import memcached_requests
from memcached import Cache, Packet
from memcached_comparison import Agreement, of_packets, of_text
from memcached_requests import Request

LENGTH = 200

# As many requests as go out in one write.
each_pace = pytest.mark.parametrize("at_once", [1, 100], ids=["one by one", "many at once"])


@pytest.fixture(scope="module")
def second_memcached() -> Iterator[Cache]:
    with memcached.real() as cache:
        yield cache


def compare(
    ours: Cache, theirs: Cache, seed: int, at_once: int, left_out: Callable[[Request], bool] = lambda _: False
) -> None:
    requests = [
        request for request in memcached_requests.sequence(random.Random(seed), LENGTH) if not left_out(request)
    ]
    found = memcached_comparison.compare(ours, theirs, requests, at_once)
    if found:
        pytest.fail(f"seed {seed}:\n{memcached_comparison.shrink(ours, theirs, found, at_once)}")


def asks_whether_it_was_read(request: Request) -> bool:
    return isinstance(request.content, bytes) and b"h" in request.content.split(b"\r\n")[0].split(b" ")[2:]


@pytest.mark.snugly_only
@pytest.mark.parametrize("seed", comparison.seeds())
@each_pace
def test_replies_are_those_of_memcached(
    memcached_server: Cache, memcached_peer: Cache, at_once: int, seed: int
) -> None:
    compare(memcached_server, memcached_peer, seed, at_once)


@pytest.mark.snugly_only
@pytest.mark.parametrize("seed", comparison.seeds(1_000, part=2))
def test_replies_are_those_of_memcached_when_values_come_from_disk(
    memcached_on_disk: Cache, memcached_peer: Cache, seed: int
) -> None:
    # Whether it was read is not kept with a value that leaves memory.
    compare(memcached_on_disk, memcached_peer, seed, at_once=3, left_out=asks_whether_it_was_read)


@pytest.mark.parametrize("seed", comparison.seeds(2_000, part=2))
@each_pace
def test_memcached_answers_as_another_memcached_does(
    second_memcached: Cache, memcached_peer: Cache, at_once: int, seed: int
) -> None:
    """The comparison itself: what it finds here, it would find in every server."""
    with second_memcached.connect() as client:
        # Has the second one tell other numbers.
        client.ask(b"set other 0 0 1\r\nx\r\n" * (seed % 7))
    compare(second_memcached, memcached_peer, seed, at_once)


def test_a_difference_is_found_and_shrunk(memcached_peer: Cache) -> None:
    """The comparison itself: one of the servers refuses a request that nothing else makes it refuse."""
    noise = [Request(b"set alpha 0 0 1\r\na\r\n"), Request(b"gets alpha\r\n")] * 5
    tell = [Request(b"stats cachedump 1 1\r\n")]
    with memcached.real("-X") as refusing:
        found = memcached_comparison.compare(refusing, memcached_peer, [*noise, *tell, *noise])
        assert found is not None
        assert found.at == len(noise)
        shrunk = memcached_comparison.shrink(refusing, memcached_peer, found)
    assert shrunk.requests[: shrunk.at + 1] == tell


@pytest.mark.parametrize(
    ("ours", "theirs", "alike"),
    [
        ([b"HD\r\n"], [b"EN\r\n"], False),
        ([b"HD t90 s5\r\n"], [b"HD t92 s5\r\n"], True),
        ([b"HD t90 s5\r\n"], [b"HD t93 s5\r\n"], False),
        ([b"HD t90 s5\r\n"], [b"HD t90 s6\r\n"], False),
        ([b"HD t0\r\n"], [b"HD t-1\r\n"], False),
        ([b"HD c5 t-1\r\n", b"HD c5\r\n"], [b"HD c1 t-1\r\n", b"HD c1\r\n"], True),
        ([b"HD c5\r\n", b"HD c5\r\n"], [b"HD c1\r\n", b"HD c2\r\n"], False),
        ([b"HD c5\r\n", b"HD c6\r\n"], [b"HD c1\r\n", b"HD c1\r\n"], False),
        ([b"HD c5\r\n", b"HD c6\r\n"], [b"HD c2\r\n", b"HD c1\r\n"], False),
        ([b"EX c0\r\n"], [b"EX c3\r\n"], False),
        ([b"VALUE k 1 1 5\r\na\r\nEND\r\n"], [b"VALUE k 1 1 7\r\na\r\nEND\r\n"], True),
        ([b"VALUE k 1 1 5\r\na\r\nEND\r\n"], [b"VALUE k 2 1 5\r\na\r\nEND\r\n"], False),
        ([b"VALUE k 1 1 5\r\na\r\nEND\r\n", b"HD c6\r\n"], [b"VALUE k 1 1 5\r\na\r\nEND\r\n", b"HD c4\r\n"], False),
    ],
)
def test_numbers_are_compared_by_their_order(ours: list[bytes], theirs: list[bytes], alike: bool) -> None:
    """The comparison itself, on replies about the key `k`."""
    agreement = Agreement()
    assert (
        all(
            agreement.holds(of_text(b"k", left), of_text(b"k", right)) for left, right in zip(ours, theirs, strict=True)
        )
        == alike
    )


def test_packets_are_compared_with_all_that_is_in_them() -> None:
    one = Packet(0, b"k", b"v", b"1234", opaque=1, cas=5)
    assert Agreement().holds(of_packets(b"k", [one]), of_packets(b"k", [Packet(0, b"k", b"v", b"1234", 0, 1, 9)]))
    for other in (
        Packet(0, b"k", b"v", b"1234", 0, 2, 5),
        Packet(0, b"k", b"v", b"1234", 1, 1, 5),
        Packet(0, b"k", b"v"),
    ):
        assert not Agreement().holds(of_packets(b"k", [one]), of_packets(b"k", [other]))
