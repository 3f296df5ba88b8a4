package dev.snugly.core;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Little-endian numbers in buffers, whatever the order of the buffer is. */
final class LittleEndian {
  private static final VarHandle SHORTS = view(short[].class);
  private static final VarHandle INTS = view(int[].class);
  private static final VarHandle LONGS = view(long[].class);

  private LittleEndian() {}

  private static VarHandle view(Class<?> array) {
    return MethodHandles.byteBufferViewVarHandle(array, ByteOrder.LITTLE_ENDIAN);
  }

  static int getInt(ByteBuffer bytes, int at) {
    return (int) INTS.get(bytes, at);
  }

  static void putInt(ByteBuffer bytes, int at, int number) {
    INTS.set(bytes, at, number);
  }

  /** The unsigned number in these bytes, 0 to 4 or 8. */
  static long get(ByteBuffer bytes, int at, int length) {
    return switch (length) {
      case 0 -> 0;
      case 1 -> Byte.toUnsignedLong(bytes.get(at));
      case 2 -> getShort(bytes, at);
      case 3 -> getShort(bytes, at) | Byte.toUnsignedLong(bytes.get(at + 2)) << 16;
      case 4 -> Integer.toUnsignedLong(getInt(bytes, at));
      default -> (long) LONGS.get(bytes, at);
    };
  }

  private static long getShort(ByteBuffer bytes, int at) {
    return Short.toUnsignedLong((short) SHORTS.get(bytes, at));
  }
}
