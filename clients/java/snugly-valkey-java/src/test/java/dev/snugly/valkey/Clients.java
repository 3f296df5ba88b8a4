package dev.snugly.valkey;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.testing.Server;
import io.valkey.ConnectionPoolConfig;
import io.valkey.HostAndPort;
import io.valkey.JedisClientConfig;
import io.valkey.providers.PooledConnectionProvider;

/** Makes clients for the tests that are made from those of Jedis. */
final class Clients {
  private Clients() {}

  static SnuglyJedis of(
      Server server, CompressionConfiguration.Builder settings, JedisClientConfig config) {
    return of(server, settings, config, new ConnectionPoolConfig());
  }

  static SnuglyJedis of(
      Server server,
      CompressionConfiguration.Builder settings,
      JedisClientConfig config,
      ConnectionPoolConfig pool) {
    HostAndPort address = new HostAndPort("127.0.0.1", server.port());
    return SnuglyJedis.of(new PooledConnectionProvider(address, config, pool), settings.build());
  }
}
