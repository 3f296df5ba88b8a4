package dev.snugly.valkey;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Codec;
import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.ConfigurationException;
import dev.snugly.core.Counter;
import dev.snugly.core.Encoding;
import dev.snugly.core.Envelope;
import dev.snugly.core.UndecodableException;
import dev.snugly.core.ValueType;
import dev.snugly.testing.Cluster;
import dev.snugly.testing.Connection;
import dev.snugly.testing.GzipFile;
import dev.snugly.testing.Server;
import io.valkey.AbstractTransaction;
import io.valkey.DefaultJedisClientConfig;
import io.valkey.HostAndPort;
import io.valkey.JedisClientConfig;
import io.valkey.RedisProtocol;
import io.valkey.Response;
import io.valkey.StreamEntryID;
import io.valkey.exceptions.JedisDataException;
import io.valkey.params.SetParams;
import io.valkey.params.SortingParams;
import io.valkey.params.XAddParams;
import io.valkey.params.XReadParams;
import io.valkey.providers.ConnectionProvider;
import io.valkey.providers.PooledConnectionProvider;
import io.valkey.resps.StreamEntry;
import io.valkey.resps.Tuple;
import java.time.Duration;
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

/** Clients of valkey-java: what they send, and what they give back. */
class SnuglyJedisTest {
  private static final String PAGE = "<p>h\u00e9llo</p>".repeat(100);
  private static final String OTHER = "<li>other</li>".repeat(100);
  private static final byte[] BROKEN = {0, 1, 2, 0, 1, 7, 7, 7};
  private static final JedisClientConfig CONFIG = DefaultJedisClientConfig.builder().build();

  private static Server server;

  private final List<SnuglyJedis> clients = new ArrayList<>();
  private Connection plain;

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
  void empty() {
    plain = server.connect();
    plain.command("FLUSHALL");
  }

  @AfterEach
  void close() {
    clients.forEach(SnuglyJedis::close);
    plain.close();
  }

  @ParameterizedTest
  @EnumSource(RedisProtocol.class)
  void valuesAreStoredCompressedAndReadAsTheyWere(RedisProtocol protocol) {
    SnuglyJedis cache = client(protocol, CompressionConfiguration.builder().valueTypes(all()));
    assertEquals("OK", cache.set("a", PAGE, SetParams.setParams().ex(50)));
    assertEquals("OK", cache.mset("b", OTHER, "n", "7"));
    assertTrue(isEnvelope(plain.bytes("GET", "a")) && isEnvelope(plain.bytes("GET", "b")));
    assertEquals(Arrays.asList(PAGE, null, OTHER, "7"), cache.mget("a", "none", "b", "n"));
    assertEquals(8, cache.incr("n"));
    cache.hset("h", Map.of("f", PAGE));
    assertTrue(isEnvelope(plain.bytes("HGET", "h", "f")));
    assertEquals(Map.of("f", PAGE), cache.hgetAll("h"));
    cache.rpush("l", PAGE, OTHER);
    assertEquals(List.of(PAGE, OTHER), cache.lrange("l", 0, -1));
    cache.xadd("s", XAddParams.xAddParams(), Map.of("f", PAGE));
    List<Map.Entry<String, List<StreamEntry>>> streams =
        cache.xread(XReadParams.xReadParams(), Map.of("s", new StreamEntryID(0, 0)));
    assertEquals(PAGE, streams.get(0).getValue().get(0).getFields().get("f"));
    assertEquals(2, cache.statistics().of(Counter.ENCODED_VALUES, Encoding.ZSTD) - 4);
  }

  @ParameterizedTest
  @EnumSource(RedisProtocol.class)
  void pipelinesAndTransactionsCompress(RedisProtocol protocol) {
    SnuglyJedis cache = client(protocol, CompressionConfiguration.builder());
    plain.command("SET", "broken", BROKEN);
    try (CompressingPipeline pipeline = cache.pipelined()) {
      pipeline.set("a", PAGE);
      Response<String> a = pipeline.get("a");
      pipeline.get("broken");
      List<Object> results = pipeline.syncAndReturnAll();
      assertEquals(PAGE, a.get());
      assertInstanceOf(UndecodableReplyException.class, results.get(2));
    }
    try (AbstractTransaction transaction = cache.multi()) {
      transaction.set("b", OTHER);
      transaction.get("b");
      transaction.get("broken");
      transaction.incr("n");
      List<Object> results = transaction.exec();
      assertEquals(OTHER, results.get(1));
      assertInstanceOf(UndecodableReplyException.class, results.get(2));
      assertEquals(1L, results.get(3));
    }
    assertTrue(isEnvelope(plain.bytes("GET", "a")) && isEnvelope(plain.bytes("GET", "b")));
  }

  @Test
  void aTransactionWithARefusedCommandIsDiscarded() {
    SnuglyJedis cache = client(RedisProtocol.RESP3, CompressionConfiguration.builder());
    try (AbstractTransaction transaction = cache.multi()) {
      transaction.set("a", PAGE);
      assertThrows(CommandRefusedException.class, () -> transaction.append("a", "more"));
      JedisDataException error = assertThrows(JedisDataException.class, transaction::exec);
      assertTrue(error.getMessage().startsWith("EXECABORT"), error.getMessage());
    }
    assertEquals(0L, plain.command("DBSIZE"));
  }

