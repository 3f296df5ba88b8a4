package dev.snugly.jedis;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Statistics;
import dev.snugly.core.commands.Request;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.BinaryJedisShardedPubSub;
import redis.clients.jedis.ClusterCommandObjects;
import redis.clients.jedis.CommandKeyArgumentPreProcessor;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.CommandObjects;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPool;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisShardedPubSub;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.builders.ClusterClientBuilder;
import redis.clients.jedis.csc.Cache;
import redis.clients.jedis.executors.CommandExecutor;
import redis.clients.jedis.params.MSetExParams;
import redis.clients.jedis.providers.ConnectionProvider;

/**
 * A client for a cluster that compresses: {@link RedisClusterClient} with the same commands and
 * settings, commands over several slots included. Where dictionaries are used the pool of each node
 * must have room for one more connection.
 */
public final class SnuglyRedisClusterClient extends UnifiedJedis {
  private final Commands commands;
  private final RedisClusterClient plain;

  private SnuglyRedisClusterClient(
      Commands commands,
      RedisClusterClient plain,
      CompressingExecutor executor,
      ConnectionProvider provider,
      JedisClientConfig config,
      Cache cache) {
    super(executor, provider, config, cache);
    this.commands = commands;
    this.plain = plain;
  }

  /**
   * Returns a client with the defaults of Jedis, as {@link RedisClusterClient#create(Set)}.
   *
   * @param nodes some of the cluster's nodes
   * @param configuration how to compress
   */
  public static SnuglyRedisClusterClient create(
      Set<HostAndPort> nodes, CompressionConfiguration configuration) {
    return builder(configuration).nodes(nodes).build();
  }

