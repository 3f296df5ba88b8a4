package dev.snugly.valkey;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Codec;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Dictionary;
import dev.snugly.testing.Connection;
import dev.snugly.testing.EncryptedServer;
import dev.snugly.testing.Vectors;
import io.valkey.DefaultJedisClientConfig;
import io.valkey.HostAndPort;
import io.valkey.JedisClientConfig;
import io.valkey.Response;
import io.valkey.exceptions.JedisConnectionException;
import java.nio.file.Path;
import javax.net.ssl.SSLParameters;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Encrypted connections, to a real redis-server that wants a certificate of the client, too. */
@Tag("slow")
class TlsTest {
  /** Longer than a record of TLS. */
  private static final String PAGE = "<p>h\u00e9llo</p>".repeat(10_000);

  private static final String USER =
      "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"plan\": \"plan-3\"}";

  private static EncryptedServer server;

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

  @Test
  void valuesAreWrittenAndReadOverEncryptedConnections() {
    try (SnuglyJedis cache = client(server.trustStore());
        CompressingPipeline pipeline = cache.pipelined();
        Connection plain = server.connect()) {
      cache.set("page", PAGE);
      assertTrue(plain.bytes("GET", "page").length < PAGE.length() / 10);
      assertEquals(PAGE, cache.get("page"));
      Response<String> page = pipeline.get("page");
      pipeline.sync();
      assertEquals(PAGE, page.get());
    }
  }

  @Test
  void dictionariesAreFetchedOverEncryptedConnections() {
    Dictionary dictionary = Dictionary.of(Vectors.dictionary("profiles"));
    Codec writer = new Codec(CompressionConfiguration.builder().dictionary(dictionary).build());
    try (SnuglyJedis cache = client(server.trustStore());
        Connection plain = server.connect()) {
      plain.command("SET", "{snugly}:dict:" + dictionary.id(), dictionary.bytes());
      plain.command("SET", "user:1", writer.encode(USER.getBytes(UTF_8)));
      assertEquals(USER, cache.get("user:1"));
    }
  }

  @Test
  void aServerThatIsNotTrustedGetsNoValue() {
    try (SnuglyJedis cache = client(server.clientStore());
        Connection plain = server.connect()) {
      assertThrows(JedisConnectionException.class, () -> cache.set("untrusted", PAGE));
      assertNull(plain.bytes("GET", "untrusted"));
    }
  }

  private static SnuglyJedis client(Path trusted) {
    SSLParameters namesAreVerified = new SSLParameters();
    namesAreVerified.setEndpointIdentificationAlgorithm("HTTPS");
    JedisClientConfig config =
        DefaultJedisClientConfig.builder()
            .ssl(true)
            .sslSocketFactory(server.context(trusted).getSocketFactory())
            .sslParameters(namesAreVerified)
            .build();
    return SnuglyJedis.pooled(
        new HostAndPort("localhost", server.port()), config, CompressionConfiguration.defaults());
  }
}
