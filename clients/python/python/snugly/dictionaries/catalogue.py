"""What a client asks its server about dictionaries (spec/dictionaries.md), step by step.

It knows the rules and the settings, and how copies are kept in a folder. It does no I/O: what there is to do is in its
steps.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from snugly import _native
from snugly.configuration import CompressionConfiguration
from snugly.dictionaries.steps import Steps, Work
from snugly.dictionary import Dictionary

ROUNDS_PER_REFRESH = 12
"""How often what is in use is looked after, for each time that the catalogue is read."""
PATIENCE = 1.5
"""How long a missing dictionary is waited for, in rounds: within one its holders put it back. At least a second."""
LEAST_PATIENCE = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
MISSING = 2.0
"""How long a dictionary that was not found is not looked for again, in rounds. At least a second."""
MOST_MISSING = 1000

logger = logging.getLogger("snugly")


class Catalogue:
    """What one client knows of the dictionaries beside its data, for any number of threads.

    `denied` is the error for a command that is not allowed. Any other is taken for one that passes: libraries raise all
    kinds of them while a cluster changes.
    """

    def __init__(
        self,
        configuration: CompressionConfiguration,
        codec: _native.Codec,
        at_hand: _native.Dictionaries,
        denied: type[Exception],
    ) -> None:
        self.at_hand = at_hand
        self.interval = configuration.dictionary_refresh / ROUNDS_PER_REFRESH
        """Seconds between two rounds."""
        self.is_known = False
        """Whether there was a catalogue when it was read last, or it was published since."""
        self.when_lost: Callable[[], None] = lambda: None
        """What is called when there is none any more."""
        self.denied = denied
        self.refresh = configuration.dictionary_refresh
        self.key = _native.catalogue_key(configuration.dictionary_prefix)
        self.lock_key = _native.lock_key(configuration.dictionary_prefix)
        self._codec = codec
        self._writes = configuration.writes_dictionaries
        given = configuration.dictionary
        self._given = given.id if isinstance(given, Dictionary) else None
        self._prefix = configuration.dictionary_prefix
        self._folder = Path(configuration.dictionary_folder) if configuration.dictionary_folder is not None else None
        self._due = 0.0
        self._off_until = 0.0
        self._unkept_until = 0.0
        self._wanted: list[int] = []
        self._forgotten: frozenset[int] = frozenset()
        self._missing: dict[int, float] = {}
        self._warned: set[str] = set()

    @property
    def is_off(self) -> bool:
        """Whether dictionaries are not to be had, for want of permission. It is asked again after a refresh."""
        return time.monotonic() < self._off_until

    @property
    def was_off(self) -> bool:
        """Whether permission was missing when it was last asked for."""
        return self._off_until > 0

    def is_missing(self, dictionary: int) -> bool:
        """Whether there is no use in looking for it now."""
        return self.is_off or self._missing.get(dictionary, 0.0) > time.monotonic()

    def found(self, dictionary: int) -> Steps[bool]:
        """Gets the dictionary of this ID, which is tried for a while, and says whether it is at hand."""
        patience = time.monotonic() + max(PATIENCE * self.interval, LEAST_PATIENCE)
        pause = FIRST_PAUSE
        while not (yield from self._tried(dictionary)):
            if self.is_off or time.monotonic() > patience:
                self._remember_missing(dictionary)
                return False
            yield pause
            pause = min(2 * pause, LONGEST_PAUSE)
        return True

    def round(self) -> Steps[None]:
        """What is to be done every `interval`."""
        if self.is_off or not (self._writes or self.at_hand.held()):
            return
        if time.monotonic() >= self._due:
            yield from self._read()
            if self.is_off:
                return
        for dictionary in self._wanted:
            if self.at_hand.get(dictionary) is None:
                yield from self._tried(dictionary)
        self.at_hand.choose(time.time())
        if time.monotonic() >= self._unkept_until:
            yield from self._kept()

    def _read(self) -> Steps[bool]:
        """Reads the catalogue, and says whether the server gave what there is."""
        try:
            document = yield ("GET", self.key)
        except self.denied as error:
            self._turn_off(error)
            return False
        except Exception:
            return False
        self._due = time.monotonic() + self.refresh
        self._off_until = 0.0
        if self._given is None:
            # Permission may have been missing before.
            self.at_hand.allow(True, time.time())
        self._wanted = []
        if document is None and self.is_known:
            self.lose()
        self.is_known = document is not None
        try:
            self._wanted, forgotten = self.at_hand.read(document, time.time(), self.refresh)
            self._forgotten = frozenset(forgotten)
        except ValueError as error:
            self.warn(f"values are written without dictionaries: {error}")
            return True
        if self._folder is not None and forgotten:
            yield Work(partial(remove_copies, self._folder, forgotten))
        return True

    def lose(self) -> None:
        """Notes that the catalogue is gone: all was deleted."""
        self.is_known = False
        self.when_lost()

    def has_published(self, dictionary: _native.Dictionary) -> None:
        """Notes what this client has published itself."""
        self.at_hand.hold(dictionary, time.time())
        self.is_known = True
        self._due = 0.0

    def dictionary_key(self, dictionary: int) -> bytes:
        """Where the dictionary of this ID is."""
        return _native.dictionary_key(self._prefix, dictionary)

    def _kept(self) -> Steps[None]:
        """Has the server see that what is at hand is in use, and puts back what is gone."""
        try:
            gone = yield from self._touched()
            # It may be gone because it is to be forgotten.
            if gone and (yield from self._read()):
                yield from self._put_back(gone)
        except self.denied as error:
            self._unkept_until = time.monotonic() + self.refresh
            self._note(self._given, False)
            self.warn(f"dictionaries are not kept from eviction, since that is not allowed: {error}")
        except Exception:
            # The next round comes.
            return

    def _touched(self) -> Steps[list[int]]:
        """Has the server see what is in use, and returns which dictionaries it does not have."""
        gone = []
        for dictionary in self.at_hand.held():
            is_there = bool((yield ("TOUCH", self.dictionary_key(dictionary))))
            self._note(dictionary, is_there and dictionary not in self._forgotten)
            if not is_there:
                gone.append(dictionary)
        yield ("TOUCH", self.key)
        return gone

    def _put_back(self, gone: list[int]) -> Steps[None]:
        for dictionary in gone:
            held = self.at_hand.get(dictionary)
            # One that was given is at hand, whatever the catalogue says.
            if held is None or dictionary in self._forgotten:
                continue
            try:
                if (yield ("SET", self.dictionary_key(dictionary), held.bytes, "NX")):
                    self._codec.count_put_back()
            except Exception as error:
                if not is_reply(error):
                    raise
                # The server may take another one, and this one another time.
                self.warn(f"dictionaries are not kept from eviction, since the server does not take them: {error}")
            else:
                self._note(dictionary, True)

    def _note(self, dictionary: int | None, is_there: bool) -> None:
        """Has the dictionary that is given written with only while it is beside the data."""
        if dictionary is not None and dictionary == self._given:
            self.at_hand.allow(is_there, time.time())

    def _tried(self, dictionary: int) -> Steps[bool]:
        loaded = None
        if self._folder is not None:
            loaded = yield Work(partial(self._copy_of, self._folder, dictionary))
        if loaded is None:
            key = self.dictionary_key(dictionary)
            try:
                content = yield ("GET", key)
            except self.denied as error:
                self._turn_off(error)
                return False
            except Exception:
                return False
            if content is None:
                return False
            loaded = self._proven(dictionary, content, repr(key))
            if loaded is None:
                return False
            if self._folder is not None:
                yield Work(partial(self._write_copy, self._folder, loaded))
        self.at_hand.hold(loaded, time.time())
        self._codec.count_fetched()
        self._missing.pop(dictionary, None)
        return True

    def _proven(self, dictionary: int, content: bytes, where: str) -> _native.Dictionary | None:
        """The dictionary, if that is what it is."""
        try:
            loaded = _native.Dictionary(content)
        except ValueError as error:
            self.warn(f"what is at {where} is not used: {error}")
            return None
        if loaded.id != dictionary:
            self.warn(f"what is at {where} is not used: it is the dictionary {loaded.id}")
            return None
        return loaded

    def _remember_missing(self, dictionary: int) -> None:
        while len(self._missing) >= MOST_MISSING:
            self._missing.pop(next(iter(self._missing)), None)
        self._missing[dictionary] = time.monotonic() + max(MISSING * self.interval, LEAST_PATIENCE)

    def _turn_off(self, error: Exception) -> None:
        self._off_until = time.monotonic() + self.refresh
        self._due = self._off_until
        self._wanted = []
        self.at_hand.allow(False, time.time())
        self.warn(f"dictionaries are off, since the keys {self._prefix}:* may not be read: {error}")

    def warn(self, message: str) -> None:
        """Logs a warning, each once."""
        if message not in self._warned and len(self._warned) < MOST_MISSING:
            self._warned.add(message)
            logger.warning(message)

    def _copy_of(self, folder: Path, dictionary: int) -> _native.Dictionary | None:
        path = copy_path(folder, dictionary)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        return self._proven(dictionary, content, str(path))

    def _write_copy(self, folder: Path, dictionary: _native.Dictionary) -> None:
        draft = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as draft:
                draft.write(dictionary.bytes)
            Path(draft.name).replace(copy_path(folder, dictionary.id))
        except OSError as error:
            self.warn(f"copies of dictionaries cannot be kept in {folder}: {error}")
            if draft is not None:
                with contextlib.suppress(OSError):
                    Path(draft.name).unlink()


def copy_path(folder: Path, dictionary: int) -> Path:
    return folder / f"{dictionary}.zdict"


def remove_copies(folder: Path, dictionaries: Iterable[int]) -> None:
    for dictionary in dictionaries:
        with contextlib.suppress(OSError):
            copy_path(folder, dictionary).unlink()


def is_reply(error: Exception) -> bool:
    """Whether an error came from the server, and its connection can still be used."""
    return any(base.__name__ == "ResponseError" for base in type(error).__mro__)
