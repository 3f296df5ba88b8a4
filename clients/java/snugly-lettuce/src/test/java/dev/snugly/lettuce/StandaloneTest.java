package dev.snugly.lettuce;

import static dev.snugly.lettuce.Values.DAMAGED;
import static dev.snugly.lettuce.Values.OTHER;
import static dev.snugly.lettuce.Values.PAGE;
import static dev.snugly.lettuce.Values.bytes;
import static dev.snugly.lettuce.Values.encoding;
import static dev.snugly.lettuce.Values.encodingAt;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.CompressionBackend;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Encoding;
import dev.snugly.core.OnUndecodable;
import dev.snugly.core.UndecodableException;
import dev.snugly.core.ValueType;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.StreamMessage;
import io.lettuce.core.XReadArgs.StreamOffset;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ValueOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Commands on one connection to a real valkey-server. */
class StandaloneTest {
  private static Server server;

  private final List<SnuglyRedisClient> clients = new ArrayList<>();
  private Connection plain;
  private RedisCommands<String, String> cache;

  @BeforeAll
  static void start() {
    server = Server.valkey();
  }

  @AfterAll
  static void stop() {
    if (server != null) {
      server.close();
    }
  }

  @BeforeEach
  void connect() {
    plain = server.connect();
    plain.command("FLUSHALL");
    cache = client(CompressionConfiguration.defaults()).connect().sync();
  }

  @AfterEach
  void close() {
    clients.forEach(SnuglyRedisClient::shutdown);
    plain.close();
  }

  private SnuglyRedisClient client(CompressionConfiguration configuration) {
    return client(LettuceCompression.of(configuration));
  }

  private SnuglyRedisClient client(LettuceCompression compression) {
    SnuglyRedisClient client =
        SnuglyRedisClient.create(RedisURI.create("127.0.0.1", server.port()), compression);
    clients.add(client);
    return client;
  }

  @ParameterizedTest
  @EnumSource(names = {"ZSTD", "LZ4"})
  void valuesAreStoredCompressedAndComeBackAsTheyWere(CompressionBackend backend) {
    SnuglyRedisClient client = client(CompressionConfiguration.builder().backend(backend).build());
    RedisCommands<String, String> commands = client.connect().sync();
    assertEquals("OK", commands.set("page", PAGE, SetArgs.Builder.ex(60)));
    assertEquals(Encoding.valueOf(backend.name()), encodingAt(plain, "page"));
    assertEquals(PAGE, commands.get("page"));
    assertEquals(PAGE, commands.setGet("page", OTHER));
    assertEquals(OTHER, commands.setGet("page", PAGE));
    assertEquals(PAGE, commands.getdel("page"));
    assertNull(commands.get("page"));
    assertEquals(3, client.statistics().total(Counter.ENCODED_VALUES));
  }

  @Test
  void severalValuesAreEncodedAndRestoredInOneCommand() {
    cache.mset(Map.of("a", PAGE, "b", "short", "c", OTHER));
    assertEquals(Encoding.ZSTD, encodingAt(plain, "a"));
    assertEquals("short", plain.text("GET", "b"));
    assertEquals(
        List.of(
            KeyValue.just("a", PAGE),
            KeyValue.just("b", "short"),
            KeyValue.empty("none"),
            KeyValue.just("c", OTHER)),
        cache.mget("a", "b", "none", "c"));
  }

  @Test
  void whatIsNoValueOfAStringIsLeftAlone() throws Exception {
    cache.sadd("set", PAGE);
    assertTrue(cache.sismember("set", PAGE));
    assertArrayEquals(bytes(PAGE), (byte[]) ((List<?>) plain.command("SMEMBERS", "set")).get(0));
    assertEquals(
        PAGE, cache.<String>eval("return ARGV[1]", ScriptOutputType.VALUE, new String[0], PAGE));
    cache.hset("hash", "field", PAGE);
    assertEquals(PAGE, plain.text("HGET", "hash", "field"));
    assertEquals(2, cache.incrby("number", 2));
    assertEquals("2", cache.get("number"));
    BlockingQueue<String> messages = new LinkedBlockingQueue<>();
    try (StatefulRedisPubSubConnection<String, String> subscriber =
        clients.get(0).connectPubSub()) {
      subscriber.addListener(
          new RedisPubSubAdapter<>() {
            @Override
            public void message(String channel, String message) {
              messages.add(message);
            }
          });
      subscriber.sync().subscribe("channel");
      cache.publish("channel", PAGE);
      assertEquals(PAGE, messages.poll(60, TimeUnit.SECONDS));
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"RESP2", "RESP3"})
  @SuppressWarnings("unchecked") // of the generic varargs of XREAD
  void valuesOfHashesListsAndStreamsAreEncodedWhereThatIsChosen(ProtocolVersion protocol) {
    SnuglyRedisClient client =
        client(
            CompressionConfiguration.builder()
                .valueTypes(Set.of(ValueType.HASHES, ValueType.LISTS, ValueType.STREAMS))
                .build());
    client.setOptions(ClientOptions.builder().protocolVersion(protocol).build());
    RedisCommands<String, String> commands = client.connect().sync();
    commands.hset("hash", Map.of("one", PAGE, "two", OTHER));
    assertEquals(Encoding.ZSTD, encoding(plain.bytes("HGET", "hash", "one")));
    assertEquals(Map.of("one", PAGE, "two", OTHER), commands.hgetall("hash"));
    assertEquals(
        List.of(KeyValue.just("one", PAGE), KeyValue.empty("none")),
        commands.hmget("hash", "one", "none"));
    assertEquals(Map.of("one", PAGE, "two", OTHER), commands.hscan("hash").getMap());
    commands.rpush("list", PAGE, "short", OTHER);
    assertEquals(Encoding.ZSTD, encoding(plain.bytes("LINDEX", "list", 0)));
    assertEquals(List.of(PAGE, "short", OTHER), commands.lrange("list", 0, -1));
    assertEquals(KeyValue.just("list", PAGE), commands.blpop(1, "list"));
    String id = commands.xadd("stream", Map.of("body", PAGE));
    List<StreamMessage<String, String>> read = commands.xread(StreamOffset.from("stream", "0"));
    assertEquals(List.of(new StreamMessage<>("stream", id, Map.of("body", PAGE))), read);
    commands.set("string", PAGE);
    assertEquals(PAGE, plain.text("GET", "string"));
  }

