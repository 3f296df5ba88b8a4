package dev.snugly.core.catalogue;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Budget;
import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Dictionary;
import dev.snugly.core.Envelope;
import dev.snugly.core.UndecodableException;
import dev.snugly.core.client.Compressor;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Vectors;
import dev.snugly.testing.Waiting;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Dictionaries beside the data of a real server: what is asked, and when, is in TranscriptsTest.
 */
class ManagedDictionariesTest {
  private static final Duration REFRESH = Duration.ofMillis(600);
  private static final Duration SHORT = Duration.ofMillis(20);
  private static final Dictionary PROFILES = dictionary("profiles");
  private static final Dictionary ORDERS = dictionary("orders");
  private static final byte[] USER =
      "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"status\": \"status-3\"}"
          .getBytes(UTF_8);
  private static final byte[] KEY = "user:1".getBytes(UTF_8);
  private static final byte[] STORED =
      new Codec(CompressionConfiguration.builder().dictionary(PROFILES).build()).encode(USER);

  private static Server server;

  private final List<ManagedDictionaries> clients = new ArrayList<>();
  private final Map<Counter, Integer> counted = new ConcurrentHashMap<>();

  /** The keys that the server was asked for. */
  private final Set<String> asked = ConcurrentHashMap.newKeySet();

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
    closeClients();
    plain.close();
  }

  @Test
  void theFirstPatternThatMatchesDecidesAndAnybodyReads() {
    publish(Map.entry("user:*", PROFILES), Map.entry("*", ORDERS));
    Codec writer = codec(settings().catalogue(true));
    writesWith(writer, KEY, PROFILES);
    writesWith(writer, "order:1".getBytes(UTF_8), ORDERS);
    Codec reader = codec(settings());
    assertArrayEquals(USER, reader.decode(writer.encode(USER, KEY)));
    assertEquals(1, Envelope.inspect(reader.encode(USER, KEY)).orElseThrow().backend());
    assertEquals(1, reader.statistics().total(Counter.DICTIONARY_MISSES));
  }

  @Test
  void aDictionaryThatNobodyHasIsAnErrorThatNamesIt() {
    Codec reader = codec(settings());
    UndecodableException error =
        assertThrows(UndecodableException.class, () -> reader.decode(STORED, KEY));
    assertEquals(UndecodableException.Kind.DICTIONARY_MISSING, error.kind());
    assertEquals(PROFILES.id(), error.dictionary());
  }

  @Test
  void withoutPermissionDictionariesAreOffUntilItIsBackAndNothingElseFails() {
    publish(Map.entry("*", PROFILES));
    plain.command("ACL", "SETUSER", "limited", "on", ">secret", "~user:*", "+@all");
    Codec reader = codec(settings(), "limited");
    Codec writer = codec(settings().catalogue(true), "limited");
    UndecodableException error =
        assertThrows(UndecodableException.class, () -> reader.decode(STORED));
    assertTrue(
        error.getMessage().contains("the keys {snugly}:* may not be read"), error.getMessage());
    assertThrows(UndecodableException.class, () -> writer.decode(STORED));
    assertEquals(1, Envelope.inspect(writer.encode(USER, KEY)).orElseThrow().backend());
    plain.command("ACL", "SETUSER", "limited", "~{snugly}:*");
    Waiting.until("it reads again", () -> reads(reader));
    writesWith(writer, KEY, PROFILES);
  }

  private static boolean reads(Codec reader) {
    try {
      return Arrays.equals(USER, reader.decode(STORED));
    } catch (UndecodableException error) {
      return false;
    }
  }

  @Test
  void theValuesOfAReplyWaitTogetherForNoLongerThanForAReply() {
    listWithout(PROFILES);
    ManagedDictionaries dictionaries =
        dictionaries(forHours().build(), () -> new PlainServer(null, asked), SHORT);
    Codec reader = new Codec(forHours().build(), dictionaries);
    Budget reply = budget();
    assertIsMissing(() -> reader.decode(STORED, KEY, reply));
    Duration waited = reply.waited();
    assertTrue(waited.compareTo(SHORT) >= 0, waited::toString);
    assertIsMissing(() -> reader.decode(STORED, KEY, reply));
    assertEquals(waited, reply.waited(), "one after the first does not wait");
    putBeside(PROFILES);
    Waiting.until("those who come later find it", () -> dictionaries.find(PROFILES.id()) != null);
    assertArrayEquals(USER, reader.decode(STORED, KEY, reply));
  }

  @Test
  void aServerThatDoesNotAnswerHoldsNobodyUpForLongerThanForAReply() {
    CountDownLatch ended = new CountDownLatch(1);
    AtomicInteger questions = new AtomicInteger();
    DictionaryServer silent =
        new DictionaryServer() {
          @Override
          public List<DictionaryReply> send(List<DictionaryCommand> commands) {
            questions.incrementAndGet();
            try {
              ended.await();
            } catch (InterruptedException error) {
              Thread.currentThread().interrupt();
            }
            throw new IllegalStateException("the connection is lost");
          }

          @Override
          public void close() {}
        };
    Codec reader =
        new Codec(forHours().build(), dictionaries(forHours().build(), () -> silent, SHORT));
    Budget reply = budget();
    try {
      assertIsMissing(() -> reader.decode(STORED, KEY, reply));
      Duration waited = reply.waited();
      for (int value = 1; value < 100; value++) {
        assertIsMissing(() -> reader.decode(STORED, KEY, reply));
      }
      assertEquals(waited, reply.waited());
      assertTrue(questions.get() <= 1, questions::toString);
    } finally {
      ended.countDown();
    }
  }

  private static void assertIsMissing(Executable read) {
    UndecodableException error = assertThrows(UndecodableException.class, read);
    assertEquals(UndecodableException.Kind.DICTIONARY_MISSING, error.kind());
  }

  /** Looks for dictionaries longer than any test takes. */
  private static CompressionConfiguration.Builder forHours() {
    return CompressionConfiguration.builder().dictionaryRefresh(Duration.ofHours(24));
  }

  @Test
  void allWhoWaitShareOneLookUp() throws Exception {
    Codec reader = codec(patient());
    listWithout(PROFILES);
    ExecutorService executor = Executors.newFixedThreadPool(17);
    try {
      List<Callable<Void>> tasks = new ArrayList<>();
      for (int task = 0; task < 16; task++) {
        tasks.add(
            () -> {
              assertArrayEquals(USER, reader.decode(STORED));
              return null;
            });
      }
      tasks.add(
          () -> {
            Waiting.until("somebody has asked", this::wasAsked);
            putBeside(PROFILES);
            return null;
          });
      for (Future<Void> done : executor.invokeAll(tasks)) {
        done.get();
      }
    } finally {
      executor.shutdownNow();
    }
    assertEquals(1, counted.get(Counter.DICTIONARIES_FETCHED));
  }

  @Test
  void whoIsInterruptedDoesNotTakeTheDictionaryFromOthers() throws Exception {
    Codec reader = codec(patient());
    listWithout(PROFILES);
    Thread first =
        new Thread(() -> assertThrows(UndecodableException.class, () -> reader.decode(STORED)));
    first.start();
    Waiting.until("the first has asked", this::wasAsked);
    ExecutorService executor = Executors.newSingleThreadExecutor();
    try {
      Future<byte[]> second = executor.submit(() -> reader.decode(STORED));
      first.interrupt();
      first.join();
      putBeside(PROFILES);
      assertArrayEquals(USER, second.get());
    } finally {
      executor.shutdownNow();
    }
  }

  @Test
  void aWriterPutsItsDictionaryBackBeforeItEnds() {
    Codec writer = codec(patient().dictionary(PROFILES));
    writesWith(writer, KEY, PROFILES);
    plain.command("FLUSHALL");
    clients.get(0).close();
    // A busy machine takes longer than a client waits.
    Waiting.until("it is put back", () -> isBeside(PROFILES));
  }

  @Test
  void aWriterPutsItsDictionaryBackWhenItHasConnectedAgain() {
    Codec writer = codec(patient().dictionary(PROFILES));
    writesWith(writer, KEY, PROFILES);
    plain.command("FLUSHALL");
    clients.get(0).connected();
    Waiting.until("it is put back", () -> isBeside(PROFILES));
  }

  @Test
  void aGivenDictionaryIsPutBesideTheDataBeforeItIsUsed() {
    Codec writer = codec(settings().dictionary(PROFILES));
    assertEquals(1, Envelope.inspect(writer.encode(USER, KEY)).orElseThrow().backend());
    writesWith(writer, KEY, PROFILES);
    assertArrayEquals(PROFILES.bytes(), plain.bytes("GET", "{snugly}:dict:" + PROFILES.id()));
    assertArrayEquals(USER, codec(settings()).decode(writer.encode(USER, KEY)));
  }

  @Test
  void whatIsInUseIsPutBackAndTheCatalogueIsNot() {
    publish(Map.entry("*", PROFILES));
    Codec writer = codec(settings().catalogue(true));
    writesWith(writer, KEY, PROFILES);
    plain.command("FLUSHALL");
    Waiting.until("that is counted", () -> counted.containsKey(Counter.DICTIONARIES_PUT_BACK));
    assertTrue(isBeside(PROFILES));
    assertNull(plain.command("GET", "{snugly}:dicts"));
    assertEquals(1, counted.get(Counter.DICTIONARIES_PUT_BACK));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "redis.call('DEL', KEYS[1]) redis.call('RPUSH', KEYS[1], 1)",
        "redis.call('SET', KEYS[1], 'some other text')"
      })
  void whatElseIsInThePlaceOfADictionaryIsOverwritten(String script) {
    Codec writer = codec(settings().dictionary(PROFILES));
    writesWith(writer, KEY, PROFILES);
    plain.command("EVAL", script, "1", "{snugly}:dict:" + PROFILES.id());
    Waiting.until("it is mended", () -> counted.containsKey(Counter.DICTIONARIES_MENDED));
    assertArrayEquals(PROFILES.bytes(), plain.bytes("GET", "{snugly}:dict:" + PROFILES.id()));
  }

  @Test
  void whoMayNotKeepADictionaryDoesNotWriteWithTheOneThatIsGiven() {
    putBeside(PROFILES);
    plain.command("ACL", "SETUSER", "reader", "on", ">secret", "~user:*", "%R~{snugly}:*", "+@all");
    Codec reader = codec(settings().dictionary(PROFILES), "reader");
    writesWith(reader, KEY, PROFILES);
    plain.command("DEL", "{snugly}:dict:" + PROFILES.id());
    writesWith(reader, KEY, null);
  }

  @Test
  void copiesInAFolderAreUsedIfTheyAreRight(@TempDir Path folder) throws IOException {
    putBeside(PROFILES);
    assertArrayEquals(USER, codec(settings().dictionaryFolder(folder)).decode(STORED));
    Path copy = folder.resolve(PROFILES.id() + ".zdict");
    assertEquals(PROFILES, Dictionary.load(copy));
    try (var files = Files.list(folder)) {
      assertEquals(List.of(copy), files.toList());
    }
    closeClients();
    plain.command("FLUSHALL");
    assertArrayEquals(USER, codec(settings().dictionaryFolder(folder)).decode(STORED));
    closeClients();
    plain.command("FLUSHALL");
    Files.writeString(copy, "something else");
    Codec reader = codec(settings().dictionaryFolder(folder));
    assertThrows(UndecodableException.class, () -> reader.decode(STORED));
  }

  @Test
  void aCopyIsForItsOwnerAloneAndReadInPlaceOfTheServers(@TempDir Path folder) throws IOException {
    putBeside(PROFILES);
    String key = "{snugly}:dict:" + PROFILES.id();
    assertArrayEquals(USER, codec(settings().dictionaryFolder(folder)).decode(STORED));
    assertTrue(asked.contains(key));
    assertEquals(
        "rw-------",
        PosixFilePermissions.toString(
            Files.getPosixFilePermissions(folder.resolve(PROFILES.id() + ".zdict"))));
    closeClients();
    // Without the server's, only the copy can be what is read.
    plain.command("DEL", key);
    assertArrayEquals(USER, codec(settings().dictionaryFolder(folder)).decode(STORED));
  }

  @Test
  void whatIsAtHandIsUsedEvenIfItsMaintenanceCannotBegin() {
    ManagedDictionaries dictionaries =
        new ManagedDictionaries(
            settings().dictionary(PROFILES).build(),
            () -> {
              throw new IllegalStateException("there is no connection to be had");
            },
            () -> Duration.ZERO,
            counter -> {});
    assertEquals(PROFILES, dictionaries.find(PROFILES.id()));
    assertNull(dictionaries.forKey(KEY));
  }

  @Test
  void theThreadEndsWhenItsClientIsClosed() {
    codec(settings().catalogue(true)).encode(USER, KEY);
    assertTrue(isMaintained());
    closeClients();
    publish(Map.entry("*", PROFILES));
    assertFalse(clients.get(0).fetch(PROFILES.id(), budget()), "who is closed asks nobody");
  }

  @Test
  void theThreadEndsWhenItsClientIsGarbage() {
    useOnce();
    Waiting.until(
        "no thread is left",
        () -> {
          System.gc();
          return !isMaintained();
        });
  }

  /** Uses a client that nobody has afterwards. */
  @SuppressWarnings("resource")
  private void useOnce() {
    Compressor compressor =
        new Compressor(
            settings().catalogue(true).build(),
            () -> new PlainServer(null, new HashSet<>()),
            () -> Duration.ZERO);
    compressor.codec().encode(USER, KEY);
    assertTrue(isMaintained());
  }

  private void closeClients() {
    clients.forEach(ManagedDictionaries::close);
    Waiting.until("no thread is left", () -> !isMaintained());
  }

  private static boolean isMaintained() {
    return Thread.getAllStackTraces().keySet().stream()
        .anyMatch(thread -> thread.getName().equals("snugly-dictionaries"));
  }

  private static CompressionConfiguration.Builder settings() {
    return CompressionConfiguration.builder().dictionaryRefresh(REFRESH);
  }

  /** The same for those who wait for a dictionary until the test puts it there. */
  private static CompressionConfiguration.Builder patient() {
    return CompressionConfiguration.builder().dictionaryRefresh(Duration.ofMinutes(10));
  }

  private static Budget budget() {
    return new Budget(CompressionConfiguration.defaults());
  }

  private Codec codec(CompressionConfiguration.Builder settings) {
    return codec(settings, null);
  }

  private Codec codec(CompressionConfiguration.Builder settings, String user) {
    CompressionConfiguration configuration = settings.build();
    return new Codec(configuration, dictionaries(configuration, user));
  }

  private ManagedDictionaries dictionaries(CompressionConfiguration configuration, String user) {
    return dictionaries(configuration, () -> new PlainServer(user, asked), Duration.ZERO);
  }

  private ManagedDictionaries dictionaries(
      CompressionConfiguration configuration,
      Supplier<DictionaryServer> servers,
      Duration readTimeout) {
    ManagedDictionaries dictionaries =
        new ManagedDictionaries(
            configuration,
            servers,
            () -> readTimeout,
            counter -> counted.merge(counter, 1, Integer::sum));
    clients.add(dictionaries);
    return dictionaries;
  }

  /** Has the catalogue name a dictionary that is not there. */
  private void listWithout(Dictionary missing) {
    String row = "{\"pattern\": \"*\", \"id\": %d}".formatted(missing.id());
    plain.command("SET", "{snugly}:dicts", "{\"version\": 1, \"dictionaries\": [" + row + "]}");
  }

  private boolean wasAsked() {
    return asked.contains("{snugly}:dict:" + PROFILES.id());
  }

  /** Waits until values of a key are written with a dictionary, or with none for null. */
  private static void writesWith(Codec writer, byte[] key, Dictionary dictionary) {
    Waiting.until(
        "it is written with " + dictionary,
        () -> {
          Envelope envelope = Envelope.inspect(writer.encode(USER, key)).orElseThrow();
          long id = dictionary == null ? 0 : dictionary.id();
          return envelope.dictionary().orElse(0) == id;
        });
  }

  @SafeVarargs
  private void publish(Map.Entry<String, Dictionary>... active) {
    List<String> rows = new ArrayList<>();
    for (Map.Entry<String, Dictionary> each : active) {
      putBeside(each.getValue());
      rows.add("{\"pattern\": \"%s\", \"id\": %d}".formatted(each.getKey(), each.getValue().id()));
    }
    plain.command(
        "SET",
        "{snugly}:dicts",
        "{\"version\": 1, \"active\": %s, \"dictionaries\": %s}".formatted(rows, rows));
  }

  private void putBeside(Dictionary dictionary) {
    plain.command("SET", "{snugly}:dict:" + dictionary.id(), dictionary.bytes());
  }

  private boolean isBeside(Dictionary dictionary) {
    return plain.command("GET", "{snugly}:dict:" + dictionary.id()) != null;
  }

  private static Dictionary dictionary(String name) {
    return Dictionary.of(Vectors.dictionary(name));
  }

  /** A connection to the server without a client library. */
  private static final class PlainServer implements DictionaryServer {
    private final String user;
    private final Set<String> asked;
    private Connection connection;

    PlainServer(String user, Set<String> asked) {
      this.user = user;
      this.asked = asked;
    }

    private Connection connection() {
      if (connection == null) {
        connection = server.connect();
        if (user != null) {
          connection.command("AUTH", user, "secret");
        }
      }
      return connection;
    }

    @Override
    public List<DictionaryReply> send(List<DictionaryCommand> commands) {
      List<DictionaryReply> replies = new ArrayList<>();
      for (DictionaryCommand each : commands) {
        asked.add(new String(each.key(), UTF_8));
        try {
          replies.add(DictionaryReply.of(connection().command(each.words().toArray())));
        } catch (Connection.ErrorReply error) {
          replies.add(DictionaryReply.error(error.getMessage()));
        }
      }
      return replies;
    }

    @Override
    public void close() {
      if (connection != null) {
        connection.close();
        connection = null;
      }
    }
  }
}
