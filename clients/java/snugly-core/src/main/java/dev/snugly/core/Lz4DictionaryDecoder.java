package dev.snugly.core;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Decodes LZ4 blocks of values that stand right behind a dictionary, whose end they may copy from.
 * The library has no function for it.
 *
 * <p>What it is given is foreign: it never reads outside the block, the dictionary's end and the
 * value so far, nor writes outside the value, and each turn of a loop uses bytes of the block. A
 * block is refused where liblz4 refuses it: the end of a value is literals, and a match begins
 * twelve bytes before it at the latest.
 */
final class Lz4DictionaryDecoder {
  /** A match reaches back less than this, in bytes: what comes before in a dictionary is unused. */
  static final int WINDOW = 1 << 16;

  /** Length of the shortest match, in bytes. */
  static final int LEAST_MATCH = 4;

  /** Number of bytes at the end of a value that are literals. */
  static final int LAST_LITERALS = 5;

  /** Number of bytes at the end of a value in which no match begins. */
  static final int LAST_WITHOUT_MATCH = 12;

  /** Lengths from this one on continue behind the token, or behind the match's distance. */
  static final int MORE = 15;

  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle SHORTS =
      MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);

  /** Lengths in a token alone are at most so many bytes, which are copied by three times eight. */
  private static final int SHORT = 3 * Long.BYTES;

  private Lz4DictionaryDecoder() {}

  /**
   * Decodes the block between {@code at} and {@code end} into a value.
   *
   * @param value an array of the value's length
   * @return the number of bytes that the block holds
   */
  static int decode(byte[] block, int at, int end, byte[] dictionary, byte[] value) throws Fault {
    int window = Math.min(dictionary.length, WINDOW);
    int made = 0;
    while (at < end) {
      long token = Byte.toUnsignedLong(block[at++]);
      long literals = token >>> 4;
      if (literals == MORE) {
        int last = endOfLength(block, at, end);
        literals += length(block, at, last);
        at = last + 1;
      }
      if (literals > end - at || literals > value.length - made) {
        throw Fault.corrupt("its block is cut off, or holds more than it claims");
      }
      copyLiterals(block, at, (int) literals, value, made, end);
      at += (int) literals;
      made += (int) literals;
      if (at == end) {
        return made;
      }
      if (end - at < Short.BYTES || made > value.length - LAST_WITHOUT_MATCH) {
        throw Fault.corrupt("its block is cut off, or ends with a match");
      }
      int distance = Short.toUnsignedInt((short) SHORTS.get(block, at));
      at += Short.BYTES;
      long length = token & MORE;
      if (length == MORE) {
        int last = endOfLength(block, at, end);
        length += length(block, at, last);
        at = last + 1;
      }
      length += LEAST_MATCH;
      if (length > value.length - LAST_LITERALS - made) {
        throw Fault.corrupt("its block holds more than it claims, or ends with a match");
      }
      if (distance == 0 || distance > made + window) {
        throw Fault.corrupt("its block copies from before the dictionary");
      }
      copyMatch(dictionary, value, made, distance, (int) length);
      made += (int) length;
    }
    throw Fault.corrupt("its block is cut off");
  }

  /** Place of the last byte of a length, which is the first that is not 255. */
  private static int endOfLength(byte[] block, int at, int end) throws Fault {
    while (at < end) {
      if (block[at] != -1) {
        return at;
      }
      at++;
    }
    throw Fault.corrupt("its block is cut off in a length");
  }

  private static long length(byte[] block, int at, int last) {
    return 255L * (last - at) + Byte.toUnsignedInt(block[last]);
  }

  private static void copyLiterals(
      byte[] block, int at, int length, byte[] value, int made, int end) {
    if (length < SHORT && end - at >= SHORT && value.length - made >= SHORT) {
      copyShort(block, at, value, made);
    } else {
      System.arraycopy(block, at, value, made, length);
    }
  }

  private static void copyMatch(
      byte[] dictionary, byte[] value, int made, int distance, int length) {
    boolean isShort = length <= SHORT && value.length - made >= SHORT;
    int back = distance - made;
    if (back <= 0) {
      if (isShort && distance >= Long.BYTES) {
        copyShort(value, made - distance, value, made);
      } else {
        copyRepeated(value, made, distance, made + length);
      }
    } else if (isShort && back >= SHORT) {
      copyShort(dictionary, dictionary.length - back, value, made);
    } else {
      int part = Math.min(length, back);
      System.arraycopy(dictionary, dictionary.length - back, value, made, part);
      copyRepeated(value, made + part, distance, made + length);
    }
  }

  /** What is to be repeated doubles with each copy. */
  private static void copyRepeated(byte[] value, int made, int distance, int end) {
    int from = made - distance;
    while (made < end) {
      int part = Math.min(end - made, made - from);
      System.arraycopy(value, from, value, made, part);
      made += part;
    }
  }

  private static void copyShort(byte[] source, int from, byte[] target, int to) {
    copyLong(source, from, target, to);
    copyLong(source, from + Long.BYTES, target, to + Long.BYTES);
    copyLong(source, from + 2 * Long.BYTES, target, to + 2 * Long.BYTES);
  }

  private static void copyLong(byte[] source, int from, byte[] target, int to) {
    LONGS.set(target, to, (long) LONGS.get(source, from));
  }
}