  @Test
  void commandsOfTheApplicationsOwnAreSeen() {
    cache.dispatch(
        CommandType.SET,
        new io.lettuce.core.output.StatusOutput<>(StringCodec.UTF8),
        new CommandArgs<>(StringCodec.UTF8).addKey("page").add(PAGE));
    assertEquals(Encoding.ZSTD, encodingAt(plain, "page"));
    assertEquals(
        PAGE,
        cache.dispatch(
            CommandType.GET,
            new ValueOutput<>(StringCodec.UTF8),
            new CommandArgs<>(StringCodec.UTF8).addKey("page")));
  }

  @Test
  void whatTheServerWouldRunOnCompressedBytesIsRefusedBeforeItIsSent() {
    cache.set("page", PAGE);
    long before = commandsRun();
    StatefulRedisConnection<String, String> connection = clients.get(0).connect();
    CommandRefusedException refused =
        assertThrows(CommandRefusedException.class, () -> cache.append("page", "more"));
    assertEquals("APPEND", refused.command());
    assertThrows(CommandRefusedException.class, () -> connection.async().strlen("page"));
    assertThrows(
        CommandRefusedException.class, () -> connection.reactive().getrange("page", 0, 1).block());
    assertEquals(before, commandsRun());
    assertEquals(PAGE, cache.get("page"));
  }

  /** Number of times that APPEND, STRLEN and GETRANGE have run. */
  private long commandsRun() {
    return plain
        .text("INFO", "commandstats")
        .lines()
        .filter(line -> line.matches("cmdstat_(append|strlen|getrange):.*"))
        .count();
  }

  @Test
  void pipelinedCommandsGetTheirOwnRepliesWhateverFailsBetweenThem() throws Exception {
    plain.command("SET", "damaged", DAMAGED);
    StatefulRedisConnection<String, String> connection = clients.get(0).connect();
    RedisAsyncCommands<String, String> async = connection.async();
    connection.setAutoFlushCommands(false);
    int rounds = 200;
    List<RedisFuture<?>> all = new ArrayList<>();
    for (int round = 0; round < rounds; round++) {
      String value = round + PAGE.repeat(1 + round % 40);
      all.add(async.set("key" + round, value));
      all.add(async.get("key" + round));
      all.add(async.get("damaged"));
      all.add(async.ping());
      all.add(async.incr("key" + round));
      all.add(async.mget("key" + round, "none"));
    }
    connection.flushCommands();
    for (int round = 0; round < rounds; round++) {
      String value = round + PAGE.repeat(1 + round % 40);
      assertEquals("OK", get(all.get(6 * round)));
      assertEquals(value, get(all.get(6 * round + 1)));
      RedisFuture<?> damaged = all.get(6 * round + 2);
      ExecutionException failed =
          assertThrows(ExecutionException.class, () -> damaged.get(60, TimeUnit.SECONDS));
      assertInstanceOf(UndecodableException.class, failed.getCause());
      assertEquals("PONG", get(all.get(6 * round + 3)));
      RedisFuture<?> number = all.get(6 * round + 4);
      assertThrows(ExecutionException.class, () -> number.get(60, TimeUnit.SECONDS));
      assertEquals(
          List.of(KeyValue.just("key" + round, value), KeyValue.empty("none")),
          get(all.get(6 * round + 5)));
    }
  }

  private static Object get(RedisFuture<?> future) throws Exception {
    return future.get(60, TimeUnit.SECONDS);
  }

