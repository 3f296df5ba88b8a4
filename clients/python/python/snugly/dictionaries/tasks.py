"""Requests of a client to its server about dictionaries (spec/dictionaries.md), step by step.

The rules are in the native module. This knows the settings, the replies and errors of libraries, and the folder of
copies. It does no I/O with servers, which its steps request.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from snugly import _native
from snugly.configuration import CompressionConfiguration
from snugly.deferred import Found
from snugly.dictionaries.effects import Batch, Effects, Work

logger = logging.getLogger("snugly")


class DictionaryTasks:
    """The dictionaries of one client and its server, for any number of threads.

    `denied` is the error for a command that is not allowed. Any other is taken for one that passes: libraries raise all
    kinds of them while a cluster changes. `read_timeout` is how long the client waits for a reply, in seconds; None for
    any time.
    """

    def __init__(
        self,
        configuration: CompressionConfiguration,
        codec: _native.Codec,
        cache: _native.Dictionaries,
        denied: type[Exception],
        read_timeout: float | None,
    ) -> None:
        self.cache = cache
        self.refresh = configuration.dictionary_refresh
        self.when_lost: Callable[[], None] = lambda: None
        """Callback for the loss of the catalogue."""
        self.denied = denied
        self.key = _native.catalogue_key(configuration.dictionary_prefix)
        self.lock_key = _native.lock_key(configuration.dictionary_prefix)
        self._codec = codec
        self._prefix = configuration.dictionary_prefix
        self._folder = Path(configuration.dictionary_folder) if configuration.dictionary_folder is not None else None
        self._rules = _native.Manager(
            prefix=configuration.dictionary_prefix,
            refresh=configuration.dictionary_refresh,
            waits=configuration.dictionary is not None,
            has_copies=self._folder is not None,
            read_timeout=read_timeout,
            dictionaries=cache,
        )
        self.interval = self._rules.interval
        """Seconds between two rounds."""
        self._counted = {
            "fetched": codec.count_fetched,
            "put_back": codec.count_put_back,
            "mended": codec.count_mended,
        }

    @property
    def why_missing(self) -> str:
        """Returns an additional explanation for a dictionary that was not found."""
        is_off = self._rules.is_off(time.monotonic())
        return f": the keys {self._prefix}:* may not be read" if is_off else ""

    @property
    def was_off(self) -> bool:
        """Returns whether permission was missing at the last request."""
        return self._rules.was_off()

    @property
    def is_known(self) -> bool:
        """Returns whether there was a catalogue at the last read, or one was published since."""
        return self._rules.is_known()

    @property
    def is_written_with(self) -> bool:
        """Returns whether values are written with dictionaries."""
        return self.cache.are_written_with()

    def is_missing(self, dictionary: int) -> bool:
        """Returns whether looking up this dictionary now is useless."""
        return self._rules.is_missing(dictionary, time.monotonic())

    def fetched(self, wanted: Collection[int]) -> Effects[Found]:
        """Looks for dictionaries, all together and for a while, and returns those that there are."""
        return self._steps(self._rules.fetch(list(wanted)))

    def refreshed(self) -> Effects[float]:
        """Does what is to be done now, and returns how long there is nothing to do, in seconds."""
        return self._steps(self._rules.refresh())

    def kept(self) -> Effects[None]:
        """Makes the server register the held dictionaries as in use, puts back missing ones, and overwrites wrong
        values."""
        return self._steps(self._rules.keep())

    def hurry(self) -> None:
        """Makes the next refresh check everything: a connection was lost, and the server may have lost more."""
        self._rules.hurry()

    def forget_tasks(self) -> None:
        """Starts anew in another process, which has not the threads of its parent."""
        self._rules.forget_tasks()

    def lose(self) -> None:
        """Notes that the catalogue is gone: all was deleted."""
        self._rules.lose()
        self.when_lost()

    def has_published(self, dictionary: _native.Dictionary) -> None:
        """Notes what this client has published itself."""
        self._rules.has_published(dictionary, *now())

    def dictionary_key(self, dictionary: int) -> bytes:
        """Returns the key of the dictionary of this ID."""
        return _native.dictionary_key(self._prefix, dictionary)

    def warn(self, message: str) -> None:
        """Logs a warning, each once."""
        if self._rules.is_new_warning(message):
            logger.warning(message)

    def _steps(self, task: _native.Task) -> Effects[Any]:
        """Takes a task step by step, and returns its outcome."""
        events, kind, what = task.start(*now())
        while True:
            for event, text in events:
                self._note(event, text)
            if kind == "end":
                return what
            if kind == "send":
                events, kind, what = yield from self._sent(task, what)
            elif kind == "sleep":
                yield what
                events, kind, what = task.done(*now())
            elif kind == "read_copies":
                copies = yield Work(partial(self._copies_of, what))
                events, kind, what = task.copies(copies, *now())
            else:
                yield Work(partial(self._write_copies if kind == "write_copies" else self._remove_copies, what))
                events, kind, what = task.done(*now())

    def _sent(self, task: _native.Task, commands: list[tuple[bytes, ...]]) -> Effects[_native.Step]:
        """Requests that commands are sent, and returns the next step."""
        try:
            replies = yield Batch([(command[0].decode(), *command[1:]) for command in commands])
        except self.denied as error:
            replies = [error] * len(commands)
        except Exception as error:
            return task.lost(str(error), *now())
        return task.replies([self._outcome(reply) for reply in replies], *now())

    def _outcome(self, reply: Any) -> Any:
        if isinstance(reply, Exception):
            return _native.Failed(isinstance(reply, self.denied), str(reply))
        return reply

    def _note(self, event: str, text: str) -> None:
        if event == "warning":
            logger.warning(text)
        elif event == "catalogue_lost":
            self.when_lost()
        else:
            self._counted[event]()

    def _copies_of(self, dictionaries: Iterable[int]) -> list[tuple[int, str, bytes]]:
        copies = []
        for dictionary in dictionaries:
            path = self._copy_path(dictionary)
            with contextlib.suppress(OSError):
                copies.append((dictionary, str(path), path.read_bytes()))
        return copies

    def _write_copies(self, dictionaries: Iterable[_native.Dictionary]) -> None:
        for dictionary in dictionaries:
            path = self._copy_path(dictionary.id)
            draft = None
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as draft:
                    draft.write(dictionary.bytes)
                Path(draft.name).replace(path)
            except OSError as error:
                self.warn(f"copies of dictionaries cannot be kept in {path.parent}: {error}")
                if draft is not None:
                    with contextlib.suppress(OSError):
                        Path(draft.name).unlink()

    def _remove_copies(self, dictionaries: Iterable[int]) -> None:
        for dictionary in dictionaries:
            with contextlib.suppress(OSError):
                self._copy_path(dictionary).unlink()

    def _copy_path(self, dictionary: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{dictionary}.zdict"


def now() -> tuple[float, float]:
    """By the clock that never goes back, and since 1970."""
    return time.monotonic(), time.time()
