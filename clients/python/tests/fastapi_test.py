"""The example for FastAPI, served as an application is."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

import fastapi_app
from servers import Server


def test_a_page_is_rendered_once_and_stored_compressed(valkey_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHE_URL", f"valkey://127.0.0.1:{valkey_server.port}")
    with valkey_server.connect() as connection, TestClient(fastapi_app.app) as browser:
        connection.command("FLUSHALL")
        answers = [browser.get("/pages/7") for _ in range(2)]
        assert [answer.headers["X-Cache"] for answer in answers] == ["miss", "hit"]
        assert {answer.content for answer in answers} == {fastapi_app.rendered(7)}
        stored = connection.command("GET", "page:7")
        assert isinstance(stored, bytes)
        assert stored.startswith(b"\0\1\2\0\1")
        assert len(stored) < len(answers[0].content) / 5
