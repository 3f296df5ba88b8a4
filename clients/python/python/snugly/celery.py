"""For Celery: a result backend that compresses what it stores. Nothing else needs Celery."""

from __future__ import annotations

from typing import Any

from celery import states
from celery.backends import redis

from snugly.codec import exact_codec

OPTION = "snugly"
"""The transport option that says how results are compressed: a dictionary of options of `CompressionConfiguration`."""


class RedisBackend(redis.RedisBackend):  # type: ignore[misc]
    """Celery's backend for Redis and Valkey, and compression:

        Celery(result_backend="snugly.celery.RedisBackend+redis://localhost:6379/0")

    Results are compressed, where they are stored and where they are published to those who wait for them. What was
    stored before, without compression, is read as it is. `result_backend_transport_options={"snugly": {...}}` has
    options of `CompressionConfiguration`; ConfigurationError says what is wrong with them.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._codec = exact_codec(**self.app.conf.result_backend_transport_options.get(OPTION, {}))

    def encode(self, data: Any) -> Any:
        payload = super().encode(data)
        if not isinstance(data, dict):
            # A part of a chord becomes the member of a set, and one that comes twice must be the same bytes twice.
            return payload
        return self._codec.encode(payload.encode() if isinstance(payload, str) else payload)

    def decode(self, payload: Any) -> Any:
        """Decodes a stored result. An unreadable one is pending, like a missing one.

        Raises UndecodableError if `on_undecodable` says so.
        """
        if isinstance(payload, bytes):
            payload = self._codec.decode(payload)
            if payload is None:
                return {"status": states.PENDING, "result": None}
        return super().decode(payload)
