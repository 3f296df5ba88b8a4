package dev.snugly.lettuce;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.ConfigurationException;
import dev.snugly.core.Statistics;
import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.RedisURI;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.cluster.ClusterPushHandler;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.RedisClusterURIUtil;
import io.lettuce.core.cluster.StatefulRedisClusterConnectionImpl;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.json.JsonParser;
import io.lettuce.core.protocol.PushHandler;
import io.lettuce.core.resource.ClientResources;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * A {@link RedisClusterClient} whose connections compress values, as those of {@link
 * SnuglyRedisClient} do; those to its nodes, too.
 */
public class SnuglyRedisClusterClient extends RedisClusterClient {
  private final Commands commands;

  /**
   * For subclasses; {@link #create} is for everybody else.
   *
   * @param resources null for some of its own, which it shuts down with itself
   * @param uris some nodes, from which the others are learned
   * @param compression how to compress
   */
  protected SnuglyRedisClusterClient(
      ClientResources resources, Iterable<RedisURI> uris, LettuceCompression compression) {
    super(resources, uris);
    commands =
        new Commands(
            ofOneDatabase(compression),
            SnuglyRedisClusterClient.this::plain,
            () -> getFirstUri().getTimeout());
    addListener(commands.connections());
  }

  private static LettuceCompression ofOneDatabase(LettuceCompression compression) {
    OptionalInt database =
        Objects.requireNonNull(compression, "compression").configuration().dictionaryDatabase();
    if (database.isPresent()) {
      throw new ConfigurationException(
          "dictionaryDatabase is " + database.getAsInt() + ": leave it out for a cluster");
    }
    return compression;
  }

  /**
   * Makes a client with resources of its own.
   *
   * @param uris some nodes, from which the others are learned
   * @param compression how to compress
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClusterClient create(
      Iterable<RedisURI> uris, LettuceCompression compression) {
    return new SnuglyRedisClusterClient(null, uris, compression);
  }

  /**
   * Makes a client with the defaults of {@link LettuceCompression}, and resources of its own.
   *
   * @param uri as of {@link RedisClusterURIUtil#toRedisURIs(URI)}: several hosts have commas
   *     between them
   * @param configuration how to compress
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClusterClient create(
      String uri, CompressionConfiguration configuration) {
    return create(uris(uri), LettuceCompression.of(configuration));
  }

  private static List<RedisURI> uris(String uri) {
    return RedisClusterURIUtil.toRedisURIs(URI.create(uri));
  }

  /**
   * Makes a client with resources that are shared.
   *
   * @param resources not shut down with the client
   * @param uris some nodes, from which the others are learned
   * @param compression how to compress
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClusterClient create(
      ClientResources resources, Iterable<RedisURI> uris, LettuceCompression compression) {
    return new SnuglyRedisClusterClient(resources, uris, compression);
  }

  /**
   * As {@link RedisClusterClient#create(RedisURI)}, and compresses with all defaults.
   *
   * @param uri a node, from which the others are learned
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClusterClient create(RedisURI uri) {
    return create(List.of(uri));
  }

  /**
   * As {@link RedisClusterClient#create(Iterable)}, and compresses with all defaults.
   *
   * @param uris some nodes, from which the others are learned
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClusterClient create(Iterable<RedisURI> uris) {
    return create(uris, SnuglyRedisClient.DEFAULTS);
  }

  /**
   * As {@link RedisClusterClient#create(String)}, and compresses with all defaults.
   *
   * @param uri as of {@link RedisClusterURIUtil#toRedisURIs(URI)}
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClusterClient create(String uri) {
    return create(uris(uri));
  }

  /**
   * As {@link RedisClusterClient#create(ClientResources, RedisURI)}, and compresses with all
   * defaults.
   *
   * @param resources not shut down with the client
   * @param uri a node, from which the others are learned
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClusterClient create(ClientResources resources, RedisURI uri) {
    return create(resources, List.of(uri));
  }

  /**
   * As {@link RedisClusterClient#create(ClientResources, String)}, and compresses with all
   * defaults.
   *
   * @param resources not shut down with the client
   * @param uri as of {@link RedisClusterURIUtil#toRedisURIs(URI)}
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClusterClient create(ClientResources resources, String uri) {
    return create(resources, uris(uri));
  }

  /**
   * As {@link RedisClusterClient#create(ClientResources, Iterable)}, and compresses with all
   * defaults.
   *
   * @param resources not shut down with the client
   * @param uris some nodes, from which the others are learned
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClusterClient create(
      ClientResources resources, Iterable<RedisURI> uris) {
    return create(resources, uris, SnuglyRedisClient.DEFAULTS);
  }

  /** Returns what all connections of this client have counted. */
  public Statistics statistics() {
    return commands.statistics();
  }

  /** Returns what encodes and decodes, for meters. */
  public Codec codec() {
    return commands.codec();
  }

  private DictionaryConnection.Opened plain() {
    StatefulRedisClusterConnection<byte[], byte[]> connection = connect(DictionaryConnection.PLAIN);
    return new DictionaryConnection.Opened(connection, connection.async());
  }

  private boolean compresses(RedisCodec<?, ?> codec) {
    return codec != DictionaryConnection.PLAIN && commands.isEnabled();
  }

  @Override
  protected <K, V> StatefulRedisConnectionImpl<K, V> newStatefulRedisConnection(
      RedisChannelWriter writer,
      PushHandler pushHandler,
      RedisCodec<K, V> codec,
      Duration timeout,
      Supplier<JsonParser> parser) {
    return compresses(codec)
        ? new CompressedConnection<>(commands, writer, pushHandler, codec, timeout, parser)
        : super.newStatefulRedisConnection(writer, pushHandler, codec, timeout, parser);
  }

  @Override
  protected <V, K> StatefulRedisClusterConnectionImpl<K, V> newStatefulRedisClusterConnection(
      RedisChannelWriter writer,
      ClusterPushHandler pushHandler,
      RedisCodec<K, V> codec,
      Duration timeout,
      Supplier<JsonParser> parser) {
    return compresses(codec)
        ? new CompressedClusterConnection<>(commands, writer, pushHandler, codec, timeout, parser)
        : super.newStatefulRedisClusterConnection(writer, pushHandler, codec, timeout, parser);
  }

  @Override
  public CompletableFuture<Void> shutdownAsync(long quietPeriod, long timeout, TimeUnit unit) {
    return commands
        .closeAsync()
        .thenCompose(ended -> super.shutdownAsync(quietPeriod, timeout, unit));
  }
}
