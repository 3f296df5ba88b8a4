import asyncio
from collections.abc import Callable
from typing import Any, Self, final

@final
class Codec:
    """Encodes and decodes under one configuration, from any thread."""

    def __new__(
        cls,
        *,
        backend: str,
        level: int | None,
        min_compression_size: int,
        max_decompressed_size: int,
        wrap: bool,
        checksum: bool,
        dictionaries: Dictionaries,
        learner: Learner | None,
    ) -> Codec: ...
    def encode(self, value: bytes | bytearray | memoryview, key: bytes | None = None) -> bytes:
        """The value's envelope, or the value itself where it is to be sent as it is.

        How it is written is chosen by the key.
        """

    def decode(self, value: bytes | bytearray | memoryview) -> bytes:
        """The value in an envelope, or the value itself if it is none. Raises EnvelopeError."""

    def count_unread(self) -> None:
        """Counts a value that was not read back for want of a dictionary, after all."""

    def count_fetched(self) -> None:
        """Counts a dictionary that was fetched."""

    def count_put_back(self) -> None:
        """Counts a dictionary that was put back."""

    def count_published(self) -> None:
        """Counts a dictionary that was published."""

    def reads(self) -> float:
        """How often values were read for each time that one was written; at least once, since others read, too."""

    def statistics(self) -> dict[str, int]:
        """What this codec has counted, by name."""

@final
class Dictionary:
    """A loaded dictionary."""

    def __new__(cls, bytes: bytes) -> Dictionary:
        """Raises ValueError for what is no dictionary, or has another ID than its content."""

    @classmethod
    def train(cls, samples: list[bytes], max_bytes: int) -> Dictionary:
        """Raises ValueError if none can be made of these samples."""

    @property
    def id(self) -> int: ...
    @property
    def bytes(self) -> bytes: ...

@final
class Dictionaries:
    """The dictionaries that one client has at hand, and which of them it writes with. Times are seconds since 1970."""

    def __new__(
        cls, given: Dictionary | None, writes: bool, excluded: list[bytes], wake: Callable[[], None] | None
    ) -> Dictionaries:
        """If `writes`, `given` is written with whatever the key is; without it, what the catalogue says.

        Values whose keys match one of the globs in `excluded` are written without. `wake` is called when dictionaries
        are used, at most once a second, and at once after `sleep`; whoever gives it says by `allow` when `given` may be
        written with.
        """

    def sleep(self) -> None:
        """Has `wake` called at the next use."""

    def held(self) -> list[int]:
        """The IDs of those that are at hand."""

    def get(self, id: int) -> Dictionary | None:
        """One that is at hand."""

    def hold(self, dictionary: Dictionary, now: float) -> None:
        """Keeps a dictionary at hand, and lets go of the one that was used least recently if there are too many."""

    def read(self, document: bytes | None, now: float, refresh: float) -> tuple[list[int], list[int]]:
        """Takes what the catalogue says; None for no catalogue.

        Returns the IDs that its writers need and that are not at hand, and those that are forgotten.

        Raises ValueError for what is no catalogue, which counts as none.
        """

    def allow(self, is_allowed: bool, now: float) -> None:
        """Says whether values may be written with dictionaries: not with one that is given and not beside the data."""

    def choose(self, now: float) -> None:
        """Chooses anew what to write with: time has passed."""

    def excludes(self, key: bytes) -> bool:
        """Whether the values of this key are nobody's samples and written without."""

    def chosen_for(self, key: bytes) -> int | None:
        """The ID of the dictionary that values of this key are written with, if their codec has dictionaries."""

    def choices(self) -> list[tuple[str, int | None]]:
        """For each active pattern of the catalogue the ID of the dictionary that is written with."""

@final
class Learner:
    """Learns for one client from what it writes, from any thread. Times are seconds since 1970."""

    def __new__(
        cls,
        *,
        goal: str | None,
        trains: bool,
        level: int | None,
        min_compression_size: int,
        memory: int,
        seed: int,
        dictionaries: Dictionaries,
    ) -> Learner:
        """Without a goal only dictionaries are learned. `memory` is what samples may take, in bytes."""

    def shown(self) -> int:
        """How many values were written: if none since the last step, there is nothing to be learned."""

    def step(self, now: float, reads: float) -> Lesson | None:
        """Studies a kind of keys of which there are enough samples; None if there is none.

        It takes up to about a second, without the interpreter's lock. `reads` is how often values are read for each
        time that one is written.
        """

    def forget(self) -> None:
        """Forgets what was seen and decided."""

    def stop_training(self) -> None:
        """Trains no dictionaries any more."""

    def explain(self, key: bytes, len: int | None = None) -> Explained | None:
        """What is decided for a key, and a value of `len` bytes if that is given; None for nothing yet."""

@final
class Lesson:
    """What came of a step."""

    @property
    def dictionary(self) -> Dictionary | None:
        """The dictionary that was trained and is worth having, if there is one."""

    @property
    def pattern(self) -> str:
        """The keys that it is for, a glob of KEYS."""

    def active_in(self, document: bytes | None) -> int | None:
        """The ID of the dictionary that its pattern has in a catalogue; None for what is no catalogue, too."""

    def is_listed_in(self, document: bytes | None) -> bool:
        """Whether this dictionary is in a catalogue; in what is no catalogue to us, it may be."""

    def added_to(
        self, document: bytes | None, trained_at: str, published_at: int, lost: int | None = None
    ) -> bytes | None:
        """The catalogue with this dictionary; None if another one that is as good, and not `lost`, came first.

        Raises ValueError for a document that is no catalogue, and for one that would exceed a limit.
        """

