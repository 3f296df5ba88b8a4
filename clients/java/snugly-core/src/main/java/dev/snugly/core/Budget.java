package dev.snugly.core;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Bytes that the values of one reply may take together: a few bytes of envelopes can stand for as
 * much as a process has memory.
 */
public final class Budget {
  private final AtomicLong left;

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
}
