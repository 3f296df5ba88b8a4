package dev.snugly.benchmark.client;

/** One client object of a library, for any number of threads. */
public interface Client extends AutoCloseable {
  /**
   * Sets a key, and returns once the server has answered.
   *
   * @throws Exception whatever the library throws
   */
  void set(String key, String value) throws Exception;

  /**
   * Returns the value of a key, or null.
   *
   * @throws Exception whatever the library throws
   */
  String get(String key) throws Exception;

  @Override
  void close();
}
