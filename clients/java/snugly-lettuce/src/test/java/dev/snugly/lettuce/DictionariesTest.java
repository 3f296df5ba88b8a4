package dev.snugly.lettuce;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionBackend;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.ConfigurationException;
import dev.snugly.core.Counter;
import dev.snugly.core.Dictionary;
import dev.snugly.core.Encoding;
import dev.snugly.core.Envelope;
import dev.snugly.core.UndecodableException;
import dev.snugly.testing.Cluster;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Vectors;
import dev.snugly.testing.Waiting;
import dev.snugly.testing.Warnings;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Dictionaries that lie beside the data of real servers. */
class DictionariesTest {
  private static final Dictionary PROFILES = Dictionary.of(Vectors.dictionary("profiles"));
  private static final String USER =
      "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"status\": \"status-3\"}";

  private static Server server;

  private SnuglyRedisClient client;
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
  void connect() {
    plain = server.connect();
    plain.command("FLUSHALL");
  }

  @AfterEach
  void close() {
    if (client != null) {
      client.shutdown();
    }
    plain.close();
  }

  private static CompressionConfiguration.Builder settings() {
    return CompressionConfiguration.builder().dictionaryRefresh(Duration.ofMillis(600));
  }

  private RedisCommands<String, String> commands(CompressionConfiguration.Builder settings) {
    client =
        SnuglyRedisClient.create(
            RedisURI.create("127.0.0.1", server.port()), LettuceCompression.of(settings.build()));
    return client.connect().sync();
  }

  private static String dictionaryKey() {
    return "{snugly}:dict:" + PROFILES.id();
  }

  private static String catalogue() {
    String row = "{\"pattern\": \"user:*\", \"id\": %d}".formatted(PROFILES.id());
    return "{\"version\": 1, \"active\": [%s], \"dictionaries\": [%s]}".formatted(row, row);
  }

  @ParameterizedTest
  @CsvSource({"ZSTD, ZSTD, ZSTD_DICTIONARY", "LZ4, LZ4, LZ4_DICTIONARY"})
  void valuesAreWrittenWithTheDictionaryOfTheirKeysAndReadByAnybody(
      CompressionBackend backend, Encoding without, Encoding with) {
    plain.command("SET", dictionaryKey(), PROFILES.bytes());
    plain.command("SET", "{snugly}:dicts", catalogue());
    RedisCommands<String, String> commands = commands(settings().backend(backend).catalogue(true));
    Waiting.until(
        "the catalogue is followed",
        () -> {
          commands.set("user:1", USER);
          return Values.encodingAt(plain, "user:1") == with;
        });
    commands.set("page:1", Values.PAGE);
    assertEquals(without, Values.encodingAt(plain, "page:1"));
    client.shutdown();
    assertEquals(USER, commands(settings()).get("user:1"));
    assertEquals(1, client.statistics().total(Counter.DICTIONARIES_FETCHED));
  }

  @Test
  void whoGoesBackToNoCompressionReadsWithTheDictionaryAndWritesWithout() {
    plain.command("SET", "user:1", stored());
    RedisCommands<String, String> commands =
        commands(settings().dictionary(PROFILES).backend(CompressionBackend.NONE));
    assertEquals(USER, commands.get("user:1"));
    commands.set("user:2", USER);
    assertEquals(USER, plain.text("GET", "user:2"));
    Waiting.until("it is put back for others", () -> plain.bytes("GET", dictionaryKey()) != null);
    commands.set("user:2", USER);
    assertEquals(USER, plain.text("GET", "user:2"));
  }

  @Test
  void aDictionaryThatIsMissingIsWaitedForWhileOthersGetTheirReplies() throws Exception {
    byte[] stored = stored();
    plain.command("SET", "user:1", stored);
    plain.command("SET", "{snugly}:dicts", catalogue());
    commands(settings().dictionaryRefresh(Duration.ofMinutes(10)));
    RedisAsyncCommands<String, String> commands = client.connect().async();
    RedisFuture<String> user = commands.get("user:1");
    assertEquals("PONG", commands.ping().get(60, TimeUnit.SECONDS));
    assertFalse(user.isDone());
    plain.command("SET", dictionaryKey(), PROFILES.bytes());
    assertEquals(USER, user.get(60, TimeUnit.SECONDS));
    assertEquals(USER, commands.get("user:1").get(60, TimeUnit.SECONDS));
  }

