package dev.snugly.benchmark.client;

import dev.snugly.jedis.SnuglyRedisClient;
import dev.snugly.lettuce.LettuceCompression;
import glide.api.BaseClient;
import io.lettuce.core.AbstractRedisClient;
import java.util.Locale;
import redis.clients.jedis.UnifiedJedis;

/** Clients that can be measured: a library, with compression or without. */
public enum ClientKind {
  /** Valkey GLIDE without compression. */
  GLIDE(null, BaseClient.class, Glide::open),
  /** Valkey GLIDE with its own compression: at the default level, from 64 bytes on. */
  GLIDE_COMPRESSED(GLIDE, BaseClient.class, Glide::open),
  /** Lettuce as it comes. */
  LETTUCE(null, AbstractRedisClient.class, Lettuce::open),
  /** Lettuce with snugly's compression, which has the same defaults as GLIDE's. */
  LETTUCE_SNUGLY(LETTUCE, LettuceCompression.class, Lettuce::open),
  /** Jedis as it comes, with as many connections as there are tasks. */
  JEDIS(null, UnifiedJedis.class, Jedis::open),
  /** Jedis with snugly's compression, which has the same defaults as GLIDE's. */
  JEDIS_SNUGLY(JEDIS, SnuglyRedisClient.class, Jedis::open);

  private interface Opener {
    /** Connects, and compresses with the backend; null for no compression. */
    Client open(Endpoint endpoint, Backend backend) throws Exception;
  }

  private final ClientKind uncompressed;
  private final Class<?> library;

  @SuppressWarnings("ImmutableEnumChecker") // a function of a library above
  private final Opener opener;

  ClientKind(ClientKind uncompressed, Class<?> library, Opener opener) {
    this.uncompressed = uncompressed == null ? this : uncompressed;
    this.library = library;
    this.opener = opener;
  }

  /** Returns the same library without compression. */
  public ClientKind uncompressed() {
    return uncompressed;
  }

  /** Whether it compresses. */
  public boolean isCompressed() {
    return uncompressed != this;
  }

  /** Returns the name of the archive that the library comes in, which has its version. */
  public String archive() {
    String path = library.getProtectionDomain().getCodeSource().getLocation().getPath();
    return path.substring(path.lastIndexOf('/') + 1);
  }

  /**
   * Connects.
   *
   * @param backend what is used if it compresses
   * @throws Exception whatever the library throws
   */
  public Client open(Endpoint endpoint, Backend backend) throws Exception {
    return opener.open(endpoint, isCompressed() ? backend : null);
  }

  /** Returns the name as it is given and shown, such as {@code glide_compressed}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
