"""Celery with a result backend that compresses: the example for it, with a worker that runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, chord

import servers
import snugly
from celery_app import book, page
from servers import Server

pytestmark = pytest.mark.slow

EXAMPLES = servers.ROOT / "clients" / "python" / "examples"
OURS = "snugly.celery.RedisBackend+redis"
TEXT = "hello and hello again; " * 200


def application(server: Server, results: str, **options: Any) -> Any:
    """Application that requests tasks and reads results; `options` are those of the compression."""
    place = f"://127.0.0.1:{server.port}/0"
    app: Any = Celery("tests", broker=f"redis{place}", backend=results + place, set_as_current=False)
    app.conf.result_backend_transport_options = {"snugly": options}
    return app


@pytest.fixture(scope="module")
def app(valkey_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    app = application(valkey_server, OURS)
    log: Path = tmp_path_factory.mktemp("celery") / "log"
    command = [sys.executable, "-m", "celery", "--app", "celery_app", "worker", "--pool", "solo", "--without-mingle"]
    environment = {**os.environ, "CACHE_URL": app.conf.broker_url}
    with log.open("w") as output:
        worker = subprocess.Popen(command, cwd=EXAMPLES, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield app
        worker.terminate()
        assert worker.wait(timeout=120) == 0, log.read_text()
    finally:
        worker.kill()
    app.close()


def stored(server: Server, key: str) -> bytes:
    with server.connect() as connection:
        found = connection.command("GET", key)
    assert isinstance(found, bytes)
    return found


def test_a_result_is_stored_compressed_and_awaited(app: Any, valkey_server: Server) -> None:
    result = app.send_task("celery_app.page", [7])
    assert result.get(timeout=120) == page(7)
    envelope = stored(valkey_server, f"celery-task-meta-{result.id}")
    assert envelope.startswith(b"\0\1\2\0\1")
    assert json.loads(snugly.codec.decode(envelope))["result"] == page(7)
    assert app.AsyncResult(result.id).result == page(7)


def test_an_error_arrives_as_what_it_was(app: Any) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        app.send_task("celery_app.page", []).get(timeout=120)


def test_the_parts_of_a_chord_are_joined(app: Any) -> None:
    parts = [app.signature("celery_app.page", [number]) for number in range(3)]
    joined = chord(parts, app=app)(app.signature("celery_app.book"))
    assert joined.get(timeout=120) == book([page(number) for number in range(3)])


def test_a_result_from_before_is_read_and_the_settings_are_taken(valkey_server: Server) -> None:
    application(valkey_server, "redis").backend.store_result("before", TEXT, "SUCCESS")
    after = application(valkey_server, OURS, backend="lz4")
    after.backend.store_result("after", TEXT, "SUCCESS")
    assert stored(valkey_server, "celery-task-meta-after").startswith(b"\0\1\2\0\2")
    assert [after.AsyncResult(name).result for name in ("before", "after")] == [TEXT, TEXT]


def test_a_result_that_cannot_be_read_is_pending(valkey_server: Server) -> None:
    app = application(valkey_server, OURS)
    with valkey_server.connect() as connection:
        connection.command("SET", "celery-task-meta-broken", snugly.codec.encode(TEXT.encode())[:-1])
    assert app.AsyncResult("broken").state == "PENDING"


def test_a_result_that_cannot_be_read_is_an_error_where_it_is_asked_for(valkey_server: Server) -> None:
    app = application(valkey_server, OURS, on_undecodable="raise")
    with valkey_server.connect() as connection:
        connection.command("SET", "celery-task-meta-broken", snugly.codec.encode(TEXT.encode())[:-1])
    with pytest.raises(snugly.UndecodableError):
        app.AsyncResult("broken").get(timeout=5)


def test_a_wrong_setting_says_what_is_allowed(valkey_server: Server) -> None:
    with pytest.raises(snugly.ConfigurationError, match="backend is 'gzip': choose 'zstd'"):
        application(valkey_server, OURS, backend="gzip").backend.get_task_meta("any")


@pytest.mark.parametrize("protocol", [2, 3])
def test_with_decode_responses_results_are_stored_as_text_and_a_warning_says_so(
    valkey_server: Server, protocol: int
) -> None:
    place = f"{OURS}://127.0.0.1:{valkey_server.port}/0?decode_responses=true&protocol={protocol}"
    app: Any = Celery("tests", backend=place, set_as_current=False)
    with pytest.warns(UserWarning, match="stored without compression"):
        app.backend.store_result("text", TEXT, "SUCCESS")
    assert TEXT.encode() in stored(valkey_server, "celery-task-meta-text")
    assert app.AsyncResult("text").result == TEXT


def test_results_that_celery_has_compressed_are_read_also_where_both_compress(valkey_server: Server) -> None:
    def compressing(results: str) -> Any:
        app = application(valkey_server, results)
        app.conf.result_compression = "gzip"
        return app

    compressing("redis").backend.store_result("theirs", TEXT, "SUCCESS")
    both = compressing(OURS)
    both.backend.store_result("both", TEXT, "SUCCESS")
    for app in (both, application(valkey_server, OURS)):
        assert [app.AsyncResult(name).result for name in ("theirs", "both")] == [TEXT, TEXT]
