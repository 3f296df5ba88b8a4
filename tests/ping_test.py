"""`snugly ping`: whether a server answers, as an exit code."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest

import servers
from tested import Start

pytestmark = pytest.mark.snugly_only


def ping(url: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if name not in ("REDISCLI_AUTH", "SNUGLY_PASSWORD_FILE")}
    command = [str(servers.snugly_binary()), "ping", url]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**known, **environment})


def test_a_server_that_answers_is_told_of(start: Start) -> None:
    server = start()
    done = ping(f"snugly://127.0.0.1:{server.port}")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"127.0.0.1:{server.port} answers\n", "")


def test_a_real_valkey_server_answers_as_well(peer: servers.Server) -> None:
    assert ping(f"valkey://127.0.0.1:{peer.port}").returncode == 0


def test_nobody_on_the_port_is_an_error_that_names_it() -> None:
    with servers.reserved_port() as port:
        done = ping(f"snugly://127.0.0.1:{port}")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot connect to 127.0.0.1:{port}" in done.stderr


def test_a_server_that_wants_a_password_has_answered_and_one_that_refuses_it_has_not(start: Start) -> None:
    url = f"snugly://127.0.0.1:{start(password='secret').port}"
    without = ping(url)
    assert (without.returncode, "wants a password" in without.stdout) == (0, True)
    assert ping(url, REDISCLI_AUTH="secret").stdout == without.stdout.replace(", and wants a password", "")
    wrong = ping(url, REDISCLI_AUTH="another one")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "another one" not in wrong.stderr


@pytest.mark.slow
def test_a_server_that_does_not_answer_in_five_seconds_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = ping(f"snugly://127.0.0.1:{silent.getsockname()[1]}")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no answer within 5 seconds" in done.stderr
