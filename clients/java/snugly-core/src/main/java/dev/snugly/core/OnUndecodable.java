package dev.snugly.core;

/** What a reader gets for an envelope or a GZIP file that cannot be read. */
public enum OnUndecodable {
  /** {@link UndecodableException}. */
  RAISE,
  /** The bytes as they are stored. */
  RAW,
}
