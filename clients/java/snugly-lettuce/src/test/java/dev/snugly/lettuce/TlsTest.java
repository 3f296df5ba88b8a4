package dev.snugly.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Dictionary;
import dev.snugly.testing.Connection;
import dev.snugly.testing.EncryptedServer;
import dev.snugly.testing.Vectors;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisConnectionException;
import io.lettuce.core.SslOptions;
import io.lettuce.core.api.sync.RedisCommands;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Encrypted connections, to a real redis-server that wants a certificate of the client, too. */
@Tag("slow")
class TlsTest {
  /** Longer than a record of TLS, and than what is decoded on the event loop. */
  private static final String LONG = Values.PAGE.repeat(100);

  private static final String USER =
      "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"plan\": \"plan-3\"}";

  private static EncryptedServer server;

  private Connection plain;
  private SnuglyRedisClient client;

  @BeforeAll
  static void start() {
    server = EncryptedServer.start();
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
    client =
        SnuglyRedisClient.create(
            "rediss://localhost:" + server.port(), CompressionConfiguration.defaults());
    trust(server.trustStore());
  }

  private void trust(Path trusted) {
    SslOptions tls =
        SslOptions.builder()
            .keystore(server.clientStore().toFile(), EncryptedServer.PASSWORD.toCharArray())
            .truststore(trusted.toFile(), EncryptedServer.PASSWORD)
            .build();
    client.setOptions(ClientOptions.builder().sslOptions(tls).build());
  }

  @AfterEach
  void close() {
    client.shutdown();
    plain.close();
  }

  @Test
  void valuesAreWrittenAndReadOverEncryptedConnections() {
    RedisCommands<String, String> commands = client.connect().sync();
    commands.set("page", Values.PAGE);
    commands.set("long", LONG);
    assertTrue(plain.bytes("GET", "long").length < LONG.length() / 10);
    assertEquals(Values.PAGE, commands.get("page"));
    assertEquals(LONG, commands.get("long"));
    commands.multi();
    commands.get("page");
    commands.get("long");
    assertEquals(List.of(Values.PAGE, LONG), commands.exec().stream().toList());
  }

  @Test
  void dictionariesAreFetchedOverEncryptedConnections() {
    Dictionary dictionary = Dictionary.of(Vectors.dictionary("profiles"));
    Codec writer = new Codec(CompressionConfiguration.builder().dictionary(dictionary).build());
    plain.command("SET", "{snugly}:dict:" + dictionary.id(), dictionary.bytes());
    plain.command("SET", "user:1", writer.encode(Values.bytes(USER)));
    assertEquals(USER, client.connect().sync().get("user:1"));
  }

  @Test
  void aServerThatIsNotTrustedGetsNoConnection() {
    trust(server.clientStore());
    assertThrows(RedisConnectionException.class, client::connect);
  }
}
