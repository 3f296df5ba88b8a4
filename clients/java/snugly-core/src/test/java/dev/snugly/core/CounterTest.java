package dev.snugly.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.gson.JsonObject;
import dev.snugly.testing.Vectors;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Names and texts of counters. */
class CounterTest {
  @Test
  void namesAndTextsAreThoseOfTheSpecification() {
    JsonObject specified = Vectors.data("counters.json").getAsJsonObject();
    assertEquals(texts(specified, "each_codec"), own(true));
    Map<String, String> others = texts(specified, "all_codecs");
    others.putAll(texts(specified, "clients"));
    assertEquals(others, own(false));
  }

  private static Map<String, String> texts(JsonObject specified, String part) {
    Map<String, String> texts = new TreeMap<>();
    specified
        .getAsJsonObject(part)
        .entrySet()
        .forEach(row -> texts.put(row.getKey(), row.getValue().getAsString()));
    return texts;
  }

  private static Map<String, String> own(boolean perEncoding) {
    Map<String, String> texts = new TreeMap<>();
    for (Counter counter : Counter.values()) {
      if (counter.isPerEncoding() == perEncoding) {
        texts.put(counter.toString(), counter.help());
      }
    }
    return texts;
  }
}
