package dev.snugly.core.catalogue;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.core.Dictionary;
import dev.snugly.testing.Vectors;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Dictionaries that a client has at hand, and those that it writes with. */
class DictionaryCacheTest {
  private static final Dictionary PROFILES = Dictionary.of(Vectors.dictionary("profiles"));
  private static final Dictionary ORDERS = Dictionary.of(Vectors.dictionary("orders"));
  private static final Duration REFRESH = Duration.ofMinutes(1);
  private static final Duration NOW = Duration.ofDays(20_000);
  private static final int MOST = 128;

  private final DictionaryCache writer =
      new DictionaryCache(null, true, List.of("session:*"), REFRESH);

  private static byte[] catalogue(Dictionary active) {
    String row = "{\"pattern\": \"*\", \"id\": %d}".formatted(active.id());
    return "{\"version\": 1, \"active\": [%s], \"dictionaries\": [%s]}"
        .formatted(row, row)
        .getBytes(UTF_8);
  }

  private static Dictionary other(int number) {
    return Dictionary.of(Vectors.otherDictionary(number));
  }

  private Dictionary writtenWith(String key) {
    return writer.forKey(key.getBytes(UTF_8));
  }

  @Test
  void aWriterUsesWhatTheCatalogueNamesOnceItIsAtHand() {
    DictionaryCache.Needed needed = writer.read(catalogue(PROFILES), NOW);
    assertEquals(List.of(PROFILES.id()), needed.wanted());
    assertNull(writtenWith("user:1"));
    writer.hold(PROFILES, NOW);
    assertEquals(PROFILES, writtenWith("user:1"));
    assertNull(writer.forKey(null));
  }

  @Test
  void excludedKeysAreWrittenWithout() {
    writer.read(catalogue(PROFILES), NOW);
    writer.hold(PROFILES, NOW);
    assertNull(writtenWith("session:1"));
  }

  @Test
  void aDocumentThatIsNoCatalogueCountsAsNoneAndWhatIsAtHandStays() {
    writer.read(catalogue(PROFILES), NOW);
    writer.hold(PROFILES, NOW);
    byte[] newer = "{\"version\": 2}".getBytes(UTF_8);
    assertThrows(CatalogueException.class, () -> writer.read(newer, NOW));
    assertNull(writtenWith("user:1"));
    assertFalse(writer.lists(PROFILES.id()));
    assertEquals(PROFILES, writer.find(PROFILES.id()));
  }

  @Test
  void whatIsNotAllowedIsReadWithAndNotWrittenWith() {
    writer.read(catalogue(PROFILES), NOW);
    writer.hold(PROFILES, NOW);
    writer.allow(false, NOW);
    assertNull(writtenWith("user:1"));
    assertEquals(PROFILES, writer.find(PROFILES.id()));
    writer.allow(true, NOW);
    assertEquals(PROFILES, writtenWith("user:1"));
  }

  @Test
  void theOneThatWasUsedLeastRecentlyGoesWhereThereAreTooMany() {
    writer.read(catalogue(PROFILES), NOW);
    writer.hold(PROFILES, NOW);
    Dictionary[] others = new Dictionary[MOST];
    Arrays.setAll(others, DictionaryCacheTest::other);
    for (Dictionary each : others) {
      writer.hold(each, NOW);
    }
    assertEquals(MOST + 1, writer.ids().size());
    assertEquals(others[0], writer.find(others[0].id()));
    writer.hold(ORDERS, NOW);
    assertEquals(MOST + 1, writer.ids().size());
    assertNull(writer.find(others[1].id()));
    assertTrue(
        writer
            .ids()
            .containsAll(Set.of(others[0].id(), others[2].id(), ORDERS.id(), PROFILES.id())));
  }

  @Test
  void aLookIsNoUse() {
    Dictionary[] others = new Dictionary[MOST];
    Arrays.setAll(others, DictionaryCacheTest::other);
    for (Dictionary each : others) {
      writer.hold(each, NOW);
    }
    assertEquals(others[0], writer.peek(others[0].id()));
    writer.hold(ORDERS, NOW);
    assertNull(writer.peek(others[0].id()));
  }
}
