package dev.snugly.jedis;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Statistics;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.builders.StandaloneClientBuilder;
import redis.clients.jedis.csc.Cache;
import redis.clients.jedis.providers.ConnectionProvider;

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
      Commands commands =
          new Commands(configuration, () -> ClientServer.of(commandExecutor, connectionProvider));
      return new SnuglyRedisClient(
          commands,
          new CompressingExecutor(commands, commandExecutor),
          connectionProvider,
          clientConfig,
          cache);
    }
  }
}
