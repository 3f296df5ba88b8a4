package dev.snugly.jedis;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Statistics;
import java.time.Duration;
import java.util.Map;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.Connection;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.builders.SentinelClientBuilder;
import redis.clients.jedis.csc.Cache;
import redis.clients.jedis.providers.ConnectionProvider;
import redis.clients.jedis.providers.SentineledConnectionProvider;
import redis.clients.jedis.util.Pool;

/**
 * A client for servers that sentinels watch, which compresses: {@link
 * redis.clients.jedis.RedisSentinelClient} with the same commands and settings. Where dictionaries
 * are used its pool must have room for one more connection.
 */
public final class SnuglyRedisSentinelClient extends UnifiedJedis {
  private final Commands commands;

  private SnuglyRedisSentinelClient(
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
  public static SentinelClientBuilder<SnuglyRedisSentinelClient> builder(
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
   * Returns the server that the sentinels name now.
   *
   * @throws ClassCastException if the builder was given a provider that asks no sentinels
   */
  public HostAndPort getCurrentMaster() {
    return ((SentineledConnectionProvider) provider).getCurrentMaster();
  }

  /** Returns the pool of that server; its connections do not compress. */
  public Map<?, Pool<Connection>> getPrimaryNodesConnectionMap() {
    return ((SentineledConnectionProvider) provider).getPrimaryNodesConnectionMap();
  }

  @Override
  public CompressingPipeline pipelined() {
    return new CompressingPipeline(commands, super.pipelined(), commandObjects);
  }

  @Override
  public AbstractTransaction transaction(boolean doMulti) {
    return new CompressingTransaction(commands, super.transaction(doMulti), commandObjects);
  }

  private static final class Builder extends SentinelClientBuilder<SnuglyRedisSentinelClient> {
    private final CompressionConfiguration configuration;

    Builder(CompressionConfiguration configuration) {
      this.configuration = configuration;
    }

    @Override
    protected SnuglyRedisSentinelClient createClient() {
      Duration readTimeout = Duration.ofMillis(clientConfig.getSocketTimeoutMillis());
      Commands commands =
          new Commands(configuration, commandExecutor, connectionProvider, readTimeout);
      return new SnuglyRedisSentinelClient(
          commands,
          new CompressingExecutor(commands, commandExecutor),
          connectionProvider,
          clientConfig,
          cache);
    }
  }
}
