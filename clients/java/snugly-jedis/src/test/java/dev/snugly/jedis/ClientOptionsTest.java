package dev.snugly.jedis;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Dictionary;
import dev.snugly.core.Envelope;
import dev.snugly.core.OnUndecodable;
import dev.snugly.core.UndecodableException;
import dev.snugly.core.ValueType;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Vectors;
import dev.snugly.testing.Warnings;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisDataException;

/** Options of a client of one server: what becomes of values by their keys, and in replies. */
class ClientOptionsTest {
  private static final byte[] BROKEN = {0, 1, 2, 0, 1, 7, 7, 7};
  private static final String TOKEN = "owner-1 ".repeat(20);
  private static final String PAGE = "a".repeat(10_000);

  /** Releases a lock, if it is still that of whoever asks. */
  private static final String RELEASE =
      "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end"
          + " return 0";

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

  private SnuglyRedisClient client(CompressionConfiguration.Builder settings) {
    return client(settings, RedisProtocol.RESP3);
  }

  private SnuglyRedisClient client(
      CompressionConfiguration.Builder settings, RedisProtocol protocol) {
    SnuglyRedisClient client =
        Clients.of(server, settings, DefaultJedisClientConfig.builder().protocol(protocol).build());
    clients.add(client);
    return client;
  }

  private static CompressionConfiguration.Builder excluding() {
    return CompressionConfiguration.builder()
        .exclude(List.of("lock:*", "token:?"))
        .valueTypes(EnumSet.allOf(ValueType.class));
  }

  private static CompressionConfiguration.Builder missing() {
    return CompressionConfiguration.builder()
        .onUndecodable(OnUndecodable.MISS)
        .valueTypes(EnumSet.allOf(ValueType.class));
  }

  private boolean isCompressed(String... command) {
    return Envelope.inspect(plain.bytes((Object[]) command)).isPresent();
  }

  @Test
  void aScriptComparesALockThatIsExcluded() {
    SnuglyRedisClient cache = client(excluding());
    cache.set("lock:1", TOKEN);
    cache.set("other:1", TOKEN);
    assertEquals(1L, cache.eval(RELEASE, List.of("lock:1"), List.of(TOKEN)));
    assertEquals(0L, cache.eval(RELEASE, List.of("other:1"), List.of(TOKEN)));
  }

  @Test
  void eachValueGoesByItsOwnKey() {
    SnuglyRedisClient cache = client(excluding());
    cache.mset("lock:1", PAGE, "page:1", PAGE, "token:1", PAGE, "token:12", PAGE);
    cache.hset("lock:hash", Map.of("page:1", PAGE));
    cache.rpush("page:list", PAGE);
    try (AbstractTransaction transaction = cache.multi()) {
      transaction.set("lock:2", PAGE);
      transaction.set("page:2", PAGE);
      transaction.exec();
    }
    for (String key : List.of("lock:1", "token:1", "lock:2")) {
      assertEquals(PAGE, plain.text("GET", key), key);
    }
    assertEquals(PAGE, plain.text("HGET", "lock:hash", "page:1"));
    for (String key : List.of("page:1", "token:12", "page:2")) {
      assertTrue(isCompressed("GET", key), key);
    }
    assertTrue(isCompressed("LINDEX", "page:list", "0"));
    assertEquals(List.of(PAGE, PAGE), cache.mget("lock:1", "page:1"));
  }

  @Test
  void whatWasCompressedBeforeItsKeyWasExcludedIsRead() {
    client(CompressionConfiguration.builder()).set("lock:1", PAGE);
    assertTrue(isCompressed("GET", "lock:1"));
    assertEquals(PAGE, client(excluding()).get("lock:1"));
  }

