package dev.snugly.core;

/** Whose values are compressed. */
public enum ValueType {
  /** Those of strings: SET, GET and their kin. */
  STRINGS,
  /** Those of hashes. */
  HASHES,
  /** Those of lists. */
  LISTS,
  /** Those of streams. */
  STREAMS,
}
