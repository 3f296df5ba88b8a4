package dev.snugly.core.catalogue;

/**
 * How a {@link Keeper} asks the server that a client's values come from: the primaries, in a
 * cluster. It is used by one thread at a time. Its methods throw what the client library throws.
 */
public interface DictionaryServer extends AutoCloseable {
  /** How an error is to be taken. */
  enum Failure {
    /** The command is not allowed (NOPERM). */
    DENIED,
    /** The server has answered with any other error, and can be asked again. */
    REPLY,
    /** There is no connection, or anything else that passes. */
    PASSING,
  }

  /**
   * GET.
   *
   * @param key of a dictionary or of the catalogue
   * @return the value as it is stored, or null if there is none
   */
  byte[] get(byte[] key);

  /**
   * TOUCH.
   *
   * @param key of a dictionary or of the catalogue
   * @return whether it is there
   */
  boolean touch(byte[] key);

  /**
   * SET with NX.
   *
   * @param key of a dictionary
   * @param value the dictionary
   * @return whether it was set
   */
  boolean setIfAbsent(byte[] key, byte[] value);

  /**
   * Says how an error of one of these is to be taken.
   *
   * @param error what was thrown
   * @return its kind
   */
  Failure failure(RuntimeException error);

  /** Gives up what this has opened. It may be used again, and opens that again then. */
  @Override
  void close();
}
