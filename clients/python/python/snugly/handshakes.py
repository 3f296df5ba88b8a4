"""Connections of a client's pool that tell when they are made anew, and that end when their handshake is interrupted.

A client's pool gets a class of its own for its connections, made from the one that it has. It knows the connections of
valkey-py and redis-py, synchronous and asyncio, and nothing of commands.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from snugly.text import connections_of, holders_of

if TYPE_CHECKING:
    from snugly.dictionaries.managers import AsyncDictionaryManager, DictionaryManager

    Manager: TypeAlias = DictionaryManager | AsyncDictionaryManager

PLAIN = "_snugly_plain_connection"
"""Attribute of such a class with the class that it was made from."""


class Attended:
    """A connection that makes dictionary managers look when it is connected again: it was lost, and perhaps more."""

    _snugly_managers: weakref.WeakSet[Any]
    _snugly_was_connected = False

    def _tell(self) -> None:
        if self._snugly_was_connected:
            for manager in list(self._snugly_managers):
                manager.hurry()
        self._snugly_was_connected = True


class Blocking(Attended):
    """For synchronous connections. One whose handshake is interrupted, by whatever a signal handler raises, is closed.

    Otherwise the replies to the handshake would be taken for those to the next caller's command.
    """

    def connect(self) -> Any:
        return self._guarded(super().connect)  # type: ignore[misc]

    def check_health(self) -> Any:
        return self._guarded(super().check_health)  # type: ignore[misc]

    def connect_check_health(self, *args: Any, **options: Any) -> Any:
        """What redis-py connects with where it has a command to send."""
        return self._guarded(functools.partial(super().connect_check_health, *args, **options))  # type: ignore[misc]

    def _guarded(self, exchange: Callable[[], Any]) -> Any:
        try:
            return exchange()
        except BaseException:
            self.disconnect()  # type: ignore[attr-defined]
            raise

    def _connect(self) -> Any:
        sock = super()._connect()  # type: ignore[misc]
        self._tell()
        return sock


class Asynchronous(Attended):
    """For asyncio connections."""

    async def _connect(self) -> None:
        await super()._connect()  # type: ignore[misc]
        self._tell()


def attend(client: Any, manager: Manager | None) -> None:
    """Makes the connections of a client attended, those that it has as well, on behalf of its dictionary manager."""
    for holder in holders_of(client):
        attend_to(holder, manager)


def attend_to(holder: Any, manager: Manager | None) -> None:
    """The same for whatever makes connections: a pool, or the settings of a cluster's nodes."""
    settings = getattr(holder, "connection_kwargs", {})
    plain = getattr(holder, "connection_class", None) or settings.get("connection_class")
    if plain is None:
        return
    attended = plain if hasattr(plain, PLAIN) else attended_class(plain)
    if manager is not None:
        attended._snugly_managers.add(manager)
    if hasattr(holder, "connection_class"):
        holder.connection_class = attended
    else:
        settings["connection_class"] = attended
    if issubclass(attended, Blocking):
        for connection in connections_of(holder):
            if type(connection) is plain:
                connection.__class__ = attended


def attended_class(plain: type) -> type[Any]:
    """A class of its own for the connections of one pool. Its name is the plain one's, which representations show."""
    layer = Asynchronous if inspect.iscoroutinefunction(plain.connect) else Blocking  # type: ignore[attr-defined]
    looks = {name: getattr(plain, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(plain.__name__, (layer, plain), {**looks, PLAIN: plain, "_snugly_managers": weakref.WeakSet()})


def plain_class(connection_class: type) -> type:
    """The class that the connections of a pool would have without this."""
    return getattr(connection_class, PLAIN, connection_class)