@final
class Explained:
    """Why a kind of keys is written as it is."""

    pattern: str
    goal: str
    price: float
    reads: float
    decided_at: float
    latest_ratio: float | None
    measured: list[Row]
    best: int

@final
class Row:
    """What one method made of the samples: bytes, seconds and nanoseconds of worth for each value."""

    codec: str
    level: int
    dictionary: int | None
    values: int
    ratio: float
    saved: float
    encode: float
    decode: float
    worth: float

@final
class Wire:
    """Packs the commands of one client and restores replies, for any number of connections."""

    def __new__(
        cls,
        *,
        codec: Codec | None,
        plan: Callable[[str, int], tuple[list[tuple[int, int]], str | None, list[int], list[str]] | bool | None],
        request: Callable[[tuple[Any, ...]], tuple[tuple[Any, ...], Callable[[Any], Any] | None]],
        refuse: Callable[[tuple[Any, ...]], None],
        encode: Callable[[Any], bytes | memoryview],
        sends_utf8: bool,
        decodes: tuple[str, str] | None,
        parse_error: Callable[[str], Exception],
        unreadable: Callable[[bytes, Any, EnvelopeError], Any],
        as_text: Callable[[bytes, bytes, Any], Any],
    ) -> Wire: ...
    def takes(self, args: tuple[Any, ...]) -> bool:
        """Whether a command is for this transport. Raises CommandRefusedError."""

    def request(self, args: tuple[Any, ...]) -> Request | None:
        """A command, ready to be sent; None if it is not for this transport.

        Raises CommandRefusedError, and DataError for an argument that cannot be sent.
        """

    def request_all(self, commands: list[tuple[tuple[Any, ...], dict[str, Any]]], transaction: bool) -> Request | None:
        """The commands of a pipeline; None if one of them is not for this transport. Raises as `request`."""

    def requests(self, commands: list[tuple[tuple[Any, ...], dict[str, Any]]]) -> list[Request]:
        """A request for each of several commands. Raises as `request`, and ValueError if one of them is not for this
        transport.
        """

@final
class Request:
    """One or several commands, ready to be sent, any number of times."""

    @property
    def packed(self) -> bytes:
        """The commands as they are sent."""

    def receiver(self) -> Receiver:
        """A receiver of the replies, for each time the commands are sent."""

@final
class Receiver:
    """The replies to a request, as they come."""

    def take(self, data: bytes) -> list[Any] | None:
        """Takes what was read, and returns the replies once they are there; those that are errors are exceptions.

        Raises EOFError for nothing, which is the end, and ProtocolFault; the socket is of no use then.
        """

class Link:
    """A connection that the commands of one event loop share: the hot half of an asyncio.Protocol."""

    def __new__(cls, wire: Wire, event_loop: asyncio.AbstractEventLoop) -> Self: ...
    def ask(self, args: tuple[Any, ...]) -> asyncio.Future[Any] | None:
        """Asks a command, and returns a future of its reply; None if it is not for this transport.

        Raises as Wire.request.
        """

    def send(self, requests: list[Request], asking: bool) -> asyncio.Future[list[Any]]:
        """Sends requests one after the other, behind ASKING if `asking`, and returns a future of the list of all
        replies; ASKING's comes first.
        """

    def flush(self) -> None:
        """Writes what has been asked."""

    def data_received(self, data: bytes) -> None:
        """Reads replies. Raises ProtocolFault."""

    def waiting(self) -> float | None:
        """How long the first of those who wait has been waiting since anything was received, in seconds; None if nobody
        waits.
        """

    def abandon(self) -> list[asyncio.Future[Any]]:
        """Takes the futures of all who wait; nobody gets a reply any more."""

class ProtocolFault(Exception):
    """A server sent what is no reply."""

class EnvelopeError(Exception):
    """An envelope that cannot be read. The arguments: message, kind, backend, ID of the missing dictionary or None."""

def catalogue_key(prefix: str) -> bytes:
    """The name of the catalogue's key for a prefix."""

def lock_key(prefix: str) -> bytes:
    """The name of the key for a prefix that one client holds while it publishes."""

def dictionary_key(prefix: str, id: int) -> bytes:
    """The name of a dictionary's key for a prefix."""

def counters() -> list[tuple[str, str, str | None, str]]:
    """Of each name of the statistics: the name, its family, the codec if the family has one counter a codec, a text."""

def inspect(value: bytes | bytearray | memoryview) -> tuple[int, str | None, int | None, int | None] | None:
    """Backend, the backend's name, claimed length and dictionary ID of an envelope; None if the bytes are none."""

def levels(backend: str) -> tuple[int, int, int]:
    """The lowest, the highest and the default level of a backend."""

def process_statistics() -> dict[str, int]:
    """The counters of all codecs of this process, by name."""
