package dev.snugly.core;

/** Treatment of a value that is a well-formed envelope before it is written. */
public enum ExistingEnvelopes {
  /** It is sent as it is, so that nothing is compressed twice. */
  KEEP,
  /** It is encoded like any other value and read back as it was: for values that strangers make. */
  WRAP,
}
