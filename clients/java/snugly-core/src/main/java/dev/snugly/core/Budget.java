package dev.snugly.core;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Bytes that the values of one reply may take together, since a few bytes of envelopes can stand
 * for as much as a process has memory, and the time that they have waited for dictionaries.
 */
public final class Budget {
  private final AtomicLong left;
  private final AtomicLong waitedNanos = new AtomicLong();

  /**
   * A budget that nothing was taken from.
   *
   * @param configuration whose {@code maxReplyBytes} it is
   */
  public Budget(CompressionConfiguration configuration) {
    long most = configuration.maxReplyBytes();
    left = new AtomicLong(most == 0 ? Long.MAX_VALUE : most);
  }

  long left() {
    return Math.max(left.get(), 0);
  }

  void take(int bytes) {
    left.addAndGet(-bytes);
  }

  /** Returns the time that values have waited for dictionaries, one after another. */
  public Duration waited() {
    return Duration.ofNanos(waitedNanos.get());
  }

  /**
   * Notes that values have waited.
   *
   * @param time how long
   */
  public void addWait(Duration time) {
    waitedNanos.addAndGet(time.toNanos());
  }
}
