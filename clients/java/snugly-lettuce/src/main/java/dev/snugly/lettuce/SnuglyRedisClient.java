package dev.snugly.lettuce;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Statistics;
import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.protocol.PushHandler;
import io.lettuce.core.resource.ClientResources;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * A {@link RedisClient} whose connections compress values: to a server, or to the primary that
 * sentinels name, synchronous, asynchronous, reactive, and in transactions.
 *
 * <pre>{@code
 * RedisClient client =
 *     SnuglyRedisClient.create(
 *         RedisURI.create("redis://localhost"),
 *         LettuceCompression.of(CompressionConfiguration.defaults()));
 * RedisCommands<String, String> cache = client.connect().sync();
 * cache.set("page:1", page);
 * }</pre>
 *
 * <p>Values are encoded on the thread of whoever calls, which within a callback may be the event
 * loop: give commands with large values from a thread of your own, as by {@code thenComposeAsync}.
 * Callbacks of long replies run on the threads that have decoded them and must not block. A command
 * that the server would run on compressed bytes is not sent: calling it throws {@link
 * dev.snugly.core.CommandRefusedException}, and a reactive one ends with it. A value that cannot be
 * read makes its command fail with {@link dev.snugly.core.UndecodableException}; within a
 * transaction it is an error reply in its place. What takes long to decode is decoded on other
 * threads than Lettuce's event loop, so its future may end after those of later commands.
 * Connections for publish and subscribe pass everything as it is.
 */
public class SnuglyRedisClient extends RedisClient {
  /** Takes the place of Lettuce's factories, which would make a client that does not compress. */
  static final LettuceCompression DEFAULTS =
      LettuceCompression.of(CompressionConfiguration.defaults());

  private final Commands commands;

  /**
   * For subclasses; {@link #create} is for everybody else.
   *
   * @param resources null for some of its own, which it shuts down with itself
   * @param uri where connections go that are not told another place, and where dictionaries are
   * @param compression how to compress
   */
  protected SnuglyRedisClient(
      ClientResources resources, RedisURI uri, LettuceCompression compression) {
    super(resources, uri);
    commands = new Commands(compression, SnuglyRedisClient.this::plain, uri::getTimeout);
    addListener(commands.connections());
  }

  /**
   * Makes a client with resources of its own.
   *
   * @param uri where connections go that are not told another place, and where dictionaries are
   * @param compression how to compress
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClient create(RedisURI uri, LettuceCompression compression) {
    return new SnuglyRedisClient(null, uri, compression);
  }

  /**
   * Makes a client with the defaults of {@link LettuceCompression}, and resources of its own.
   *
   * @param uri as of {@link RedisURI#create(String)}
   * @param configuration how to compress
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClient create(String uri, CompressionConfiguration configuration) {
    return create(RedisURI.create(uri), LettuceCompression.of(configuration));
  }

  /**
   * Makes a client with resources that are shared.
   *
   * @param resources not shut down with the client
   * @param uri where connections go that are not told another place, and where dictionaries are
   * @param compression how to compress
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClient create(
      ClientResources resources, RedisURI uri, LettuceCompression compression) {
    return new SnuglyRedisClient(resources, uri, compression);
  }

  /**
   * As {@link RedisClient#create()}, and compresses with all defaults: for connections that are
   * told where they go. There are no dictionaries then, which are where the client's URI goes.
   *
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClient create() {
    return create(new RedisURI());
  }

  /**
   * As {@link RedisClient#create(RedisURI)}, and compresses with all defaults.
   *
   * @param uri where connections go that are not told another place, and where dictionaries are
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClient create(RedisURI uri) {
    return create(uri, DEFAULTS);
  }

  /**
   * As {@link RedisClient#create(String)}, and compresses with all defaults.
   *
   * @param uri as of {@link RedisURI#create(String)}
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClient create(String uri) {
    return create(RedisURI.create(uri));
  }

  /**
   * As {@link RedisClient#create(ClientResources)}, and compresses as {@link #create()} does.
   *
   * @param resources not shut down with the client
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClient create(ClientResources resources) {
    return create(resources, new RedisURI());
  }

  /**
   * As {@link RedisClient#create(ClientResources, String)}, and compresses with all defaults.
   *
   * @param resources not shut down with the client
   * @param uri as of {@link RedisURI#create(String)}
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClient create(ClientResources resources, String uri) {
    return create(resources, RedisURI.create(uri));
  }

  /**
   * As {@link RedisClient#create(ClientResources, RedisURI)}, and compresses with all defaults.
   *
   * @param resources not shut down with the client
   * @param uri where connections go that are not told another place, and where dictionaries are
   * @return a client, to be {@link #shutdown()}
   */
  public static SnuglyRedisClient create(ClientResources resources, RedisURI uri) {
    return create(resources, uri, DEFAULTS);
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
    StatefulRedisConnection<byte[], byte[]> connection = connect(DictionaryConnection.PLAIN);
    try {
      commands.database().ifPresent(connection.sync()::select);
    } catch (RuntimeException error) {
      connection.close(); // Nothing is to be asked of another database.
      throw error;
    }
    return new DictionaryConnection.Opened(connection, connection.async());
  }

  @Override
  protected <K, V> StatefulRedisConnectionImpl<K, V> newStatefulRedisConnection(
      RedisChannelWriter writer,
      PushHandler pushHandler,
      RedisCodec<K, V> codec,
      Duration timeout) {
    return codec != DictionaryConnection.PLAIN && commands.isEnabled()
        ? new CompressedConnection<>(
            commands, writer, pushHandler, codec, timeout, getOptions().getJsonParser())
        : super.newStatefulRedisConnection(writer, pushHandler, codec, timeout);
  }

  @Override
  public CompletableFuture<Void> shutdownAsync(long quietPeriod, long timeout, TimeUnit unit) {
    return commands
        .closeAsync()
        .thenCompose(ended -> super.shutdownAsync(quietPeriod, timeout, unit));
  }
}
