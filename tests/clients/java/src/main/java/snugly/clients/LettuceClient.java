package snugly.clients;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Lettuce, which has one connection for all threads. */
final class LettuceClient implements Client {
  static final Library LIBRARY = new Library("lettuce", "Lettuce", LettuceClient::new);
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  private final RedisClient lettuce;
  private final StatefulRedisConnection<String, String> connection;

  private LettuceClient(Library.Options options) {
    var address = RedisURI.builder().withHost(options.address().host());
    address.withPort(options.address().port());
    if (options.name() != null) {
      address.withClientName(options.name());
    }
    if (options.password() != null) {
      address.withPassword(options.password().toCharArray());
    }
    lettuce = RedisClient.create(address.build());
    if (options.protocol() == 2) {
      lettuce.setOptions(ClientOptions.builder().protocolVersion(ProtocolVersion.RESP2).build());
    }
    try {
      connection = lettuce.connect();
    } catch (RuntimeException error) {
      close();
      throw error;
    }
  }

  @Override
  public String ping() {
    return connection.sync().ping();
  }

  @Override
  public String clientInfo() {
    return connection.sync().clientInfo();
  }

  @Override
  public void flushAll() {
    connection.sync().flushall();
  }

  @Override
  public void set(String key, String value) {
    connection.sync().set(key, value);
  }

  @Override
  public void set(String key, String value, long seconds) {
    connection.sync().set(key, value, SetArgs.Builder.ex(seconds));
  }

  @Override
  public void setBytes(String key, byte[] value) {
    try (var bytes = lettuce.connect(ByteArrayCodec.INSTANCE)) {
      bytes.sync().set(key.getBytes(UTF_8), value);
    }
  }

  @Override
  public String get(String key) {
    return connection.sync().get(key);
  }

  @Override
  public byte[] getBytes(String key) {
    try (var bytes = lettuce.connect(ByteArrayCodec.INSTANCE)) {
      return bytes.sync().get(key.getBytes(UTF_8));
    }
  }

  @Override
  public void mset(Map<String, String> values) {
    connection.sync().mset(values);
  }

  @Override
  public List<String> mget(String... keys) {
    var values = connection.sync().mget(keys).stream();
    return values.map(value -> value.getValueOrElse(null)).collect(Collectors.toList());
  }

  @Override
  public long incrBy(String key, long by) {
    return connection.sync().incrby(key, by);
  }

  @Override
  public long del(String... keys) {
    return connection.sync().del(keys);
  }

  @Override
  public long ttl(String key) {
    return connection.sync().ttl(key);
  }

  @Override
  public boolean expire(String key, long seconds) {
    return connection.sync().expire(key, seconds);
  }

  @Override
  public boolean persist(String key) {
    return connection.sync().persist(key);
  }

  @Override
  public Collection<String> scan(String pattern, int count) {
    var found =
        ScanIterator.scan(connection.sync(), ScanArgs.Builder.matches(pattern).limit(count));
    return found.stream().collect(Collectors.toSet());
  }

  @Override
  public void command(String name, String argument) {
    var arguments = new CommandArgs<>(StringCodec.UTF8).add(argument);
    connection.sync().dispatch(new Keyword(name), new StatusOutput<>(StringCodec.UTF8), arguments);
  }

  private record Keyword(String word) implements ProtocolKeyword {
    @Override
    public byte[] getBytes() {
      return word.getBytes(UTF_8);
    }

    @Override
    public String toString() {
      return word;
    }
  }

  @Override
  public Pipelined pipeline(List<String> keys, String value) {
    connection.setAutoFlushCommands(false);
    var commands = connection.async();
    keys.forEach(key -> commands.set(key, value));
    var refused = commands.incr(keys.get(0));
    var read = keys.stream().map(commands::get).toList();
    connection.flushCommands();
    connection.setAutoFlushCommands(true);
    LettuceFutures.awaitAll(PATIENCE, read.toArray(RedisFuture[]::new));
    return new Pipelined(
        read.stream().map(future -> future.toCompletableFuture().join()).toList(),
        Failure.of(() -> refused.toCompletableFuture().join()));
  }

  @Override
  public List<Object> transaction(String key, long number) {
    var commands = connection.sync();
    commands.multi();
    commands.set(key, String.valueOf(number));
    commands.incr(key);
    commands.get(key);
    return commands.exec().stream().toList();
  }

  @Override
  public long deleteIfEqual(String key, String value) {
    var commands = connection.sync();
    var digest = commands.scriptLoad(Scripts.DELETE_IF_EQUAL);
    return commands.<Long>evalsha(digest, ScriptOutputType.INTEGER, new String[] {key}, value);
  }

  @Override
  public boolean watch(String key, String value, Runnable meddle) {
    try (var own = lettuce.connect()) {
      own.sync().watch(key);
      meddle.run();
      own.sync().multi();
      own.sync().set(key, value);
      return !own.sync().exec().wasDiscarded();
    }
  }

  @Override
  public void close() {
    // Closes the connections too. Without the pause of two seconds that it makes for others.
    lettuce.shutdown(Duration.ZERO, PATIENCE);
  }
}
