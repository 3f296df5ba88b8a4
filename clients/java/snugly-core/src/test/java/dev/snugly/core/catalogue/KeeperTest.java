package dev.snugly.core.catalogue;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Dictionary;
import dev.snugly.core.Envelope;
import dev.snugly.core.UndecodableException;
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
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Dictionaries beside the data of a real server. */
class KeeperTest {
  private static final Duration REFRESH = Duration.ofMillis(600);
  private static final Dictionary PROFILES = dictionary("profiles");
  private static final Dictionary ORDERS = dictionary("orders");
  private static final byte[] USER =
      "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"status\": \"status-3\"}"
          .getBytes(UTF_8);
  private static final byte[] KEY = "user:1".getBytes(UTF_8);
  private static final byte[] STORED =
      new Codec(CompressionConfiguration.builder().dictionary(PROFILES).build()).encode(USER);

  private static Server server;

  private final List<Keeper> keepers = new ArrayList<>();
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
    closeKeepers();
    plain.close();
  }

  @Test
  void theFirstPatternThatMatchesDecidesAndAnybodyReads() {
    publish(List.of(Map.entry("user:*", PROFILES), Map.entry("*", ORDERS)), List.of());
    Codec writer = codec(settings().catalogue(true));
    writesWith(writer, KEY, PROFILES);
    writesWith(writer, "order:1".getBytes(UTF_8), ORDERS);
    Codec reader = codec(settings());
    assertArrayEquals(USER, reader.decode(writer.encode(USER, KEY)));
    assertEquals(1, Envelope.inspect(reader.encode(USER, KEY)).orElseThrow().backend());
    assertEquals(1, reader.statistics().total(Counter.DICTIONARY_MISSES));
  }

  @Test
  void aMissingDictionaryIsAnErrorThatNamesItAndIsRemembered() {
    Codec reader = codec(settings());
    for (int round = 0; round < 2; round++) {
      UndecodableException error =
          assertThrows(UndecodableException.class, () -> reader.decode(STORED, KEY));
      assertEquals(UndecodableException.Kind.DICTIONARY_MISSING, error.kind());
      assertEquals(PROFILES.id(), error.dictionary());
    }
    Waiting.until(
        "a read asks nobody",
        () -> {
          long before = misses();
          assertThrows(UndecodableException.class, () -> reader.decode(STORED, KEY));
          return misses() == before;
        });
  }

  @Test
  void allWhoWaitShareOneFetch() throws Exception {
    Codec reader = codec(patient());
    long before = misses();
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
            Waiting.until("somebody has asked", () -> misses() > before);
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
  void whoWaitsForAThreadThatIsInterruptedLooksAgain() throws Exception {
    Codec reader = codec(patient());
    long before = misses();
    Thread first =
        new Thread(() -> assertThrows(UndecodableException.class, () -> reader.decode(STORED)));
    first.start();
    Waiting.until("the first has asked", () -> misses() > before);
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
  void aGivenDictionaryIsPutBesideTheDataBeforeItIsUsed() {
    Codec writer = codec(settings().dictionary(PROFILES));
    assertEquals(1, Envelope.inspect(writer.encode(USER, KEY)).orElseThrow().backend());
    writesWith(writer, KEY, PROFILES);
    assertArrayEquals(PROFILES.bytes(), plain.bytes("GET", "{snugly}:dict:" + PROFILES.id()));
    assertArrayEquals(USER, codec(settings()).decode(writer.encode(USER, KEY)));
  }

  @Test
  void whatIsInUseIsPutBackAndTheCatalogueIsNot() {
    publish(List.of(Map.entry("*", PROFILES)), List.of());
    Codec writer = codec(settings().catalogue(true));
    writesWith(writer, KEY, PROFILES);
    plain.command("FLUSHALL");
    Waiting.until("that is counted", () -> counted.containsKey(Counter.DICTIONARIES_PUT_BACK));
    assertTrue(isBeside(PROFILES));
    assertNull(plain.command("GET", "{snugly}:dicts"));
    assertEquals(1, counted.get(Counter.DICTIONARIES_PUT_BACK));
  }

  @Test
  void whatIsForgottenDoesNotComeBack() {
    publish(List.of(Map.entry("*", PROFILES)), List.of());
    Codec writer = codec(settings().catalogue(true));
    writesWith(writer, KEY, PROFILES);
    publish(List.of(Map.entry("*", ORDERS)), List.of(PROFILES));
    plain.command("DEL", "{snugly}:dict:" + PROFILES.id());
    writesWith(writer, KEY, ORDERS);
    assertThrows(UndecodableException.class, () -> writer.decode(STORED));
    assertFalse(isBeside(PROFILES));
  }

  @Test
  void aBrokenCatalogueIsAsNone() {
    publish(List.of(Map.entry("*", PROFILES)), List.of());
    Codec writer = codec(settings().catalogue(true));
    writesWith(writer, KEY, PROFILES);
    plain.command("SET", "{snugly}:dicts", "{\"version\": 2}");
    writesWith(writer, KEY, null);
    assertArrayEquals(USER, writer.decode(STORED));
    publish(List.of(Map.entry("*", PROFILES)), List.of());
    writesWith(writer, KEY, PROFILES);
  }

  @Test
  void excludedKeysAreWrittenWithout() {
    publish(List.of(Map.entry("*", PROFILES)), List.of());
    Codec writer = codec(settings().catalogue(true).dictionaryExclude(List.of("session:*")));
    writesWith(writer, KEY, PROFILES);
    byte[] stored = writer.encode(USER, "session:1".getBytes(UTF_8));
    assertEquals(1, Envelope.inspect(stored).orElseThrow().backend());
  }

  @Test
  void whatIsNotTheDictionaryIsRefused() {
    byte[] cut = new byte[PROFILES.bytes().length - 1];
    System.arraycopy(PROFILES.bytes(), 0, cut, 0, cut.length);
    for (byte[] wrong : List.of("no dictionary".getBytes(UTF_8), ORDERS.bytes(), cut)) {
      plain.command("SET", "{snugly}:dict:" + PROFILES.id(), wrong);
      Codec reader = codec(settings());
      assertThrows(UndecodableException.class, () -> reader.decode(STORED));
    }
  }

  @Test
  void withoutPermissionDictionariesAreOffAndNothingElseFails() {
    publish(List.of(Map.entry("*", PROFILES)), List.of());
    plain.command("ACL", "SETUSER", "limited", "on", ">secret", "~user:*", "+@all");
    Codec limited = codec(settings().catalogue(true), "limited");
    assertThrows(UndecodableException.class, () -> limited.decode(STORED));
    assertEquals(1, Envelope.inspect(limited.encode(USER, KEY)).orElseThrow().backend());
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
    closeKeepers();
    plain.command("FLUSHALL");
    assertArrayEquals(USER, codec(settings().dictionaryFolder(folder)).decode(STORED));
    closeKeepers();
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
    closeKeepers();
    asked.clear();
    assertArrayEquals(USER, codec(settings().dictionaryFolder(folder)).decode(STORED));
    closeKeepers();
    assertFalse(asked.contains(key), asked::toString);
  }

  @Test
  void whatIsAtHandIsUsedEvenIfItsCareCannotBegin() {
    Keeper keeper =
        new Keeper(
            settings().dictionary(PROFILES).build(),
            () -> {
              throw new IllegalStateException("there is no way to the server");
            },
            counter -> {});
    assertEquals(PROFILES, keeper.find(PROFILES.id()));
    assertNull(keeper.forKey(KEY));
  }

  @Test
  void theThreadEndsWithItsKeeper() {
    codec(settings().catalogue(true)).encode(USER, KEY);
    assertTrue(isKept());
    closeKeepers();
    publish(List.of(Map.entry("*", PROFILES)), List.of());
    assertFalse(keepers.get(0).fetch(PROFILES.id()), "who is closed asks nobody");
  }

  private void closeKeepers() {
    keepers.forEach(Keeper::close);
    Waiting.until("no thread is left", () -> !isKept());
  }

  private static boolean isKept() {
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

  private Codec codec(CompressionConfiguration.Builder settings) {
    return codec(settings, null);
  }

  private Codec codec(CompressionConfiguration.Builder settings, String user) {
    CompressionConfiguration configuration = settings.build();
    Keeper keeper =
        new Keeper(
            configuration,
            () -> new Way(server.port(), user),
            counter -> counted.merge(counter, 1, Integer::sum));
    keepers.add(keeper);
    return new Codec(configuration, keeper);
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

  private void publish(List<Map.Entry<String, Dictionary>> active, List<Dictionary> forgotten) {
    List<String> rows = new ArrayList<>();
    List<String> ids = new ArrayList<>();
    for (Map.Entry<String, Dictionary> each : active) {
      putBeside(each.getValue());
      rows.add("{\"pattern\": \"%s\", \"id\": %d}".formatted(each.getKey(), each.getValue().id()));
    }
    forgotten.forEach(each -> ids.add(Integer.toString(each.id())));
    plain.command(
        "SET",
        "{snugly}:dicts",
        "{\"version\": 1, \"active\": %s, \"dictionaries\": %s, \"forgotten\": %s}"
            .formatted(rows, rows, ids));
  }

  private void putBeside(Dictionary dictionary) {
    plain.command("SET", "{snugly}:dict:" + dictionary.id(), dictionary.bytes());
  }

  private boolean isBeside(Dictionary dictionary) {
    return plain.command("GET", "{snugly}:dict:" + dictionary.id()) != null;
  }

  private static long misses() {
    try (Connection connection = server.connect()) {
      String info = connection.text("INFO", "stats");
      return info.lines()
          .filter(line -> line.startsWith("keyspace_misses:"))
          .mapToLong(line -> Long.parseLong(line.substring(16)))
          .sum();
    }
  }

  private static Dictionary dictionary(String name) {
    return Dictionary.of(Vectors.dictionary(name));
  }

  /** A way to the server without a client library. */
  private final class Way implements DictionaryServer {
    private final int port;
    private final String user;
    private Connection connection;

    Way(int port, String user) {
      this.port = port;
      this.user = user;
    }

    private Connection connection() {
      if (connection == null) {
        connection = new Connection(port);
        if (user != null) {
          connection.command("AUTH", user, "secret");
        }
      }
      return connection;
    }

    @Override
    public byte[] get(byte[] key) {
      asked.add(new String(key, UTF_8));
      return connection().bytes("GET", key);
    }

    @Override
    public boolean touch(byte[] key) {
      return connection().command("TOUCH", key).equals(1L);
    }

    @Override
    public boolean setIfAbsent(byte[] key, byte[] value) {
      return connection().command("SET", key, value, "NX") != null;
    }

    @Override
    public Failure failure(RuntimeException error) {
      if (!(error instanceof Connection.ErrorReply)) {
        return Failure.PASSING;
      }
      return error.getMessage().startsWith("NOPERM") ? Failure.DENIED : Failure.REPLY;
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
