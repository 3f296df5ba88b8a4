package dev.snugly.benchmark.link;

/** Pace of a link that transmits one thing after the other. Knows no clock. */
final class Pace {
  private final Rate rate;
  private long freeAt;

  /** A link that is idle at this time, in nanoseconds. */
  Pace(Rate rate, long now) {
    this.rate = rate;
    freeAt = now;
  }

  /** Notes that nothing has waited to be transmitted until now. */
  void idle(long now) {
    freeAt = Math.max(freeAt, now);
  }

  /**
   * Returns how long what follows takes to arrive, in nanoseconds from now. That counts from the
   * end of what was before it, so whoever was told of that end too late loses nothing.
   */
  long remaining(long now, int bytes) {
    freeAt += rate.nanoseconds(bytes);
    return freeAt - now;
  }
}
