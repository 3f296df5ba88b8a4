package dev.snugly.core;

/**
 * Limit on the length of a value.
 *
 * @param bytes the most that is accepted
 * @param option what says so
 */
record Limit(int bytes, String option) {
  /** The limit on a value of a reply, or null for one that is on its own. */
  static Limit of(CompressionConfiguration configuration, Budget reply) {
    int most = configuration.maxDecompressedSize();
    long left = reply == null ? most : reply.left();
    return left < most
        ? new Limit((int) left, "maxReplyBytes")
        : new Limit(most, "maxDecompressedSize");
  }
}
