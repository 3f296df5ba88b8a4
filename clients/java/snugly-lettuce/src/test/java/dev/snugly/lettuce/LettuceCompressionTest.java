package dev.snugly.lettuce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.snugly.core.CompressionBackend;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.ConfigurationException;
import java.util.concurrent.Executor;
import org.junit.jupiter.api.Test;

/** Which settings may be, and how they are shown. */
class LettuceCompressionTest {
  private static LettuceCompression.Builder lz4() {
    return LettuceCompression.builder(
        CompressionConfiguration.builder().backend(CompressionBackend.LZ4).build());
  }

  @Test
  void itShowsWhatDiffersFromTheDefaults() {
    assertEquals(
        "LettuceCompression[CompressionConfiguration[backend=lz4]]", lz4().build().toString());
    Executor executor =
        new Executor() {
          @Override
          public void execute(Runnable task) {
            task.run();
          }

          @Override
          public String toString() {
            return "on the spot";
          }
        };
    assertEquals(
        "LettuceCompression[CompressionConfiguration[backend=lz4], eventLoopBytes=0,"
            + " decodeExecutor=on the spot]",
        lz4().eventLoopBytes(0).decodeExecutor(executor).build().toString());
  }

  @Test
  void aNegativeNumberOfBytesIsRefused() {
    assertEquals(
        "eventLoopBytes is -1: it is a number from 0",
        assertThrows(ConfigurationException.class, () -> lz4().eventLoopBytes(-1).build())
            .getMessage());
  }
}
