package dev.snugly.lettuce;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.gson.JsonObject;
import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Dictionary;
import dev.snugly.core.Encoding;
import dev.snugly.core.UndecodableException;
import dev.snugly.testing.Cluster;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Vectors;
import dev.snugly.testing.Waiting;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Dictionaries that lie beside the data of real servers. */
class DictionariesTest {
  private static final Dictionary PROFILES = dictionary();
  private static final String USER =
      "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"status\": \"status-3\"}";

  private static Server server;

  private SnuglyRedisClient client;
  private Connection plain;

  private static Dictionary dictionary() {
    JsonObject named = Vectors.read("envelopes.json").getAsJsonObject("dictionaries");
    return Dictionary.of(Vectors.expand(named.getAsJsonObject("profiles").get("bytes")));
  }

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

  @Test
  void valuesAreWrittenWithTheDictionaryOfTheirKeysAndReadByAnybody() {
    plain.command("SET", dictionaryKey(), PROFILES.bytes());
    plain.command("SET", "{snugly}:dicts", catalogue());
    RedisCommands<String, String> commands = commands(settings().catalogue(true));
    Waiting.until(
        "the catalogue is followed",
        () -> {
          commands.set("user:1", USER);
          return Values.encodingAt(plain, "user:1") == Encoding.ZSTD_DICTIONARY;
        });
    commands.set("page:1", Values.PAGE);
    assertEquals(Encoding.ZSTD, Values.encodingAt(plain, "page:1"));
    client.shutdown();
    assertEquals(USER, commands(settings()).get("user:1"));
    assertEquals(1, client.statistics().total(Counter.DICTIONARIES_FETCHED));
  }

  @Test
  void aDictionaryThatIsMissingIsWaitedForWhileOthersGetTheirReplies() throws Exception {
    byte[] stored =
        new Codec(CompressionConfiguration.builder().dictionary(PROFILES).build())
            .encode(USER.getBytes(UTF_8));
    plain.command("SET", "user:1", stored);
    commands(settings().dictionaryRefresh(Duration.ofMinutes(10)));
    RedisAsyncCommands<String, String> commands = client.connect().async();
    RedisFuture<String> user = commands.get("user:1");
    assertEquals("PONG", commands.ping().get(20, TimeUnit.SECONDS));
    assertFalse(user.isDone());
    plain.command("SET", dictionaryKey(), PROFILES.bytes());
    assertEquals(USER, user.get(20, TimeUnit.SECONDS));
    assertEquals(USER, commands.get("user:1").get(20, TimeUnit.SECONDS));
  }

  @Test
  void aDictionaryThatNobodyHasIsAnErrorOfItsCommandAlone() throws Exception {
    byte[] stored =
        new Codec(CompressionConfiguration.builder().dictionary(PROFILES).build())
            .encode(USER.getBytes(UTF_8));
    plain.command("SET", "user:1", stored);
    commands(settings());
    RedisAsyncCommands<String, String> commands = client.connect().async();
    RedisFuture<String> user = commands.get("user:1");
    ExecutionException failed =
        assertThrows(ExecutionException.class, () -> user.get(20, TimeUnit.SECONDS));
    UndecodableException error = assertInstanceOf(UndecodableException.class, failed.getCause());
    assertEquals(UndecodableException.Kind.DICTIONARY_MISSING, error.kind());
    assertArrayEquals(stored, error.stored());
    assertEquals("PONG", commands.ping().get(20, TimeUnit.SECONDS));
  }

  @Test
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
