"""Compression for client objects of valkey-py and redis-py, whoever made them.

A client is given a class of its own kind with the methods below, through which all of its commands go out, and
callbacks through which all replies come in. There is one set of methods for synchronous and asyncio clients: a request
is prepared when the command is called, and what runs it is returned as it is.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from snugly import _native
from snugly.callbacks import Callbacks
from snugly.compressor import Compressor
from snugly.configuration import CompressionBackend, CompressionConfiguration, one_of
from snugly.deferred import are_pending, awaited, deferred_in, fulfilled
from snugly.dictionaries.connections import (
    AsyncClusterConnection,
    AsyncNodeConnection,
    ClusterConnection,
    NodeConnection,
)
from snugly.dictionaries.learning import Learning
from snugly.dictionaries.managers import AsyncDictionaryManager, DictionaryManager
from snugly.dictionaries.tasks import DictionaryTasks
from snugly.errors import ConfigurationError, UndecodableError
from snugly.handshakes import attend, attend_to
from snugly.lasting_nodes import keep_start_nodes
from snugly.restoration import OPTION, Batch, Restoration, Transaction
from snugly.text import known_nodes, read_escaped, text_encoding

Compression: TypeAlias = CompressionConfiguration | bool | str | None
"""Compression of a client: True for the defaults, a name for the defaults with this `CompressionBackend`, False or None
for not at all. What URLs can say, "yes" and "no", is True and False."""

Client = TypeVar("Client")

LIBRARIES = ("valkey", "redis")
COMPRESSOR = "_snugly_compressor"
BATCH = "_snugly_batch"
QUEUED = "_snugly_queued"
SAID = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
TRANSACTION = frozenset({"MULTI", "EXEC", "DISCARD", "RESET"})

if TYPE_CHECKING:
    # A class of a library that has no types to speak of.
    Plain: TypeAlias = Any
else:
    Plain = object


# None of these may have __slots__: an object can only change to a class of the same layout.


class Executing(Plain):  # type: ignore[misc]
    """For clients, and for pipelines of clusters: commands go through `execute_command`."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        args = prepared(self, args, options)
        return super().execute_command(*args, **options)


class Layer(Plain):  # type: ignore[misc]
    """Methods in front of those of a client that is there."""

    _snugly_plain: type
    """The class of the client without this layer."""
    _snugly_layer: type[Layer]

    def __init__(self, *args: Any, **options: Any) -> None:
        # Calling the class of such a client makes one without layers, or as the arguments say.
        self.__class__ = type(self)._snugly_plain
        self.__init__(*args, **options)  # type: ignore[misc]


class Transported(Layer):
    """For clients of our own: how their commands travel. This layer is in front of the one that compresses."""

    @classmethod
    def adopt(cls, client: Any) -> None:
        """Puts this layer in front of the client, if it can be used there."""
        raise NotImplementedError

    @classmethod
    def finish(cls, client: Any, compression: Compression, native: bool) -> Any:
        """A client of our own that has just been made, as its arguments say."""
        take_off(client)
        compress(client, compression)
        if native:
            cls.adopt(client)
        return client


def take_off(client: Any) -> type[Transported] | None:
    """Takes the transport's layer off the client, and returns it."""
    if not isinstance(client, Transported):
        return None
    layer: type[Transported] = type(client)._snugly_layer
    client.__class__ = type(client)._snugly_plain
    return layer


class Compressed(Layer, Executing):
    """For clients."""

    def pipeline(self, *args: Any, **options: Any) -> Any:
        pipeline = super().pipeline(*args, **options)
        adopt_pipeline(pipeline, compressor_of(self))
        return pipeline


class CompressedNode(Compressed):
    """For clients of one server."""

    def client(self) -> Any:
        """A client on a connection of its own, compressed the same way."""
        twin = super().client()
        # A subclass may compress all that it makes.
        if not isinstance(twin, Compressed):
            adopt_node(twin, compressor_of(self))
        return twin


class Closing(Plain):  # type: ignore[misc]
    """For synchronous clients that are not the nodes of another: what looks after dictionaries ends with them."""

    def close(self) -> Any:
        manager = compressor_of(self).manager
        if isinstance(manager, DictionaryManager):
            manager.stop()
        return super().close()


class Node(Closing, CompressedNode):
    """For synchronous clients of one server."""


class Cluster(Closing, Compressed):
    """For synchronous clients of clusters."""