  @Test
  void aDictionaryOfTheServerIsFetchedWhileManyOthersAreWaitedFor() throws Exception {
    byte[] stored = stored();
    commands(settings().dictionaryRefresh(Duration.ofMinutes(10)));
    RedisAsyncCommands<String, String> commands = client.connect().async();
    List<RedisFuture<String>> unknown = new ArrayList<>();
    List<String> rows = new ArrayList<>();
    for (int number = 0; number < 24; number++) {
      rows.add("{\"pattern\": \"*\", \"id\": %d}".formatted(PROFILES.id() + 1 + number));
    }
    plain.command("SET", "{snugly}:dicts", "{\"version\": 1, \"dictionaries\": " + rows + "}");
    for (int number = 0; number < 24; number++) {
      String key = "unknown:" + number;
      plain.command("SET", key, naming(PROFILES.id() + 1 + number, stored));
      for (int read = 0; read < 10; read++) {
        unknown.add(commands.get(key));
      }
    }
    assertEquals("PONG", commands.ping().get(60, TimeUnit.SECONDS));
    plain.command("SET", dictionaryKey(), PROFILES.bytes());
    plain.command("SET", "user:1", stored);
    assertEquals(USER, commands.get("user:1").get(60, TimeUnit.SECONDS));
    assertFalse(unknown.stream().anyMatch(RedisFuture::isDone));
    client.shutdown();
    for (RedisFuture<String> each : unknown) {
      assertThrows(ExecutionException.class, () -> each.get(60, TimeUnit.SECONDS));
    }
  }

  /** The same envelope, which says that another dictionary is needed. */
  private static byte[] naming(int id, byte[] stored) {
    byte[] changed = stored.clone();
    ByteBuffer bytes = ByteBuffer.wrap(changed).order(ByteOrder.LITTLE_ENDIAN);
    int at = Envelope.HEADER_BYTES;
    while (bytes.getInt(at) != PROFILES.id()) {
      at++;
    }
    bytes.putInt(at, id);
    return changed;
  }

  @Test
  void aDictionaryThatNobodyHasIsAnErrorOfItsCommandAlone() throws Exception {
    byte[] stored = stored();
    plain.command("SET", "user:1", stored);
    commands(settings());
    RedisAsyncCommands<String, String> commands = client.connect().async();
    RedisFuture<String> user = commands.get("user:1");
    ExecutionException failed =
        assertThrows(ExecutionException.class, () -> user.get(60, TimeUnit.SECONDS));
    UndecodableException error = assertInstanceOf(UndecodableException.class, failed.getCause());
    assertEquals(UndecodableException.Kind.DICTIONARY_MISSING, error.kind());
    assertArrayEquals(stored, error.stored());
    assertEquals("PONG", commands.ping().get(60, TimeUnit.SECONDS));
  }

  @Test
  void aCallbackMayAskAgainForAValueWhoseDictionaryIsMissing() throws Exception {
    plain.command("SET", "user:1", stored());
    commands(settings());
    RedisAsyncCommands<String, String> commands = client.connect().async();
    CompletableFuture<Throwable> again =
        commands
            .get("user:1")
            .handle(
                (user, error) ->
                    assertThrows(
                        ExecutionException.class,
                        () -> commands.get("user:1").get(60, TimeUnit.SECONDS)))
            .toCompletableFuture()
            .thenApply(Throwable::getCause);
    assertInstanceOf(UndecodableException.class, again.get(60, TimeUnit.SECONDS));
  }

  @Test
  void aReplyWaitsForItsDictionaryAndNotForCallbacksOfAnother() throws Exception {
    plain.command("SET", "user:1", stored());
    plain.command("SET", "{snugly}:dicts", catalogue());
    client =
        SnuglyRedisClient.create(
            RedisURI.create("127.0.0.1", server.port()),
            LettuceCompression.builder(settings().dictionaryRefresh(Duration.ofMinutes(10)).build())
                .decodeExecutor(task -> new Thread(task).start())
                .build());
    RedisAsyncCommands<String, String> commands = client.connect().async();
    CountDownLatch released = new CountDownLatch(1);
    CompletableFuture<Boolean> slow =
        commands
            .get("user:1")
            .thenApply(user -> assertDoesNotThrow(() -> released.await(60, TimeUnit.SECONDS)))
            .toCompletableFuture();
    RedisFuture<String> other = commands.get("user:1");
    assertEquals("PONG", commands.ping().get(60, TimeUnit.SECONDS));
    plain.command("SET", dictionaryKey(), PROFILES.bytes());
    assertEquals(USER, other.get(60, TimeUnit.SECONDS));
    released.countDown();
    assertTrue(slow.get(60, TimeUnit.SECONDS));
    assertEquals(1, client.statistics().total(Counter.DICTIONARIES_FETCHED));
  }

