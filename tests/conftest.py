"""Fixtures: the server under test, with any options, and a real valkey-server and memcached beside it."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

import memcached
import servers
from info import info
from memcached import Cache
from mounts import NotMounted
from resp import Connection
from servers import Server
from tested import Start, started, target_name


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "snugly_only: about what only snugly does; not run against valkey-server")


@contextlib.contextmanager
def skipped_without_mounts() -> Iterator[None]:
    """Skips a test that wants a file system that cannot be mounted here."""
    try:
        yield
    except NotMounted as refusal:
        pytest.skip(str(refusal))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    if item.get_closest_marker("snugly_only") and target_name() != "snugly":
        pytest.skip("about what only snugly does")
    with skipped_without_mounts():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    with skipped_without_mounts():
        yield


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    """The server under test with default options; for everybody, so keep to `server`, which empties it."""
    with started(target_name()) as server:
        yield server


@pytest.fixture
def server(shared_server: Server) -> Server:
    with shared_server.connect() as connection:
        be_alone(connection)
        connection.command("FLUSHALL")
    return shared_server


def be_alone(connection: Connection) -> None:
    """Waits until the server has noticed that the clients of the test before have gone, and ends those that are still
    there: a test that fails leaves some open."""
    deadline = time.monotonic() + 5
    while info(connection, "clients", "connected_clients") > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    connection.command("CLIENT", "KILL", "SKIPME", "yes")


@pytest.fixture(scope="session")
def server_on_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """snugly with a disk tier and next to no memory: a value leaves memory as soon as it is on disk, which it is when
    its write is answered."""
    folder = str(tmp_path_factory.mktemp("store"))
    with servers.snugly("--storage", folder, "--durability", "fsync", "--max-memory", "1") as server:
        yield server


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def connection(server: Server, request: pytest.FixtureRequest) -> Iterator[Connection]:
    with server.connect(protocol=request.param) as connection:
        yield connection


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts the server under test with options of its own: `start("--x", "y", memory="10mb")`."""
    with contextlib.ExitStack() as stack:

        def begin(*options: str, **wishes: str) -> Server:
            return stack.enter_context(started(target_name(), *options, **wishes))

        yield begin


@pytest.fixture
def admin() -> Iterator[int]:
    """A port for the admin endpoint of a server."""
    with servers.reserved_port() as port:
        yield port


@pytest.fixture(scope="session")
def peer() -> Iterator[Server]:
    """A real valkey-server to compare with."""
    with servers.valkey() as server:
        yield server


@pytest.fixture(scope="session")
def locked_pair() -> Iterator[tuple[Server, Server]]:
    """The server under test and a valkey-server that both want the password `secret`."""
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(started(target_name(), password="secret"))
        peer = stack.enter_context(started("valkey", password="secret"))
        yield target, peer


@pytest.fixture(scope="session")
def memcached_peer() -> Iterator[Cache]:
    """A real memcached to compare with."""
    with memcached.real() as cache:
        yield cache


@pytest.fixture(scope="session")
def memcached_server() -> Iterator[Cache]:
    """snugly, with a port for memcached's protocols; for everybody, so keep to `cache` or empty it."""
    with memcached.spoken_by_snugly() as cache:
        yield cache


@pytest.fixture(scope="session")
def memcached_on_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cache]:
    """As `server_on_disk`, with a port for memcached's protocols."""
    folder = str(tmp_path_factory.mktemp("store"))
    with memcached.spoken_by_snugly("--storage", folder, "--durability", "fsync", "--max-memory", "1") as cache:
        yield cache


@pytest.fixture(params=["memcached", pytest.param("snugly", marks=pytest.mark.snugly_only)])
def cache(request: pytest.FixtureRequest) -> Cache:
    """A real memcached, and snugly as one, emptied: a test must pass with both."""
    fixtures = {"memcached": "memcached_peer", "snugly": "memcached_server"}
    chosen: Cache = request.getfixturevalue(fixtures[request.param])
    chosen.empty()
    return chosen


@pytest.fixture(scope="session", params=["memcached", pytest.param("snugly", marks=pytest.mark.snugly_only)])
def locked_cache(request: pytest.FixtureRequest) -> Iterator[Cache]:
    """A real memcached, and snugly as one, which both want the user `default` and the password `secret`."""
    if request.param == "snugly":
        with memcached.spoken_by_snugly("--password", "secret") as cache:
            yield cache
    else:
        with tempfile.NamedTemporaryFile("w") as users:
            users.write("default:secret\n")
            users.flush()
            # Is read by the user nobody, who cannot look into folders of pytest.
            Path(users.name).chmod(0o644)
            with memcached.real("-Y", users.name) as cache:
                yield cache
