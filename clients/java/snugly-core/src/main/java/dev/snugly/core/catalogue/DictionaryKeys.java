package dev.snugly.core.catalogue;

import java.nio.charset.StandardCharsets;

/** The keys under which dictionaries live, as {@code spec/dictionaries.md} names them. */
final class DictionaryKeys {
  private final String prefix;

  DictionaryKeys(String prefix) {
    this.prefix = prefix;
  }

  /** Key of the dictionary of this ID. */
  byte[] dictionary(int id) {
    return bytes(":dict:" + Integer.toUnsignedString(id));
  }

  /** Key of the catalogue. */
  byte[] catalogue() {
    return bytes(":dicts");
  }

  private byte[] bytes(String rest) {
    return (prefix + rest).getBytes(StandardCharsets.UTF_8);
  }
}
