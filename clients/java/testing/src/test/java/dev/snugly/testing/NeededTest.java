package dev.snugly.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.opentest4j.TestAbortedException;

class NeededTest {
  @Test
  void aProgramIsWhatItsVariableSays() {
    assertEquals("server", Needed.program("SERVER", Map.of("SERVER", "server", Needed.SKIP, "1")));
  }

  @Test
  void aTestWhoseProgramIsNotNamedFails() {
    IllegalStateException error =
        assertThrows(IllegalStateException.class, () -> Needed.program("SERVER", Map.of()));
    assertTrue(error.getMessage().contains("SERVER is not set"), error.getMessage());
  }

  @Test
  void aTestWhoseProgramIsNotNamedIsSkippedWhereThatIsAskedFor() {
    assertThrows(
        TestAbortedException.class, () -> Needed.program("SERVER", Map.of(Needed.SKIP, "1")));
  }
}