class AsyncClosing(Plain):  # type: ignore[misc]
    """The same for asyncio clients."""

    async def aclose(self, *args: Any, **options: Any) -> Any:
        manager = compressor_of(self).manager
        if isinstance(manager, AsyncDictionaryManager):
            await manager.stop()
        return await super().aclose(*args, **options)


class AsyncNode(AsyncClosing, CompressedNode):
    """For asyncio clients of one server."""


class AsyncCluster(AsyncClosing, Compressed):
    """For asyncio clients of clusters, which do not wait for what callbacks wait for."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        reply = await super().execute_command(*args, **options)
        return await reply if compressor_of(self).deferrals.made and inspect.iscoroutine(reply) else reply


class Batched(Plain):  # type: ignore[misc]
    """For pipelines: `execute` says whether errors are raised or take their place among the results."""

    def execute(self, raise_on_error: bool = True, *args: Any, **options: Any) -> Any:
        self.__dict__.pop(QUEUED, None)
        batch: Batch | None = self.__dict__.pop(BATCH, None)
        if batch is not None:
            batch.collects = not raise_on_error
        results = super().execute(raise_on_error, *args, **options)
        finish = finished_async if inspect.isawaitable(results) else finished
        return finish(self, results, raise_on_error)


class NodePipeline(Batched):
    """For pipelines to one server. They stage commands, or run them at once while they watch keys."""

    def pipeline_execute_command(self, *args: Any, **options: Any) -> Any:
        args = prepared(self, args, options)
        return super().pipeline_execute_command(*args, **options)

    def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        args = prepared(self, args, options, at_once=True)
        return super().immediate_execute_command(*args, **options)


class ClusterPipeline(Batched, Executing):
    """For pipelines to a cluster."""


class AsyncClusterPipeline(ClusterPipeline):
    """For pipelines to a cluster of asyncio clients, which do not wait for what callbacks wait for."""

    async def execute(self, raise_on_error: bool = True, *args: Any, **options: Any) -> Any:
        replies = await super().execute(raise_on_error, *args, **options)
        if not compressor_of(self).deferrals.made or not isinstance(replies, list):
            return replies
        return [await reply if inspect.iscoroutine(reply) else reply for reply in replies]


def finished(pipeline: Any, results: Any, raises: bool) -> Any:
    """The results of a pipeline, once the dictionaries that any of them needs have been looked for."""
    if not isinstance(results, list) or not are_pending(results):
        return results
    compressor = compressor_of(pipeline)
    return fulfilled(results, compressor.deferrals.fetched(list(deferred_in(results))), UndecodableError, raises)


async def finished_async(pipeline: Any, awaitable: Any, raises: bool) -> Any:
    """The same for those of asyncio clients."""
    results = await awaitable
    if not isinstance(results, list) or not are_pending(results):
        return results
    compressor = compressor_of(pipeline)
    found = await compressor.deferrals.fetched_async(list(deferred_in(results)))
    return [await awaited(each) for each in fulfilled(results, found, UndecodableError, raises)]


def compress(client: Client, compression: Compression = True) -> Client:
    """Makes a client of valkey-py or redis-py compress, and returns it.

    The client is changed in place, so whoever holds it compresses from now on: with `True` as
    `CompressionConfiguration()` says, with a configuration as that says, with the name of a backend as
    `CompressionConfiguration(backend=...)` says, with False or None not at all. It may be
    synchronous or asyncio, for one server, found by a sentinel, or for a cluster. Pipelines that were made before stay
    as they are.

    Raises ConfigurationError if it is no such client, is compressed already, or is an asyncio client with
    `decode_responses` that is connected already.
    """
    configuration = configured(compression)
    if configuration is None:
        return client
    if isinstance(client, Compressed):
        raise ConfigurationError("the client is compressed already: make another one to compress differently")
    library = library_of(client)
    parts = ("pipeline", "get_encoder")
    if library is None or not all(hasattr(client, part) for part in parts) or hasattr(client, "execute"):
        raise ConfigurationError(f"{type(client).__qualname__} is no client of valkey-py or redis-py")
    text = text_encoding(client)
    compressor = Compressor(configuration, text, error_class(library))
    is_async = inspect.iscoroutinefunction(getattr(client, "execute_command", None))
    transport = take_off(client)
    if text.decodes:
        read_escaped(client)
    is_cluster = hasattr(client, "nodes_manager")
    keep_dictionaries(client, compressor, library, is_cluster, is_async)
    if is_cluster:
        adopt_cluster(client, compressor)
    else:
        adopt_node(client, compressor, AsyncNode if is_async else Node)
    if transport is not None:
        transport.adopt(client)
    return client


def keep_dictionaries(client: Any, compressor: Compressor, library: str, is_cluster: bool, is_async: bool) -> None:
    """Makes the compressor get dictionaries from the client's server."""
    exceptions = importlib.import_module(f"{library}.exceptions")
    database = compressor.configuration.dictionary_database
    if is_cluster and database is not None:
        raise ConfigurationError(
            f"dictionary_database is {database}, and a client of a cluster has its own only: leave it out"
        )
    codec = compressor.codec
    denied = exceptions.NoPermissionError
    settings = (client.nodes_manager if is_cluster else client.connection_pool).connection_kwargs
    timeout = settings.get("socket_timeout")
    tasks = DictionaryTasks(compressor.configuration, codec.native, codec.dictionaries, denied, timeout)
    learning = None
    if codec.learner is not None:
        learning = Learning(tasks, codec.native, codec.learner, compressor.configuration.trains)
    pool = None if is_cluster else client.connection_pool
    if is_async:
        asynchronous = AsyncClusterConnection(client) if is_cluster else AsyncNodeConnection(pool, database)
        compressor.keep_dictionaries(AsyncDictionaryManager(tasks, asynchronous, learning))
    else:
        connection = ClusterConnection(client, library) if is_cluster else NodeConnection(pool, database)
        compressor.keep_dictionaries(DictionaryManager(tasks, connection, learning))
    attend(client, compressor.manager)


