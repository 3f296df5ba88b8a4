"""Training and decisions of one client from the values that it writes, and publication of its dictionaries.

It knows the rules of publishing (spec/dictionaries.md). It does no I/O, which its steps request. Samples, training and
decisions are in the native module.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from snugly import _native
from snugly.dictionaries.connections import is_reply
from snugly.dictionaries.effects import Dedicated, Effects, Work
from snugly.dictionaries.tasks import DictionaryTasks

PAUSE = 0.25
"""Time between two looks for something to train from, in seconds."""
REST = 3.0
"""Rest for each second of work: it takes a quarter of a processor at most."""
LEAST_LOCK, LONGEST_LOCK = 2.0, 60.0
"""Bounds on the expiry of the lock, in seconds; in between it is the refresh."""
WAIT = 500
"""Time to wait for a replica, in milliseconds."""
ATTEMPTS = 10
"""Attempts to change a document that others change, too, until the next round."""


class Learning:
    """Training and decisions of a client, by one thread or task."""

    def __init__(self, manager: DictionaryTasks, codec: _native.Codec, learner: _native.Learner, trains: bool) -> None:
        self._manager = manager
        self._codec = codec
        self._learner = learner
        self._trains = trains
        self._unpublished: dict[str, _native.Lesson] = {}
        self._publish_at = 0.0
        self._studied = 0
        self._is_denied = False
        self._has_warned = False
        manager.when_lost = self.forget

    def forget(self) -> None:
        """Forgets all of it: the values are gone."""
        self._unpublished = {}
        self._learner.forget()

    def look(self) -> Effects[float]:
        """Learns if there is something to be learned, and returns how long there is nothing to do, in seconds."""
        took = 0.0
        shown = self._learner.shown()
        if shown != self._studied:
            started = time.monotonic()
            lesson = yield Work(self._step)
            took = time.monotonic() - started
            if lesson is None:
                self._studied = shown
            elif self._trains and lesson.dictionary is not None:
                self._unpublished[lesson.pattern] = lesson
        if self._is_denied and not self._unpublished and time.monotonic() >= self._publish_at:
            self._allow()
        if self._unpublished and time.monotonic() >= self._publish_at and not self._manager.was_off:
            self._publish_at = time.monotonic() + self._manager.interval
            yield from self._publish()
        return max(PAUSE, REST * took)

    def _step(self) -> _native.Lesson | None:
        return self._learner.step(time.time(), self._codec.reads())

    def _allow(self) -> None:
        self._is_denied = False
        self._learner.allow_training(self._trains)

    def _publish(self) -> Effects[None]:
        try:
            yield Dedicated(self._manager.key, self._publication())
            if self._is_denied:
                self._allow()
        except self._manager.denied as error:
            # With what there is it is asked again.
            self._publish_at = time.monotonic() + self._manager.refresh
            if not self._is_denied:
                self._is_denied = True
                self._learner.allow_training(False)
            self._manager.warn(f"no dictionaries are trained, since they may not be published: {error}")
        except Exception as error:
            # Another round comes. That there is no connection is for others to tell.
            if is_reply(error):
                self._manager.warn(f"dictionaries are not published yet: {error}")

    def _publication(self) -> Effects[None]:
        yield from self._look_at_policy()
        lock, token = self._manager.lock_key, secrets.token_hex(16).encode()
        milliseconds = round(1000 * min(max(self._manager.refresh, LEAST_LOCK), LONGEST_LOCK))
        if not (yield ("SET", lock, token, "NX", "PX", milliseconds)):
            return
        try:
            for lesson in list(self._unpublished.values()):
                # Meanwhile all of it may have been forgotten.
                if self._unpublished.get(lesson.pattern) is lesson:
                    yield from self._published(lesson)
        except Exception:
            # The failure itself is reported.
            with contextlib.suppress(Exception):
                yield from released(lock, token)
            raise
        yield from released(lock, token)

    def _published(self, lesson: _native.Lesson) -> Effects[None]:
        dictionary = lesson.dictionary
        assert dictionary is not None
        document = yield ("GET", self._manager.key)
        other = lesson.active_in(document)
        # One that nobody has any more is as good as none.
        is_lost = other is not None and not (yield ("TOUCH", self._manager.dictionary_key(other)))
        lost = other if is_lost else None
        # A dictionary that nobody is told of would stay for ever.
        if self._added(lesson, document, 0, lost) is None:
            return
        key = self._manager.dictionary_key(dictionary.id)
        if not (yield ("SET", key, dictionary.bytes, "NX")) and (yield ("GET", key)) != dictionary.bytes:
            self._drop(lesson)
            self._manager.warn(f"a dictionary is not published, since there is something else at {key!r}")
            return
        # A replica that is not there or late is one more reason for readers to try again, which they do.
        with contextlib.suppress(Exception):
            yield ("WAIT", 1, WAIT)
        published_at = yield from server_time()

        def command(document: bytes | None) -> tuple[Any, ...] | None:
            added = self._added(lesson, document, published_at, lost)
            return ("SET", self._manager.key, added) if added is not None else None

        if (yield from changed(self._manager.key, command)):
            self._drop(lesson)
            self._manager.has_published(dictionary)
            self._codec.count_published()
            return

        def removal(document: bytes | None) -> tuple[Any, ...] | None:
            return ("DEL", key) if not lesson.is_listed_in(document) else None

        yield from changed(self._manager.key, removal)

    def _added(
        self, lesson: _native.Lesson, document: bytes | None, published_at: int, lost: int | None
    ) -> bytes | None:
        """The catalogue with what was learned, or None if that is not to be published after all."""
        if document is None and self._manager.is_known:
            self._manager.lose()
            return None
        trained_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        try:
            added = lesson.added_to(document, trained_at, published_at, lost)
        except ValueError as error:
            # Another round comes, and perhaps another catalogue.
            self._manager.warn(f"a dictionary for {lesson.pattern!r} is not published: {error}")
            return None
        if added is None:
            self._drop(lesson)
        return added

    def _drop(self, lesson: _native.Lesson) -> None:
        self._unpublished.pop(lesson.pattern, None)

    def _look_at_policy(self) -> Effects[None]:
        """Warns once where dictionaries may be evicted."""
        if self._has_warned:
            return
        self._has_warned = True
        memory = b""
        with contextlib.suppress(Exception):
            memory = yield ("INFO", "memory")
        policy = next((line[17:] for line in memory.splitlines() if line.startswith(b"maxmemory_policy:")), b"")
        if policy.startswith(b"allkeys-"):
            self._manager.warn(
                f"maxmemory-policy is {policy.decode()}, so the server may evict dictionaries while no client is there "
                "that has them, and values cannot be read then: prefer one of volatile-*"
            )


def changed(key: bytes, command: Callable[[bytes | None], tuple[Any, ...] | None]) -> Effects[bool]:
    """Changes what is at a key by the command that follows from it, and says whether there was one that was run.

    Nobody else changes it meanwhile. What it has is asked again if somebody does.
    """
    for _ in range(ATTEMPTS):
        yield ("WATCH", key)
        change = command((yield ("GET", key)))
        if change is None:
            yield ("UNWATCH",)
            return False
        yield ("MULTI",)
        try:
            yield change
        except Exception:
            yield ("DISCARD",)
            raise
        if (yield ("EXEC",)) is not None:
            return True
    return False


def released(lock: bytes, token: bytes) -> Effects[bool]:
    """Releases a lock if it is held with this token, and says whether it was."""
    return (yield from changed(lock, lambda holder: ("DEL", lock) if holder == token else None))


def server_time() -> Effects[int]:
    """Seconds since 1970 by the server's clock, or by our own if it may not be asked."""
    try:
        seconds, _ = yield ("TIME",)
        return int(seconds)
    except Exception:
        return int(time.time())
