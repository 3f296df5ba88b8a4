package dev.snugly.core;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Encodes values as LZ4 blocks that may copy from a dictionary, which the library has no function
 * for. Like LZ4's fast mode it takes the first match that it finds, and looks at one place in the
 * value so far and at one in the dictionary.
 *
 * <p>One thread at a time holds it. Its table is not cleared between values: places are numbers
 * that grow from value to value, so that those of earlier ones are too low.
 */
final class Lz4DictionaryEncoder {
  private static final int TABLE_BITS = 12;
  private static final int TABLE_SHIFT = Integer.SIZE - TABLE_BITS;

  /** After so many attempts in vain, as a power of two, the next ones leave out a byte more. */
  private static final int PATIENCE_BITS = 6;

  private static final VarHandle INTS =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle SHORTS =
      MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);

  private final int[] table = new int[1 << TABLE_BITS];

  /** Number of the first place of the next value; that of no place is 0. */
  private int nextNumber;

  Lz4DictionaryEncoder() {
    this(1);
  }

  /** One that has encoded values before. */
  Lz4DictionaryEncoder(int nextNumber) {
    this.nextNumber = nextNumber;
  }

  /**
   * Encodes the value between {@code from} and {@code end}.
   *
   * @param acceleration from 1: higher looks at fewer places
   * @param target has room for a value that does not shrink, and for 16 bytes more
   * @return the end of the block in the target
   */
  int encode(
      Lz4DictionaryTable dictionary,
      int acceleration,
      byte[] value,
      int from,
      int end,
      byte[] target,
      int to) {
    int numbering = numbering(from, end);
    byte[] before = dictionary.bytes;
    int lastStart = end - Lz4DictionaryDecoder.LAST_WITHOUT_MATCH;
    int lastEnd = end - Lz4DictionaryDecoder.LAST_LITERALS;
    int pending = from;
    int at = from;
    int attempts = acceleration << PATIENCE_BITS;
    while (at <= lastStart) {
      long eight = (long) LONGS.get(value, at);
      int hash = Lz4DictionaryTable.hash(eight);
      int slot = hash >>> TABLE_SHIFT;
      int match = table[slot] - numbering;
      table[slot] = numbering + at;
      int distance = at - match;
      int length;
      if (match >= from
          && distance < Lz4DictionaryDecoder.WINDOW
          && (int) INTS.get(value, match) == (int) eight) {
        length = common(value, match, end, value, at, lastEnd);
        while (at > pending && match > from && value[at - 1] == value[match - 1]) {
          at--;
          match--;
          length++;
        }
      } else {
        match = dictionary.placeOf(hash);
        distance = at - from + before.length - match;
        if (distance >= Lz4DictionaryDecoder.WINDOW
            || (int) INTS.get(before, match) != (int) eight) {
          at += attempts++ >>> PATIENCE_BITS;
          continue;
        }
        length = common(before, match, before.length, value, at, lastEnd);
        if (match + length == before.length) {
          length += common(value, from, end, value, at + length, lastEnd);
        }
        while (at > pending && match > dictionary.start && value[at - 1] == before[match - 1]) {
          at--;
          match--;
          length++;
        }
      }
      int more = length - Lz4DictionaryDecoder.LEAST_MATCH;
      to = putLiterals(value, pending, at, end, target, to, more);
      SHORTS.set(target, to, (short) distance);
      to = putMore(target, to + Short.BYTES, more);
      at += length;
      pending = at;
      attempts = acceleration << PATIENCE_BITS;
      if (at <= lastStart) {
        int passed = Lz4DictionaryTable.hash((long) LONGS.get(value, at - 2));
        table[passed >>> TABLE_SHIFT] = numbering + at - 2;
      }
    }
    return putLiterals(value, pending, end, end, target, to, 0);
  }

  /** Difference between the number of a place in the value and the place. */
  private int numbering(int from, int end) {
    int size = end - from;
    if (nextNumber > Integer.MAX_VALUE - size) {
      Arrays.fill(table, 0);
      nextNumber = 1;
    }
    int numbering = nextNumber - from;
    nextNumber += size;
    return numbering;
  }

  /** Length for which both go on alike, of which the second is the value. */
  private static int common(byte[] one, int at, int end, byte[] value, int in, int lastEnd) {
    int most = Math.min(end - at, lastEnd - in);
    int length = 0;
    for (; length <= most - Long.BYTES; length += Long.BYTES) {
      long difference = (long) LONGS.get(one, at + length) ^ (long) LONGS.get(value, in + length);
      if (difference != 0) {
        return length + Long.numberOfTrailingZeros(difference) / Byte.SIZE;
      }
    }
    while (length < most && one[at + length] == value[in + length]) {
      length++;
    }
    return length;
  }

  /** Puts the token of a match and the literals before it. */
  private static int putLiterals(
      byte[] value, int at, int until, int end, byte[] target, int to, int match) {
    int size = until - at;
    int token = Math.min(size, Lz4DictionaryDecoder.MORE) << 4;
    target[to++] = (byte) (token | Math.min(match, Lz4DictionaryDecoder.MORE));
    to = putMore(target, to, size);
    if (size <= 2 * Long.BYTES && end - at >= 2 * Long.BYTES) {
      LONGS.set(target, to, (long) LONGS.get(value, at));
      LONGS.set(target, to + Long.BYTES, (long) LONGS.get(value, at + Long.BYTES));
    } else {
      System.arraycopy(value, at, target, to, size);
    }
    return to + size;
  }

  /** Puts what of a length is not in the token. */
  private static int putMore(byte[] target, int to, int length) {
    if (length < Lz4DictionaryDecoder.MORE) {
      return to;
    }
    int left = length - Lz4DictionaryDecoder.MORE;
    for (; left >= 255; left -= 255) {
      target[to++] = -1;
    }
    target[to++] = (byte) left;
    return to;
  }
}
