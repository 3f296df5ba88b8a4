package dev.snugly.core;

/** Results of reading an envelope or a GZIP file that cannot be read. */
public enum OnUndecodable {
  /** {@link UndecodableException}. */
  RAISE,
  /** The bytes as they are stored. */
  RAW,
  /**
   * The library's result for a value that is not there: null. For caches. A warning tells of one a
   * minute.
   */
  MISS,
}