  @ParameterizedTest
  @EnumSource(RedisProtocol.class)
  void whatCannotBeRestoredCanBeMissed(RedisProtocol protocol) {
    plain.command("MSET", "broken", BROKEN, "good", "one");
    plain.command("HSET", "hash", "broken", BROKEN, "good", "one");
    plain.command("RPUSH", "list", "one", BROKEN);
    SnuglyRedisClient cache = client(missing(), protocol);
    assertNull(cache.get("broken"));
    assertNull(cache.hget("hash", "broken"));
    assertEquals(Arrays.asList("one", null), cache.mget("good", "broken"));
    assertEquals(Arrays.asList("one", null), cache.hmget("hash", "good", "broken"));
    assertEquals(Arrays.asList("one", null), cache.lrange("list", 0, -1));
    assertEquals("one", cache.hgetAll("hash").get("good"));
    assertNull(cache.hgetAll("hash").get("broken"));
    try (AbstractTransaction transaction = cache.multi()) {
      Response<String> broken = transaction.get("broken");
      transaction.get("good");
      assertEquals(Arrays.asList(null, "one"), transaction.exec());
      assertNull(broken.get());
    }
  }

  @Test
  void aValueWhoseDictionaryIsMissingCanBeMissedAndAWarningTellsOfIt() {
    Dictionary profiles = Dictionary.of(Vectors.dictionary("profiles"));
    Codec writer = new Codec(CompressionConfiguration.builder().dictionary(profiles).build());
    byte[] user =
        "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"plan\": \"plan-3\"}"
            .getBytes(UTF_8);
    plain.command("MSET", "user:1", writer.encode(user), "good", "one");
    SnuglyRedisClient cache = client(missing());
    try (Warnings warnings = new Warnings()) {
      assertNull(cache.get("user:1"));
      assertEquals(Arrays.asList("one", null), cache.mget("good", "user:1"));
      List<String> ours =
          warnings.messages().stream().filter(each -> each.startsWith("dev.snugly: ")).toList();
      assertEquals(1, ours.size(), ours::toString);
      assertTrue(ours.get(0).contains("at key \"user:1\""), ours::toString);
      assertTrue(ours.get(0).contains(Integer.toString(profiles.id())), ours::toString);
    }
    assertEquals(2, cache.statistics().total(Counter.DECODE_FAILURES));
  }

  @Test
  void whatOneReplyIsRestoredToIsBounded() {
    SnuglyRedisClient cache = client(CompressionConfiguration.builder().maxReplyBytes(25_000));
    cache.mset("1", PAGE, "2", PAGE, "3", PAGE);
    assertEquals(List.of(PAGE, PAGE), cache.mget("1", "2"));
    isTooLarge(assertThrows(JedisDataException.class, () -> cache.mget("1", "2", "3")));
    try (CompressingPipeline pipeline = cache.pipelined()) {
      pipeline.get("1");
      Response<String> second = pipeline.get("2");
      Response<String> third = pipeline.get("3");
      pipeline.syncAndReturnAll();
      assertEquals(PAGE, second.get());
      isTooLarge(assertThrows(JedisDataException.class, third::get));
      Response<String> next = pipeline.get("3");
      pipeline.sync();
      assertEquals(PAGE, next.get(), "what is asked for later is another one");
    }
  }

  @Test
  void whatATransactionIsRestoredToIsBounded() {
    SnuglyRedisClient cache = client(CompressionConfiguration.builder().maxReplyBytes(25_000));
    cache.mset("1", PAGE, "2", PAGE, "3", PAGE);
    try (AbstractTransaction transaction = cache.transaction(false)) {
      for (int round = 0; round < 2; round++) {
        transaction.multi();
        transaction.get("1");
        transaction.mget("2");
        transaction.get("3");
        List<Object> results = transaction.exec();
        assertEquals(List.of(PAGE, List.of(PAGE)), results.subList(0, 2));
        isTooLarge(results.get(2));
      }
    }
  }

  private static void isTooLarge(Object result) {
    UndecodableException error =
        assertInstanceOf(UndecodableReplyException.class, result).undecodable();
    assertEquals(UndecodableException.Kind.TOO_LARGE, error.kind());
    assertTrue(error.getMessage().contains("maxReplyBytes"), error.getMessage());
  }
}
