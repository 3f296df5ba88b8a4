package dev.snugly.core;

/**
 * The dictionaries that a {@link Codec} has at hand. It is asked for each value, by any thread, and
 * must not do I/O but in {@link #fetch}.
 */
public interface Dictionaries {
  /** No dictionaries at all. */
  Dictionaries NONE =
      new Dictionaries() {
        @Override
        public Dictionary forKey(byte[] key) {
          return null;
        }

        @Override
        public Dictionary find(int id) {
          return null;
        }
      };

  /**
   * Chooses what a value is written with.
   *
   * @param key the value's key, or null where nobody knows it
   * @return the dictionary, or null for none
   */
  Dictionary forKey(byte[] key);

  /**
   * Looks for what a value is to be read with.
   *
   * @param id the ID in the value's envelope, unsigned
   * @return the dictionary, or null if it is not at hand
   */
  Dictionary find(int id);

  /**
   * Gets a dictionary that is not at hand, and waits for it.
   *
   * @param id the ID in a value's envelope, unsigned
   * @param reply whose value it is, which has the time that others have waited
   * @return whether it is at hand now
   */
  default boolean fetch(int id, Budget reply) {
    return false;
  }

  /** Whether dictionaries may be read, as far as is known: a server may have refused it. */
  default boolean isAllowed() {
    return true;
  }

  /**
   * Just this dictionary, for every key.
   *
   * @param dictionary the one to write and read with
   * @return what a codec takes
   */
  static Dictionaries of(Dictionary dictionary) {
    return new Dictionaries() {
      @Override
      public Dictionary forKey(byte[] key) {
        return dictionary;
      }

      @Override
      public Dictionary find(int id) {
        return id == dictionary.id() ? dictionary : null;
      }
    };
  }
}
