package dev.snugly.jedis;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Codec;
import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.ConfigurationException;
import dev.snugly.core.Dictionary;
import dev.snugly.core.Envelope;
import dev.snugly.core.ValueType;
import dev.snugly.testing.Cluster;
import dev.snugly.testing.Connection;
import dev.snugly.testing.GzipFile;
import dev.snugly.testing.Server;
import dev.snugly.testing.Vectors;
import dev.snugly.testing.Waiting;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.CommandObjects;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.util.JedisClusterCRC16;
import redis.clients.jedis.util.PrefixedKeyArgumentPreProcessor;

/** A client of a cluster of three nodes. */
class SnuglyRedisClusterClientTest {
  private static final String PAGE = "<p>hello</p>".repeat(100);
  private static final Dictionary PROFILES = Dictionary.of(Vectors.dictionary("profiles"));
  private static final String USER =
      "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"plan\": \"plan-3\"}";

  /** The backend of an envelope whose dictionary lies beside the data. */
  private static final int WITH_DICTIONARY = 0x81;

  private static Cluster cluster;

  private SnuglyRedisClusterClient cache;
  private RedisClusterClient plain;

  @BeforeAll
  static void start() {
    cluster = Cluster.start(3);
  }

  @AfterAll
  static void stop() {
    if (cluster != null) {
      cluster.close();
    }
  }

  @BeforeEach
  void connect() {
    cluster.flush();
    cache = client(CompressionConfiguration.defaults());
    plain = RedisClusterClient.builder().nodes(nodes()).build();
  }

  @AfterEach
  void close() {
    cache.close();
    plain.close();
  }

  @Test
  void valuesAreCompressedOnEveryNode() {
    for (int number = 0; number < 20; number++) {
      cache.set("page:" + number, PAGE + number);
    }
    for (int number = 0; number < 20; number++) {
      assertTrue(isEnvelope("page:" + number));
      assertEquals(PAGE + number, cache.get("page:" + number));
    }
    assertThrows(CommandRefusedException.class, () -> cache.append("page:1", "more"));
  }

  @Test
  void commandsOverSeveralSlotsAreSplitAsEver() {
    assertEquals("OK", cache.mset("a", PAGE, "b", PAGE + "b", "c", "short"));
    assertTrue(isEnvelope("a") && isEnvelope("b"));
    assertEquals(Arrays.asList(PAGE, null, PAGE + "b", "short"), cache.mget("a", "none", "b", "c"));
    assertEquals(3, cache.exists("a", "b", "c", "none"));
    assertEquals(3, cache.touch("a", "b", "c"));
    assertEquals(1, cache.unlink("c"));
    assertEquals(2, cache.del("a", "b", "c"));
  }

  @Test
  void eachValueOfACommandOverSeveralSlotsGoesByItsOwnKey() {
    CompressionConfiguration excluding =
        CompressionConfiguration.builder().exclude(List.of("lock:*")).build();
    try (SnuglyRedisClusterClient client = client(excluding)) {
      client.mset("lock:1", PAGE, "page:1", PAGE);
      assertFalse(isEnvelope("lock:1"));
      assertTrue(isEnvelope("page:1"));
      assertEquals(List.of(PAGE, PAGE), client.mget("lock:1", "page:1"));
    }
  }

  @Test
  void aClusterHasOneDatabase() {
    CompressionConfiguration other =
        CompressionConfiguration.builder().dictionaryDatabase(1).build();
    assertThrows(ConfigurationException.class, () -> SnuglyRedisClusterClient.builder(other));
  }

  @Test
  void aPrefixOfKeysHoldsForCommandsOverSeveralSlots() {
    cache.setKeyArgumentPreProcessor(new PrefixedKeyArgumentPreProcessor("mine:"));
    cache.set("a", PAGE);
    cache.mset("b", PAGE + "b", "c", "short");
    assertTrue(isEnvelope("mine:a") && isEnvelope("mine:b"));
    assertEquals(List.of(PAGE, PAGE + "b", "short"), cache.mget("a", "b", "c"));
    assertEquals(3, cache.exists("a", "b", "c"));
    assertEquals(3, cache.del("a", "b", "c"));
  }

  @Test
  void anErrorNamesTheKeyOfTheServer() {
    cache.setKeyArgumentPreProcessor(new PrefixedKeyArgumentPreProcessor("mine:"));
    plain.set(bytes("mine:damaged"), new byte[] {0, 1, 2, 0, 1, 9, 9, 9, 9});
    UndecodableReplyException error =
        assertThrows(UndecodableReplyException.class, () -> cache.mget("a", "damaged"));
    assertArrayEquals(bytes("mine:damaged"), error.undecodable().key().orElseThrow());
  }

  @Test
  void aPrefixOfKeysCountsInTheChoiceOfADictionary() {
    try (SnuglyRedisClusterClient writer =
        client(
            CompressionConfiguration.builder()
                .dictionary(PROFILES)
                .dictionaryRefresh(Duration.ofMillis(600))
                .dictionaryExclude(List.of("mine:excluded:*"))
                .build())) {
      writer.setKeyArgumentPreProcessor(new PrefixedKeyArgumentPreProcessor("mine:"));
      Waiting.until(
          "it is used",
          () -> {
            writer.mset("user:1", USER, "user:2", USER, "excluded:1", PAGE);
            return backendOf("mine:user:1") == WITH_DICTIONARY;
          });
      assertEquals(WITH_DICTIONARY, backendOf("mine:user:2"));
      assertEquals(1, backendOf("mine:excluded:1"));
    }
  }