  @Test
  void whatWouldNotWorkIsRefusedAndWhatCannotBeReadIsAnError() {
    SnuglyJedis cache = client(RedisProtocol.RESP2, CompressionConfiguration.builder());
    assertThrows(CommandRefusedException.class, () -> cache.append("a", "more"));
    plain.command("SET", "broken", BROKEN);
    UndecodableReplyException error =
        assertThrows(UndecodableReplyException.class, () -> cache.get("broken"));
    assertEquals(UndecodableException.Kind.CORRUPT, error.undecodable().kind());
    assertArrayEquals("broken".getBytes(UTF_8), error.undecodable().key().orElseThrow());
  }

  @ParameterizedTest
  @EnumSource(RedisProtocol.class)
  void gzipFilesAreReadWhereThatIsChosen(RedisProtocol protocol) {
    byte[] file = GzipFile.of(PAGE);
    byte[] envelope = new Codec(CompressionConfiguration.defaults()).encode(PAGE.getBytes(UTF_8));
    plain.command("SET", "string", file);
    plain.command("HSET", "hash", "field", file, "other", envelope);
    plain.command("RPUSH", "list", file);
    plain.command("SADD", "set", file);
    plain.command("ZADD", "sorted", "1.5", file);
    plain.command("XADD", "stream", "*", "field", file);
    SnuglyJedis cache = client(protocol, CompressionConfiguration.builder().readGzip(true));
    assertEquals(PAGE, cache.get("string"));
    assertEquals(PAGE, cache.hgetAll("hash").get("field"));
    assertArrayEquals(envelope, cache.hget("hash".getBytes(UTF_8), "other".getBytes(UTF_8)));
    assertEquals(List.of(PAGE), cache.lrange("list", 0, -1));
    assertEquals(List.of(PAGE), cache.sort("list", new SortingParams().alpha()));
    assertEquals(Set.of(PAGE), cache.smembers("set"));
    assertEquals(List.of(new Tuple(PAGE, 1.5)), cache.zrangeWithScores("sorted", 0, -1));
    assertEquals(PAGE, cache.xrange("stream", "-", "+").get(0).getFields().get("field"));
    assertEquals(PAGE, cache.eval("return redis.call('GET', KEYS[1])", 1, "string"));
    assertEquals(2, cache.incrBy("number", 2));
    try (CompressingPipeline pipeline = cache.pipelined()) {
      Response<String> string = pipeline.get("string");
      Response<Set<String>> set = pipeline.smembers("set");
      pipeline.sync();
      assertEquals(PAGE, string.get());
      assertEquals(Set.of(PAGE), set.get());
    }
    try (AbstractTransaction transaction = cache.multi()) {
      transaction.get("string");
      transaction.hget("hash", "field");
      assertEquals(List.of(PAGE, PAGE), transaction.exec());
    }
  }

  @Test
  void aCommandIsTriedAgainWhenItsConnectionIsLost() {
    ConnectionProvider provider =
        new PooledConnectionProvider(new HostAndPort("127.0.0.1", server.port()), CONFIG);
    try (SnuglyJedis cache =
        SnuglyJedis.of(provider, 3, Duration.ofSeconds(20), CompressionConfiguration.defaults())) {
      cache.set("a", PAGE);
      plain.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      assertEquals(PAGE, cache.get("a"));
    }
  }

  @Test
  void aClusterIsFollowed() {
    try (Cluster cluster = Cluster.start(3);
        SnuglyJedis cache =
            SnuglyJedis.cluster(
                Set.of(new HostAndPort("127.0.0.1", cluster.nodes().get(0).port())),
                CONFIG,
                CompressionConfiguration.defaults())) {
      List<Response<String>> responses = new ArrayList<>();
      try (CompressingPipeline pipeline = cache.pipelined()) {
        for (int number = 0; number < 20; number++) {
          cache.set("page:" + number, PAGE + number);
          responses.add(pipeline.get("page:" + number));
        }
        pipeline.sync();
        for (int number = 0; number < 20; number++) {
          assertEquals(PAGE + number, cache.get("page:" + number));
          assertEquals(PAGE + number, responses.get(number).get());
        }
      }
      assertEquals("OK", cache.mset("{a}1", PAGE, "{a}2", OTHER));
      assertEquals(List.of(PAGE, OTHER), cache.mget("{a}1", "{a}2"));
      assertEquals(22, cache.statistics().of(Counter.ENCODED_VALUES, Encoding.ZSTD));
      assertThrows(UnsupportedOperationException.class, cache::multi);
      assertEquals("OK", cache.flushAll());
    }
  }

  @Test
  void aClusterHasOneDatabase() {
    CompressionConfiguration other =
        CompressionConfiguration.builder().dictionaryDatabase(1).build();
    assertThrows(ConfigurationException.class, () -> SnuglyJedis.cluster(Set.of(), CONFIG, other));
  }

  @Test
  void aSentinelSaysWhereTheServerIs() {
    try (Server sentinel = Server.sentinel(server);
        SnuglyJedis cache =
            SnuglyJedis.sentineled(
                "cache",
                CONFIG,
                Set.of(new HostAndPort("127.0.0.1", sentinel.port())),
                CONFIG,
                CompressionConfiguration.defaults())) {
      cache.set("a", PAGE);
      assertTrue(isEnvelope(plain.bytes("GET", "a")));
      assertEquals(PAGE, cache.get("a"));
    }
  }

  private SnuglyJedis client(RedisProtocol protocol, CompressionConfiguration.Builder settings) {
    SnuglyJedis client =
        SnuglyJedis.pooled(
            new HostAndPort("127.0.0.1", server.port()),
            DefaultJedisClientConfig.builder().protocol(protocol).build(),
            settings.build());
    clients.add(client);
    return client;
  }

  private static Set<ValueType> all() {
    return EnumSet.allOf(ValueType.class);
  }

  private static boolean isEnvelope(byte[] stored) {
    return Envelope.inspect(stored).isPresent();
  }
}