  @Test
  void whatTheApplicationsCodecThrowsReachesTheCallerAndNobodyElse() {
    RedisCodec<String, String> failing =
        RedisCodec.of(
            StringCodec.UTF8,
            new StringCodec() {
              @Override
              public ByteBuffer encodeValue(String value) {
                throw new IllegalStateException("no bytes for this");
              }

              @Override
              public void encodeValue(String value, io.netty.buffer.ByteBuf target) {
                target.writeBytes(bytes("half a val"));
                throw new IllegalStateException("no bytes for this");
              }
            });
    plain.command("SET", "page", "as it was");
    RedisCommands<String, String> commands = clients.get(0).connect(failing).sync();
    for (int round = 0; round < 10; round++) {
      assertThrows(IllegalStateException.class, () -> commands.set("page", PAGE));
      assertEquals("as it was", commands.get("page"));
      assertEquals("PONG", commands.ping());
    }
  }

  @Test
  void aValueThatCannotBeReadSaysWhereItIs() {
    plain.command("SET", "damaged", DAMAGED);
    UndecodableException undecodable =
        assertThrows(UndecodableException.class, () -> cache.get("damaged"));
    assertArrayEquals(bytes("damaged"), undecodable.key().orElseThrow());
    RedisCommands<byte[], byte[]> raw =
        client(CompressionConfiguration.builder().onUndecodable(OnUndecodable.RAW).build())
            .connect(ByteArrayCodec.INSTANCE)
            .sync();
    assertArrayEquals(DAMAGED, raw.get(bytes("damaged")));
  }

  @Test
  void valuesOfExcludedKeysAreSentAsTheyAreAndScriptsCompareThem() {
    RedisCommands<String, String> commands =
        client(CompressionConfiguration.builder().exclude(List.of("lock:*")).build())
            .connect()
            .sync();
    commands.mset(Map.of("lock:1", PAGE, "page:1", PAGE));
    commands.set("lock:2", PAGE);
    assertEquals(PAGE, plain.text("GET", "lock:1"));
    assertEquals(Encoding.ZSTD, encodingAt(plain, "page:1"));
    String release =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end"
            + " return 0";
    for (String key : List.of("lock:1", "lock:2")) {
      Long released = commands.eval(release, ScriptOutputType.INTEGER, new String[] {key}, PAGE);
      assertEquals(1L, released);
    }
    plain.command("SET", "lock:1", plain.bytes("GET", "page:1"));
    assertEquals(PAGE, commands.get("lock:1"));
  }

  @Test
  void aValueThatCannotBeReadCanBeMissed() {
    plain.command("MSET", "damaged", DAMAGED, "good", "one");
    plain.command("HSET", "hash", "damaged", DAMAGED, "good", "one");
    plain.command("RPUSH", "list", "one", DAMAGED);
    RedisCommands<String, String> commands =
        client(
                CompressionConfiguration.builder()
                    .onUndecodable(OnUndecodable.MISS)
                    .valueTypes(EnumSet.allOf(ValueType.class))
                    .build())
            .connect()
            .sync();
    assertNull(commands.get("damaged"));
    assertNull(commands.hget("hash", "damaged"));
    assertEquals(
        List.of(KeyValue.just("good", "one"), KeyValue.empty("damaged")),
        commands.mget("good", "damaged"));
    assertEquals(Arrays.asList("one", null), commands.lrange("list", 0, -1));
    assertEquals("one", commands.hgetall("hash").get("good"));
    assertNull(commands.hgetall("hash").get("damaged"));
  }

  @Test
  void whatOneReplyIsRestoredToIsBounded() {
    String page = "a".repeat(10_000);
    RedisCommands<String, String> commands =
        client(CompressionConfiguration.builder().maxReplyBytes(25_000).build()).connect().sync();
    commands.mset(Map.of("1", page, "2", page, "3", page));
    assertEquals(
        List.of(KeyValue.just("1", page), KeyValue.just("2", page)), commands.mget("1", "2"));
    UndecodableException error =
        assertThrows(UndecodableException.class, () -> commands.mget("1", "2", "3"));
    assertEquals(UndecodableException.Kind.TOO_LARGE, error.kind());
    assertTrue(error.getMessage().contains("maxReplyBytes"), error.getMessage());
    for (int round = 0; round < 5; round++) {
      assertEquals(page, commands.get("1"));
    }
  }

  @Test
  void errorsOfTheServerPassAsTheyAre() {
    cache.sadd("set", "member");
    RedisException error = assertThrows(RedisException.class, () -> cache.get("set"));
    assertTrue(error.getMessage().startsWith("WRONGTYPE"), error.getMessage());
  }

  @Test
  void withoutCompressionThereIsNothingInBetween() {
    plain.command("SET", "damaged", DAMAGED);
    RedisCommands<byte[], byte[]> off =
        client(CompressionConfiguration.builder().enabled(false).build())
            .connect(ByteArrayCodec.INSTANCE)
            .sync();
    off.set(bytes("page"), bytes(PAGE));
    assertEquals(PAGE, plain.text("GET", "page"));
    assertArrayEquals(DAMAGED, off.get(bytes("damaged")));
    assertEquals(6, off.append(bytes("text"), bytes("append")));
  }
}
