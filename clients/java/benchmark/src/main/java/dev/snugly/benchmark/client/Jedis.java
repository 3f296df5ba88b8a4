package dev.snugly.benchmark.client;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.jedis.SnuglyRedisClient;
import dev.snugly.jedis.SnuglyRedisClusterClient;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.Set;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.SslOptions;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.builders.ClusterClientBuilder;
import redis.clients.jedis.builders.StandaloneClientBuilder;

/** Jedis, with a connection for each thread. */
record Jedis(UnifiedJedis client) implements Client {
  static Client open(Endpoint endpoint, Backend backend)
      throws IOException, GeneralSecurityException {
    return new Jedis(backend == null ? plain(endpoint) : compressed(endpoint, backend));
  }

  private static UnifiedJedis compressed(Endpoint endpoint, Backend backend)
      throws IOException, GeneralSecurityException {
    CompressionConfiguration compression = backend.snugly();
    return endpoint.cluster()
        ? cluster(SnuglyRedisClusterClient.builder(compression), endpoint)
        : standalone(SnuglyRedisClient.builder(compression), endpoint);
  }

  /** A client of the library itself. */
  static UnifiedJedis plain(Endpoint endpoint) throws IOException, GeneralSecurityException {
    return endpoint.cluster()
        ? cluster(RedisClusterClient.builder(), endpoint)
        : standalone(RedisClient.builder(), endpoint);
  }

  private static <C extends UnifiedJedis> C cluster(
      ClusterClientBuilder<C> builder, Endpoint endpoint)
      throws IOException, GeneralSecurityException {
    return builder
        .nodes(Set.of(address(endpoint)))
        .clientConfig(configuration(endpoint))
        .poolConfig(pool(endpoint))
        .build();
  }

  private static <C extends UnifiedJedis> C standalone(
      StandaloneClientBuilder<C> builder, Endpoint endpoint)
      throws IOException, GeneralSecurityException {
    return builder
        .hostAndPort(address(endpoint))
        .clientConfig(configuration(endpoint))
        .poolConfig(pool(endpoint))
        .build();
  }

  private static HostAndPort address(Endpoint endpoint) {
    return new HostAndPort(endpoint.host(), endpoint.port());
  }

  private static JedisClientConfig configuration(Endpoint endpoint)
      throws IOException, GeneralSecurityException {
    return DefaultJedisClientConfig.builder()
        .sslOptions(encryption(endpoint))
        .timeoutMillis((int) Endpoint.PATIENCE.toMillis())
        .build();
  }

  private static SslOptions encryption(Endpoint endpoint)
      throws IOException, GeneralSecurityException {
    if (endpoint.tlsCa() != null) {
      return Trust.of(endpoint.tlsCa());
    }
    return endpoint.tls() ? SslOptions.defaults() : null;
  }

  private static ConnectionPoolConfig pool(Endpoint endpoint) {
    ConnectionPoolConfig pool = new ConnectionPoolConfig();
    pool.setMaxTotal(endpoint.tasks());
    pool.setMaxIdle(endpoint.tasks());
    return pool;
  }

  @Override
  public void set(String key, String value) {
    client.set(key, value);
  }

  @Override
  public String get(String key) {
    return client.get(key);
  }

  @Override
  public void close() {
    client.close();
  }
}
