package dev.snugly.core;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.zip.GZIPInputStream;

/** GZIP files, which others than snugly have written as values. */
public final class Gzip {
  /** Beginning of each file, as a little-endian number: its magic, and DEFLATE. */
  private static final int MAGIC = 0x088B1F;

  private static final int MAGIC_BYTES = 3;

  /** A header of 10 bytes, an empty block of 2, and a trailer of 8. */
  private static final int LEAST_BYTES = 20;

  private Gzip() {}

  /**
   * Whether these bytes begin as a file does.
   *
   * @param stored what a server has
   */
  public static boolean begins(byte[] stored) {
    return begins(Bytes.of(stored, stored.length));
  }

  /**
   * Whether these bytes begin as a file does.
   *
   * @param stored what a server has, from its position to its limit; both stay
   */
  public static boolean begins(ByteBuffer stored) {
    return begins(Bytes.of(stored));
  }

  static boolean begins(Bytes bytes) {
    return bytes.size() >= LEAST_BYTES && bytes.number(bytes.start, MAGIC_BYTES) == MAGIC;
  }

  /**
   * Content of a file, or null if the bytes are not one.
   *
   * @param limit the most that is accepted, in bytes
   */
  static byte[] decompress(Bytes bytes, Limit limit) throws Fault {
    try (GZIPInputStream file = new GZIPInputStream(stream(bytes))) {
      byte[] value = file.readNBytes(limit.bytes());
      if (file.read() >= 0) {
        throw Fault.tooLarge("it holds more than " + limit.bytes() + " bytes", limit);
      }
      return value;
    } catch (IOException notGzip) {
      return null;
    } catch (OutOfMemoryError error) {
      throw Fault.outOfMemory("what it holds", error);
    }
  }

  private static ByteArrayInputStream stream(Bytes bytes) {
    return bytes.array != null
        ? new ByteArrayInputStream(bytes.array, bytes.start, bytes.size())
        : new ByteArrayInputStream(bytes.copy());
  }
}
