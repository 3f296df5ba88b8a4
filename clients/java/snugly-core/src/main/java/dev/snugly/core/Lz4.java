package dev.snugly.core;

import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import net.jpountz.lz4.LZ4Compressor;
import net.jpountz.lz4.LZ4Exception;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.lz4.LZ4SafeDecompressor;

/** LZ4: the value's length as u32, then one raw block. */
final class Lz4 {
  /** Length of what is in front of the block, in bytes. */
  static final int LENGTH_BYTES = 4;

  /** One byte of a block makes at most so many. */
  private static final long MOST_OF_A_BYTE = 255;

  private static final boolean IS_NATIVE;
  private static final LZ4Factory FACTORY;
  private static final LZ4SafeDecompressor DECOMPRESSOR;

  static {
    LZ4Factory factory;
    boolean isNative = true;
    try {
      // The library's own choice falls back without a word to something many times slower.
      factory = LZ4Factory.nativeInstance();
    } catch (LinkageError | AssertionError | RuntimeException error) {
      System.getLogger("dev.snugly")
          .log(
              Level.WARNING,
              "LZ4 works in Java, which is many times slower, since its native library cannot be"
                  + " loaded",
              error);
      factory = LZ4Factory.safeInstance();
      isNative = false;
    }
    FACTORY = factory;
    IS_NATIVE = isNative;
    DECOMPRESSOR = factory.safeDecompressor();
  }

  private Lz4() {}

  /** The compressor of a level, for one thread at a time. In Java there is no acceleration. */
  static LZ4Compressor compressor(int level) {
    if (level > 0) {
      return IS_NATIVE ? FACTORY.highFastResetCompressor(level) : FACTORY.highCompressor(level);
    }
    return IS_NATIVE ? FACTORY.fastResetCompressor(Math.max(-level, 1)) : FACTORY.fastCompressor();
  }

  /** Frees what a compressor has, if it is a native one. */
  static void close(LZ4Compressor compressor) {
    if (compressor instanceof AutoCloseable closeable) {
      try {
        closeable.close();
      } catch (Exception error) {
        throw new IllegalStateException("an LZ4 compressor cannot be closed", error);
      }
    }
  }

  /**
   * Compresses a value to a place in the target, and returns how many bytes it has become.
   *
   * @throws RuntimeException that of the library
   */
  static int compress(Workspace workspace, int level, Bytes value, Bytes target, int at) {
    int size = value.size();
    target.putInt(at, size);
    int block = at + LENGTH_BYTES;
    int room = target.end - block;
    LZ4Compressor compressor = workspace.lz4(level);
    boolean areArrays = value.array != null && target.array != null;
    return LENGTH_BYTES
        + (areArrays
            ? compressor.compress(value.array, value.start, size, target.array, block, room)
            : compressor.compress(value.buffer(), value.start, size, target.buffer(), block, room));
  }

  /** The length that a payload claims for its value, in bytes. */
  static long claimedSize(Bytes bytes, int payload) throws Fault {
    if (bytes.end - payload < LENGTH_BYTES) {
      throw Fault.corrupt("the length is cut off");
    }
    return Integer.toUnsignedLong(bytes.getInt(payload));
  }

  /**
   * Refuses a payload whose claim is over the limit or out of reach.
   *
   * @return the claim
   */
  static long check(Bytes bytes, int payload, Limit limit) throws Fault {
    long claimed = claimedSize(bytes, payload);
    check(claimed, bytes.end - payload - LENGTH_BYTES, limit);
    return claimed;
  }

  /** Refuses a claim that is over the limit, or that a block of so many bytes cannot hold. */
  static void check(long claimed, int block, Limit limit) throws Fault {
    if (claimed > limit.bytes()) {
      throw Fault.tooLarge("it claims " + claimed + " bytes", limit);
    }
    if (claimed > MOST_OF_A_BYTE * block) {
      throw Fault.corrupt("it claims " + claimed + " bytes, which its block cannot hold");
    }
  }

  /** The value in the payload between {@code payload} and the end. */
  static byte[] decompress(Bytes bytes, int payload, Limit limit) throws Fault {
    long claimed = check(bytes, payload, limit);
    byte[] value = Zstd.room(claimed);
    int size;
    try {
      size = decompress(bytes, payload + LENGTH_BYTES, value);
    } catch (LZ4Exception error) {
      throw Fault.corrupt(error.getMessage(), error);
    }
    if (size != value.length) {
      throw Fault.corrupt("it claims " + claimed + " bytes and holds " + size);
    }
    return value;
  }

  private static int decompress(Bytes bytes, int block, byte[] value) {
    int size = bytes.end - block;
    return bytes.array != null
        ? DECOMPRESSOR.decompress(bytes.array, block, size, value, 0, value.length)
        : DECOMPRESSOR.decompress(
            bytes.direct, block, size, ByteBuffer.wrap(value), 0, value.length);
  }
}
