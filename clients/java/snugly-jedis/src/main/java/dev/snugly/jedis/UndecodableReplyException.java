package dev.snugly.jedis;

import dev.snugly.core.UndecodableException;
import redis.clients.jedis.exceptions.JedisDataException;

/**
 * A stored value cannot be restored. It is an error of the library's, so that in a pipeline and in
 * a transaction it takes the place of its own command's result.
 */
public final class UndecodableReplyException extends JedisDataException {
  private static final long serialVersionUID = 1L;

  private final UndecodableException undecodable;

  UndecodableReplyException(UndecodableException undecodable) {
    super(undecodable.getMessage(), undecodable);
    this.undecodable = undecodable;
  }

  /** Returns what is wrong: its kind, the key, the backend, and the stored bytes. */
  public UndecodableException undecodable() {
    return undecodable;
  }
}
