"""For aiocache: a serializer that compresses what another serializer makes. Nothing else needs aiocache."""

from __future__ import annotations

from typing import Any

from aiocache.serializers import BaseSerializer, PickleSerializer

from snugly.codec import exact_codec


class SnuglySerializer(BaseSerializer):  # type: ignore[misc]
    """The `serializer` of a cache of aiocache, for any of its backends that store bytes.

    `serializer` (default: aiocache's PickleSerializer()) makes values text or bytes, which are compressed; `options`
    are those of `CompressionConfiguration`. What was stored before, without compression, is read as it is. What cannot
    be read is a miss, unless `on_undecodable` says otherwise.
    """

    DEFAULT_ENCODING = None

    def __init__(self, serializer: Any = None, **options: Any) -> None:
        super().__init__()
        self._serializer = serializer or PickleSerializer()
        self._codec = exact_codec(**options)

    def dumps(self, value: Any) -> bytes:
        dumped = self._serializer.dumps(value)
        return self._codec.encode(dumped.encode(self._serializer.encoding) if isinstance(dumped, str) else dumped)

    def loads(self, value: bytes | None) -> Any:
        """The value, or what the other serializer makes of None, for a miss."""
        if value is None:
            return self._serializer.loads(None)
        restored = self._codec.decode(value)
        if restored is None:
            return self._serializer.loads(None)
        encoding = self._serializer.encoding
        return self._serializer.loads(restored if encoding is None else restored.decode(encoding))
