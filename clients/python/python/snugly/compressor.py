"""What a client does with each command: encode its values, or refuse it, and restore the values in its reply.

It joins the command table and the codec, for arguments and replies as Python clients have them. It knows no client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from snugly import _native
from snugly.codec import Codec, undecodable
from snugly.configuration import CompressionConfiguration, OnUndecodable
from snugly.dictionaries.deferred import NONE, Deferrals, Deferred, settle
from snugly.dictionaries.waker import Waker
from snugly.errors import CommandRefusedError, UndecodableError
from snugly.table import NO_VALUES, Decode, Plan, Row, Shape, table_for, text, value
from snugly.text import ESCAPES, TextEncoding

if TYPE_CHECKING:
    from snugly.dictionaries.keepers import AsyncKeeper, Keeper

# In place of a row: the name is not one that the table has, as it is written.
UNUSUAL: Any = object()


class Batch:
    """The commands of a pipeline's next `execute`."""

    __slots__ = ("collects",)

    def __init__(self) -> None:
        self.collects = False
        """Whether an error takes its command's place in the results, instead of being raised."""


class Restoration:
    """What is to be done with the reply to one command. Clients carry it from the request to the reply.

    That a command has one also says that its values have been encoded: retries and redirections leave it alone.
    """

    __slots__ = ("_args", "_decode", "_keys", "_shape", "batch", "deferrals")

    def __init__(
        self,
        shape: Shape | None,
        args: Sequence[Any],
        keys: Sequence[int],
        decode: Decode,
        deferrals: Deferrals = NONE,
    ) -> None:
        self._shape = shape
        self._args = args
        self._keys = keys
        self._decode = decode
        self.batch: Batch | None = None
        self.deferrals = deferrals
        """Whether values in restored replies may have to be waited for: only those of asyncio clients."""

    def __call__(self, reply: Any) -> Any:
        """The reply with its values restored. Raises UndecodableError, or returns it if its batch collects."""
        if self._shape is None:
            return reply
        keys = self._keys
        first = self._args[keys[0]] if keys else None
        try:
            if self._shape is value:
                return self._decode(reply, first)
            return self._shape(reply, self._decode, first, [self._args[position] for position in keys])
        except UndecodableError as error:
            if self.batch is not None and self.batch.collects:
                return error
            raise

    async def settle(self, reply: Any) -> Any:
        """A restored reply with the values that had to be waited for. Raises or returns as before."""
        try:
            return await settle(reply)
        except UndecodableError as error:
            if self.batch is not None and self.batch.collects:
                return error
            raise


class Transaction:
    """What is to be done with EXEC's reply: with each element what is to be done with the reply of its command."""

    __slots__ = ("_queued", "batch", "deferrals")

    def __init__(self, queued: Sequence[Restoration | None], deferrals: Deferrals) -> None:
        self._queued = queued
        self.batch: Batch | None = None
        self.deferrals = deferrals

    async def settle(self, reply: Any) -> Any:
        """As that of a Restoration."""
        if not isinstance(reply, list):
            return reply
        return [
            await restore.settle(item) if restore else item for restore, item in zip(self._queued, reply, strict=True)
        ]

    def __call__(self, reply: Any) -> Any:
        if not isinstance(reply, list) or len(reply) != len(self._queued):
            return reply
        return [restore(item) if restore else item for restore, item in zip(self._queued, reply, strict=True)]


