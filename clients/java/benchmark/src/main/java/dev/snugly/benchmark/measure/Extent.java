package dev.snugly.benchmark.measure;

import java.time.Duration;

/**
 * Extent of a measurement.
 *
 * @param keys how many keys have a value
 * @param rounds how often everything is measured, in turn
 * @param warmUp how long the same is done before each measurement
 * @param most how long a measurement may take
 * @param operations after which it ends earlier
 */
public record Extent(int keys, int rounds, Duration warmUp, Duration most, long operations) {
  /** As in GLIDE's minimal mode: a thousand operations, and nobody is warm. */
  public static final Extent MINIMAL =
      new Extent(1_000, 1, Duration.ZERO, Duration.ofMinutes(10), 1_000);

  /** Enough to compare. */
  public static final Extent FULL =
      new Extent(10_000, 3, Duration.ofSeconds(2), Duration.ofSeconds(3), Long.MAX_VALUE);

  /** Whether clients are compared as they are once they run, and not as they start. */
  public boolean isWarm() {
    return !warmUp.isZero();
  }
}
