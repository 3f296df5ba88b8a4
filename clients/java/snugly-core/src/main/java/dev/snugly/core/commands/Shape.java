package dev.snugly.core.commands;

/** Places of values in a reply. */
interface Shape {
  /**
   * The reply with its values restored.
   *
   * @param key the key known so far, or null
   * @param request knows the keys of the arguments
   */
  Object apply(Object reply, Restorer restorer, byte[] key, Request request);
}
