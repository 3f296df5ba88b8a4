package dev.snugly.testing;

import java.time.Duration;
import java.util.function.BooleanSupplier;

/** Waits for what comes some time. */
public final class Waiting {
  private static final long PATIENCE = Duration.ofMinutes(1).toNanos();

  private Waiting() {}

  /**
   * Returns once something holds.
   *
   * @param what it is, for the error
   * @param holds is asked again and again
   * @throws AssertionError if it does not hold within a minute
   */
  public static void until(String what, BooleanSupplier holds) {
    long end = System.nanoTime() + PATIENCE;
    while (!holds.getAsBoolean()) {
      if (System.nanoTime() - end > 0) {
        throw new AssertionError("waited in vain until " + what);
      }
      try {
        Thread.sleep(10);
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException(error);
      }
    }
  }
}
