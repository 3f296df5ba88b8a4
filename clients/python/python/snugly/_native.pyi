import asyncio
from collections.abc import Callable
from typing import Any, Self, final

__version__: str

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
        max_reply_bytes: int,
        wrap: bool,
        checksum: bool,
        exclude: list[bytes],
        dictionaries: Dictionaries,
        learner: Learner | None,
    ) -> Codec: ...
    def encode(self, value: bytes | bytearray | memoryview, key: bytes | None = None) -> bytes:
        """The value's envelope, or the value itself where it is to be sent as it is.

        How it is written is chosen by the key.
        """

    def decode(
        self,
        value: bytes | bytearray | memoryview,
        budget: Budget | None = None,
        dictionary: Dictionary | None = None,
    ) -> bytes:
        """The value in an envelope, or the value itself if it is none. Raises EnvelopeError, and MemoryError.

        `budget` is what its reply has left, and `dictionary` one that need not be at hand.
        """

    def budget(self) -> Budget:
        """Returns the budget of one more reply."""

    def excludes(self, key: bytes) -> bool:
        """Returns whether values of this key are sent as they are."""

    def count_unread(self) -> None:
        """Counts a value that was not read back for want of a dictionary, after all."""

    def count_fetched(self) -> None:
        """Counts a dictionary that was fetched."""

    def count_put_back(self) -> None:
        """Counts a dictionary that was put back."""

    def count_published(self) -> None:
        """Counts a dictionary that was published."""

    def count_mended(self) -> None:
        """Counts a dictionary's key that had something else and was overwritten."""

    def reads(self) -> float:
        """Returns the number of reads for each written value; at least one, since others read, too."""

    def statistics(self) -> dict[str, int]:
        """Returns the counters of this codec, by name."""

@final
class Budget:
    """Rest of the bytes that the values of one reply may have together."""

@final
class Interpreter:
    """The command table, for a client that compresses certain types of values."""

    def __new__(cls, types: list[str], refused: Callable[[str, str], Exception]) -> Interpreter:
        """`refused` makes an exception of a message and the name of a command."""

    def carries_values(self, name: Any) -> bool:
        """Returns whether a command has values, in its arguments or its reply, by its name as a client writes it."""

    def untouched(self) -> list[str]:
        """The names of commands that pass as they are, whatever their arguments, as do their replies, but EXEC's."""

    def request(self, args: tuple[Any, ...], encode: Callable[[Any, Any], Any]) -> tuple[tuple[Any, ...], bool | None]:
        """The arguments to send, each value as `encode(value, key)` returns it; and whether the reply may have values,
        None if the command has none at all. Raises what `refused` makes.
        """

    def restored(
        self, args: tuple[Any, ...], reply: Any, decode: Callable[[Any, Any, Budget], Any], budget: Budget
    ) -> Any:
        """The reply to a command that was sent, each value as `decode(value, key, budget)` returns it; the key is None
        if it is not known.
        """

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
    """The dictionaries that one client has at hand, and which of them it writes with."""

    def __new__(
        cls, given: Dictionary | None, writes: bool, excluded: list[bytes], wake: Callable[[], None] | None
    ) -> Dictionaries:
        """If `writes`, `given` is written with whatever the key is; without it, what the catalogue says.

        Values whose keys match one of the globs in `excluded` are written without. `wake` is called when dictionaries
        are used, at most once a second, and at once after `sleep`; whoever gives it says by `allow` when `given` may be
        written with.
        """

    def are_written_with(self) -> bool:
        """Returns whether values are written with any of them now."""

    def sleep(self) -> None:
        """Requests a call of `wake` at the next use."""

    def held(self) -> list[int]:
        """The IDs of those that are at hand."""

    def get(self, id: int) -> Dictionary | None:
        """One that is at hand."""

    def hold(self, dictionary: Dictionary, now: float) -> None:
        """Keeps a dictionary at hand, and lets go of the one that was used least recently if there are too many."""

    def excludes(self, key: bytes) -> bool:
        """Returns whether the values of this key are neither sampled nor written with a dictionary."""

    def chosen_for(self, key: bytes) -> int | None:
        """The ID of the dictionary that values of this key are written with, if their codec has dictionaries."""

    def choices(self) -> list[tuple[str, int | None]]:
        """For each active pattern of the catalogue the ID of the dictionary that is written with."""

Step = tuple[list[tuple[str, str]], str, Any]
"""Events, each a name and a text; what is to be done; and with what."""

@final
class Manager:
    """Manager of the dictionaries of one client.

    Times are `monotonic` ones, and `wall` is since 1970; all in seconds.
    """

    def __new__(
        cls,
        *,
        prefix: str,
        refresh: float,
        waits: bool,
        has_copies: bool,
        read_timeout: float | None,
        dictionaries: Dictionaries,
    ) -> Manager:
        """`waits` says whether unknown dictionaries are waited for, `has_copies` whether copies are kept in a folder,
        and `read_timeout` how long the client waits for a reply, in seconds; None for any time."""

    @property
    def interval(self) -> float:
        """Returns the time between rounds, in seconds."""

    def fetch(self, ids: list[int]) -> Task:
        """Looks for dictionaries for a while. The outcome is a dict of those that there are, by ID."""

    def refresh(self) -> Task:
        """Does what is to be done now. The outcome is how long there is nothing to do."""

    def keep(self) -> Task:
        """Makes the server register dictionaries as in use, and puts back missing ones. The outcome is None."""

    def hurry(self) -> None:
        """Makes the next refresh check everything."""

    def forget_tasks(self) -> None:
        """Forgets the tasks that are under way: they are another process's."""

    def is_missing(self, id: int, monotonic: float) -> bool:
        """Returns whether looking up this dictionary now is useless."""

    def is_off(self, monotonic: float) -> bool:
        """Returns whether dictionaries are not available now, for want of permission."""

    def was_off(self) -> bool:
        """Returns whether permission was missing at the last request."""

    def is_known(self) -> bool:
        """Returns whether there was a catalogue at the last read, or one was published since."""

    def lose(self) -> None:
        """Notes that the catalogue is gone."""

    def has_published(self, dictionary: Dictionary, monotonic: float, wall: float) -> None:
        """Notes that this client has published a dictionary itself."""

    def is_new_warning(self, warning: str) -> bool:
        """Returns whether a warning is new. Each is logged once."""

