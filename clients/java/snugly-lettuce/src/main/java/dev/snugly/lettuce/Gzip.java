package dev.snugly.lettuce;

import dev.snugly.core.Codec;
import dev.snugly.core.Counter;
import dev.snugly.core.OnUndecodable;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPInputStream;

/** Reads GZIP files, which Lettuce's own {@code CompressionCodec} writes, by a codec's limits. */
final class Gzip {
  /** What each file begins with. */
  static final byte FIRST = 0x1F;

  /** A header of 10 bytes, an empty block of 2, and a trailer of 8. */
  private static final int LEAST_BYTES = 20;

  private final Codec codec;

  /**
   * @param codec says what is too long and what becomes of it, and counts it
   */
  Gzip(Codec codec) {
    this.codec = codec;
  }

  /** Whether these bytes begin as a GZIP file does: its magic, and DEFLATE. */
  static boolean begins(byte[] stored) {
    return stored.length >= LEAST_BYTES
        && stored[0] == FIRST
        && stored[1] == (byte) 0x8B
        && stored[2] == 8;
  }

  /**
   * A reply with what is in its files. {@code CompressionCodec} has encoded values of every kind,
   * so they may be anywhere.
   *
   * @param reply strings as {@code byte[]}, arrays as lists
   * @throws UndecodableGzipException if one cannot be restored
   */
  Object inReply(Object reply) {
    if (reply instanceof List<?> list) {
      List<Object> restored = new ArrayList<>(list.size());
      list.forEach(item -> restored.add(inReply(item)));
      return restored;
    }
    return reply instanceof byte[] stored ? restored(stored, null) : reply;
  }

  /**
   * What is in a file; the bytes themselves if they are none.
   *
   * @param key where they were read from, for the message of an error, or null
   * @throws UndecodableGzipException if that is longer than the limit
   */
  byte[] restored(byte[] stored, byte[] key) {
    if (!begins(stored)) {
      return stored;
    }
    int limit = codec.configuration().maxDecompressedSize();
    try (GZIPInputStream file = new GZIPInputStream(new ByteArrayInputStream(stored))) {
      byte[] value = file.readNBytes(limit);
      return file.read() < 0
          ? value
          : undecodable(
              stored, key, "its value has more than " + limit + " bytes: see maxDecompressedSize");
    } catch (IOException notGzip) {
      return stored;
    } catch (OutOfMemoryError error) {
      return undecodable(stored, key, "there is no memory for its value");
    }
  }

  private byte[] undecodable(byte[] stored, byte[] key, String why) {
    codec.count(Counter.DECODE_FAILURES);
    if (codec.configuration().onUndecodable() == OnUndecodable.RAW) {
      return stored;
    }
    throw new UndecodableGzipException(stored, key, why);
  }
}
