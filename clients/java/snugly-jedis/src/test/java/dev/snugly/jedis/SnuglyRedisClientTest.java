package dev.snugly.jedis;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Codec;
import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.CompressionBackend;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Encoding;
import dev.snugly.core.Envelope;
import dev.snugly.core.OnUndecodable;
import dev.snugly.core.UndecodableException;
import dev.snugly.core.ValueType;
import dev.snugly.testing.Connection;
import dev.snugly.testing.GzipFile;
import dev.snugly.testing.Server;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Protocol.Command;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.args.ListDirection;
import redis.clients.jedis.args.ListPosition;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.GetExParams;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.SortingParams;
import redis.clients.jedis.params.XAddParams;
import redis.clients.jedis.params.XReadParams;
import redis.clients.jedis.resps.StreamEntry;
import redis.clients.jedis.resps.Tuple;

/** A client of one server: what it sends, and what it gives back. */
class SnuglyRedisClientTest {
  private static final String PAGE = "<p>h\u00e9llo</p>".repeat(100);
  private static final String OTHER = "<li>other</li>".repeat(100);
  private static final byte[] BROKEN = {0, 1, 2, 0, 1, 7, 7, 7};
  private static final CompressionConfiguration ALL_TYPES =
      CompressionConfiguration.builder().valueTypes(EnumSet.allOf(ValueType.class)).build();

  private static Server server;

