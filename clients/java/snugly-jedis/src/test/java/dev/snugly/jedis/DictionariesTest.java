package dev.snugly.jedis;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionBackend;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Dictionary;
import dev.snugly.core.UndecodableException;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Vectors;
import dev.snugly.testing.Waiting;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisConnectionException;

/** Dictionaries of a client of one server: which connections they are asked for on, and when. */
class DictionariesTest {
  private static final Dictionary PROFILES = Dictionary.of(Vectors.dictionary("profiles"));
  private static final String DICTIONARY_KEY = "{snugly}:dict:" + PROFILES.id();
  private static final byte[] KEY = "user:1".getBytes(UTF_8);
  private static final byte[] USER =
      "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"plan\": \"plan-3\"}"
          .getBytes(UTF_8);

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
    return client(settings, DefaultJedisClientConfig.builder().build(), new ConnectionPoolConfig());
  }

  private SnuglyRedisClient client(
      CompressionConfiguration.Builder settings,
      JedisClientConfig config,
      ConnectionPoolConfig pool) {
    SnuglyRedisClient client = Clients.of(server, settings, config, pool);
    clients.add(client);
    return client;
  }

  private static CompressionConfiguration.Builder reading() {
    return CompressionConfiguration.builder();
  }

  /** Writes with a dictionary, and has rounds that no test waits for. */
  private static CompressionConfiguration.Builder writing() {
    return CompressionConfiguration.builder()
        .dictionary(PROFILES)
        .dictionaryRefresh(Duration.ofHours(24));
  }

  private void writesWithTheDictionary(SnuglyRedisClient writer) {
    Waiting.until(
        "the dictionary is used",
        () -> {
          writer.set(KEY, USER);
          return writer.codec().dictionaryOf(plain.bytes("GET", KEY)) == PROFILES.id();
        });
  }

  private static Codec with(Dictionary dictionary) {
    return new Codec(CompressionConfiguration.builder().dictionary(dictionary).build());
  }

  @Test
  void theDictionariesOfAReplyAreFetchedTogether() {
    String[] keys = new String[12];
    for (int number = 0; number < keys.length; number++) {
      Dictionary other = Dictionary.of(Vectors.otherDictionary(number));
      keys[number] = "user:" + number;
      plain.command("SET", keys[number], with(other).encode(USER));
      plain.command("SET", "{snugly}:dict:" + other.id(), other.bytes());
    }
    List<Consumer<SnuglyRedisClient>> reads =
        List.of(
            cache -> cache.mget(keys),
            cache -> {
              try (CompressingPipeline pipeline = cache.pipelined()) {
                Arrays.stream(keys).forEach(pipeline::get);
                pipeline.sync();
              }
            },
            cache -> {
              try (AbstractTransaction transaction = cache.multi()) {
                Arrays.stream(keys).forEach(transaction::get);
                transaction.exec();
              }
            });
    for (Consumer<SnuglyRedisClient> read : reads) {
      SnuglyRedisClient cache = client(reading());
      long before = connectionsReceived();
      read.accept(cache);
      long opened = connectionsReceived() - before;
      assertEquals(keys.length, cache.statistics().total(Counter.DICTIONARIES_FETCHED));
      // One of the pool, one to fetch all, and one that maintains them; perhaps a late one of
      // before.
      assertTrue(opened < keys.length, opened + " connections");
      cache.close();
    }
  }

  private long connectionsReceived() {
    return plain
        .text("INFO", "stats")
        .lines()
        .filter(line -> line.startsWith("total_connections_received:"))
        .mapToLong(line -> Long.parseLong(line.substring(line.indexOf(':') + 1)))
        .sum();
  }

  @Test
  void aWriterPutsItsDictionaryBackBeforeItEndsAndWhenItHasConnectedAgain() {
    SnuglyRedisClient writer = client(writing());
    writesWithTheDictionary(writer);
    plain.command("FLUSHALL");
    AtomicInteger tries = new AtomicInteger();
    Waiting.until(
        "it is put back",
        () -> {
          // The look may meet a connection that was lost, too; it comes again with the next loss.
          if (tries.getAndIncrement() % 100 == 0) {
            plain.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
          }
          try {
            writer.set(KEY, USER);
          } catch (JedisConnectionException lost) {
            // There is another connection for the next one.
          }
          return plain.command("GET", DICTIONARY_KEY) != null;
        });
    plain.command("FLUSHALL");
    writer.set(KEY, USER);
    writer.close();
    // A busy machine takes longer than a client waits.
    Waiting.until("it is put back", () -> plain.command("GET", DICTIONARY_KEY) != null);
  }

  @Test
  void dictionariesMayLiveInAnotherDatabase() {
    SnuglyRedisClient writer =
        client(
            writing().dictionaryDatabase(0),
            DefaultJedisClientConfig.builder().database(3).build(),
            new ConnectionPoolConfig());
    plain.command("SELECT", "3");
    writesWithTheDictionary(writer);
    assertNull(plain.command("GET", DICTIONARY_KEY));
    plain.command("SELECT", "0");
    assertArrayEquals(PROFILES.bytes(), plain.bytes("GET", DICTIONARY_KEY));
  }

  @Test
  void aValueThatIsCopiedToAnotherDatabaseIsReadOnceItsDictionaryIsThere() {
    plain.command("SET", KEY, with(PROFILES).encode(USER));
    plain.command("SET", DICTIONARY_KEY, PROFILES.bytes());
    plain.command("COPY", KEY, KEY, "DB", 3);
    JedisClientConfig third = DefaultJedisClientConfig.builder().database(3).build();
    SnuglyRedisClient before = client(reading(), third, new ConnectionPoolConfig());
    assertThrows(UndecodableReplyException.class, () -> before.get(KEY));
    plain.command("COPY", DICTIONARY_KEY, DICTIONARY_KEY, "DB", 3);
    SnuglyRedisClient after = client(reading(), third, new ConnectionPoolConfig());
    assertArrayEquals(USER, after.get(KEY));
  }

  @Test
  void whoMaySelectNoDatabaseHasNoDictionaries() {
    plain.command("ACL", "SETUSER", "narrow", "on", ">secret", "~*", "+@all", "-select");
    plain.command("SET", KEY, with(PROFILES).encode(USER));
    plain.command("SET", DICTIONARY_KEY, PROFILES.bytes());
    SnuglyRedisClient reader =
        client(
            reading().dictionaryDatabase(0),
            DefaultJedisClientConfig.builder().user("narrow").password("secret").build(),
            new ConnectionPoolConfig());
    UndecodableReplyException error =
        assertThrows(UndecodableReplyException.class, () -> reader.get(KEY));
    assertTrue(
        error.getMessage().contains("the keys {snugly}:* may not be read"), error.getMessage());
  }

  @Test
  void aDictionaryIsWaitedForNoLongerThanForAReply() {
    plain.command("SET", KEY, with(PROFILES).encode(USER));
    String row = "{\"pattern\": \"*\", \"id\": %d}".formatted(PROFILES.id());
    // A client that is closed puts its own dictionary back, but not there.
    String prefix = "{waiting}";
    plain.command("SET", prefix + ":dicts", "{\"version\": 1, \"dictionaries\": [" + row + "]}");
    // It would be looked for for hours; Jedis waits for two seconds.
    SnuglyRedisClient reader =
        client(reading().dictionaryPrefix(prefix).dictionaryRefresh(Duration.ofHours(24)));
    CompletableFuture<byte[]> read = CompletableFuture.supplyAsync(() -> reader.get(KEY));
    ExecutionException failed =
        assertThrows(ExecutionException.class, () -> read.get(1, TimeUnit.MINUTES));
    UndecodableException error =
        assertInstanceOf(UndecodableReplyException.class, failed.getCause()).undecodable();
    assertEquals(UndecodableException.Kind.DICTIONARY_MISSING, error.kind());
    plain.command("SET", prefix + ":dict:" + PROFILES.id(), PROFILES.bytes());
    Waiting.until(
        "those who come later find it",
        () -> reader.statistics().total(Counter.DICTIONARIES_FETCHED) == 1);
    assertArrayEquals(USER, reader.get(KEY));
  }

  @Test
  void aPipelineWithTheOnlyConnectionGetsADictionaryBesideIt() {
    plain.command("SET", KEY, with(PROFILES).encode(USER));
    plain.command("SET", DICTIONARY_KEY, PROFILES.bytes());
    ConnectionPoolConfig pool = new ConnectionPoolConfig();
    pool.setMaxTotal(1);
    SnuglyRedisClient reader = client(reading(), DefaultJedisClientConfig.builder().build(), pool);
    try (CompressingPipeline pipeline = reader.pipelined()) {
      Response<byte[]> found = pipeline.get(KEY);
      pipeline.sync();
      assertArrayEquals(USER, found.get());
    }
    assertEquals(1, reader.statistics().total(Counter.DICTIONARIES_FETCHED));
  }

  @ParameterizedTest
  @EnumSource(
      value = CompressionBackend.class,
      names = {"ZSTD", "LZ4"})
  void aGivenDictionaryIsUsedOnceItIsBesideTheData(CompressionBackend backend) {
    writesWithTheDictionary(client(writing().backend(backend)));
    assertArrayEquals(USER, client(reading()).get(KEY));
  }
}
