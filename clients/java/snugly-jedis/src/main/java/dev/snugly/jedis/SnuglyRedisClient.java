package dev.snugly.jedis;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Statistics;
import java.net.URI;
import java.time.Duration;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.Connection;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.builders.StandaloneClientBuilder;
import redis.clients.jedis.csc.Cache;
import redis.clients.jedis.providers.ConnectionProvider;
import redis.clients.jedis.providers.PooledConnectionProvider;
import redis.clients.jedis.util.JedisURIHelper;
import redis.clients.jedis.util.Pool;

/**
 * A client for one server that compresses: {@link redis.clients.jedis.RedisClient} with the same
 * commands and settings.
 *
 * <pre>{@code
 * try (SnuglyRedisClient cache =
 *     SnuglyRedisClient.builder(CompressionConfiguration.defaults())
 *         .hostAndPort("localhost", 6379)
 *         .build()) {
 *   cache.set("page:1", page);
 * }
 * }</pre>
 */
public final class SnuglyRedisClient extends UnifiedJedis {
  private final Commands commands;

  private SnuglyRedisClient(
      Commands commands,
      CompressingExecutor executor,
      ConnectionProvider provider,
      JedisClientConfig config,
      Cache cache) {
    super(executor, provider, config, cache);
    this.commands = commands;
  }

  /**
   * Returns a client with the defaults of Jedis, as {@link
   * redis.clients.jedis.RedisClient#create(String)}.
   *
   * @param url such as {@code redis://localhost:6379}, or {@code rediss} for TLS
   * @param configuration how to compress
   * @throws IllegalArgumentException for a URL of another scheme, or without host or port
   */
  public static SnuglyRedisClient create(String url, CompressionConfiguration configuration) {
    URI uri = URI.create(url);
    if (!JedisURIHelper.isValid(uri)) {
      throw new IllegalArgumentException(
          "the URL names no server: it has a scheme, a host and a port, as redis://localhost:6379");
    }
    return builder(configuration)
        .hostAndPort(JedisURIHelper.getHostAndPort(uri))
        .clientConfig(DefaultJedisClientConfig.builder(uri).build())
        .build();
  }

  /**
   * Returns Jedis's own builder, for a client that compresses.
   *
   * @param configuration how to compress
   */
  public static StandaloneClientBuilder<SnuglyRedisClient> builder(
      CompressionConfiguration configuration) {
    return new Builder(configuration);
  }

  /** Returns what encodes and decodes this client's values, for metrics and tools. */
  public Codec codec() {
    return commands.codec();
  }

  /** Returns what this client has counted. */
  public Statistics statistics() {
    return commands.statistics();
  }

  /**
   * Returns the pool of this client, whose connections do not compress.
   *
   * @throws ClassCastException if the builder was given a provider without one
   */
  public Pool<Connection> getPool() {
    return ((PooledConnectionProvider) provider).getPool();
  }

  @Override
  public CompressingPipeline pipelined() {
    return new CompressingPipeline(commands, super.pipelined(), commandObjects);
  }

  @Override
  public AbstractTransaction transaction(boolean doMulti) {
    return new CompressingTransaction(commands, super.transaction(doMulti), commandObjects);
  }

  private static final class Builder extends StandaloneClientBuilder<SnuglyRedisClient> {
    private final CompressionConfiguration configuration;

    Builder(CompressionConfiguration configuration) {
      this.configuration = configuration;
    }

    @Override
    protected SnuglyRedisClient createClient() {
      Duration readTimeout = Duration.ofMillis(clientConfig.getSocketTimeoutMillis());
      Commands commands =
          new Commands(configuration, commandExecutor, connectionProvider, readTimeout);
      return new SnuglyRedisClient(
          commands,
          new CompressingExecutor(commands, commandExecutor),
          connectionProvider,
          clientConfig,
          cache);
    }
  }
}
