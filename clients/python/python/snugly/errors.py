"""Exceptions of snugly."""

from __future__ import annotations


class SnuglyError(Exception):
    """The base of all errors of this package."""


class ConfigurationError(SnuglyError, ValueError):
    """A setting, or a client that cannot be compressed; the message says what is allowed. Nothing has been changed."""


class CommandRefusedError(SnuglyError):
    """A command that the server would run on compressed bytes. It has not been sent.

    `command` is its name in capitals.
    """

    def __init__(self, message: str, command: str) -> None:
        super().__init__(message)
        self.command = command


class UndecodableError(SnuglyError):
    """A value that was stored compressed and cannot be read.

    Clients raise a subclass that is also their library's ResponseError, so that what handles an error reply (in a
    pipeline, say) handles this as well. With `on_undecodable="raw"` the stored bytes are returned instead.

    kind      one of `unknown_backend`, `corrupt`, `dictionary_missing`, `too_large`, and `not_text`
              for a value that a client with `decode_responses` cannot return as text
    key       the key that it was read from, if that is known
    backend   the number in the envelope; None for `not_text`
    stored    the bytes as the server has them
    """

    def __init__(self, message: str, *, kind: str, key: bytes | None, backend: int | None, stored: bytes) -> None:
        super().__init__(message)
        self.kind = kind
        self.key = key
        self.backend = backend
        self.stored = stored


class DictionaryError(ConfigurationError):
    """Bytes that are not a dictionary, or samples of which none can be made; the message says why."""
