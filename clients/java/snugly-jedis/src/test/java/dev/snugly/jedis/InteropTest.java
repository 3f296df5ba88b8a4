package dev.snugly.jedis;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.CompressionBackend;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Dictionary;
import dev.snugly.core.Envelope;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import dev.snugly.testing.Vectors;
import dev.snugly.testing.Waiting;
import glide.api.GlideClient;
import glide.api.models.configuration.GlideClientConfiguration;
import glide.api.models.configuration.NodeAddress;
import java.io.IOException;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Other clients read what this one writes, and the other way round. */
@Tag("slow")
class InteropTest {
  private static final String PAGE = "<p>h\u00e9llo</p>".repeat(100);

  private static final String PROFILE =
      "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"plan\": \"plan-3\"}";

  /** Milliseconds for a request. GLIDE gives it 250, which a busy machine can miss. */
  private static final int PATIENCE = 60_000;

  private static final String READ_AND_WRITE =
      """
      import sys
      import snugly

      port, backend = int(sys.argv[1]), sys.argv[2]
      chosen = snugly.CompressionConfiguration(backend=backend)
      with snugly.Valkey(port=port, compression=chosen) as cache:
          cache.set("from-python", cache.get("from-java") + b"!")
      """;

  private static Server server;

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

  @ParameterizedTest
  @EnumSource(
      value = CompressionBackend.class,
      names = {"ZSTD", "LZ4"})
  @EnabledOnOs(value = OS.LINUX, architectures = "amd64")
  void glideReadsWhatWeWriteAndWeReadWhatItWrites(CompressionBackend backend)
      throws InterruptedException, ExecutionException {
    try (SnuglyRedisClient cache = client(backend);
        GlideClient glide = GlideClient.createClient(glide(backend)).get();
        Connection plain = server.connect()) {
      cache.set("from-java", PAGE);
      assertTrue(Envelope.inspect(plain.bytes("GET", "from-java")).isPresent());
      assertEquals(PAGE, glide.get("from-java").get());
      glide.set("from-glide", PAGE + "!").get();
      assertTrue(Envelope.inspect(plain.bytes("GET", "from-glide")).isPresent());
      assertEquals(PAGE + "!", cache.get("from-glide"));
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = CompressionBackend.class,
      names = {"ZSTD", "LZ4"})
  void pythonReadsWhatWeWriteAndWeReadWhatItWrites(CompressionBackend backend)
      throws IOException, InterruptedException {
    try (SnuglyRedisClient cache = client(backend);
        Connection plain = server.connect()) {
      cache.set("from-java", PAGE);
      readAndWriteInPython(backend);
      assertTrue(Envelope.inspect(plain.bytes("GET", "from-python")).isPresent());
      assertEquals(PAGE + "!", cache.get("from-python"));
    }
  }

  @Test
  void pythonReadsWhatWeWriteWithLz4AndADictionary() throws IOException, InterruptedException {
    Dictionary profiles = Dictionary.of(Vectors.dictionary("profiles"));
    CompressionConfiguration.Builder settings =
        CompressionConfiguration.builder().backend(CompressionBackend.LZ4).dictionary(profiles);
    try (SnuglyRedisClient cache = client(settings);
        Connection plain = server.connect()) {
      Waiting.until(
          "the dictionary is used",
          () -> {
            cache.set("from-java", PROFILE);
            return cache.codec().dictionaryOf(plain.bytes("GET", "from-java")) == profiles.id();
          });
      readAndWriteInPython(CompressionBackend.LZ4);
      assertEquals(PROFILE + "!", cache.get("from-python"));
    }
  }

  private static void readAndWriteInPython(CompressionBackend backend)
      throws IOException, InterruptedException {
    String python = System.getenv("SNUGLY_PYTHON");
    Assumptions.assumeTrue(
        python != null, "no Python: set SNUGLY_PYTHON to one that has the package snugly");
    Process process =
        new ProcessBuilder(
                List.of(
                    python,
                    "-c",
                    READ_AND_WRITE,
                    Integer.toString(server.port()),
                    backend.toString()))
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertTrue(process.waitFor(30, TimeUnit.SECONDS));
    assertEquals("", output);
  }

  private static SnuglyRedisClient client(CompressionBackend backend) {
    return client(CompressionConfiguration.builder().backend(backend));
  }

  private static SnuglyRedisClient client(CompressionConfiguration.Builder settings) {
    return SnuglyRedisClient.builder(settings.build())
        .hostAndPort("127.0.0.1", server.port())
        .build();
  }

  private static GlideClientConfiguration glide(CompressionBackend backend) {
    return GlideClientConfiguration.builder()
        .address(NodeAddress.builder().host("127.0.0.1").port(server.port()).build())
        .requestTimeout(PATIENCE)
        .compressionConfiguration(
            glide.api.models.configuration.CompressionConfiguration.builder()
                .enabled(true)
                .backend(
                    glide.api.models.configuration.CompressionBackend.valueOf(
                        backend.name().toUpperCase(Locale.ROOT)))
                .build())
        .build();
  }
}
