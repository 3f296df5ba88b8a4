"""The asyncio clients of valkey-py with compression as one more argument."""

from __future__ import annotations

from typing import Any, Self, cast

import valkey.asyncio
from valkey.asyncio.connection import ConnectionPool

from snugly.clients import Compression, compress, configured


class Valkey(valkey.asyncio.Valkey):
    """`valkey.asyncio.Valkey`, which compresses as `compression` says (default: not at all).

    All other arguments, all commands and `from_url` are those of valkey-py. Raises ConfigurationError for a wrong
    `compression`, before there is a connection.
    """

    def __init__(self, *args: Any, compression: Compression = None, **options: Any) -> None:
        configuration = configured(compression)
        super().__init__(*args, **options)
        compress(self, configuration)

    @classmethod
    def from_url(cls, url: str, *args: Any, compression: Compression = None, **options: Any) -> Self:
        """As valkey-py's, with `compression`."""
        configuration = configured(compression)
        client: Any = super().from_url(url, *args, **options)
        return cast(Self, compress(client, configuration))

    @classmethod
    def from_pool(cls, connection_pool: ConnectionPool, *, compression: Compression = None) -> Self:
        """As valkey-py's, with `compression`."""
        configuration = configured(compression)
        client: Any = super().from_pool(connection_pool)
        return cast(Self, compress(client, configuration))


class ValkeyCluster(valkey.asyncio.ValkeyCluster):
    """`valkey.asyncio.ValkeyCluster`, which compresses as `compression` says (default: not at all).

    All other arguments, all commands and `from_url` are those of valkey-py. Raises ConfigurationError for a wrong
    `compression`, before there is a connection.
    """

    def __init__(self, *args: Any, compression: Compression = None, **options: Any) -> None:
        configuration = configured(compression)
        super().__init__(*args, **options)
        compress(self, configuration)