  /**
   * Returns Jedis's own builder, for a client that compresses.
   *
   * @param configuration how to compress
   * @throws dev.snugly.core.ConfigurationException for a {@code dictionaryDatabase}: a cluster has
   *     one database
   */
  public static ClusterClientBuilder<SnuglyRedisClusterClient> builder(
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
  protected CommandObjects newCommandObjects(RedisProtocol protocol) {
    return new ClusterCommandObjects(protocol);
  }

  @Override
  public CompressingPipeline pipelined() {
    return new CompressingPipeline(commands, plain.pipelined(), commandObjects);
  }

  /**
   * Returns a pipeline.
   *
   * @param threads read the replies of its nodes; not shut down
   */
  public CompressingPipeline pipelined(ExecutorService threads) {
    return new CompressingPipeline(commands, plain.pipelined(threads), commandObjects);
  }

  /**
   * Begins a transaction.
   *
   * @throws UnsupportedOperationException as {@link RedisClusterClient} does
   */
  @Override
  public AbstractTransaction transaction(boolean doMulti) {
    return new CompressingTransaction(commands, plain.transaction(doMulti), commandObjects);
  }

  // The methods below may have keys in several slots, which Jedis's own client splits up, and whose
  // keys it makes as this one.

  @Override
  public void setKeyArgumentPreProcessor(CommandKeyArgumentPreProcessor preProcessor) {
    super.setKeyArgumentPreProcessor(preProcessor);
    plain.setKeyArgumentPreProcessor(preProcessor);
  }

  @Override
  public List<byte[]> mget(byte[]... keys) {
    List<byte[]> stored = plain.mget(keys);
    Request request = commands.request(commandObjects.mget(keys));
    if (request == null) {
      return stored;
    }
    List<byte[]> values = new ArrayList<>(keys.length);
    ((List<?>) commands.restored(request, stored)).forEach(each -> values.add((byte[]) each));
    return values;
  }

  @Override
  public List<String> mget(String... keys) {
    List<String> values = new ArrayList<>(keys.length);
    for (byte[] each : mget(bytes(keys))) {
      values.add(each == null ? null : new String(each, StandardCharsets.UTF_8));
    }
    return values;
  }

  @Override
  public String mset(byte[]... keysvalues) {
    return plain.mset(encoded(commandObjects.mset(keysvalues), 1, keysvalues));
  }

  @Override
  public String mset(String... keysvalues) {
    return mset(bytes(keysvalues));
  }

  @Override
  public boolean msetex(MSetExParams params, byte[]... keysvalues) {
    return plain.msetex(params, encoded(commandObjects.msetex(params, keysvalues), 2, keysvalues));
  }

  @Override
  public boolean msetex(MSetExParams params, String... keysvalues) {
    return msetex(params, bytes(keysvalues));
  }

  /**
   * The keys as they were given and the values as they are to be sent.
   *
   * @param whole the command if it were not split up, whose keys are those of the server
   * @param first where its first key is
   */
  private byte[][] encoded(CommandObject<?> whole, int first, byte[][] keysvalues) {
    Request request = commands.request(whole);
    byte[][] sent = keysvalues.clone();
    for (int at = 1; request != null && at < sent.length; at += 2) {
      sent[at] = request.words().get(first + at);
    }
    return sent;
  }

  private static byte[][] bytes(String... texts) {
    byte[][] bytes = new byte[texts.length][];
    for (int index = 0; index < texts.length; index++) {
      bytes[index] = texts[index].getBytes(StandardCharsets.UTF_8);
    }
    return bytes;
  }

  @Override
  public long del(String... keys) {
    return plain.del(keys);
  }

  @Override
  public long del(byte[]... keys) {
    return plain.del(keys);
  }

  @Override
  public long exists(String... keys) {
    return plain.exists(keys);
  }

  @Override
  public long exists(byte[]... keys) {
    return plain.exists(keys);
  }

  @Override
  public long touch(String... keys) {
    return plain.touch(keys);
  }

  @Override
  public long touch(byte[]... keys) {
    return plain.touch(keys);
  }

  @Override
  public long unlink(String... keys) {
    return plain.unlink(keys);
  }

  @Override
  public long unlink(byte[]... keys) {
    return plain.unlink(keys);
  }

  // Methods of clients of clusters only.

  /**
   * Reads from a replica, which needs {@code readOnlyForRedisClusterReplicas} of the settings of
   * Jedis.
   *
   * @param command what to read
   * @return its reply, with its values restored
   */
  public <T> T executeCommandToReplica(CommandObject<T> command) {
    return commands.execute(command, new ReplicaExecutor(plain));
  }

  /**
   * Sends a command to every node as it is.
   *
   * @param command one without keys
   * @return the reply of all nodes
   */
  public <T> T broadcastCommand(CommandObject<T> command) {
    return plain.broadcastCommand(command);
  }

  /** Returns the pools of all nodes, by host and port. */
  public Map<String, ConnectionPool> getClusterNodes() {
    return plain.getClusterNodes();
  }

  /**
   * Returns a connection of the pool of a node, which does not compress.
   *
   * @param slot one of the node's slots
   */
  public Connection getConnectionFromSlot(int slot) {
    return plain.getConnectionFromSlot(slot);
  }

  /** Reads anew which node has which slots. */
  public void refreshClusterTopology() {
    plain.refreshClusterTopology();
  }

  /** SPUBLISH; messages are not compressed. */
  public long spublish(String channel, String message) {
    return plain.spublish(channel, message);
  }

  /** SPUBLISH; messages are not compressed. */
  public long spublish(byte[] channel, byte[] message) {
    return plain.spublish(channel, message);
  }

  /** SSUBSCRIBE. */
  public void ssubscribe(JedisShardedPubSub pubSub, String... channels) {
    plain.ssubscribe(pubSub, channels);
  }

  /** SSUBSCRIBE. */
  public void ssubscribe(BinaryJedisShardedPubSub pubSub, byte[]... channels) {
    plain.ssubscribe(pubSub, channels);
  }

  /** Executes commands at replicas, by a client that it does not own. */
  private record ReplicaExecutor(RedisClusterClient client) implements CommandExecutor {
    @Override
    public <T> T executeCommand(CommandObject<T> command) {
      return client.executeCommandToReplica(command);
    }

    @Override
    public void close() {}
  }

  private static final class Builder extends ClusterClientBuilder<SnuglyRedisClusterClient> {
    private final CompressionConfiguration configuration;
    private Set<HostAndPort> nodes = Collections.emptySet();

    Builder(CompressionConfiguration configuration) {
      ClientServer.checkForCluster(configuration);
      this.configuration = configuration;
    }

    @Override
    public ClusterClientBuilder<SnuglyRedisClusterClient> nodes(Set<HostAndPort> nodes) {
      this.nodes = nodes;
      return super.nodes(nodes);
    }

    @Override
    protected SnuglyRedisClusterClient createClient() {
      Duration readTimeout = Duration.ofMillis(clientConfig.getSocketTimeoutMillis());
      Commands commands =
          new Commands(configuration, commandExecutor, connectionProvider, readTimeout);
      RedisClusterClient plain =
          RedisClusterClient.builder()
              .nodes(nodes)
              .clientConfig(clientConfig)
              .connectionProvider(connectionProvider)
              .commandExecutor(commandExecutor)
              .cache(cache)
              .commandFlags(getCommandFlags())
              .build();
      return new SnuglyRedisClusterClient(
          commands,
          plain,
          new CompressingExecutor(commands, commandExecutor),
          connectionProvider,
          clientConfig,
          cache);
    }
  }
}
