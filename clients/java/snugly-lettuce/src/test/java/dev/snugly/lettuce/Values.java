package dev.snugly.lettuce;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.snugly.core.Encoding;
import dev.snugly.core.Envelope;
import dev.snugly.testing.Connection;

/** The values of these tests, and how they lie in the server. */
final class Values {
  static final String PAGE = "<p>a page of some length</p>".repeat(40);
  static final String OTHER = "{\"name\": \"another\", \"rank\": 1}".repeat(30);

  /** Looks like an envelope and is none. */
  static final byte[] DAMAGED = {0, 1, 2, 0, 1, 9, 9, 9, 9, 9};

  private Values() {}

  /** Encoding of what is stored. */
  static Encoding encoding(byte[] stored) {
    return Envelope.inspect(stored)
        .map(it -> it.encoding().orElseThrow())
        .orElse(Encoding.IDENTITY);
  }

  static Encoding encodingAt(Connection plain, String key) {
    return encoding(plain.bytes("GET", key));
  }

  static byte[] bytes(String text) {
    return text.getBytes(UTF_8);
  }
}
