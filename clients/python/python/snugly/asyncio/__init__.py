"""The asyncio clients of valkey-py with compression as one more argument."""

from __future__ import annotations

from typing import Any, Self, cast

import valkey.asyncio
from valkey.asyncio.connection import ConnectionPool

from snugly.clients import Compression, configured
from snugly.transport.cluster import SharedCluster
from snugly.transport.shared import SharedNode


class Valkey(valkey.asyncio.Valkey):
    """`valkey.asyncio.Valkey`, which compresses as `compression` says (default: not at all).

    `native` says whether commands travel by the native transport where it can be used (default: they do), or always by
    valkey-py's own. All other arguments, all commands and `from_url` are those of valkey-py. Raises ConfigurationError
    for a wrong `compression`, before there is a connection.
    """

    def __init__(self, *args: Any, compression: Compression = None, native: bool = True, **options: Any) -> None:
        configuration = configured(compression)
        super().__init__(*args, **options)
        SharedNode.finish(self, configuration, native)

    @classmethod
    def from_url(
        cls, url: str, *args: Any, compression: Compression = None, native: bool = True, **options: Any
    ) -> Self:
        """Like valkey-py's, with `compression` and `native`."""
        configuration = configured(compression)
        client: Any = super().from_url(url, *args, **options)
        return cast(Self, SharedNode.finish(client, configuration, native))

    @classmethod
    def from_pool(
        cls, connection_pool: ConnectionPool, *, compression: Compression = None, native: bool = True
    ) -> Self:
        """Like valkey-py's, with `compression` and `native`."""
        configuration = configured(compression)
        client: Any = super().from_pool(connection_pool)
        return cast(Self, SharedNode.finish(client, configuration, native))


class ValkeyCluster(valkey.asyncio.ValkeyCluster):
    """`valkey.asyncio.ValkeyCluster`, which compresses as `compression` says (default: not at all).

    `native` says whether commands travel by the native transport where it can be used (default: they do), or always by
    valkey-py's own. All other arguments, all commands and `from_url` are those of valkey-py. Raises ConfigurationError
    for a wrong `compression`, before there is a connection.
    """

    def __init__(self, *args: Any, compression: Compression = None, native: bool = True, **options: Any) -> None:
        configuration = configured(compression)
        super().__init__(*args, **options)
        SharedCluster.finish(self, configuration, native)
