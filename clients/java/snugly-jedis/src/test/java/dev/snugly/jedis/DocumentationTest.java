package dev.snugly.jedis;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.snugly.testing.Documentation;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Compilation of what the documentation shows. */
class DocumentationTest {
  @Test
  void theExamplesCompile(@TempDir Path folder) {
    assertEquals(
        List.of("WithJedis", "WithLocks"), Documentation.compile("dev.snugly.jedis.", folder));
  }
}
