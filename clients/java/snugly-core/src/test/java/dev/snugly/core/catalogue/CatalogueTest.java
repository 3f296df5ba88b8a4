package dev.snugly.core.catalogue;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.snugly.core.Glob;
import dev.snugly.testing.Vectors;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.AlphaChars;
import net.jqwik.api.constraints.Chars;
import net.jqwik.api.constraints.StringLength;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Patterns, choices and documents are as the vectors say. */
class CatalogueTest {
  private static final JsonObject VECTORS = Vectors.read("catalogue.json");

  static Stream<Named<JsonObject>> patterns() {
    return named("patterns");
  }

  static Stream<Named<JsonObject>> choosing() {
    return named("choosing");
  }

  static Stream<Named<JsonObject>> documents() {
    return named("documents");
  }

  private static Stream<Named<JsonObject>> named(String cases) {
    return Vectors.objects(VECTORS.get(cases)).stream()
        .map(each -> Named.of(each.get("name").getAsString(), each));
  }

  @ParameterizedTest
  @MethodSource("patterns")
  void theFirstPatternThatMatchesAKeyDecides(JsonObject vector) {
    JsonObject keys = vector.getAsJsonObject("keys");
    for (String key : keys.keySet()) {
      Integer found = null;
      for (JsonObject row : Vectors.objects(vector.get("active"))) {
        if (found == null && matches(row.get("pattern").getAsString(), key)) {
          found = row.get("id").getAsInt();
        }
      }
      assertEquals(number(keys.get(key)), found, key);
    }
  }

  @ParameterizedTest
  @MethodSource("choosing")
  void aDictionaryIsUsedFromItsTimeOnAndTheOneBeforeUntilThen(JsonObject vector) {
    JsonObject document = new JsonObject();
    document.addProperty("version", 1);
    document.add("active", vector.get("active"));
    document.add("dictionaries", vector.get("dictionaries"));
    Catalogue catalogue = Catalogue.decode(document.toString().getBytes(UTF_8));
    Duration refresh = Duration.ofSeconds(vector.get("refresh").getAsInt());
    JsonObject firstSeen = vector.getAsJsonObject("first_seen");
    JsonObject moments = vector.getAsJsonObject("at");
    for (String moment : moments.keySet()) {
      List<Integer> wanted = new ArrayList<>();
      moments.getAsJsonArray(moment).forEach(each -> wanted.add(number(each)));
      assertEquals(
          wanted,
          catalogue.choices(
              Duration.ofSeconds(Long.parseLong(moment)),
              refresh,
              id -> Duration.ofSeconds(firstSeen.get(Integer.toString(id)).getAsInt())),
          moment);
    }
  }

  @ParameterizedTest
  @MethodSource("documents")
  void aDocumentIsReadOrRefusedWithTheReason(JsonObject vector) {
    byte[] document = vector.get("document").getAsString().getBytes(UTF_8);
    if (!vector.has("error")) {
      Catalogue.decode(document);
      return;
    }
    CatalogueException error =
        assertThrows(CatalogueException.class, () -> Catalogue.decode(document));
    assertEquals(
        vector.get("error").getAsString(),
        error.kind().name().toLowerCase(Locale.ROOT),
        error.toString());
  }

  @Test
  void aNewerVersionIsSaid() {
    CatalogueException error =
        assertThrows(
            CatalogueException.class, () -> Catalogue.decode("{\"version\": 2}".getBytes(UTF_8)));
    assertEquals(
        "the catalogue has version 2, and this client knows version 1: update the client",
        error.getMessage());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "[]",
        "{'version': 1}",
        "{\"version\": 1} {}",
        "{\"version\": \"1\"}",
        "{\"version\": 1, \"active\": 7}",
        "{\"version\": 1, \"active\": [7]}",
        "{\"version\": 1, \"forgotten\": [-1]}",
        "{\"version\": 1, \"forgotten\": [1.5]}",
        "{\"version\": 1, \"forgotten\": [1e999999999]}",
        "{\"version\": 1, \"dictionaries\": [{\"id\": 1, \"pattern\": 7}]}",
      })
  void whatIsNoCatalogueIsRefused(String document) {
    CatalogueException error =
        assertThrows(CatalogueException.class, () -> Catalogue.decode(document.getBytes(UTF_8)));
    assertEquals(CatalogueException.Kind.UNREADABLE, error.kind());
  }

  @Test
  void aDocumentThatIsNestedDeeplyIsRefused() {
    byte[] nested = "[".repeat(500_000).getBytes(UTF_8);
    assertThrows(CatalogueException.class, () -> Catalogue.decode(nested));
    byte[] long0 = new byte[Catalogue.MAX_BYTES + 1];
    assertThrows(CatalogueException.class, () -> Catalogue.decode(long0));
  }

  @Test
  void manyStarsDoNotTakeExponentialTime() {
    assertFalse(matches("a*".repeat(50) + "b", "a".repeat(10_000)));
  }

  @Property
  void aPatternWithoutWildcardsMatchesItselfOnly(
      @ForAll @AlphaChars @StringLength(max = 10) String pattern,
      @ForAll @AlphaChars @StringLength(max = 10) String key) {
    assertTrue(matches(pattern, pattern));
    assertEquals(pattern.equals(key), matches(pattern, key));
    assertTrue(matches(pattern + "*", pattern + key));
    assertTrue(matches("*" + key, pattern + key));
  }

  @Property(tries = 5000)
  void anyPatternMatchesOrDoesNot(
      @ForAll @Chars({'*', '?', '[', ']', '^', '-', '\\', 'a', 'b'}) @StringLength(max = 12)
          String pattern,
      @ForAll @Chars({'a', 'b', ']', '\\', '*'}) @StringLength(max = 8) String key) {
    boolean isMatch = matches(pattern, key);
    assertTrue(!isMatch || matches("*" + pattern, "x" + key));
  }

  private static Integer number(JsonElement value) {
    return value.isJsonNull() ? null : value.getAsInt();
  }

  private static boolean matches(String pattern, String key) {
    return new Glob(pattern).matches(key.getBytes(UTF_8));
  }
}