@final
class Failed:
    """Stands for the reply to a command that failed."""

    def __new__(cls, is_denied: bool, reason: str) -> Failed: ...

@final
class Task:
    """Something that takes several steps. Each method takes the answer to the last one and returns the next.

    What is to be done is "end", with the outcome, or one of those that the methods name.
    """

    def start(self, monotonic: float, wall: float) -> Step:
        """Begins."""

    def replies(self, replies: list[Any], monotonic: float, wall: float) -> Step:
        """After "send", lists of commands: the replies, or `Failed` in the place of one."""

    def lost(self, reason: str, monotonic: float, wall: float) -> Step:
        """After "send": the server could not be asked."""

    def copies(self, copies: list[tuple[int, str, bytes]], monotonic: float, wall: float) -> Step:
        """After "read_copies", IDs: those that there are, each with its place and its bytes."""

    def done(self, monotonic: float, wall: float) -> Step:
        """After "sleep", seconds; "write_copies", dictionaries; and "remove_copies", IDs."""

@final
class Learner:
    """Learns for one client from what it writes, from any thread. Times are seconds since 1970."""

    def __new__(
        cls,
        *,
        goal: str | None,
        trains: bool,
        backend: str,
        level: int | None,
        min_compression_size: int,
        memory: int,
        seed: int,
        dictionaries: Dictionaries,
    ) -> Learner:
        """Without a goal only dictionaries are learned. `memory` is what samples may take, in bytes."""

    def shown(self) -> int:
        """Returns the number of values written: without any since the last step, there is nothing to train from."""

    def step(self, now: float, reads: float) -> Lesson | None:
        """Studies a kind of keys of which there are enough samples; None if there is none.

        It takes up to about a second, without the interpreter's lock. `reads` is how often values are read for each
        time that one is written.
        """

    def forget(self) -> None:
        """Forgets what was seen and decided."""

    def allow_training(self, is_allowed: bool) -> None:
        """Sets whether dictionaries are trained."""

    def explain(self, key: bytes, len: int | None = None) -> Explained | None:
        """Returns the decision for a key, and a value of `len` bytes if that is given; None for none yet."""

@final
class Lesson:
    """Result of a step."""

    @property
    def dictionary(self) -> Dictionary | None:
        """The dictionary that was trained and is worth having, if there is one."""

    @property
    def pattern(self) -> str:
        """The keys that it is for, a glob of KEYS."""

    def active_in(self, document: bytes | None) -> int | None:
        """The ID of the dictionary that its pattern has in a catalogue; None for what is no catalogue, too."""

    def is_listed_in(self, document: bytes | None) -> bool:
        """Returns whether this dictionary is in a catalogue; in an unreadable document, it may be."""

    def added_to(
        self, document: bytes | None, trained_at: str, published_at: int, lost: int | None = None
    ) -> bytes | None:
        """The catalogue with this dictionary; None if another one that is as good, and not `lost`, came first.

        Raises ValueError for a document that is no catalogue, and for one that would exceed a limit.
        """

@final
class Explained:
    """Explanation of the encoding of a kind of keys."""

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
    """Result of one method for the samples: bytes, seconds and nanoseconds of worth for each value."""

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
        interpreter: Interpreter | None,
        encode: Callable[[Any], bytes | memoryview],
        sends_utf8: bool,
        decodes: tuple[str, str] | None,
        parse_error: Callable[[str], Exception],
        unreadable: Callable[[bytes, Any, EnvelopeError, Budget], Any],
        as_text: Callable[[bytes, bytes, Any], Any],
    ) -> Wire: ...
    def takes(self, args: tuple[Any, ...]) -> bool:
        """Returns whether a command is for this transport. Raises CommandRefusedError."""

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
        """Returns the time for which the first waiter has been waiting since anything was received, in seconds; None
        without one.
        """

    def is_wanted(self) -> bool:
        """Returns whether any waiter has not given up."""

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

def command_name(name: Any) -> str | None:
    """The name of a command in capitals, by its name as a client writes it; None if the table has none."""

def forget_threads() -> None:
    """Counts nobody as inside this module: after a fork there is only the thread that forked."""

def leave() -> None:
    """Keeps all other threads out of this module while the interpreter ends. Called by atexit, last of all."""

def inspect(value: bytes | bytearray | memoryview) -> tuple[int, str | None, int | None, int | None] | None:
    """Backend, the backend's name, claimed length and dictionary ID of an envelope; None if the bytes are none."""

def levels(backend: str) -> tuple[int, int, int]:
    """The lowest, the highest and the default level of a backend."""

def process_statistics() -> dict[str, int]:
    """The counters of all codecs of this process, by name."""
