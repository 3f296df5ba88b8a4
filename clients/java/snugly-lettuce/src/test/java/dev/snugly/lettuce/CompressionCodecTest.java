package dev.snugly.lettuce;

import static dev.snugly.lettuce.Values.OTHER;
import static dev.snugly.lettuce.Values.PAGE;
import static dev.snugly.lettuce.Values.bytes;
import static dev.snugly.lettuce.Values.encodingAt;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
import io.lettuce.core.Range;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScoredValue;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SortArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.CompressionCodec;
import io.lettuce.core.codec.CompressionCodec.CompressionType;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.protocol.ProtocolVersion;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Values that Lettuce's own codec has written. */
class CompressionCodecTest {
  private static Server server;

  private final List<RedisClient> clients = new ArrayList<>();
  private Connection plain;
  private RedisCommands<String, String> old;

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
    RedisClient client = RedisClient.create(RedisURI.create("127.0.0.1", server.port()));
    clients.add(client);
    old =
        client
            .connect(CompressionCodec.valueCompressor(StringCodec.UTF8, CompressionType.GZIP))
            .sync();
  }

  @AfterEach
  void close() {
    clients.forEach(RedisClient::shutdown);
    plain.close();
  }

  private SnuglyRedisClient client(CompressionConfiguration.Builder configuration) {
    SnuglyRedisClient client =
        SnuglyRedisClient.create(
            RedisURI.create("127.0.0.1", server.port()),
            LettuceCompression.of(configuration.readGzip(true).build()));
    clients.add(client);
    return client;
  }

  private RedisCommands<byte[], byte[]> reader(CompressionConfiguration.Builder configuration) {
    return client(configuration).connect(ByteArrayCodec.INSTANCE).sync();
  }

  private static CompressionConfiguration.Builder settings() {
    return CompressionConfiguration.builder();
  }

  @Test
  void stringsAreReadAndWrittenAnew() {
    old.set("old", PAGE);
    byte[] file = plain.bytes("GET", "old");
    byte[] noFile = file.clone();
    noFile[20] ^= 0x55;
    plain.command("SET", "no file", noFile);
    RedisCommands<byte[], byte[]> moving = reader(settings());
    assertArrayEquals(bytes(PAGE), moving.get(bytes("old")));
    assertArrayEquals(noFile, moving.get(bytes("no file")));
    moving.set(bytes("new"), bytes(PAGE));
    assertEquals(Encoding.ZSTD, encodingAt(plain, "new"));
    byte[] filledUp = Arrays.copyOf(file, 2000);
    moving.set(bytes("of the application's own"), filledUp);
    assertArrayEquals(filledUp, moving.get(bytes("of the application's own")));
    SnuglyRedisClient unaware =
        SnuglyRedisClient.create(
            "redis://127.0.0.1:" + server.port(), CompressionConfiguration.defaults());
    clients.add(unaware);
    assertArrayEquals(file, unaware.connect(ByteArrayCodec.INSTANCE).sync().get(bytes("old")));
  }

  @ParameterizedTest
  @EnumSource(names = {"RESP2", "RESP3"})
  void valuesOfEveryKindAreReadWhateverIsCompressed(ProtocolVersion protocol) {
    for (Set<ValueType> types : List.of(Set.<ValueType>of(), EnumSet.allOf(ValueType.class))) {
      SnuglyRedisClient client =
          client(types.isEmpty() ? settings() : settings().valueTypes(types));
      client.setOptions(ClientOptions.builder().protocolVersion(protocol).build());
      readEveryKind(client.connect().sync());
    }
  }

  private void readEveryKind(RedisCommands<String, String> moving) {
    old.flushall();
    old.hset("hash", Map.of("one", PAGE, "two", OTHER));
    assertEquals(PAGE, moving.hget("hash", "one"));
    assertEquals(Map.of("one", PAGE, "two", OTHER), moving.hgetall("hash"));
    assertEquals(Map.of("one", PAGE, "two", OTHER), moving.hscan("hash").getMap());
    old.rpush("list", PAGE, OTHER);
    assertEquals(List.of(PAGE, OTHER), moving.lrange("list", 0, -1));
    assertEquals(KeyValue.just("list", PAGE), moving.blpop(1, "list"));
    old.sadd("set", PAGE, OTHER);
    assertEquals(Set.of(PAGE, OTHER), moving.smembers("set"));
    old.zadd("sorted", 1.5, PAGE);
    assertEquals(List.of(PAGE), moving.zrange("sorted", 0, -1));
    assertEquals(List.of(ScoredValue.just(1.5, PAGE)), moving.zrangeWithScores("sorted", 0, -1));
    old.xadd("stream", Map.of("body", PAGE));
    assertEquals(Map.of("body", PAGE), moving.xrange("stream", Range.unbounded()).get(0).getBody());
    old.set("string", PAGE);
    assertEquals(
        PAGE,
        moving.<String>eval("return redis.call('GET', KEYS[1])", ScriptOutputType.VALUE, "string"));
    moving.multi();
    moving.get("string");
    moving.hget("hash", "two");
    moving.smembers("set");
    moving.incr("number");
    TransactionResult result = moving.exec();
    assertEquals(PAGE, result.get(0));
    assertEquals(OTHER, result.get(1));
    assertEquals(Set.of(PAGE, OTHER), Set.copyOf(result.<Set<String>>get(2)));
    assertEquals(1L, result.<Long>get(3));
  }

  @Test
  void theyAreReadFromCommandsThatAreRefusedForOtherTypesOfValues() {
    old.rpush("list", PAGE, OTHER);
    RedisCommands<String, String> moving = client(settings()).connect().sync();
    assertEquals(List.of(PAGE, OTHER), moving.sort("list", SortArgs.Builder.by("nothing")));
  }

  @Test
  void aCodecReadsThemInItsPlace() {
    old.set("string", PAGE);
    old.sadd("set", OTHER);
    SnuglyCodec<String, String> codec =
        new SnuglyCodec<>(StringCodec.UTF8, settings().readGzip(true).build());
    RedisCommands<String, String> moving = clients.get(0).connect(codec).sync();
    assertEquals(PAGE, moving.get("string"));
    assertEquals(Set.of(OTHER), moving.smembers("set"));
    moving.set("new", PAGE);
    assertEquals(Encoding.ZSTD, encodingAt(plain, "new"));
    assertEquals(PAGE, moving.get("new"));
    moving.set("empty", "");
    assertEquals("", moving.get("empty"));
    old.set("bomb", "x".repeat(1 << 20));
    SnuglyCodec<String, String> limited =
        new SnuglyCodec<>(
            StringCodec.UTF8, settings().maxDecompressedSize(1000).readGzip(true).build());
    RedisCommands<String, String> reader = clients.get(0).connect(limited).sync();
    assertThrows(UndecodableException.class, () -> reader.get("bomb"));
    assertEquals(1, limited.statistics().total(Counter.DECODE_FAILURES));
    assertEquals("", reader.get("empty"));
  }

  @Test
  void aFileWithMoreThanIsAcceptedIsAnErrorAndCounted() {
    old.set("bomb", "x".repeat(1 << 20));
    old.hset("hash", "bomb", "x".repeat(1 << 20));
    byte[] file = plain.bytes("GET", "bomb");
    SnuglyRedisClient client = client(settings().maxDecompressedSize(1000));
    RedisCommands<String, String> limited = client.connect().sync();
    UndecodableException error =
        assertThrows(UndecodableException.class, () -> limited.get("bomb"));
    assertTrue(error.getMessage().contains("maxDecompressedSize"), error.toString());
    assertArrayEquals(bytes("bomb"), error.key().orElseThrow());
    assertArrayEquals(file, error.stored());
    assertThrows(UndecodableException.class, () -> limited.hget("hash", "bomb"));
    assertEquals(2, client.statistics().total(Counter.DECODE_FAILURES));
    limited.multi();
    limited.hget("hash", "bomb");
    assertInstanceOf(RedisCommandExecutionException.class, limited.exec().get(0));
  }

  @Test
  void aFileWithMoreThanIsAcceptedIsReturnedAsItIsWhereThatIsChosen() {
    old.set("bomb", "x".repeat(1 << 20));
    SnuglyRedisClient client =
        client(settings().maxDecompressedSize(1000).onUndecodable(OnUndecodable.RAW));
    assertArrayEquals(
        plain.bytes("GET", "bomb"),
        client.connect(ByteArrayCodec.INSTANCE).sync().get(bytes("bomb")));
    assertEquals(1, client.statistics().total(Counter.DECODE_FAILURES));
  }
}
