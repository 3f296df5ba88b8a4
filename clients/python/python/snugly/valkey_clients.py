"""valkey-py's clients with compression as one more argument."""

from __future__ import annotations

from typing import Any, Self, cast

import valkey
from valkey.connection import ConnectionPool

from snugly.clients import Compression, compress, configured
from snugly.transport.blocking import BlockingNode


class Valkey(valkey.Valkey):
    """`valkey.Valkey`, which compresses as `compression` says (default: not at all).

    `native` says whether commands travel by the native transport where it can be used (default: they do), or always by
    valkey-py's own. All other arguments, all commands and `from_url` are those of valkey-py. Raises ConfigurationError
    for a wrong `compression`, before there is a connection.
    """

    def __init__(self, *args: Any, compression: Compression = None, native: bool = True, **options: Any) -> None:
        configuration = configured(compression)
        super().__init__(*args, **options)
        BlockingNode.finish(self, configuration, native)

    @classmethod
    def from_url(
        cls, url: str, *args: Any, compression: Compression = None, native: bool = True, **options: Any
    ) -> Self:
        """Like valkey-py's, with `compression` and `native`."""
        configuration = configured(compression)
        client: Any = super().from_url(url, *args, **options)
        return cast(Self, BlockingNode.finish(client, configuration, native))

    @classmethod
    def from_pool(
        cls, connection_pool: ConnectionPool, *, compression: Compression = None, native: bool = True
    ) -> Self:
        """Like valkey-py's, with `compression` and `native`."""
        configuration = configured(compression)
        client: Any = super().from_pool(connection_pool)
        return cast(Self, BlockingNode.finish(client, configuration, native))


class ValkeyCluster(valkey.ValkeyCluster):
    """`valkey.ValkeyCluster`, which compresses as `compression` says (default: not at all).

    Commands travel by valkey-py's own transport. All other arguments, all commands and `from_url` are those of
    valkey-py. Raises ConfigurationError for a wrong `compression`, before there is a connection.
    """

    def __init__(self, *args: Any, compression: Compression = None, **options: Any) -> None:
        configuration = configured(compression)
        super().__init__(*args, **options)
        compress(self, configuration)
