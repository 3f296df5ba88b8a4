package dev.snugly.benchmark.client;

import dev.snugly.lettuce.LettuceCompression;
import dev.snugly.lettuce.SnuglyRedisClient;
import dev.snugly.lettuce.SnuglyRedisClusterClient;
import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisStringAsyncCommands;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import java.time.Duration;
import java.util.List;

/** Lettuce, with one connection for all threads; in a cluster one for each node. */
record Lettuce(
    AbstractRedisClient client,
    StatefulConnection<String, String> connection,
    RedisStringAsyncCommands<String, String> commands)
    implements Client {
  static Client open(Endpoint endpoint, Backend backend) {
    return backend == null ? plain(endpoint) : compressed(endpoint, backend);
  }

  private static Client plain(Endpoint endpoint) {
    return endpoint.cluster()
        ? connected(RedisClusterClient.create(address(endpoint)), endpoint)
        : connected(RedisClient.create(address(endpoint)), endpoint);
  }

  private static Client compressed(Endpoint endpoint, Backend backend) {
    LettuceCompression compression = LettuceCompression.of(backend.snugly());
    return endpoint.cluster()
        ? connected(
            SnuglyRedisClusterClient.create(List.of(address(endpoint)), compression), endpoint)
        : connected(SnuglyRedisClient.create(address(endpoint), compression), endpoint);
  }

  private static Client connected(RedisClusterClient client, Endpoint endpoint) {
    client.setOptions(ClusterClientOptions.builder().sslOptions(trust(endpoint)).build());
    StatefulRedisClusterConnection<String, String> connection = client.connect();
    return new Lettuce(client, connection, connection.async());
  }

  private static Client connected(RedisClient client, Endpoint endpoint) {
    client.setOptions(ClientOptions.builder().sslOptions(trust(endpoint)).build());
    StatefulRedisConnection<String, String> connection = client.connect();
    return new Lettuce(client, connection, connection.async());
  }

  private static SslOptions trust(Endpoint endpoint) {
    return endpoint.tlsCa() == null
        ? SslOptions.create()
        : SslOptions.builder().trustManager(endpoint.tlsCa().toFile()).build();
  }

  private static RedisURI address(Endpoint endpoint) {
    return RedisURI.builder()
        .withHost(endpoint.host())
        .withPort(endpoint.port())
        .withSsl(endpoint.tls())
        .withTimeout(Endpoint.PATIENCE)
        .build();
  }

  @Override
  public void set(String key, String value) throws Exception {
    commands.set(key, value).get();
  }

  @Override
  public String get(String key) throws Exception {
    return commands.get(key).get();
  }

  @Override
  public void close() {
    connection.close();
    // Without the pause of two seconds that it makes for others.
    client.shutdown(Duration.ZERO, Endpoint.PATIENCE);
  }
}
