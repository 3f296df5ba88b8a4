package dev.snugly.benchmark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.snugly.benchmark.client.Backend;
import dev.snugly.benchmark.client.ClientKind;
import dev.snugly.testing.Cluster;
import dev.snugly.testing.Connection;
import dev.snugly.testing.Server;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The whole program, with real servers. */
class MainTest {
  private static final long NOT_COMPRESSED = 4000;
  private static final long MUCH_LESS = 2500;

  @TempDir private Path folder;
  private final StringWriter told = new StringWriter();
  private final StringWriter errors = new StringWriter();

  private int run(Stream<String> words) {
    return Main.line()
        .setOut(new PrintWriter(told))
        .setErr(new PrintWriter(errors))
        .execute(words.toArray(String[]::new));
  }

  private int minimal(int port, String... more) {
    List<String> words = new ArrayList<>(List.of("--minimal", "--host", "127.0.0.1"));
    words.addAll(List.of("--port", Integer.toString(port), "--data", "json"));
    Collections.addAll(words, more);
    if (!words.contains("--resultsFile")) {
      words.addAll(List.of("--resultsFile", folder.resolve("results.json").toString()));
    }
    return run(words.stream());
  }

  private List<JsonObject> records() throws IOException {
    String text = Files.readString(folder.resolve("results.json"));
    return JsonParser.parseString(text).getAsJsonArray().asList().stream()
        .map(JsonElement::getAsJsonObject)
        .toList();
  }

  @Test
  void everyClientIsMeasuredInEveryWorkloadAndNothingIsLeftOnTheServer() throws IOException {
    try (Server server = Server.valkey();
        Connection connection = server.connect()) {
      connection.command("SET", "not ours", "stays");
      int code =
          minimal(
              server.port(),
              "--dataSize",
              "100",
              "--concurrentTasks",
              "1 8",
              "--link",
              "direct 1gbit");
      assertEquals(0, code, errors::toString);
      assertEquals(2 * 2 * ClientKind.values().length, records().size());
      for (JsonObject each : records()) {
        assertTrue(each.get("tps").getAsDouble() > 0, each::toString);
        assertTrue(each.get("get_existing_p99_latency").getAsDouble() > 0, each::toString);
      }
      assertEquals(1L, connection.command("DBSIZE"));
    }
  }

  @ParameterizedTest
  @EnumSource(Backend.class)
  void whoCompressesStoresLess(Backend backend) throws IOException {
    for (JsonObject each : large(backend)) {
      ClientKind client = client(each);
      long stored = Math.round(each.get("stored_bytes").getAsDouble());
      assertEquals(backend.toString(), each.get("backend").getAsString());
      assertEquals(client.isCompressed(), stored < MUCH_LESS, each::toString);
      assertEquals(!client.isCompressed(), stored == NOT_COMPRESSED, each::toString);
    }
  }

  @Test
  void everybodyWhoCompressesUsesTheBackendThatIsAskedFor() throws IOException {
    Map<ClientKind, Double> zstd = stored(large(Backend.ZSTD));
    Map<ClientKind, Double> lz4 = stored(large(Backend.LZ4));
    for (ClientKind client : ClientKind.values()) {
      // zstd entropy codes what LZ4 leaves as it is.
      assertEquals(client.isCompressed(), lz4.get(client) > 1.1 * zstd.get(client));
    }
  }

  /** Findings with values of 4,000 bytes. */
  private List<JsonObject> large(Backend backend) throws IOException {
    try (Server server = Server.valkey()) {
      String name = backend.toString();
      String[] large = {"--dataSize", "4000", "--concurrentTasks", "2", "--backend", name};
      int code = minimal(server.port(), large);
      assertEquals(0, code, errors::toString);
    }
    return records();
  }

  private static ClientKind client(JsonObject each) {
    return ClientKind.valueOf(each.get("client").getAsString().toUpperCase(Locale.ROOT));
  }

  private static Map<ClientKind, Double> stored(List<JsonObject> records) {
    return records.stream()
        .collect(
            Collectors.toMap(MainTest::client, each -> each.get("stored_bytes").getAsDouble()));
  }

  @Test
  void figuresOfProgramsThatHaveJustStartedAreNotJudged() {
    try (Server server = Server.valkey()) {
      String[] ours = {"--clients", "jedis jedis_snugly", "--dataSize", "100"};
      assertEquals(0, minimal(server.port(), ours), errors::toString);
      assertTrue(told.toString().contains("No aims are judged"), told::toString);
      assertFalse(told.toString().contains("MISSED"), told::toString);
      assertFalse(told.toString().contains("aims met"), told::toString);
    }
  }

  @Test
  void aClusterIsMeasuredWithEveryClient() throws IOException {
    try (Cluster cluster = Cluster.start(3)) {
      int port = cluster.nodes().get(0).port();
      int code =
          minimal(
              port,
              "--clusterModeEnabled",
              "--dataSize",
              "4000",
              "--concurrentTasks",
              "4",
              "--clientCount",
              "2");
      assertEquals(0, code, errors::toString);
      assertEquals(ClientKind.values().length, records().size());
      records().forEach(each -> assertTrue(each.get("is_cluster").getAsBoolean()));
      for (Server node : cluster.nodes()) {
        try (Connection connection = node.connect()) {
          assertEquals(0L, connection.command("DBSIZE"));
        }
      }
    }
  }

  @Test
  void everyClientSpeaksTlsAndTrustsTheCertificatesThatItIsGivenAndNoOthers() throws Exception {
    try (Server server = Server.valkey();
        TlsFront front = new TlsFront(folder, server.port())) {
      String ca = front.certificate().toString();
      String[] small = {"--dataSize", "100", "--concurrentTasks", "2", "--tlsCa", ca};
      assertEquals(0, minimal(front.port(), small), errors::toString);
      assertEquals(ClientKind.values().length, records().size());
      assertEquals(1, minimal(front.port(), "--clients", "jedis", "--tls"));
      assertTrue(errors.toString().contains("certification path"), errors::toString);
    }
  }

  @Test
  void aFileWithoutCertificatesIsTold() throws IOException {
    Path empty = Files.createFile(folder.resolve("empty.pem"));
    assertEquals(1, minimal(1, "--tlsCa", empty.toString()));
    assertTrue(errors.toString().contains("empty.pem has no certificate"), errors::toString);
  }

  @Test
  void wrongOptionsEndWithTwoAndFailedMeasurementsWithOne() {
    assertEquals(2, run(Stream.of("--clients", "nobody")));
    assertTrue(errors.toString().contains("none of"), errors::toString);
    // Nobody listens there.
    assertEquals(1, minimal(1, "--clients", "jedis"));
    assertTrue(errors.toString().contains("The measurement failed"), errors::toString);
  }

  @Test
  void aFolderForTheResultsThatCannotBeIsToldBeforeAnythingIsMeasured() throws IOException {
    Path file = Files.createFile(folder.resolve("file")).resolve("results.json");
    assertEquals(1, minimal(1, "--clients", "jedis", "--resultsFile", file.toString()));
    assertTrue(errors.toString().contains(folder.resolve("file").toString()), errors::toString);
    assertFalse(errors.toString().contains("filling"), errors::toString);
  }

  @Test
  void helpNamesEveryOption() {
    assertEquals(0, run(Stream.of("--help")));
    for (String option : List.of("--clients", "--minimal", "--link", "--resultsFile")) {
      assertTrue(told.toString().contains(option), told::toString);
    }
    assertFalse(told.toString().contains("[\\s"), told::toString);
  }
}
