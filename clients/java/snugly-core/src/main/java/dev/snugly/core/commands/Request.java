package dev.snugly.core.commands;

import java.util.List;

/** Words that are sent for one command, and the values of its reply. */
public final class Request {
  private final List<byte[]> given;
  private final List<byte[]> words;
  private final Shape shape;
  private final Found found;

  Request(List<byte[]> given, List<byte[]> words, Shape shape, Found found) {
    this.given = given;
    this.words = words;
    this.shape = shape;
    this.found = found;
  }

  /** Returns the command's name and its arguments, as they are to be sent. */
  public List<byte[]> words() {
    return words;
  }

  /** Whether anything is to be sent otherwise than it was given. */
  public boolean isEncoded() {
    return words != given;
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
    return shape == null ? reply : shape.apply(reply, restorer, key(0), this);
  }

  /** The key in this place among those of the arguments, from 0 on, or null if there are fewer. */
  byte[] key(int place) {
    return place < found.keys.size() ? given.get(found.keys.get(place)) : null;
  }
}
