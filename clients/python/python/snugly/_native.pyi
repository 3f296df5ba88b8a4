from typing import final

@final
class Codec:
    """Encodes and decodes under one configuration, from any thread."""

    def __new__(
        cls,
        *,
        backend: str,
        level: int | None,
        min_compression_size: int,
        max_decompressed_size: int,
        wrap: bool,
        checksum: bool,
    ) -> Codec: ...
    def encode(self, value: bytes | bytearray | memoryview) -> bytes:
        """The value's envelope, or the value itself where it is to be sent as it is."""

    def decode(self, value: bytes | bytearray | memoryview) -> bytes:
        """The value in an envelope, or the value itself if it is none. Raises EnvelopeError."""

    def statistics(self) -> dict[str, int]:
        """What this codec has counted, by name."""

class EnvelopeError(Exception):
    """An envelope that cannot be read. The arguments: message, kind, backend."""

def counters() -> list[tuple[str, str, str | None, str]]:
    """Of each name of the statistics: the name, its family, the codec if the family has one counter a codec, a text."""

def inspect(value: bytes | bytearray | memoryview) -> tuple[int, str | None, int | None, int | None] | None:
    """Backend, the backend's name, claimed length and dictionary ID of an envelope; None if the bytes are none."""

def levels(backend: str) -> tuple[int, int, int]:
    """The lowest, the highest and the default level of a backend."""

def process_statistics() -> dict[str, int]:
    """The counters of all codecs of this process, by name."""
