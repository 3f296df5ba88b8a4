"""Keepers, who run a server: changes that they make while it serves, and accidents of the machine below it.

Each function disturbs the server of a scene and checks what becomes of it; it raises Wrong. It knows nothing of the
load, but for the connections of writers that it may end.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import ssl

from info import info
from resp import Argument, Connection, Failure, Reply, Simple, encode
from soak import settings
from soak.instances import DISK_BYTES, MB, Instance
from soak.ledger import Wrong, short
from soak.links import inside_tls
from soak.scene import OK, Scene
from soak.values import NOISE, value

# The database whose keys make a store grow, the bytes of their values, and more of them than its disk has room for.
FLOODED = 9
FLOOD_BYTES = MB // 2
MOST_FLOODED = 2 * DISK_BYTES // FLOOD_BYTES


def full_disk(scene: Scene) -> None:
    """Fills the disk of the store until writes are refused, and makes room again until they are taken."""
    ballast = scene.instance.disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(1 << 16)):
            pass
    try:
        with scene.instance.connect() as keeper:
            scene.expect(keeper.command("SELECT", FLOODED), OK, f"SELECT {FLOODED}")
            scene.told.append(f"refused behind {flood(scene, keeper)} values")
            scene.waits(scene.rng.uniform(1, 5))
            scene.expect(keeper.command("FLUSHDB"), OK, "FLUSHDB on a full disk")
    finally:
        ballast.unlink()
    scene.until(lambda: is_taken(scene.instance), "a write to a disk that has room again")


def flood(scene: Scene, keeper: Connection) -> int:
    """Writes values that nothing compresses until one is refused, since the store has free pages; says how many."""
    for place in range(MOST_FLOODED):
        reply = keeper.command("SET", f"flood:{place}", NOISE[place : place + FLOOD_BYTES])
        if isinstance(reply, Failure) and reply.text.startswith(scene.instance.situation.refusals):
            return place
        scene.expect(reply, OK, "SET while the disk becomes full")
    raise Wrong(f"{MOST_FLOODED * FLOOD_BYTES // MB} MB were written to a disk of {DISK_BYTES // MB} MB")


def is_taken(instance: Instance) -> bool:
    with instance.connect() as connection:
        return connection.command("SET", "room", b"x" * 10_000) == OK


def certificates(scene: Scene) -> None:
    """A new certificate, by SIGHUP or CONFIG RELOAD, which new connections see while old ones go on."""
    with scene.instance.files, scene.instance.connect() as keeper:
        old = inside_tls(scene.instance.at)
        with contextlib.closing(old):
            shown = serial(old)
            scene.instance.authority.certify()
            if scene.rng.random() < 0.5:
                scene.expect(keeper.command("CONFIG", "RELOAD"), OK, "CONFIG RELOAD")
            else:
                scene.instance.server.process.send_signal(signal.SIGHUP)
            scene.until(lambda: serial_of_new(scene.instance) != shown, "a new certificate")
            old.sendall(encode("PING"))
            scene.expect(Connection(old).read(), Simple(b"PONG"), "PING on a connection with the old certificate")


def serial(connection: socket.socket) -> object:
    assert isinstance(connection, ssl.SSLSocket)
    shown = connection.getpeercert()
    assert shown is not None
    return shown["serialNumber"]


def serial_of_new(instance: Instance) -> object:
    with contextlib.closing(inside_tls(instance.at)) as connection:
        return serial(connection)


def configuration_file(scene: Scene) -> None:
    """Another configuration file and a SIGHUP: what is right in it holds, and a wrong one changes nothing."""
    file = scene.rng.choice(settings.FILES)
    with scene.instance.files, scene.instance.connect() as keeper:
        before = scene.instance.server.output().count(file.logged)
        scene.instance.configuration.write_text(file.text)
        scene.instance.server.process.send_signal(signal.SIGHUP)
        scene.until(lambda: scene.instance.server.output().count(file.logged) > before, f"{file.logged!r} in the log")
        if file.name:
            found = keeper.command("CONFIG", "GET", file.name)
            scene.expect(found, [file.name.encode(), file.value.encode()], f"CONFIG GET {file.name}")
        scene.instance.configuration.write_text("")


def live_settings(scene: Scene) -> None:
    """CONFIG SET of settings that change how values are kept, and not what they are."""
    with scene.instance.connect() as keeper:
        for name in scene.rng.sample(sorted(settings.LIVE), 3):
            chosen = scene.rng.choice(settings.LIVE[name])
            scene.expect(keeper.command("CONFIG", "SET", name, chosen), OK, f"CONFIG SET {name} {chosen!r}")


def memory_limits(scene: Scene) -> None:
    """A limit of memory that falls and rises, at most to what the server was started with."""
    limit = int(scene.instance.situation.max_memory * scene.rng.choice(settings.MEMORY_SHARES))
    with scene.instance.connect() as keeper:
        scene.expect(keeper.command("CONFIG", "SET", "maxmemory", limit), OK, f"CONFIG SET maxmemory {limit}")


def background_save(scene: Scene) -> None:
    """BGSAVE, which comes to its end while everything goes on."""
    with scene.instance.connect() as keeper:
        scene.expect(keeper.command("BGSAVE"), Simple(b"Background saving started"), "BGSAVE")
        scene.until(lambda: info(keeper, "persistence", "rdb_bgsave_in_progress") == 0, "the end of BGSAVE")
        told = keeper.command("INFO", "persistence")
        if b"rdb_last_bgsave_status:ok\r\n" not in (told if isinstance(told, bytes) else b""):
            raise Wrong("BGSAVE has failed")
        scene.told.append(f"{scene.instance.saved.stat().st_size / MB:.1f} MB")


# Replies of DICTIONARY TRAIN where the settings leave nothing to train for.
NOT_TRAINED = (
    b"ERR dictionaries are switched off",
    b"ERR dictionaries are fixed",
    b"ERR dictionaries need compression",
)


def train(scene: Scene) -> None:
    """DICTIONARY TRAIN, unless the settings leave nothing to train for."""
    with scene.instance.connect() as keeper:
        reply = keeper.command("DICTIONARY", "TRAIN")
        if not isinstance(reply, int) and not (isinstance(reply, Failure) and reply.text.startswith(NOT_TRAINED)):
            raise Wrong(f"DICTIONARY TRAIN was answered {short(reply)}")


def kills(scene: Scene) -> None:
    """CLIENT KILL of writers, of whatever protocol, in the middle of what they do."""
    with scene.instance.connect() as keeper:
        for writer in scene.rng.sample(list(scene.writers), 3):
            if not (chosen := writer.only()):
                continue
            ended = keeper.command("CLIENT", "KILL", *chosen)
            if ended not in (0, 1):
                raise Wrong(f"CLIENT KILL {chosen} was answered {short(ended)}")
            assert isinstance(ended, int)
            scene.instance.killed += ended


def pauses(scene: Scene) -> None:
    """A pause of all writes, which ends by itself."""
    with scene.instance.connect() as keeper:
        scene.expect(keeper.command("CLIENT", "PAUSE", scene.rng.randrange(10, 300), "WRITE"), OK, "CLIENT PAUSE")


OBSERVATIONS: tuple[tuple[Argument, ...], ...] = (
    *(("INFO", "everything"), ("CLIENT", "LIST"), ("MEMORY", "STATS"), ("MEMORY", "PURGE"), ("SLOWLOG", "GET", 10)),
    *(("COMPRESSION", "LIST"), ("DICTIONARY", "LIST"), ("DICTIONARY", "CLASSES"), ("DBSIZE",), ("KEYS", "string:*1")),
    *(("LATENCY", "HISTOGRAM"), ("COMMANDLOG", "GET", 10, "slow"), ("RANDOMKEY",), ("CONFIG", "GET", "*")),
)


def observers(scene: Scene) -> None:
    """INFO and its like, all keys by SCAN, and MONITOR for a moment, as dashboards and people ask for them."""
    with scene.instance.connect() as keeper, scene.instance.connect() as monitor:
        scene.expect(monitor.command("MONITOR"), OK, "MONITOR")
        for request in scene.rng.sample(OBSERVATIONS, 4):
            if isinstance(reply := keeper.command(*request), Failure):
                raise Wrong(f"{request} was answered {short(reply)}")
        cursor: Reply = b"0"
        while not scene.stop.is_set():
            page = keeper.command("SCAN", cursor if isinstance(cursor, bytes) else b"0", "COUNT", 1000)
            if not isinstance(page, list):
                raise Wrong(f"SCAN was answered {short(page)}")
            if (cursor := page[0]) == b"0":
                break


def other_databases(scene: Scene) -> None:
    """Another database that is filled, exchanged for one that is empty, and flushed."""
    with scene.instance.connect() as keeper:
        scene.expect(keeper.command("SELECT", 7), OK, "SELECT 7")
        for place in range(100):
            reply = keeper.command("SET", f"string:{place}", value("string", place))
            refused = isinstance(reply, Failure) and reply.text.startswith(tuple(scene.instance.situation.refusals))
            if reply != OK and not (refused and scene.instance.situation.refusals):
                raise Wrong(f"SET in database 7 was answered {short(reply)}")
        scene.expect(keeper.command("SWAPDB", 7, 8), OK, "SWAPDB 7 8")
        scene.expect(keeper.command("DBSIZE"), 0, "DBSIZE of an exchanged database")
        for database in (7, 8):
            keeper.command("SELECT", database)
            scene.expect(keeper.command("FLUSHDB"), OK, f"FLUSHDB of database {database}")
