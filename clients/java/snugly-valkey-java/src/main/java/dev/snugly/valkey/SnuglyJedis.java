package dev.snugly.valkey;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Statistics;
import io.valkey.AbstractTransaction;
import io.valkey.ClusterCommandObjects;
import io.valkey.ClusterPipeline;
import io.valkey.CommandObjects;
import io.valkey.Connection;
import io.valkey.HostAndPort;
import io.valkey.JedisClientConfig;
import io.valkey.JedisCluster;
import io.valkey.Pipeline;
import io.valkey.UnifiedJedis;
import io.valkey.exceptions.JedisException;
import io.valkey.executors.ClusterCommandExecutor;
import io.valkey.executors.CommandExecutor;
import io.valkey.executors.DefaultCommandExecutor;
import io.valkey.executors.RetryableCommandExecutor;
import io.valkey.providers.ClusterConnectionProvider;
import io.valkey.providers.ConnectionProvider;
import io.valkey.providers.PooledConnectionProvider;
import io.valkey.providers.SentineledConnectionProvider;
import java.time.Duration;
import java.util.Set;

/**
 * A client that compresses: {@link io.valkey.JedisPooled}, {@link io.valkey.JedisCluster} or {@link
 * io.valkey.JedisSentineled} with the same commands, as its connections are provided.
 *
 * <pre>{@code
 * try (SnuglyJedis cache =
 *     SnuglyJedis.pooled(
 *         new HostAndPort("localhost", 6379),
 *         DefaultJedisClientConfig.builder().build(),
 *         CompressionConfiguration.defaults())) {
 *   cache.set("page:1", page);
 * }
 * }</pre>
 */
public final class SnuglyJedis extends UnifiedJedis {
  /** Time in which {@link JedisCluster} tries a command again by default. */
  private static final Duration CLUSTER_PATIENCE =
      Duration.ofMillis((long) JedisCluster.DEFAULT_MAX_ATTEMPTS * JedisCluster.DEFAULT_TIMEOUT);

  private final Commands commands;

  private SnuglyJedis(
      Commands commands,
      CommandExecutor plain,
      ConnectionProvider provider,
      CommandObjects commandObjects) {
    super(new CompressingExecutor(commands, plain), provider, commandObjects);
    this.commands = commands;
  }

  /**
   * Returns a client for one server, as {@link io.valkey.JedisPooled}.
   *
   * @param server where it listens
   * @param config how to connect
   * @param configuration how to compress
   */
  public static SnuglyJedis pooled(
      HostAndPort server, JedisClientConfig config, CompressionConfiguration configuration) {
    ConnectionProvider provider = new PooledConnectionProvider(server, config);
    return over(new DefaultCommandExecutor(provider), provider, readTimeout(config), configuration);
  }

  /**
   * Returns a client for a cluster, as {@link JedisCluster}. Where dictionaries are used the pool
   * of each node must have room for one more connection.
   *
   * @param nodes some of its nodes
   * @param config how to connect; its socket timeout times the attempts is also how long a command
   *     is tried again
   * @param configuration how to compress
   */
  public static SnuglyJedis cluster(
      Set<HostAndPort> nodes, JedisClientConfig config, CompressionConfiguration configuration) {
    ClientServer.checkForCluster(configuration);
    int attempts = JedisCluster.DEFAULT_MAX_ATTEMPTS;
    Duration readTimeout = readTimeout(config);
    ClusterConnectionProvider provider = new ClusterConnectionProvider(nodes, config);
    return over(
        new ClusterCommandExecutor(provider, attempts, readTimeout.multipliedBy(attempts)),
        provider,
        readTimeout,
        configuration);
  }

  /**
   * Returns a client for servers that sentinels watch, as {@link io.valkey.JedisSentineled}. Where
   * dictionaries are used its pool must have room for one more connection.
   *
   * @param primary the name under which the sentinels know the server
   * @param config how to connect to it
   * @param sentinels where they listen
   * @param sentinelConfig how to connect to them
   * @param configuration how to compress
   */
  public static SnuglyJedis sentineled(
      String primary,
      JedisClientConfig config,
      Set<HostAndPort> sentinels,
      JedisClientConfig sentinelConfig,
      CompressionConfiguration configuration) {
    ConnectionProvider provider =
        new SentineledConnectionProvider(primary, config, sentinels, sentinelConfig);
    return over(new DefaultCommandExecutor(provider), provider, readTimeout(config), configuration);
  }

  /**
   * Returns a client whose connections somebody else provides. It closes them. It gets one now, to
   * see how long that waits for a reply, which is how long values wait for dictionaries at most.
   *
   * @param provider of one server, or of one that sentinels name; or, for a cluster, a {@link
   *     ClusterConnectionProvider}
   * @param configuration how to compress
   */
  public static SnuglyJedis of(
      ConnectionProvider provider, CompressionConfiguration configuration) {
    return provider instanceof ClusterConnectionProvider
        ? of(provider, JedisCluster.DEFAULT_MAX_ATTEMPTS, CLUSTER_PATIENCE, configuration)
        : over(
            new DefaultCommandExecutor(provider), provider, readTimeout(provider), configuration);
  }

  /**
   * Returns the same for a client that tries commands again when a connection is lost, as {@link
   * UnifiedJedis#UnifiedJedis(ConnectionProvider, int, Duration)} does.
   *
   * @param provider as above
   * @param maxAttempts how often a command is tried, from 1
   * @param maxTotalRetriesDuration until when it is tried again
   * @param configuration how to compress
   */
  public static SnuglyJedis of(
      ConnectionProvider provider,
      int maxAttempts,
      Duration maxTotalRetriesDuration,
      CompressionConfiguration configuration) {
    CommandExecutor plain =
        provider instanceof ClusterConnectionProvider cluster
            ? new ClusterCommandExecutor(cluster, maxAttempts, maxTotalRetriesDuration)
            : new RetryableCommandExecutor(provider, maxAttempts, maxTotalRetriesDuration);
    return over(plain, provider, readTimeout(provider), configuration);
  }

  private static Duration readTimeout(JedisClientConfig config) {
    return Duration.ofMillis(config.getSocketTimeoutMillis());
  }

  /** That of a connection, which the library opens now to learn its protocol, too. */
  private static Duration readTimeout(ConnectionProvider provider) {
    try (Connection connection = provider.getConnection()) {
      return Duration.ofMillis(connection.getSoTimeout());
    } catch (JedisException unreachable) {
      return Duration.ZERO;
    }
  }

  private static SnuglyJedis over(
      CommandExecutor plain,
      ConnectionProvider provider,
      Duration readTimeout,
      CompressionConfiguration configuration) {
    return new SnuglyJedis(
        new Commands(configuration, plain, provider, readTimeout),
        plain,
        provider,
        provider instanceof ClusterConnectionProvider
            ? new ClusterCommandObjects()
            : new CommandObjects());
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
    return new CompressingPipeline(
        commands,
        provider instanceof ClusterConnectionProvider cluster
            ? new ClusterPipeline(cluster, (ClusterCommandObjects) commandObjects)
            : new Pipeline(provider.getConnection(), true),
        commandObjects);
  }

  /**
   * Begins a transaction.
   *
   * @throws UnsupportedOperationException in a cluster, as {@link JedisCluster} does
   */
  @Override
  public AbstractTransaction transaction(boolean doMulti) {
    if (provider instanceof ClusterConnectionProvider) {
      throw new UnsupportedOperationException("valkey-java has no transactions in clusters");
    }
    return new CompressingTransaction(commands, super.transaction(doMulti), commandObjects);
  }
}