  @Test
  void theDictionariesOfAReplyAreFetchedTogether() throws Exception {
    String[] keys = new String[12];
    for (int number = 0; number < keys.length; number++) {
      Dictionary other = Dictionary.of(Vectors.otherDictionary(number));
      keys[number] = "user:" + number;
      plain.command("SET", keys[number], stored(other));
      plain.command("SET", "{snugly}:dict:" + other.id(), other.bytes());
    }
    List<Consumer<RedisCommands<String, String>>> reads =
        List.of(
            commands ->
                assertEquals(
                    Arrays.stream(keys).map(key -> KeyValue.just(key, USER)).toList(),
                    commands.mget(keys)),
            commands -> {
              commands.multi();
              Arrays.stream(keys).forEach(commands::get);
              assertEquals(
                  Collections.nCopies(keys.length, USER), commands.exec().stream().toList());
            });
    for (Consumer<RedisCommands<String, String>> read : reads) {
      plain.command("CONFIG", "RESETSTAT");
      // No round of it asks anything else while this lasts.
      read.accept(commands(settings().dictionaryRefresh(Duration.ofHours(24))));
      client.shutdown();
      assertEquals(keys.length, client.statistics().total(Counter.DICTIONARIES_FETCHED));
      assertEquals(2, info("stats", "total_connections_received:"), "its own, and one to fetch");
      assertEquals(keys.length, client.statistics().total(Counter.DICTIONARY_MISSES));
    }
  }

  private long info(String section, String field) {
    return plain
        .text("INFO", section)
        .lines()
        .filter(line -> line.startsWith(field))
        .mapToLong(line -> Long.parseLong(line.substring(field.length())))
        .sum();
  }

  @Test
  void aDictionaryIsWaitedForNoLongerThanForAReply() {
    plain.command("SET", "user:1", stored());
    plain.command("SET", "{snugly}:dicts", catalogue());
    client =
        SnuglyRedisClient.create(
            RedisURI.builder()
                .withHost("127.0.0.1")
                .withPort(server.port())
                .withTimeout(Duration.ofSeconds(2))
                .build(),
            // It would be looked for for hours.
            LettuceCompression.of(settings().dictionaryRefresh(Duration.ofHours(24)).build()));
    // Lettuce's own would end the command at about the same time.
    TimeoutOptions none = TimeoutOptions.builder().timeoutCommands(false).build();
    client.setOptions(ClientOptions.builder().timeoutOptions(none).build());
    RedisAsyncCommands<String, String> commands = client.connect().async();
    RedisFuture<String> user = commands.get("user:1");
    ExecutionException failed =
        assertThrows(ExecutionException.class, () -> user.get(60, TimeUnit.SECONDS));
    UndecodableException error = assertInstanceOf(UndecodableException.class, failed.getCause());
    assertEquals(UndecodableException.Kind.DICTIONARY_MISSING, error.kind());
    plain.command("SET", dictionaryKey(), PROFILES.bytes());
    Waiting.until(
        "those who come later find it",
        () -> client.statistics().total(Counter.DICTIONARIES_FETCHED) == 1);
    assertEquals(USER, readAnew("user:1"));
  }

  @Test
  void aWriterPutsItsDictionaryBackBeforeItIsShutDown() {
    RedisCommands<String, String> commands = commands(rare());
    writesWithTheDictionary(commands);
    plain.command("FLUSHALL");
    client.shutdown();
    assertArrayEquals(PROFILES.bytes(), plain.bytes("GET", dictionaryKey()));
  }

  @Test
  void aWriterLooksForItsDictionaryWhenItHasConnectedAnew() {
    RedisCommands<String, String> commands = commands(rare());
    writesWithTheDictionary(commands);
    plain.command("FLUSHALL");
    plain.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    Waiting.until("it is put back", () -> plain.bytes("GET", dictionaryKey()) != null);
  }

  @Test
  void dictionariesMayLiveInAnotherDatabase() {
    RedisURI third = RedisURI.Builder.redis("127.0.0.1", server.port()).withDatabase(3).build();
    LettuceCompression compression =
        LettuceCompression.of(settings().dictionary(PROFILES).dictionaryDatabase(0).build());
    client = SnuglyRedisClient.create(third, compression);
    plain.command("SELECT", "3");
    writesWithTheDictionary(client.connect().sync());
    assertNull(plain.command("GET", dictionaryKey()));
    plain.command("SELECT", "0");
    assertArrayEquals(PROFILES.bytes(), plain.bytes("GET", dictionaryKey()));
    assertThrows(
        ConfigurationException.class,
        () -> SnuglyRedisClusterClient.create(List.of(third), compression));
  }

  /** Writes with the dictionary, and has rounds that no test waits for. */
  private static CompressionConfiguration.Builder rare() {
    return settings().dictionary(PROFILES).dictionaryRefresh(Duration.ofHours(24));
  }

