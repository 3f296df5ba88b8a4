package dev.snugly.core;

import java.util.Locale;

/** Keys in messages. */
final class Printable {
  /** Longer keys are cut in messages, in bytes. */
  private static final int LONGEST = 256;

  private Printable() {}

  /** Returns ASCII as it is, and every other byte as {@code \xff}. */
  static String of(byte[] key) {
    StringBuilder text = new StringBuilder(key.length);
    for (int at = 0; at < Math.min(key.length, LONGEST); at++) {
      char each = (char) Byte.toUnsignedInt(key[at]);
      if (each >= ' ' && each <= '~' && each != '"' && each != '\\') {
        text.append(each);
      } else {
        text.append(String.format(Locale.ROOT, "\\x%02x", (int) each));
      }
    }
    return key.length > LONGEST ? text.append("...").toString() : text.toString();
  }
}