def word_of(name: Any) -> str:
    """A command's name in capitals, without the arguments that may follow it in the same string."""
    words = text(name).split()
    return words[0].upper() if words else ""


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
        """How many values wait for their dictionaries, if the client is an asyncio one."""
        self.keeper: Keeper | AsyncKeeper | None = None
        self._text = text
        self._error = error
        self._raw = configuration.on_undecodable == OnUndecodable.RAW
        table = table_for(frozenset(map(str, configuration.value_types)))
        # Known to be untouched: None. Names that are written otherwise are looked up by `_unusual`.
        self._rows: dict[Any, Row | None] = {**dict.fromkeys(table.untouched), **table.rows}
        self._encode_bytes: Callable[[Any, bytes | None], bytes] = self.codec.native.encode
        self._names_keys = configuration.writes_dictionaries or configuration.learns
        self._decode_bytes = self.codec.native.decode
        self._decode: Decode = self._decoded_text if text.decodes else self._decoded

    def keep_dictionaries(self, keeper: Keeper | AsyncKeeper, deferrals: Deferrals) -> None:
        """Gets dictionaries by this keeper from now on."""
        self.keeper, self.deferrals = keeper, deferrals
        self._waker.wakes(keeper)

    def carries_values(self, name: Any) -> bool:
        """Whether there may be a restoration for the command of this name, as the client writes it."""
        if word_of(name) == "EXEC":
            return True
        row = self._rows.get(name, UNUSUAL)
        row = self._unusual([name])[1] if row is UNUSUAL else row
        return row is not None and row.carries_values

    def word_of(self, name: Any) -> str:
        """The same as `word_of`, at once for a name that is written as the table has it."""
        return name if name.__class__ is str and name in self._rows else word_of(name)

    def plan(self, name: str, words: int) -> Plan | Literal[False] | None:
        """What the native transport does with commands of this name and so many words: False if it must ask each time,
        None if the name is not written as the table has it.
        """
        first = name.split(maxsplit=1)[0]
        row = self._rows.get(first, UNUSUAL)
        if row is UNUSUAL or (row is not None and first != name):
            return None
        return NO_VALUES if row is None else row.plan(words) or False

    def refuse(self, args: tuple[Any, ...]) -> None:
        """Raises CommandRefusedError if the command must not be sent."""
        words, row = self._unusual(args)
        if row is None:
            return
        refusal = row.refusal(words, row.find(words))
        if refusal is not None:
            raise CommandRefusedError(refusal, row.name)

    def request(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Restoration | None]:
        """The arguments to send, and what to do with the reply: None if the command is none of our business.

        Raises CommandRefusedError.
        """
        name = args[0]
        row = self._rows.get(name, UNUSUAL) if name.__class__ is str else UNUSUAL
        if row is UNUSUAL:
            words, row = self._unusual(args)
            args = tuple(words)
        if row is None:
            return args, None
        found = row.find(args)
        if found.options or found.compared or row.refused_always:
            refusal = row.refusal(args, found)
            if refusal is not None:
                raise CommandRefusedError(refusal, row.name)
        if not row.carries_values:
            return args, None
        if found.values:
            sent = list(args)
            for position, key in found.values:
                sent[position] = self._encoded(sent[position], self._key(args[key]) if self._names_keys else None)
            args = tuple(sent)
        shape = row.shape_given(found) if row.shape_depends else row.shape
        return args, Restoration(shape, args, found.keys, self._decode, self.deferrals)

    def _unusual(self, args: Sequence[Any]) -> tuple[Sequence[Any], Row | None]:
        """The row of a name in lower case, in bytes, or with the first arguments in the same string, as clients split
        it; the arguments are then split, too."""
        name = args[0]
        if not isinstance(name, str | bytes | bytearray | memoryview):
            return args, None
        words = (name if isinstance(name, str) else bytes(name).decode("latin-1")).split()
        row = self._rows.get(words[0].upper()) if words else None
        if row is None or len(words) == 1:
            return args, row
        return [*(word.encode() if isinstance(name, str) else word.encode("latin-1") for word in words), *args[1:]], row

    def _encoded(self, value: Any, key: bytes | None) -> Any:
        """A value as it is sent. Numbers stay numbers; what is no value at all is for the client to refuse."""
        if value.__class__ is bytes:
            return self._encode_bytes(value, key)
        if isinstance(value, str):
            return self._encode_bytes(value.encode(self._text.encoding, self._text.errors), key)
        if isinstance(value, bytes | bytearray | memoryview):
            return self._encode_bytes(value, key)
        return value

    def _decoded(self, reply: Any, key: Any) -> Any:
        if not isinstance(reply, bytes):
            return reply
        try:
            return self._decode_bytes(reply)
        except _native.EnvelopeError as error:
            return self.unreadable(reply, key, error)

    def _decoded_text(self, reply: Any, key: Any) -> Any:
        if not isinstance(reply, str):
            return self._decoded(reply, key)
        stored = reply.encode(self._text.encoding, ESCAPES)
        return self.as_text(self._decoded(stored, key), stored, key)

    def unreadable(self, stored: bytes, key: Any, error: _native.EnvelopeError) -> Any:
        """What a value is that could not be restored: the value after all, with a dictionary that has been fetched, or
        what stands for it until an event loop has fetched that.

        Raises UndecodableError, or returns what is stored.
        """
        dictionary: int | None = error.args[3]
        if dictionary is not None and self.keeper is not None and not self.keeper.catalogue.is_missing(dictionary):
            fetch: Callable[[int], Any] = self.keeper.fetch
            if self.deferrals is not NONE:
                return Deferred(self.deferrals, stored, key, error, dictionary, fetch, self._settled)
            if fetch(dictionary):
                try:
                    return self._decode_bytes(stored)
                except _native.EnvelopeError as another:
                    error = another
        return self._unread(stored, key, error)

    def _settled(self, deferred: Deferred) -> Any:
        """A value whose dictionary has been looked for. Raises UndecodableError, or returns what is stored."""
        try:
            value = self._decode_bytes(deferred.stored)
        except _native.EnvelopeError as error:
            value = self._unread(deferred.stored, deferred.key, error)
        return self.as_text(value, deferred.stored, deferred.key) if deferred.as_text else value

    def _unread(self, stored: bytes, key: Any, error: _native.EnvelopeError) -> bytes:
        if error.args[3] is not None:
            self.codec.native.count_unread()
        if self._raw:
            return stored
        raise undecodable(self._error, stored, self._key(key), error) from None

    def as_text(self, value: Any, stored: bytes, key: Any) -> Any:
        """A restored value, or what stands for it, as text. Raises UndecodableError, or returns what is stored, with
        escapes.
        """
        if isinstance(value, Deferred):
            value.as_text = True
            return value
        try:
            return value.decode(self._text.encoding, self._text.errors)
        except UnicodeDecodeError as error:
            return self._not_text(stored, key, error)

    def _not_text(self, stored: bytes, key: Any, error: UnicodeDecodeError) -> str:
        if self._raw:
            return stored.decode(self._text.encoding, ESCAPES)
        name = self._key(key)
        at = f" at key {name!r}" if name is not None else ""
        message = f"the value{at} is no text, and decode_responses asks for text: {error}"
        raise self._error(message, kind="not_text", key=name, backend=None, stored=stored) from None

    def _key(self, key: Any) -> bytes | None:
        if isinstance(key, str):
            return key.encode(self._text.encoding, ESCAPES)
        if isinstance(key, bytes | bytearray | memoryview):
            return bytes(key)
        return None if key is None else str(key).encode()