  @Test
  void gzipFilesAreReadFromSeveralSlotsAndValuesOfOtherTypesAreLeftAlone() {
    cache.set("envelope", PAGE);
    byte[] envelope = plain.get(bytes("envelope"));
    plain.set(bytes("file"), GzipFile.of(PAGE));
    try (SnuglyRedisClusterClient reader =
        client(
            CompressionConfiguration.builder()
                .readGzip(true)
                .valueTypes(Set.of(ValueType.HASHES))
                .build())) {
      List<byte[]> values = reader.mget(bytes("file"), bytes("none"), bytes("envelope"));
      assertArrayEquals(bytes(PAGE), values.get(0));
      assertNull(values.get(1));
      assertArrayEquals(envelope, values.get(2));
      reader.mset("a", PAGE, "b", PAGE);
      assertEquals(0, backendOf("a"));
      assertEquals("OK", reader.flushAll());
    }
  }

  @Test
  void aPipelineIsReadByTheThreadsThatItIsGiven() {
    ExecutorService threads = Executors.newFixedThreadPool(2);
    try (CompressingPipeline pipeline = cache.pipelined(threads)) {
      pipeline.set("a", PAGE);
      Response<String> a = pipeline.get("a");
      pipeline.sync();
      assertEquals(PAGE, a.get());
    } finally {
      threads.shutdown();
    }
    assertTrue(isEnvelope("a"));
  }

  @Test
  void aCommandForEveryNodeReachesEachOfThem() {
    CommandObjects commands = new CommandObjects(RedisProtocol.RESP2);
    for (int number = 0; number < 20; number++) {
      cache.set("page:" + number, PAGE);
    }
    cache.broadcastCommand(commands.flushAll());
    for (Server node : cluster.nodes()) {
      try (Connection connection = node.connect()) {
        assertEquals(0L, connection.command("DBSIZE"));
      }
    }
  }

  @Test
  void transactionsAreUnsupportedAsInJedis() {
    assertThrows(UnsupportedOperationException.class, plain::multi);
    assertThrows(UnsupportedOperationException.class, cache::multi);
  }

  @Test
  void pipelinesReachEveryNode() {
    List<Response<String>> responses = new ArrayList<>();
    try (CompressingPipeline pipeline = cache.pipelined()) {
      for (int number = 0; number < 20; number++) {
        pipeline.set("page:" + number, PAGE + number);
        responses.add(pipeline.get("page:" + number));
      }
      pipeline.sync();
      for (int number = 0; number < 20; number++) {
        assertEquals(PAGE + number, responses.get(number).get());
      }
    }
    assertTrue(isEnvelope("page:7"));
  }

  @Test
  void aDictionaryIsPutOnItsNodeAndReadFromEveryOther() {
    try (SnuglyRedisClusterClient writer =
        client(
            CompressionConfiguration.builder()
                .dictionary(PROFILES)
                .dictionaryRefresh(Duration.ofMillis(600))
                .build())) {
      for (String key : List.of("user:1", "user:2", "user:3", "user:4")) {
        Waiting.until(
            "it is used",
            () -> {
              writer.set(key, USER);
              return backendOf(key) == WITH_DICTIONARY;
            });
      }
    }
    assertEquals(
        List.of(USER, USER, USER, USER), cache.mget("user:1", "user:2", "user:3", "user:4"));
  }

  @Test
  void dictionariesAreFoundWhoseKeysAreOnSeveralNodes() {
    String prefix = prefixOfSeveralNodes();
    plain.set(bytes(prefix + ":dict:" + PROFILES.id()), PROFILES.bytes());
    CompressionConfiguration written =
        CompressionConfiguration.builder().dictionary(PROFILES).build();
    plain.set(bytes("user:1"), new Codec(written).encode(bytes(USER)));
    try (SnuglyRedisClusterClient reader =
        client(CompressionConfiguration.builder().dictionaryPrefix(prefix).build())) {
      assertEquals(USER, reader.get("user:1"));
    }
  }

  /** A prefix without a hash tag, so that the catalogue is on another node than the dictionary. */
  private static String prefixOfSeveralNodes() {
    String prefix = "untagged";
    while (nodeOf(prefix + ":dict:" + PROFILES.id()) == nodeOf(prefix + ":dicts")) {
      prefix += "-";
    }
    return prefix;
  }

  private static int nodeOf(String key) {
    return JedisClusterCRC16.getSlot(key) * cluster.nodes().size() / Protocol.CLUSTER_HASHSLOTS;
  }

  private static SnuglyRedisClusterClient client(CompressionConfiguration configuration) {
    return SnuglyRedisClusterClient.create(nodes(), configuration);
  }

  private static Set<HostAndPort> nodes() {
    return Set.of(new HostAndPort("127.0.0.1", cluster.nodes().get(0).port()));
  }

  private boolean isEnvelope(String key) {
    return backendOf(key) != 0;
  }

  /** Backend of the value of a key, or 0. */
  private int backendOf(String key) {
    return Envelope.inspect(plain.get(bytes(key))).map(Envelope::backend).orElse(0);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
