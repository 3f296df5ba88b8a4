"""valkey-py's clients with compression as one more argument."""

from __future__ import annotations

from typing import Any, Self, cast

import valkey
from valkey.connection import ConnectionPool, parse_url

from snugly.clients import Compression, compress, configured, said_by, to_say
from snugly.transport.blocking import BlockingNode


class Valkey(valkey.Valkey):
    """`valkey.Valkey`, which compresses as `compression` says (default: not at all).

    `native` says whether commands travel by the native transport where it can be used (default: they do), or always by
    valkey-py's own. All other arguments, all commands and `from_url` are those of valkey-py. Sentinels make such
    clients too: `sentinel.master_for(name, valkey_class=snugly.Valkey, compression=True)`. Raises
    ConfigurationError for a wrong `compression`, before there is a connection.
    """

    def __init__(self, *args: Any, compression: Compression = None, native: bool = True, **options: Any) -> None:
        configuration, native = said_by(options.get("connection_pool"), compression, native)
        super().__init__(*args, **options)
        BlockingNode.finish(self, configuration, native)

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


class ValkeyCluster(valkey.ValkeyCluster):
    """`valkey.ValkeyCluster`, which compresses as `compression` says (default: not at all).

    Commands travel by valkey-py's own transport, whatever `native` is. All other arguments, all commands and `from_url`
    are those of valkey-py. Raises ConfigurationError for a wrong `compression`, before there is a connection.
    """

    def __init__(self, *args: Any, compression: Compression = None, **options: Any) -> None:
        options.pop("native", None)
        url = options.get("url")
        configuration = configured(parse_url(url).get("compression", compression) if url else compression)
        super().__init__(*args, **options)
        compress(self, configuration)
