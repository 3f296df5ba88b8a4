"""For Celery: a result backend that compresses what it stores. Nothing else needs Celery."""

from __future__ import annotations

import warnings
from typing import Any

from celery import states
from celery.backends import redis

from snugly.codec import exact_codec
from snugly.configuration import CompressionBackend

PLAIN = "decode_responses is set, so that results can only be text: they are stored without compression, leave it out"
OPTION = "snugly"
"""The transport option that says how results are compressed: a dictionary of options of `CompressionConfiguration`."""


class RedisBackend(redis.RedisBackend):  # type: ignore[misc]
    """Celery's backend for Redis and Valkey, and compression:

        Celery(result_backend="snugly.celery.RedisBackend+redis://localhost:6379/0")

    Results are compressed, where they are stored and where they are published to those who wait for them. What was
    stored before, without compression, is read as it is. `result_backend_transport_options={"snugly": {...}}` has
    options of `CompressionConfiguration`; ConfigurationError says what is wrong with them. With `decode_responses`
    results are stored without compression, with a warning, as Celery does with its own `result_compression`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        settings = self.app.conf.result_backend_transport_options.get(OPTION, {})
        if self.connparams.get("decode_responses"):
            warnings.warn(PLAIN, UserWarning, stacklevel=2)
            settings = {**settings, "backend": CompressionBackend.NONE}
        self._codec = exact_codec(**settings)

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
