package dev.snugly.core;

import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import net.jpountz.lz4.LZ4Compressor;
import net.jpountz.lz4.LZ4Exception;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.lz4.LZ4SafeDecompressor;

/** LZ4: the value's length as u32, then one raw block. */
final class Lz4 {
  /** What is in front of the block, in bytes. */
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
   * Compresses the bytes between position and limit to a place in the target, and returns how many
   * bytes they have become. Positions stay.
   *
   * @throws RuntimeException that of the library
   */
  static int compress(Workspace workspace, int level, ByteBuffer value, ByteBuffer target, int at) {
    int size = value.remaining();
    LittleEndian.putInt(target, at, size);
    int block = at + LENGTH_BYTES;
    return LENGTH_BYTES
        + workspace
            .lz4(level)
            .compress(value, value.position(), size, target, block, target.limit() - block);
  }

  /** The length that a payload claims for its value, in bytes. */
  static long claimedSize(ByteBuffer bytes, int payload) throws Fault {
    if (bytes.limit() - payload < LENGTH_BYTES) {
      throw Fault.corrupt("the length is cut off");
    }
    return Integer.toUnsignedLong(LittleEndian.getInt(bytes, payload));
  }

  /** The most that a payload can decode to, in bytes. */
  static long reach(ByteBuffer bytes, int payload) {
    return MOST_OF_A_BYTE * (bytes.limit() - payload - LENGTH_BYTES);
  }

  /** The value in the payload between {@code payload} and the limit. */
  static byte[] decompress(ByteBuffer bytes, int payload, int limit) throws Fault {
    long claimed = claimedSize(bytes, payload);
    if (claimed > limit) {
      throw Fault.tooLarge("it claims " + claimed + " bytes", limit);
    }
    if (claimed > reach(bytes, payload)) {
      throw Fault.corrupt("it claims " + claimed + " bytes, which its block cannot hold");
    }
    byte[] value = Zstd.room(claimed);
    int block = payload + LENGTH_BYTES;
    int size;
    try {
      size =
          DECOMPRESSOR.decompress(
              bytes, block, bytes.limit() - block, ByteBuffer.wrap(value), 0, value.length);
    } catch (LZ4Exception error) {
      throw Fault.corrupt(error.getMessage(), error);
    }
    if (size != value.length) {
      throw Fault.corrupt("it claims " + claimed + " bytes and holds " + size);
    }
    return value;
  }
}