def configured(compression: Compression) -> CompressionConfiguration | None:
    """The configuration that is meant, or None for no compression."""
    if isinstance(compression, CompressionConfiguration):
        return compression if compression.enabled else None
    if isinstance(compression, str):
        compression = SAID.get(compression.lower(), compression)
    if compression is None or isinstance(compression, bool):
        return CompressionConfiguration() if compression else None
    if isinstance(compression, str) and compression in list(CompressionBackend):
        return CompressionConfiguration(backend=CompressionBackend(compression))
    raise ConfigurationError(
        f"compression is {compression!r}: give True, False, {one_of(CompressionBackend)} or a CompressionConfiguration"
    )


def said_by(pool: Any, compression: Compression, native: bool) -> tuple[CompressionConfiguration | None, bool]:
    """The configuration that is meant, and whether the transport is native, by what the pool says rather than by the
    arguments: what is in a URL and what a sentinel is asked for comes that way. Connections know neither, so both are
    taken out of their settings.
    """
    settings = {} if pool is None else pool.connection_kwargs
    compression, said = settings.pop("compression", compression), settings.pop("native", native)
    return configured(compression), SAID.get(said.lower(), native) if isinstance(said, str) else bool(said)


def to_say(compression: Compression, native: bool) -> dict[str, Any]:
    """The settings of a pool that say so, where it is not the default anyway."""
    return {
        **({} if compression is None else {"compression": compression}),
        **({} if native else {"native": native}),
    }


def statistics(client: object = None) -> dict[str, int]:
    """Counters by name: for `client`, or for all clients and codecs of the process so far.

    Names are those of snugly's server (its INFO, section compression). All are 0 for a client that is not compressed.
    """
    if client is None:
        return _native.process_statistics()
    if isinstance(client, Compressed):
        return compressor_of(client).codec.statistics()
    return dict.fromkeys(_native.process_statistics(), 0)


def compressor_of(client: Any) -> Compressor:
    compressor: Compressor = client.__dict__[COMPRESSOR]
    return compressor


def prepared(client: Any, args: tuple[Any, ...], options: dict[str, Any], at_once: bool = False) -> tuple[Any, ...]:
    """The arguments to send. What is to be done with the reply is put among the options. A pipeline's is wanted
    `at_once`, or with those of its other commands.

    Raises CommandRefusedError.
    """
    if OPTION in options:
        return args
    own = client.__dict__
    compressor = own[COMPRESSOR]
    args, restoration = compressor.request(args)
    if restoration is None and (word := compressor.name_of(args[0])) in TRANSACTION:
        restoration = transaction(client, word)
    elif QUEUED in own:
        own[QUEUED].append(restoration)
    if restoration is not None:
        options[OPTION] = restoration
        if isinstance(client, Batched) and not at_once:
            restoration.batch = own.get(BATCH) or own.setdefault(BATCH, Batch(compressor.codec.native.budget()))
    return args


