package dev.snugly.core;

import java.util.Arrays;

/**
 * Distribution of a value's bytes, from a cheap look at it.
 *
 * <p>The statistic is the collision probability of a sample: the chance that two of its bytes are
 * equal, which is 1/256 for random bytes, four times that for base64 and fifteen times for JSON. It
 * says nothing about repeated sequences, so it can only ever advise to try seldom, never to stop
 * trying.
 */
enum Spread {
  /** As evenly as random, encrypted or well compressed bytes. */
  EVEN,
  /** Unevenly enough to gain by entropy coding alone: base64, packed numbers. */
  MIXED,
  /** As in text. */
  SKEWED;

  /**
   * Bytes are looked at in short runs, spread over the value: 128 bytes of them, or 256 where the
   * value is long. At 128 random bytes stay clear of the limit by four standard deviations, and
   * base64 by six.
   */
  private static final int RUN = 16;

  private static final int RUNS = 8;
  private static final int RUNS_OF_LONG = 16;
  private static final int LONG = 4 << 10;

  /** The room that {@link #of} needs. */
  static final int SEEN = 256;

  /**
   * Looks at a value.
   *
   * @param seen an array of {@link #SEEN}, whose content is anything before and after
   */
  static Spread of(Bytes value, byte[] seen) {
    Arrays.fill(seen, (byte) 0);
    int size = value.size();
    int runs = size >= LONG ? RUNS_OF_LONG : RUNS;
    int sampled = Math.min(size, runs * RUN);
    int collisions = 0;
    if (sampled == size) {
      collisions = add(value, value.start, size, seen);
    } else {
      int stride = (size - RUN) / (runs - 1);
      for (int run = 0; run < runs; run++) {
        collisions += add(value, value.start + run * stride, RUN, seen);
      }
    }
    // In percent of the collisions among random bytes.
    int pairs = sampled * (sampled - 1) / 2;
    int excess = collisions * 256 * 100 / Math.max(pairs, 1);
    // A sample's result scatters around 100, and more so when it is small.
    int even = 130 + 6_000 / Math.max(sampled, 1);
    if (excess <= even) {
      return EVEN;
    }
    return excess <= 800 ? MIXED : SKEWED;
  }

  /** Adds bytes to the sample and returns how many in it are equal to one of them, in pairs. */
  private static int add(Bytes value, int start, int length, byte[] seen) {
    int collisions = 0;
    for (int at = start; at < start + length; at++) {
      // Of the 256 bytes of a sample there are 255 before the last, so that a byte can count them.
      collisions += Byte.toUnsignedInt(seen[value.get(at)]++);
    }
    return collisions;
  }
}
