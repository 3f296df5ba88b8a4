package dev.snugly.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.snugly.testing.Server;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.diagnostics.FailureAnalyzer;
import org.springframework.core.io.support.SpringFactoriesLoader;

/** Messages of an application that does not start. */
class ConfigurationFailureAnalyzerTest {
  @Test
  void aWrongPropertyIsToldWithoutAStack() {
    try (Server server = Server.valkey()) {
      Exception error =
          assertThrows(
              Exception.class,
              () ->
                  Applications.run(
                      server, List.of(Applications.Bare.class), "snugly.compression-level=23"));
      assertEquals(
          "Compression cannot be configured: compressionLevel is 23: for zstd it is a number from"
              + " -131072 to 22",
          analysis(error).getDescription());
    }
  }

  /** The text that Spring Boot prints: the analysis of the first one that has any. */
  private static FailureAnalysis analysis(Exception error) {
    return SpringFactoriesLoader.forDefaultResourceLocation()
        .load(FailureAnalyzer.class, (type, name, failure) -> {})
        .stream()
        .map(analyzer -> analyzer.analyze(error))
        .filter(Objects::nonNull)
        .findFirst()
        .orElseThrow();
  }
}
