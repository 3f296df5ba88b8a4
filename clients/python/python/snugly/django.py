"""For Django's caches: what gives them compression by their settings.

`SnuglyCompressor` is for django-valkey and django-redis, `SnuglySerializer` for the backend for Redis that is Django's
own. With django-valkey a client that compresses does as well (`BASE_CLIENT_CLASS`). Nothing else needs Django.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from django.core.cache.backends.redis import RedisSerializer
from django.utils.module_loading import import_string

from snugly.codec import exact_codec

OPTION = "SNUGLY"
"""The option of a cache that says how it compresses: a dictionary with options of `CompressionConfiguration`."""


class SnuglyCompressor:
    """The COMPRESSOR of a cache of django-valkey or django-redis.

    What was stored before by no compressor is read as it is. An envelope that cannot be read is None, a miss; with
    `on_undecodable="raise"` it is an UndecodableError (not their CompressorError, after which they take the value for
    one that is not compressed).

    Raises ConfigurationError for a wrong OPTIONS["SNUGLY"].
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._codec = exact_codec(**options.get(OPTION, {}))
        self._options = options

    def compress(self, value: bytes) -> bytes:
        return self._codec.encode(value)

    def decompress(self, value: bytes) -> bytes:
        restored = self._codec.decode(value)
        return self._none() if restored is None else restored

    def _none(self) -> bytes:
        """None, for the cache's serializer."""
        name = self._options.get("SERIALIZER")
        # The default of both libraries.
        dumps = import_string(name)(options=self._options).dumps if name else pickle.dumps
        none: bytes = dumps(None)
        return none


class SnuglySerializer(RedisSerializer):  # type: ignore[misc]
    """The `serializer` of a cache of `django.core.cache.backends.redis.RedisCache`: Django's own, and compression.

    `options` are those of `CompressionConfiguration`. Whole numbers are stored as they are, for `incr`.
    """

    def __init__(self, protocol: int | None = None, **options: Any) -> None:
        super().__init__(protocol)
        self._codec = exact_codec(**options)

    def dumps(self, obj: Any) -> Any:
        dumped = super().dumps(obj)
        return self._codec.encode(dumped) if isinstance(dumped, bytes) else dumped

    def loads(self, data: bytes) -> Any:
        """The value, or None for one that cannot be read."""
        restored = self._codec.decode(data)
        return None if restored is None else super().loads(restored)
