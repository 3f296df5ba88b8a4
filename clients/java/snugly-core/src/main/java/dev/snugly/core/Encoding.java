package dev.snugly.core;

import java.util.Locale;

/** Encodings of stored values. Counters and metrics call them codecs. */
public enum Encoding {
  /** As it is. */
  IDENTITY(-1),
  /** An envelope of backend 02: an LZ4 block. */
  LZ4(0x02),
  /** An envelope of backend 01: a zstd frame. */
  ZSTD(0x01),
  /** An envelope of backend 81: a zstd frame that needs a dictionary. */
  ZSTD_DICTIONARY(0x81),
  /** An envelope of backend 82: an LZ4 block that needs a dictionary. */
  LZ4_DICTIONARY(0x82);

  private static final Encoding[] OF_BACKEND = new Encoding[256];

  static {
    for (Encoding encoding : values()) {
      if (encoding.backend >= 0) {
        OF_BACKEND[encoding.backend] = encoding;
      }
    }
  }

  /** The number in the envelope, or -1. */
  final int backend;

  Encoding(int backend) {
    this.backend = backend;
  }

  /** Returns the encoding of a backend's payload, or null for a backend that nobody knows. */
  static Encoding ofBackend(int backend) {
    return OF_BACKEND[backend];
  }

  /** Whether the payload needs a dictionary. */
  boolean needsDictionary() {
    return this == ZSTD_DICTIONARY || this == LZ4_DICTIONARY;
  }

  /** Returns the encoding of the same backend with a dictionary. */
  Encoding withDictionary() {
    return this == LZ4 ? LZ4_DICTIONARY : ZSTD_DICTIONARY;
  }

  /** Returns the name in counters and metrics, such as {@code zstd_dictionary}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
