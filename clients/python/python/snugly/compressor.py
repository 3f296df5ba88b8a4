"""Treatment of commands by a client: encode the values, or refuse the command, and restore the values in the reply.

It joins the interpreter of the command table and the codec, for arguments and replies as Python clients have them. It
knows no client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from snugly import _native
from snugly.codec import Codec, undecodable
from snugly.configuration import CompressionConfiguration, OnUndecodable
from snugly.deferred import NONE, Deferrals, Deferred
from snugly.dictionaries.waker import Waker
from snugly.errors import CommandRefusedError, UndecodableError
from snugly.missed import MissLog
from snugly.restoration import Restoration
from snugly.text import ESCAPES, TextEncoding

if TYPE_CHECKING:
    from snugly.dictionaries.managers import AsyncDictionaryManager, DictionaryManager


class Compressor:
    """One client's compression, for any number of threads.

    `error` is the class of what is raised for a value that cannot be read.
    """

    def __init__(
        self, configuration: CompressionConfiguration, text: TextEncoding, error: type[UndecodableError]
    ) -> None:
        self._waker = Waker()
        self.codec = Codec.for_client(configuration, self._waker)
        self.configuration = configuration
        self.deferrals = NONE
        """Of values that wait for their dictionaries."""
        self.manager: DictionaryManager | AsyncDictionaryManager | None = None
        self._text = text
        self._error = error
        self._on_undecodable = configuration.on_undecodable
        self._misses = MissLog()
        self.interpreter = _native.Interpreter([str(each) for each in configuration.value_types], CommandRefusedError)
        # Most commands need not be looked at.
        self._untouched = frozenset(self.interpreter.untouched())
        self._encode = self._encoded
        self._encode_bytes: Callable[[Any, bytes | None], bytes] = self.codec.native.encode
        self._names_keys = configuration.chooses_by_key
        self._decode_bytes = self.codec.native.decode
        self.decoded: Callable[..., Any] = self._decoded_text if text.decodes else self._decoded

    def keep_dictionaries(self, manager: DictionaryManager | AsyncDictionaryManager) -> None:
        """Gets dictionaries by this manager from now on."""
        self.manager, self.deferrals = manager, Deferrals(manager)
        self._waker.wakes(manager)

    def carries_values(self, name: Any) -> bool:
        """Returns whether there may be a restoration for the command of this name, as the client writes it."""
        return self.interpreter.carries_values(name) or self.name_of(name) == "EXEC"

    def name_of(self, name: Any) -> str | None:
        """The name in capitals of a command, as the client writes it; None if the table has none."""
        return name if name.__class__ is str and name in self._untouched else _native.command_name(name)

    def request(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Restoration | None]:
        """The arguments to send, and what to do with the reply: None if the command is none of our business.

        Raises CommandRefusedError.
        """
        name = args[0]
        if name.__class__ is str and name in self._untouched:
            return args, None
        args, has_reply = self.interpreter.request(args, self._encode)
        if has_reply is None:
            return args, None
        return args, Restoration(self, args) if has_reply else Restoration()

    def _encoded(self, value: Any, key: Any) -> Any:
        """A value as it is sent. Numbers stay numbers; what is no value at all is for the client to refuse."""
        key = self._key(key) if self._names_keys else None
        if value.__class__ is bytes:
            return self._encode_bytes(value, key)
        if isinstance(value, str):
            return self._encode_bytes(value.encode(self._text.encoding, self._text.errors), key)
        if isinstance(value, bytes | bytearray | memoryview):
            return self._encode_bytes(value, key)
        return value

    def _decoded(self, reply: Any, key: Any, budget: _native.Budget | None = None) -> Any:
        if not isinstance(reply, bytes):
            return reply
        try:
            return self._decode_bytes(reply, budget)
        except _native.EnvelopeError as error:
            return self.unreadable(reply, key, error, budget)

    def _decoded_text(self, reply: Any, key: Any, budget: _native.Budget | None = None) -> Any:
        if not isinstance(reply, str):
            return self._decoded(reply, key, budget)
        stored = reply.encode(self._text.encoding, ESCAPES)
        return self.as_text(self._decoded(stored, key, budget), stored, key)

    def unreadable(
        self, stored: bytes, key: Any, error: _native.EnvelopeError, budget: _native.Budget | None = None
    ) -> Any:
        """Returns the replacement of a value that could not be restored: a stand-in until its dictionary has been
        fetched, or the stored bytes, or None. Raises UndecodableError.
        """
        dictionary: int | None = error.args[3]
        if dictionary is not None and self.manager is not None and not self.manager.tasks.is_missing(dictionary):
            return Deferred(self.deferrals, stored, key, error, dictionary, budget, self._settled)
        return self._unread(stored, key, error)

    def _settled(self, deferred: Deferred, dictionary: _native.Dictionary | None) -> Any:
        """A value whose dictionary has been looked for. Raises UndecodableError, or returns what is stored, or None."""
        try:
            value: Any = self._decode_bytes(deferred.stored, deferred.budget, dictionary)
        except _native.EnvelopeError as error:
            value = self._unread(deferred.stored, deferred.key, error)
        return self.as_text(value, deferred.stored, deferred.key) if deferred.as_text else value

    def _unread(self, stored: bytes, key: Any, error: _native.EnvelopeError) -> bytes | None:
        missing = error.args[3] is not None
        if missing:
            self.codec.native.count_unread()
        if self._on_undecodable == OnUndecodable.RAW:
            return stored
        why = self.manager.tasks.why_missing if missing and self.manager is not None else ""
        self._miss_or_raise(undecodable(self._error, stored, self._key(key), error, why))
        return None

    def as_text(self, value: Any, stored: bytes, key: Any) -> Any:
        """A restored value, or what stands for it, as text. Raises UndecodableError, or returns what is stored, with
        escapes.
        """
        if value is None:
            return None
        if isinstance(value, Deferred):
            value.as_text = True
            return value
        try:
            return value.decode(self._text.encoding, self._text.errors)
        except UnicodeDecodeError as error:
            return self._not_text(stored, key, error)

    def _not_text(self, stored: bytes, key: Any, error: UnicodeDecodeError) -> str | None:
        if self._on_undecodable == OnUndecodable.RAW:
            return stored.decode(self._text.encoding, ESCAPES)
        name = self._key(key)
        at = f" at key {name!r}" if name is not None else ""
        message = f"the value{at} is no text, and decode_responses asks for text: {error}"
        self._miss_or_raise(self._error(message, kind="not_text", key=name, backend=None, stored=stored))
        return None

    def _miss_or_raise(self, error: UndecodableError) -> None:
        if self._on_undecodable != OnUndecodable.MISS:
            raise error from None
        self._misses.tell(error)

    def _key(self, key: Any) -> bytes | None:
        if isinstance(key, str):
            return key.encode(self._text.encoding, ESCAPES)
        if isinstance(key, bytes | bytearray | memoryview):
            return bytes(key)
        return None if key is None else str(key).encode()
