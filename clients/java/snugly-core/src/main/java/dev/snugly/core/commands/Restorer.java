package dev.snugly.core.commands;

import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.Map;

/** Restores the values of a reply. */
@FunctionalInterface
public interface Restorer {
  /**
   * Restores one value.
   *
   * @param stored what is in the reply
   * @param key the key that it belongs to, or null if nobody knows
   * @return the value
   */
  byte[] value(byte[] stored, byte[] key);

  /**
   * Makes an entry of a map, where the client library has maps as lists of entries of its own.
   *
   * @param key as it came
   * @param value restored
   * @return the entry
   */
  default Map.Entry<Object, Object> entry(Object key, Object value) {
    return new SimpleImmutableEntry<>(key, value);
  }
}
