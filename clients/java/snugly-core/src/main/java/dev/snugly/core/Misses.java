package dev.snugly.core;

import java.time.Duration;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * Tells of values that count as missing, since nobody sees their errors: of one a minute, and how
 * many others there were.
 */
final class Misses {
  private static final long PAUSE_NANOS = Duration.ofMinutes(1).toNanos();

  private final LongSupplier clock;
  private final Consumer<String> warn;

  // Guarded by this, as all fields below.
  private boolean hasTold;
  private long toldAt;

  /** Number of values since the one that was told of. */
  private long others;

  /**
   * @param clock nanoseconds since any moment, as {@link System#nanoTime()}
   * @param warn is told
   */
  Misses(LongSupplier clock, Consumer<String> warn) {
    this.clock = clock;
    this.warn = warn;
  }

  /**
   * Notes a value.
   *
   * @param error the text of its error, which is asked for if it is told
   */
  void note(Supplier<String> error) {
    long untold;
    synchronized (this) {
      long now = clock.getAsLong();
      if (hasTold && now - toldAt < PAUSE_NANOS) {
        others++;
        return;
      }
      hasTold = true;
      toldAt = now;
      untold = others;
      others = 0;
    }
    warn.accept(
        "a value counts as missing: %s (%d others since the last of these warnings)"
            .formatted(error.get(), untold));
  }
}
