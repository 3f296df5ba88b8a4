package dev.snugly.core;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The end of a dictionary, as an encoder of LZ4 sees it: the bytes that a value may copy from, and
 * where some bytes were in them last. It is made once for a dictionary, and shared.
 */
final class Lz4DictionaryTable {
  /** Slots are at least so many, as a power of two, and at most so many, of two bytes each. */
  private static final int LEAST_BITS = 10;

  private static final int MOST_BITS = 15;

  /**
   * What is hashed: six bytes. Shorter matches save a byte or two, and take as long to read as long
   * ones: with four bytes, records of 4,000 took half as long again to decode, and were longer.
   */
  private static final int UNUSED_BITS = Long.SIZE - 6 * Byte.SIZE;

  private static final long PRIME = 0xCF1B_BCDC_B7A5_6463L;
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  /** All of the dictionary. */
  final byte[] bytes;

  /** Place of the first byte that counts. */
  final int start;

  private final int shift;

  /** Distances from the start. A slot that nothing was put into points at the start itself. */
  private final char[] slots;

  Lz4DictionaryTable(byte[] bytes) {
    this.bytes = bytes;
    start = Math.max(bytes.length - Lz4DictionaryDecoder.WINDOW, 0);
    int bits = Integer.SIZE - Integer.numberOfLeadingZeros(bytes.length - start - 1);
    bits = Math.min(Math.max(bits, LEAST_BITS), MOST_BITS);
    shift = Integer.SIZE - bits;
    slots = new char[1 << bits];
    for (int at = start; at <= bytes.length - Long.BYTES; at++) {
      slots[hash((long) LONGS.get(bytes, at)) >>> shift] = (char) (at - start);
    }
  }

  /** Hash of the first of eight bytes: tables of any size use its highest bits. */
  static int hash(long eight) {
    return (int) (((eight << UNUSED_BITS) * PRIME) >>> Integer.SIZE);
  }

  /** Place where bytes with this hash were last, or where there are others. */
  int placeOf(int hash) {
    return start + slots[hash >>> shift];
  }
}
