package dev.snugly.lettuce;

import dev.snugly.core.SnuglyException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.GZIPInputStream;

/** GZIP files, which Lettuce's own {@code CompressionCodec} writes. */
final class Gzip {
  /** What each file begins with. */
  static final byte FIRST = 0x1F;

  /** A header of 10 bytes, an empty block of 2, and a trailer of 8. */
  private static final int LEAST_BYTES = 20;

  private static final int TRAILER_SIZE_BYTES = 4;

  private Gzip() {}

  /** Whether these bytes begin as a GZIP file does: its magic, and DEFLATE. */
  static boolean begins(byte[] stored) {
    return stored.length >= LEAST_BYTES
        && stored[0] == FIRST
        && stored[1] == (byte) 0x8B
        && stored[2] == 8;
  }

  /** The length that a file claims for what is in it, in bytes. */
  static long claimedSize(byte[] stored) {
    ByteBuffer bytes = ByteBuffer.wrap(stored).order(ByteOrder.LITTLE_ENDIAN);
    return Integer.toUnsignedLong(bytes.getInt(stored.length - TRAILER_SIZE_BYTES));
  }

  /**
   * What is in a file; the bytes themselves if they are none after all.
   *
   * @throws SnuglyException if that is longer than the limit
   */
  static byte[] restored(byte[] stored, int limit) {
    byte[] value;
    try (GZIPInputStream file = new GZIPInputStream(new ByteArrayInputStream(stored))) {
      value = file.readNBytes(limit);
      if (file.read() < 0) {
        return value;
      }
    } catch (IOException notGzip) {
      return stored;
    }
    throw new SnuglyException(
        "cannot decode a GZIP file of "
            + stored.length
            + " bytes: its value has more than "
            + value.length
            + ": see maxDecompressedSize");
  }
}
