package dev.snugly.core;

/** Types of keys whose values are compressed. */
public enum ValueType {
  /** Values of strings: SET, GET and their kin. */
  STRINGS,
  /** Values of hashes. */
  HASHES,
  /** Values of lists. */
  LISTS,
  /** Values of streams. */
  STREAMS,
}