def transaction(client: Any, word: str) -> Transaction | None:
    """For transactions that are written out: remembers what MULTI queues, for the reply to EXEC.

    Only where all of it goes over one connection; of those of a pool nobody knows who gets which.
    """
    own = client.__dict__
    queued: list[Restoration | None] | None = own.pop(QUEUED, None)
    single = getattr(client, "connection", None) is not None or getattr(client, "single_connection_client", False)
    if word == "MULTI" and (single or isinstance(client, NodePipeline)):
        own[QUEUED] = []
    return Transaction(queued, own[COMPRESSOR]) if word == "EXEC" and queued is not None else None


def become(client: Any, layer: type) -> None:
    plain: type = type(client)
    client.__class__ = layered_class(plain, layer)


@functools.cache
def layered_class(plain: type, layer: type) -> type:
    """The class `plain` with the methods of `layer` in front; to everybody else it looks the same."""
    looks = {name: getattr(plain, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(plain.__name__, (layer, plain), {**looks, "_snugly_plain": plain, "_snugly_layer": layer})


def become_compressed(client: Any, layer: type, compressor: Compressor) -> None:
    client.__dict__[COMPRESSOR] = compressor
    become(client, layer)


def adopt_node(client: Any, compressor: Compressor, layer: type = CompressedNode) -> None:
    client.response_callbacks = Callbacks(client.response_callbacks, compressor)
    become_compressed(client, layer, compressor)


def adopt_pipeline(pipeline: Any, compressor: Compressor) -> None:
    if hasattr(pipeline, "connection_pool"):
        become_compressed(pipeline, NodePipeline, compressor)
        return
    strategy = getattr(pipeline, "_execution_strategy", None)
    if hasattr(pipeline, "cluster_response_callbacks") and "Transaction" in type(strategy).__name__:
        # The replies inside EXEC's come to the cluster's callbacks without having been at a node's.
        inner = pipeline.cluster_response_callbacks.inner
        pipeline.cluster_response_callbacks = Callbacks(inner, compressor)
    is_async = inspect.iscoroutinefunction(type(pipeline).execute)
    become_compressed(pipeline, AsyncClusterPipeline if is_async else ClusterPipeline, compressor)


def adopt_cluster(client: Any, compressor: Compressor) -> None:
    manager = client.nodes_manager
    if hasattr(client, "cluster_response_callbacks"):
        # Nodes are clients of their own. They restore; what the cluster's callbacks get has been restored.
        adopt_nodes(manager, compressor)
        client.cluster_response_callbacks = Callbacks(client.cluster_response_callbacks, compressor, restores=False)
    else:
        # The nodes of an asyncio cluster share the callbacks of the client, through what they are made with.
        callbacks = Callbacks(client.response_callbacks, compressor)
        client.response_callbacks = callbacks
        for made_with in (client.connection_kwargs, manager.connection_kwargs):
            made_with["response_callbacks"] = callbacks
        for node in known_nodes(manager):
            node.response_callbacks = callbacks
        keep_start_nodes(client)
        become_compressed(client, AsyncCluster, compressor)
        return
    become_compressed(client, Cluster, compressor)


def adopt_nodes(manager: Any, compressor: Compressor) -> None:
    library = library_of(manager)
    name = f"create_{library}_node"
    create = getattr(manager, name)

    @functools.wraps(create)
    def create_compressed(*args: Any, **options: Any) -> Any:
        node = create(*args, **options)
        attend_to(node.connection_pool, compressor.manager)
        adopt_node(node, compressor)
        return node

    setattr(manager, name, create_compressed)
    for node in known_nodes(manager):
        client = getattr(node, f"{library}_connection")
        if client is not None and not isinstance(client, Compressed):
            adopt_node(client, compressor)


def library_of(instance: object) -> str | None:
    """The library that the object's class, or one that it is made from, comes from."""
    packages = (base.__module__.partition(".")[0] for base in type(instance).__mro__)
    return next((package for package in packages if package in LIBRARIES), None)


@functools.cache
def error_class(library: str) -> type[UndecodableError]:
    """UndecodableError as one of the library's own replies that are errors."""
    base = importlib.import_module(f"{library}.exceptions").ResponseError
    names = {"__module__": UndecodableError.__module__, "__doc__": UndecodableError.__doc__}
    return type(UndecodableError.__name__, (UndecodableError, base), names)
