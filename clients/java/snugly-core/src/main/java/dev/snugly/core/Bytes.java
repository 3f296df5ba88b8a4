package dev.snugly.core;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A stretch of an array or of a direct buffer, and the little-endian numbers in it. Places are
 * those of the array or the buffer, which is not moved.
 *
 * <p>It is small, so that the compiler sees through it, where a buffer around each array would be
 * allocated: beside the 150 ns that zstd takes for a short value, that shows.
 */
final class Bytes {
  private static final VarHandle IN_ARRAY =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle IN_BUFFER =
      MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  /** Array of the bytes, or null if they are in a buffer. */
  final byte[] array;

  /** Buffer of the bytes, or null if they are in an array. */
  final ByteBuffer direct;

  final int start;
  final int end;

  private Bytes(byte[] array, int start, int end) {
    this.array = array;
    this.direct = null;
    this.start = start;
    this.end = end;
  }

  private Bytes(ByteBuffer direct) {
    this.array = null;
    this.direct = direct;
    this.start = direct.position();
    this.end = direct.limit();
  }

  /** The first bytes of an array. */
  static Bytes of(byte[] array, int length) {
    return new Bytes(array, 0, length);
  }

  /** The bytes between position and limit; a copy of them if there is neither array nor address. */
  static Bytes of(ByteBuffer buffer) {
    if (buffer.isDirect()) {
      return new Bytes(buffer);
    }
    if (buffer.hasArray()) {
      int start = buffer.arrayOffset() + buffer.position();
      return new Bytes(buffer.array(), start, start + buffer.remaining());
    }
    byte[] copy = new byte[buffer.remaining()];
    buffer.get(buffer.position(), copy);
    return of(copy, copy.length);
  }

  /** Number of them. */
  int size() {
    return end - start;
  }

  /** The byte at a place, from 0 to 255. */
  int get(int at) {
    return Byte.toUnsignedInt(array != null ? array[at] : direct.get(at));
  }

  /** The unsigned number in so many bytes, 0 to 8. */
  long number(int at, int length) {
    long number = 0;
    for (int place = at + length - 1; place >= at; place--) {
      number = number << 8 | get(place);
    }
    return number;
  }

  /** The number in four bytes. */
  int getInt(int at) {
    return array != null ? (int) IN_ARRAY.get(array, at) : (int) IN_BUFFER.get(direct, at);
  }

  /** Puts a byte at a place. */
  void put(int at, int value) {
    if (array != null) {
      array[at] = (byte) value;
    } else {
      direct.put(at, (byte) value);
    }
  }

  /** Puts a number of four bytes at a place. */
  void putInt(int at, int number) {
    if (array != null) {
      IN_ARRAY.set(array, at, number);
    } else {
      IN_BUFFER.set(direct, at, number);
    }
  }

  /** The same bytes in an array of their own. */
  byte[] copy() {
    byte[] copy = new byte[size()];
    if (array != null) {
      System.arraycopy(array, start, copy, 0, copy.length);
    } else {
      direct.get(start, copy);
    }
    return copy;
  }

  /** A buffer in which all places are the same. */
  ByteBuffer buffer() {
    return array != null ? ByteBuffer.wrap(array) : direct;
  }
}
