package snugly.clients;

import java.util.Collection;
import java.util.List;
import java.util.Map;

/** What the checks ask of a library, in its own words. */
interface Client extends AutoCloseable {
  String ping();

  String clientInfo();

  void flushAll();

  void set(String key, String value);

  void set(String key, String value, long seconds);

  void setBytes(String key, byte[] value);

  /** Null if there is no such key. */
  String get(String key);

  byte[] getBytes(String key);

  void mset(Map<String, String> values);

  /** With null for keys that are not there. */
  List<String> mget(String... keys);

  long incrBy(String key, long by);

  long del(String... keys);

  /** In seconds; -1 without expiry, -2 without the key. */
  long ttl(String key);

  boolean expire(String key, long seconds);

  boolean persist(String key);

  Collection<String> scan(String pattern, int count);

  void command(String name, String argument);

  /** Sends at once: SET of every key, INCR of the first, GET of every key. */
  Pipelined pipeline(List<String> keys, String value);

  /** SET of the number, INCR and GET between MULTI and EXEC: the results. */
  List<Object> transaction(String key, long number);

  /** Deletes the key in a script if it has the value: how many keys that were. */
  long deleteIfEqual(String key, String value);

  /**
   * Watches the key, lets somebody meddle, and sets it between MULTI and EXEC.
   *
   * @return whether it was set
   */
  boolean watch(String key, String value, Runnable meddle);

  @Override
  void close();

  /**
   * What came of a pipeline.
   *
   * @param read the values read
   * @param refused the message of INCR's error
   */
  record Pipelined(List<String> read, String refused) {}
}