  private void writesWithTheDictionary(RedisCommands<String, String> commands) {
    Waiting.until(
        "the dictionary is used",
        () -> {
          commands.set("user:1", USER);
          return Values.encodingAt(plain, "user:1") == Encoding.ZSTD_DICTIONARY;
        });
  }

  @Test
  void aClientThatIsShutDownWhileItAsksForDictionariesIsQuiet() {
    plain.command("SET", "user:1", stored());
    try (Warnings warnings = new Warnings()) {
      for (int round = 0; round < 20; round++) {
        commands(settings().catalogue(true)).set("page", Values.PAGE);
        RedisFuture<String> user = client.connect().async().get("user:1");
        client.shutdown();
        assertThrows(ExecutionException.class, () -> user.get(60, TimeUnit.SECONDS));
      }
      assertEquals(List.of(), warnings.messages());
    }
  }

  @Test
  void aShutdownHoldsUpNobodyWhileAQuestionForADictionaryIsOnItsWay() throws Exception {
    plain.command("SET", "user:1", stored());
    try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      client =
          SnuglyRedisClient.create(
              RedisURI.create("127.0.0.1", silent.getLocalPort()),
              LettuceCompression.of(settings().build()));
      StatefulRedisConnection<String, String> connection =
          client.connect(RedisURI.create("127.0.0.1", server.port()));
      RedisFuture<String> user = connection.async().get("user:1");
      Socket asked = silent.accept();
      CompletableFuture<Void> shutdown = client.shutdownAsync();
      assertTrue(connection.isOpen());
      assertFalse(shutdown.isDone());
      asked.close();
      shutdown.get(60, TimeUnit.SECONDS);
      assertFalse(connection.isOpen());
      assertThrows(ExecutionException.class, () -> user.get(60, TimeUnit.SECONDS));
    }
  }

  @Test
  @Tag("slow")
  void itIsSaidOnceIfNobodyCanBeAskedForDictionaries() {
    plain.command("SET", "user:1", stored());
    client = SnuglyRedisClient.create(new RedisURI(), LettuceCompression.of(settings().build()));
    RedisCommands<String, String> commands =
        client.connect(RedisURI.create("127.0.0.1", server.port())).sync();
    try (Warnings warnings = new Warnings()) {
      assertThrows(UndecodableException.class, () -> commands.get("user:1"));
      List<String> ours =
          warnings.messages().stream().filter(each -> each.startsWith("dev.snugly: ")).toList();
      assertEquals(1, ours.size(), ours.toString());
      assertTrue(ours.get(0).contains("no connection to ask for dictionaries"), ours.get(0));
    }
  }

  @Test
  void dictionariesAreAskedForOnAnotherConnectionWhenTheirsIsLost() {
    commands(settings());
    client.setOptions(ClientOptions.builder().autoReconnect(false).build());
    RedisCommands<String, String> commands = client.connect().sync();
    plain.command("SET", "user:1", stored());
    assertThrows(UndecodableException.class, () -> commands.get("user:1"));
    plain.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    plain.command("SET", dictionaryKey(), PROFILES.bytes());
    Waiting.until("it is found", () -> USER.equals(readAnew("user:1")));
  }

  private String readAnew(String key) {
    try (StatefulRedisConnection<String, String> connection = client.connect()) {
      return connection.sync().get(key);
    } catch (UndecodableException missing) {
      return null;
    }
  }

  private static byte[] stored() {
    return stored(PROFILES);
  }

  private static byte[] stored(Dictionary dictionary) {
    return new Codec(CompressionConfiguration.builder().dictionary(dictionary).build())
        .encode(USER.getBytes(UTF_8));
  }

  @Test
  @Tag("slow")
  void aGivenDictionaryIsPutBesideTheDataOfACluster() {
    try (Cluster cluster = Cluster.start(3)) {
      SnuglyRedisClusterClient writer =
          SnuglyRedisClusterClient.create(
              List.of(RedisURI.create("127.0.0.1", cluster.nodes().get(0).port())),
              LettuceCompression.of(settings().dictionary(PROFILES).build()));
      SnuglyRedisClusterClient reader =
          SnuglyRedisClusterClient.create(
              "redis://127.0.0.1:" + cluster.nodes().get(1).port(), settings().build());
      try {
        RedisAdvancedClusterCommands<String, String> commands = writer.connect().sync();
        Waiting.until(
            "the dictionary is used",
            () -> {
              commands.set("user:1", USER);
              return writer.statistics().of(Counter.ENCODED_VALUES, Encoding.ZSTD_DICTIONARY) > 0;
            });
        assertEquals(USER, reader.connect().sync().get("user:1"));
      } finally {
        writer.shutdown();
        reader.shutdown();
      }
    }
  }
}