  private final List<SnuglyRedisClient> clients = new ArrayList<>();
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
    clients.forEach(SnuglyRedisClient::close);
    plain.close();
  }

  @ParameterizedTest
  @EnumSource(RedisProtocol.class)
  @SuppressWarnings("deprecation") // SETEX and SETNX are used as ever
  void stringsAreStoredCompressedAndReadAsTheyWere(RedisProtocol protocol) {
    SnuglyRedisClient cache = client(CompressionConfiguration.defaults(), protocol);
    assertEquals("OK", cache.set("page:1", PAGE, SetParams.setParams().ex(50)));
    assertTrue(isEnvelope(plain.bytes("GET", "page:1")));
    assertEquals(PAGE, cache.get("page:1"));
    assertArrayEquals(PAGE.getBytes(UTF_8), cache.get("page:1".getBytes(UTF_8)));
    assertEquals(PAGE, cache.setGet("page:1", OTHER));
    assertEquals(OTHER, cache.getEx("page:1", GetExParams.getExParams().ex(100)));
    assertEquals("OK", cache.setex("page:2", 100, PAGE));
    assertEquals(1, cache.setnx("page:3", PAGE));
    assertEquals("OK", cache.mset("page:4", PAGE, "page:5", OTHER, "n", "7"));
    assertEquals(
        Arrays.asList(PAGE, null, OTHER, "7"), cache.mget("page:4", "none", "page:5", "n"));
    assertEquals(8, cache.incr("n"));
    assertEquals(PAGE, cache.getDel("page:4"));
    assertNull(cache.get("page:4"));
    for (String key : List.of("page:1", "page:2", "page:3", "page:5")) {
      assertTrue(isEnvelope(plain.bytes("GET", key)), key);
    }
    assertArrayEquals("8".getBytes(UTF_8), plain.bytes("GET", "n"));
    assertEquals(6, cache.statistics().of(Counter.ENCODED_VALUES, Encoding.ZSTD));
  }

  @ParameterizedTest
  @EnumSource(RedisProtocol.class)
  void hashesListsAndStreamsAreByOptIn(RedisProtocol protocol) {
    SnuglyRedisClient cache = client(ALL_TYPES, protocol);
    cache.hset("h", Map.of("f", PAGE));
    cache.hset("h", "g", OTHER);
    assertTrue(isEnvelope(plain.bytes("HGET", "h", "f")));
    assertEquals(PAGE, cache.hget("h", "f"));
    assertEquals(Map.of("f", PAGE, "g", OTHER), cache.hgetAll("h"));
    assertEquals(Arrays.asList(OTHER, null), cache.hmget("h", "g", "none"));
    assertEquals(2, cache.hvals("h").size());
    assertTrue(cache.hvals("h").contains(PAGE));
    Map<String, String> scanned = new HashMap<>();
    for (Map.Entry<String, String> each : cache.hscan("h", "0", new ScanParams()).getResult()) {
      scanned.put(each.getKey(), each.getValue());
    }
    assertEquals(Map.of("f", PAGE, "g", OTHER), scanned);
    assertEquals(2, cache.hrandfieldWithValues("h", 2).size());
    assertTrue(List.of(PAGE, OTHER).contains(cache.hrandfieldWithValues("h", 1).get(0).getValue()));

    cache.rpush("l", PAGE, OTHER, "x");
    assertTrue(isEnvelope(plain.bytes("LINDEX", "l", 0)));
    assertEquals(List.of(PAGE, OTHER, "x"), cache.lrange("l", 0, -1));
    cache.linsert("l", ListPosition.BEFORE, "x", PAGE);
    assertEquals(PAGE, cache.lindex("l", 2));
    assertEquals(PAGE, cache.lpop("l"));
    assertEquals(List.of("x", PAGE), cache.rpop("l", 2));
    assertEquals(OTHER, cache.blpop(1, "l").get(1));
    cache.rpush("l", PAGE);
    assertEquals(PAGE, cache.lmove("l", "l2", ListDirection.LEFT, ListDirection.LEFT));
    assertEquals(List.of(PAGE), cache.lmpop(ListDirection.LEFT, 1, "l", "l2").getValue());

    StreamEntryID first = cache.xadd("s", XAddParams.xAddParams(), Map.of("f", PAGE));
    assertEquals(Map.of("f", PAGE), cache.xrange("s", "-", "+").get(0).getFields());
    List<Map.Entry<String, List<StreamEntry>>> streams =
        cache.xread(XReadParams.xReadParams(), Map.of("s", new StreamEntryID(0, 0)));
    assertEquals("s", streams.get(0).getKey());
    assertEquals(first, streams.get(0).getValue().get(0).getID());
    assertEquals(PAGE, streams.get(0).getValue().get(0).getFields().get("f"));
  }

  @Test
  void onlyStringsAreCompressedByDefault() {
    SnuglyRedisClient cache = client(CompressionConfiguration.defaults());
    cache.hset("h", "f", PAGE);
    cache.rpush("l", PAGE);
    cache.sadd("set", PAGE);
    assertArrayEquals(PAGE.getBytes(UTF_8), plain.bytes("HGET", "h", "f"));
    assertArrayEquals(PAGE.getBytes(UTF_8), plain.bytes("LINDEX", "l", 0));
    assertTrue(cache.sismember("set", PAGE));
  }

  @ParameterizedTest
  @EnumSource(RedisProtocol.class)
  void pipelinesCompressAndRestoreWhenAsked(RedisProtocol protocol) {
    SnuglyRedisClient cache = client(ALL_TYPES, protocol);
    try (CompressingPipeline pipeline = cache.pipelined()) {
      pipeline.set("a", PAGE);
      Response<String> a = pipeline.get("a");
      Response<List<String>> many = pipeline.mget("a", "none");
      pipeline.hset("h", "f", OTHER);
      Response<Map<String, String>> hash = pipeline.hgetAll("h");
      Response<Long> number = pipeline.incr("n");
      pipeline.sync();
      assertEquals(PAGE, a.get());
      assertEquals(Arrays.asList(PAGE, null), many.get());
      assertEquals(Map.of("f", OTHER), hash.get());
      assertEquals(1, number.get());
      pipeline.get("a");
      pipeline.get("h");
      pipeline.set("b", PAGE);
      List<Object> results = pipeline.syncAndReturnAll();
      assertEquals(PAGE, results.get(0));
      assertInstanceOf(JedisDataException.class, results.get(1));
      assertEquals("OK", results.get(2));
      assertEquals(List.of(), pipeline.syncAndReturnAll());
    }
    assertTrue(isEnvelope(plain.bytes("GET", "b")));
  }

  @ParameterizedTest
  @EnumSource(RedisProtocol.class)
  void transactionsCompressAndAreRestoredByExec(RedisProtocol protocol) {
    SnuglyRedisClient cache = client(CompressionConfiguration.defaults(), protocol);
    plain.command("SET", "broken", BROKEN);
    try (AbstractTransaction transaction = cache.multi()) {
      transaction.set("a", PAGE);
      Response<String> a = transaction.get("a");
      transaction.get("broken");
      transaction.incr("n");
      List<Object> results = transaction.exec();
      assertEquals("OK", results.get(0));
      assertEquals(PAGE, results.get(1));
      assertInstanceOf(UndecodableReplyException.class, results.get(2));
      assertEquals(1L, results.get(3));
      assertEquals(PAGE, a.get());
    }
    assertTrue(isEnvelope(plain.bytes("GET", "a")));
    try (AbstractTransaction transaction = cache.transaction(false)) {
      transaction.watch("a");
      plain.command("SET", "a", "1");
      transaction.multi();
      transaction.set("a", OTHER);
      assertNull(transaction.exec());
    }
    try (AbstractTransaction transaction = cache.transaction(true)) {
      transaction.set("a", OTHER);
      assertEquals("OK", transaction.discard());
    }
    assertEquals("1", cache.get("a"));
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
    CompressionConfiguration configuration =
        CompressionConfiguration.builder().readGzip(true).build();
    SnuglyRedisClient cache = client(configuration, protocol);
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
  void aGzipFileOfMoreThanIsAcceptedIsAnErrorInItsPlace() {
    SnuglyRedisClient cache =
        client(CompressionConfiguration.builder().readGzip(true).maxDecompressedSize(1000).build());
    plain.command("SADD", "set", GzipFile.of("x".repeat(1 << 20)));
    UndecodableReplyException error =
        assertThrows(UndecodableReplyException.class, () -> cache.smembers("set"));
    assertEquals(UndecodableException.Kind.TOO_LARGE, error.undecodable().kind());
    cache.set("short", "text");
    assertEquals("text", cache.get("short"));
  }

  @Test
  void whatWouldWorkOnCompressedBytesIsRefusedAndNotSent() {
    SnuglyRedisClient cache = client(CompressionConfiguration.defaults());
    cache.set("a", PAGE);
    CommandRefusedException error =
        assertThrows(CommandRefusedException.class, () -> cache.append("a", "more"));
    assertEquals("APPEND", error.command());
    assertThrows(CommandRefusedException.class, () -> cache.strlen("a"));
    assertThrows(
        CommandRefusedException.class,
        () -> cache.executeCommand(new CommandArguments(Command.GETRANGE).key("a")));
    try (CompressingPipeline pipeline = cache.pipelined()) {
      Response<String> before = pipeline.get("a");
      assertThrows(CommandRefusedException.class, () -> pipeline.setrange("a", 0, "x"));
      pipeline.sync();
      assertEquals(PAGE, before.get());
    }
    assertEquals(PAGE, cache.get("a"));
  }

  @Test
  void whatCannotBeRestoredIsAnErrorOfTheLibraryThatNamesTheKey() {
    SnuglyRedisClient cache = client(CompressionConfiguration.defaults());
    plain.command("SET", "broken", BROKEN);
    UndecodableReplyException error =
        assertThrows(UndecodableReplyException.class, () -> cache.get("broken"));
    assertEquals(UndecodableException.Kind.CORRUPT, error.undecodable().kind());
    assertArrayEquals("broken".getBytes(UTF_8), error.undecodable().key().orElseThrow());
    assertArrayEquals(BROKEN, error.undecodable().stored());
    cache.set("a", PAGE);
    assertEquals(PAGE, cache.get("a"), "the connection goes on");
    SnuglyRedisClient raw =
        client(CompressionConfiguration.builder().onUndecodable(OnUndecodable.RAW).build());
    assertArrayEquals(BROKEN, raw.get("broken".getBytes(UTF_8)));
  }

  @Test
  void readersThatComeFirstCompressNothingAndReadEverything() {
    client(CompressionConfiguration.defaults()).set("a", PAGE);
    SnuglyRedisClient reader =
        client(CompressionConfiguration.builder().backend(CompressionBackend.NONE).build());
    assertEquals(PAGE, reader.get("a"));
    reader.set("b", PAGE);
    assertArrayEquals(PAGE.getBytes(UTF_8), plain.bytes("GET", "b"));
    assertThrows(CommandRefusedException.class, () -> reader.append("a", "more"));
  }

  @Test
  void aClientThatIsMadeByItsUrlHasItsPoolAsJedisHasIt() {
    try (SnuglyRedisClient cache =
        SnuglyRedisClient.create(
            "redis://127.0.0.1:" + server.port() + "/0", CompressionConfiguration.defaults())) {
      cache.set("page:1", PAGE);
      assertTrue(isEnvelope(plain.bytes("GET", "page:1")));
      assertEquals(1, cache.getPool().getNumIdle());
    }
    IllegalArgumentException error =
        assertThrows(
            IllegalArgumentException.class,
            () -> SnuglyRedisClient.create("localhost", CompressionConfiguration.defaults()));
    assertTrue(error.getMessage().contains("redis://localhost:6379"), error.getMessage());
  }

  @Test
  void aClientThatIsNotEnabledIsAsJedisHasIt() {
    client(CompressionConfiguration.defaults()).set("a", PAGE);
    SnuglyRedisClient off = client(CompressionConfiguration.builder().enabled(false).build());
    assertTrue(isEnvelope(off.get("a".getBytes(UTF_8))));
    off.set("b", PAGE);
    assertEquals(PAGE.getBytes(UTF_8).length + 4, off.append("b", "more"));
  }

  @Test
  void manyThreadsShareAClient() throws Exception {
    SnuglyRedisClient cache = client(CompressionConfiguration.defaults());
    ExecutorService executor = Executors.newFixedThreadPool(16);
    try {
      List<Callable<Void>> tasks = new ArrayList<>();
      for (int task = 0; task < 16; task++) {
        String key = "page:" + task;
        String value = (PAGE + key).repeat(3);
        tasks.add(
            () -> {
              for (int round = 0; round < 50; round++) {
                cache.set(key, value);
                assertEquals(value, cache.get(key));
              }
              return null;
            });
      }
      for (Future<Void> done : executor.invokeAll(tasks)) {
        done.get();
      }
    } finally {
      executor.shutdownNow();
    }
  }

  @Test
  void itWorksWithSnuglysServer() {
    try (Server snugly = Server.snugly();
        SnuglyRedisClient cache =
            SnuglyRedisClient.builder(ALL_TYPES).hostAndPort("127.0.0.1", snugly.port()).build()) {
      cache.set("a", PAGE);
      assertEquals(PAGE, cache.get("a"));
      cache.rpush("l", PAGE, OTHER);
      assertEquals(List.of(PAGE, OTHER), cache.lrange("l", 0, -1));
    }
  }

  private SnuglyRedisClient client(CompressionConfiguration configuration) {
    return client(configuration, RedisProtocol.RESP3);
  }

  private SnuglyRedisClient client(CompressionConfiguration configuration, RedisProtocol protocol) {
    SnuglyRedisClient client =
        SnuglyRedisClient.builder(configuration)
            .hostAndPort("127.0.0.1", server.port())
            .clientConfig(DefaultJedisClientConfig.builder().protocol(protocol).build())
            .build();
    clients.add(client);
    return client;
  }

  private static boolean isEnvelope(byte[] stored) {
    return Envelope.inspect(stored).isPresent();
  }
}
