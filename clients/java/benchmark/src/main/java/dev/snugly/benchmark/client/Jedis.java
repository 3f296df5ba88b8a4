package dev.snugly.benchmark.client;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.jedis.SnuglyRedisClient;
import dev.snugly.jedis.SnuglyRedisClusterClient;
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
  static Client plain(Endpoint endpoint) {
    return new Jedis(open(endpoint));
  }

  static Client compressed(Endpoint endpoint) {
    CompressionConfiguration compression = CompressionConfiguration.defaults();
    return new Jedis(
        endpoint.cluster()
            ? cluster(SnuglyRedisClusterClient.builder(compression), endpoint)
            : standalone(SnuglyRedisClient.builder(compression), endpoint));
  }

  /** A client of the library itself. */
  static UnifiedJedis open(Endpoint endpoint) {
    return endpoint.cluster()
        ? cluster(RedisClusterClient.builder(), endpoint)
        : standalone(RedisClient.builder(), endpoint);
  }

  private static <C extends UnifiedJedis> C cluster(
      ClusterClientBuilder<C> builder, Endpoint endpoint) {
    return builder
        .nodes(Set.of(address(endpoint)))
        .clientConfig(configuration(endpoint))
        .poolConfig(pool(endpoint))
        .build();
  }

  private static <C extends UnifiedJedis> C standalone(
      StandaloneClientBuilder<C> builder, Endpoint endpoint) {
    return builder
        .hostAndPort(address(endpoint))
        .clientConfig(configuration(endpoint))
        .poolConfig(pool(endpoint))
        .build();
  }

  private static HostAndPort address(Endpoint endpoint) {
    return new HostAndPort(endpoint.host(), endpoint.port());
  }

  private static JedisClientConfig configuration(Endpoint endpoint) {
    return DefaultJedisClientConfig.builder()
        .sslOptions(endpoint.tls() ? SslOptions.defaults() : null)
        .timeoutMillis((int) Endpoint.PATIENCE.toMillis())
        .build();
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
