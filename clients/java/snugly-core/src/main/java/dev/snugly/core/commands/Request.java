package dev.snugly.core.commands;

import java.util.List;

/** What is sent for one command, and what becomes of its reply. */
public final class Request {
  private final List<byte[]> words;
  private final Shape shape;
  private final List<byte[]> keys;

  Request(List<byte[]> words, Shape shape, List<byte[]> keys) {
    this.words = words;
    this.shape = shape;
    this.keys = keys;
  }

  /** Returns the command's name and its arguments, as they are to be sent. */
  public List<byte[]> words() {
    return words;
  }

  /** Whether the reply may have values. */
  public boolean isRestored() {
    return shape != null;
  }

  /**
   * Restores the values of the reply.
   *
   * @param reply as it came over the wire: bulk strings are {@code byte[]}, arrays lists, maps maps
   *     or lists of entries; everything else passes as it is
   * @param restorer how values are restored
   * @return the reply with its values; nothing of the given one is changed
   */
  public Object restore(Object reply, Restorer restorer) {
    byte[] first = keys.isEmpty() ? null : keys.get(0);
    return shape == null ? reply : shape.apply(reply, restorer, first, keys);
  }
}
