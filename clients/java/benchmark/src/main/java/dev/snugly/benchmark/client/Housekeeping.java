package dev.snugly.benchmark.client;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.UnifiedJedis;

/** A plain connection that sees what is stored, and removes it when it is closed. */
public final class Housekeeping implements AutoCloseable {
  private final UnifiedJedis client;
  private final List<String> written = new ArrayList<>();

  /**
   * Connects.
   *
   * @throws IOException if the certificates to trust cannot be read
   * @throws GeneralSecurityException if there are none
   */
  public Housekeeping(Endpoint endpoint) throws IOException, GeneralSecurityException {
    client = Jedis.plain(endpoint);
  }

  /** Takes note of keys that will be written. */
  public void add(List<String> keys) {
    written.addAll(keys);
  }

  /** Returns the bytes of a value as the server has it. */
  public long storedBytes(String key) {
    return client.strlen(key);
  }

  @Override
  public void close() {
    try (client) {
      written.forEach(client::unlink);
    }
  }
}
