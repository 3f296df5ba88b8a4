package dev.snugly.core.client;

import dev.snugly.core.Budget;
import dev.snugly.core.Codec;

/** Restores the values of one reply, or of all that came together, within what these may take. */
public final class Reply {
  private final Codec codec;
  private final Budget budget;

  Reply(Codec codec) {
    this.codec = codec;
    budget = new Budget(codec.configuration());
  }

  /**
   * Restores one value.
   *
   * @param stored what is in the reply
   * @param key the key that it belongs to, or null if nobody knows
   * @return the value; null for one that is to be missed
   * @throws dev.snugly.core.UndecodableException for what cannot be read
   */
  public byte[] value(byte[] stored, byte[] key) {
    return codec.decode(stored, key, budget);
  }
}
