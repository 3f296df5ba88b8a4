"""The dashboard of the admin endpoint: one page that loads nothing from elsewhere, and shows foreign bytes as text."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from admin import answer, begin, request, sample_names
from tested import Start
from trained import dictionary

pytestmark = pytest.mark.snugly_only


def test_the_page_is_there_with_and_without_a_token(start: Start, admin: int, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret")
    begin(start, admin, "--admin-token-file", str(file))
    status, headers, page = answer(admin, "GET", "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert request(admin, "GET", "/", "Bearer wrong") == (200, page)
    assert request(admin, "HEAD", "/") == (200, "")
    assert request(admin, "GET", "/dashboard.html")[0] == 404
    assert "secret" not in page


def test_the_page_loads_nothing_from_elsewhere(start: Start, admin: int) -> None:
    begin(start, admin)
    _, headers, page = answer(admin, "GET", "/")
    assert not re.search(r"https?:|(?:src|href)=[\"']?//|@import|url\(", page)
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    for directive in ("default-src", "base-uri", "form-action", "frame-ancestors"):
        assert policy[directive] == "'none'"
    assert policy["connect-src"] == "'self'"
    for element in ("script", "style"):
        [content] = re.findall(f"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert policy[f"{element}-src"] == f"'sha256-{digest}'"
    assert not re.search(r" style=| on[a-z]+=", page), "the policy forbids them"
    assert (headers["X-Content-Type-Options"], headers["Cache-Control"]) == ("nosniff", "no-store")


def test_the_page_never_makes_markup_of_what_the_server_says(start: Start, admin: int) -> None:
    begin(start, admin)
    page = request(admin, "GET", "/")[1]
    for dangerous in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"):
        assert dangerous not in page


def test_every_metric_of_the_page_exists(start: Start, admin: int) -> None:
    begin(start, admin)
    used = set(re.findall(r"\bsnugly_\w+", request(admin, "GET", "/")[1]))
    assert len(used) > 50
    assert used <= sample_names(admin)


def rendered(admin: int, tmp_path: Path) -> str:
    """The page as a browser has it once it has asked the server."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no chromium here")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path}"]
    command = [browser, *options, "--virtual-time-budget=7000", "--dump-dom", f"http://127.0.0.1:{admin}/"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


@pytest.mark.slow
def test_a_browser_shows_numbers_and_foreign_bytes_as_text(start: Start, admin: int, tmp_path: Path) -> None:
    evil = b'<img src=x onerror="document.title=1">"&\n:*'
    with begin(start, admin).connect() as connection:
        for number in range(3000):
            connection.command("SET", f"key:{number}", number)
        assert isinstance(connection.command("DICTIONARY", "IMPORT", evil, 100, dictionary()), int)
        page = rendered(admin, tmp_path)
    assert ">serves<" in page
    assert "3,000" in page
    assert "&lt;img src=x" in page
    assert "<img" not in page


@pytest.mark.slow
def test_a_browser_asks_for_the_token(start: Start, admin: int, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret")
    begin(start, admin, "--admin-token-file", str(file))
    page = rendered(admin, tmp_path / "browser")
    assert ">token needed<" in page
    assert "asks for a token" in page
