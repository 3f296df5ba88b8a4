package dev.snugly.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.snugly.testing.Vectors;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Options, their defaults and ranges. */
class SpecifiedOptionsTest {
  private final JsonObject specified = Vectors.data("options.json").getAsJsonObject();

  @Test
  void defaultsAreThoseOfTheSpecification() {
    CompressionConfiguration defaults = CompressionConfiguration.defaults();
    assertEquals(text("backend"), name(defaults.backend()));
    assertEquals(number("min_compression_size", "default"), defaults.minCompressionSize());
    assertEquals(number("max_decompressed_size", "default"), defaults.maxDecompressedSize());
    assertEquals(number("max_reply_bytes", "default"), defaults.maxReplyBytes());
    assertEquals(text("existing_envelopes"), name(defaults.existingEnvelopes()));
    assertEquals(option("checksum").get("default").getAsBoolean(), defaults.checksum());
    assertEquals(text("on_undecodable"), name(defaults.onUndecodable()));
    assertEquals(
        strings(option("value_types").get("default")),
        defaults.valueTypes().stream().map(SpecifiedOptionsTest::name).toList());
    assertEquals(strings(option("exclude").get("default")), defaults.exclude());
    assertEquals(text("dictionary_prefix"), defaults.dictionaryPrefix());
    assertEquals(seconds("dictionary_refresh", "default"), defaults.dictionaryRefresh());
  }

  @Test
  void choicesAreThoseOfTheSpecification() {
    assertEquals(choices("backend"), names(CompressionBackend.values()));
    assertEquals(choices("existing_envelopes"), names(ExistingEnvelopes.values()));
    assertEquals(choices("on_undecodable"), names(OnUndecodable.values()));
    assertEquals(choices("value_types"), names(ValueType.values()));
  }

  @Test
  void rangesAreThoseOfTheSpecification() {
    for (CompressionBackend backend : List.of(CompressionBackend.ZSTD, CompressionBackend.LZ4)) {
      JsonObject levels = option("compression_level").getAsJsonObject(name(backend));
      int least = levels.get("least").getAsInt();
      int most = levels.get("most").getAsInt();
      isTaken(() -> builder().backend(backend).compressionLevel(least).build());
      isTaken(() -> builder().backend(backend).compressionLevel(most).build());
      isRefused(() -> builder().backend(backend).compressionLevel(least - 1).build());
      isRefused(() -> builder().backend(backend).compressionLevel(most + 1).build());
      assertEquals(
          levels.get("default").getAsInt(), builder().backend(backend).build().compressionLevel());
    }
    int shortest = (int) number("min_compression_size", "least");
    isTaken(() -> builder().minCompressionSize(shortest).build());
    isRefused(() -> builder().minCompressionSize(shortest - 1).build());
    int smallest = (int) number("max_decompressed_size", "least");
    isTaken(() -> builder().maxDecompressedSize(smallest).build());
    isRefused(() -> builder().maxDecompressedSize(smallest - 1).build());
    Duration least = seconds("dictionary_refresh", "least");
    Duration most = seconds("dictionary_refresh", "most");
    isTaken(() -> builder().dictionaryRefresh(least).build());
    isTaken(() -> builder().dictionaryRefresh(most).build());
    isRefused(() -> builder().dictionaryRefresh(least.minusMillis(1)).build());
    isRefused(() -> builder().dictionaryRefresh(most.plusMillis(1)).build());
  }

  private static CompressionConfiguration.Builder builder() {
    return CompressionConfiguration.builder();
  }

  private static void isTaken(Runnable building) {
    building.run();
  }

  private static void isRefused(Executable building) {
    assertThrows(ConfigurationException.class, building);
  }

  private JsonObject option(String name) {
    return specified.getAsJsonObject(name);
  }

  private String text(String name) {
    return option(name).get("default").getAsString();
  }

  private long number(String name, String which) {
    return option(name).get(which).getAsLong();
  }

  private Duration seconds(String name, String which) {
    BigDecimal millis = option(name).get(which).getAsBigDecimal().movePointRight(3);
    return Duration.ofMillis(millis.longValueExact());
  }

  private Set<String> choices(String name) {
    return Set.copyOf(strings(option(name).get("choices")));
  }

  private static List<String> strings(JsonElement list) {
    return list.getAsJsonArray().asList().stream().map(JsonElement::getAsString).toList();
  }

  private static Set<String> names(Enum<?>[] values) {
    return Set.copyOf(Arrays.stream(values).map(SpecifiedOptionsTest::name).toList());
  }

  private static String name(Enum<?> value) {
    return value.name().toLowerCase(Locale.ROOT);
  }
}
