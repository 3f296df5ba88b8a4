"""The asyncio clients of valkey-py with compression as one more argument."""

from __future__ import annotations

from typing import Any, Self, cast

import valkey.asyncio
from valkey.asyncio.connection import ConnectionPool

from snugly.clients import Compression, said_by, to_say
from snugly.transport.cluster import SharedCluster
from snugly.transport.shared import SharedNode


class Valkey(valkey.asyncio.Valkey):
    """`valkey.asyncio.Valkey`, which compresses as `compression` says (default: not at all).

    `native` says whether commands travel by the native transport where it can be used (default: they do), or always by
    valkey-py's own. All other arguments, all commands and `from_url` are those of valkey-py. Sentinels make such
    clients too: `sentinel.master_for(name, valkey_class=snugly.asyncio.Valkey, compression=True)`. Raises
    ConfigurationError for a wrong `compression`, before there is a connection.
    """

    def __init__(self, *args: Any, compression: Compression = None, native: bool = True, **options: Any) -> None:
        configuration, native = said_by(options.get("connection_pool"), compression, native)
        super().__init__(*args, **options)
        SharedNode.finish(self, configuration, native)

    @classmethod
    def from_url(
        cls, url: str, *args: Any, compression: Compression = None, native: bool = True, **options: Any
    ) -> Self:
        """Like valkey-py's, with `compression` and `native`, which the URL may have as well: `?compression=lz4`."""
        options.update(to_say(compression, native))
        client: Any = super().from_url(url, *args, **options)
        return cast(Self, client)

    @classmethod
    def from_pool(
        cls, connection_pool: ConnectionPool, *, compression: Compression = None, native: bool = True
    ) -> Self:
        """Like valkey-py's, with `compression` and `native`."""
        client = cls(connection_pool=connection_pool, compression=compression, native=native)
        client.auto_close_connection_pool = True
        return client


class ValkeyCluster(valkey.asyncio.ValkeyCluster):
    """`valkey.asyncio.ValkeyCluster`, which compresses as `compression` says (default: not at all).

    `native` says whether commands travel by the native transport where it can be used (default: they do), or always by
    valkey-py's own. All other arguments, all commands and `from_url` are those of valkey-py. Raises ConfigurationError
    for a wrong `compression`, before there is a connection.
    """

    def __init__(self, *args: Any, compression: Compression = None, native: bool = True, **options: Any) -> None:
        configuration, native = said_by(None, compression, native)
        super().__init__(*args, **options)
        SharedCluster.finish(self, configuration, native)
