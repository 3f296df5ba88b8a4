package dev.snugly.core.commands;

import java.util.List;

/** Where a reply has values. */
interface Shape {
  /**
   * The reply with its values restored.
   *
   * @param key the key known so far, or null
   * @param keys those of the arguments
   */
  Object apply(Object reply, Restorer restorer, byte[] key, List<byte[]> keys);
}
