package dev.snugly.jedis;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.testing.Server;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.JedisClientConfig;

/** Makes clients for the tests that those of valkey-java pass, too. */
final class Clients {
  private Clients() {}

  static SnuglyRedisClient of(
      Server server, CompressionConfiguration.Builder settings, JedisClientConfig config) {
    return of(server, settings, config, new ConnectionPoolConfig());
  }

  static SnuglyRedisClient of(
      Server server,
      CompressionConfiguration.Builder settings,
      JedisClientConfig config,
      ConnectionPoolConfig pool) {
    return SnuglyRedisClient.builder(settings.build())
        .hostAndPort("127.0.0.1", server.port())
        .clientConfig(config)
        .poolConfig(pool)
        .build();
  }
}
