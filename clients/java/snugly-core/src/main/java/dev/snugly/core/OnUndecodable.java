package dev.snugly.core;

/** What a reader gets for an envelope that cannot be read. */
public enum OnUndecodable {
  /** {@link UndecodableException}. */
  RAISE,
  /** The bytes as they are stored. */
  RAW,
}
