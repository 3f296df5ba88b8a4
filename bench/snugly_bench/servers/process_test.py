"""The system's numbers of this very process."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from snugly_bench.servers.process import anonymous_bytes, process_seconds, steady_anonymous_bytes, thread_seconds

pytestmark = pytest.mark.slow

MANY = 64 << 20


def test_memory_that_is_written_to_is_counted() -> None:
    before = anonymous_bytes(os.getpid())
    taken = bytearray(os.urandom(1 << 20) * (MANY >> 20))
    assert steady_anonymous_bytes(os.getpid(), 0.05, 5) - before > len(taken) // 2


def test_a_thread_is_found_by_its_name_and_its_time_is_counted() -> None:
    done = threading.Event()

    def work() -> None:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("a (busy) one")
        while thread_seconds(os.getpid(), "a (busy) one") < 0.05:
            pass
        done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        while thread_seconds(os.getpid(), "a (busy) one") < 0.05:
            time.sleep(0.01)
    finally:
        done.set()
        thread.join()
    assert thread_seconds(os.getpid(), "nobody") == 0


def test_time_of_a_process_has_that_of_threads_that_are_gone() -> None:
    def work() -> None:
        while time.thread_time() < 0.1:
            pass

    before = process_seconds(os.getpid())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert process_seconds(os.getpid()) - before >= 0.1
