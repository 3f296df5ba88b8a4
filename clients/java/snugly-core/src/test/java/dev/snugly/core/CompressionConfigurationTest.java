package dev.snugly.core;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.testing.Vectors;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

/** Which settings may be, and what is said of those that may not. */
class CompressionConfigurationTest {
  @Test
  void theDefaultsAreThoseOfGlide() {
    CompressionConfiguration defaults = CompressionConfiguration.defaults();
    assertEquals(CompressionBackend.ZSTD, defaults.backend());
    assertEquals(3, defaults.compressionLevel());
    assertEquals(64, defaults.minCompressionSize());
    assertEquals(512 << 20, defaults.maxDecompressedSize());
    assertEquals(Set.of(ValueType.STRINGS), defaults.valueTypes());
    assertEquals(
        0,
        CompressionConfiguration.builder()
            .backend(CompressionBackend.LZ4)
            .build()
            .compressionLevel());
  }

  @Test
  void whatIsOutOfRangeIsRefusedWithTheRange() {
    assertEquals(
        "compressionLevel is 23: for zstd it is a number from -131072 to 22",
        refused(builder -> builder.compressionLevel(23)));
    assertEquals(
        "compressionLevel is 13: for lz4 it is a number from -128 to 12",
        refused(builder -> builder.backend(CompressionBackend.LZ4).compressionLevel(13)));
    assertEquals(
        "minCompressionSize is 5: it is a number from 6 to 2147483639",
        refused(builder -> builder.minCompressionSize(5)));
    assertEquals(
        "maxDecompressedSize is 0: it is a number from 1 to 2147483639",
        refused(builder -> builder.maxDecompressedSize(0)));
    assertEquals(
        "dictionaryRefresh is PT0.05S: it is a time from PT0.1S to PT24H",
        refused(builder -> builder.dictionaryRefresh(Duration.ofMillis(50))));
  }

  @Test
  void whatDoesNotGoTogetherIsRefused() {
    assertEquals(
        "valueTypes is empty: give some of ValueType, or enabled(false)",
        refused(builder -> builder.valueTypes(List.of())));
    assertEquals(
        "dictionaryPrefix is empty: give some text",
        refused(builder -> builder.dictionaryPrefix("")));
    assertTrue(
        refused(builder -> builder.exclude(List.of("lock:*", "\ud800")))
            .startsWith("exclude has a glob that is no text"));
  }

  @Test
  void whatIsNullIsNamed() {
    assertEquals(
        "backend is null: leave it out for the default", refused(builder -> builder.backend(null)));
    assertEquals(
        "valueTypes is null: leave it out for the default",
        refused(builder -> builder.valueTypes(null)));
    assertEquals(
        "exclude is null: leave it out for the default", refused(builder -> builder.exclude(null)));
    assertEquals(
        "dictionaryExclude is null: leave it out for the default",
        refused(builder -> builder.dictionaryExclude(null)));
    assertEquals(
        "configuration",
        assertThrows(NullPointerException.class, () -> new Codec(null)).getMessage());
  }

  @Test
  void whoGoesBackToNoCompressionLeavesTheLevelAndTheCatalogueWhereTheyAre() {
    CompressionConfiguration configuration =
        CompressionConfiguration.builder()
            .compressionLevel(9)
            .catalogue(true)
            .backend(CompressionBackend.NONE)
            .build();
    byte[] value = new byte[1000];
    assertSame(value, new Codec(configuration).encode(value));
    assertEquals(0, configuration.compressionLevel());
    assertFalse(configuration.catalogue());
  }

  @Test
  void whoGoesBackToNoCompressionReadsWithTheDictionaryAndWritesWithout() {
    CompressionConfiguration.Builder settings =
        CompressionConfiguration.builder()
            .dictionary(Dictionary.of(Vectors.dictionary("profiles")));
    byte[] value =
        "{\"name\": \"name-7\", \"email\": \"email-8\", \"city\": \"city-9\", \"status\": \"status-3\"}"
            .getBytes(UTF_8);
    byte[] stored = new Codec(settings.build()).encode(value);
    Codec reader = new Codec(settings.backend(CompressionBackend.NONE).build());
    assertTrue(Envelope.inspect(stored).orElseThrow().dictionary().isPresent());
    assertArrayEquals(value, reader.decode(stored));
    assertSame(value, reader.encode(value));
  }

  @Test
  void itShowsWhatDiffersFromTheDefaults() {
    assertEquals("CompressionConfiguration[]", CompressionConfiguration.defaults().toString());
    assertEquals(
        "CompressionConfiguration[backend=lz4]",
        CompressionConfiguration.builder().backend(CompressionBackend.LZ4).build().toString());
    Dictionary profiles = Dictionary.of(Vectors.dictionary("profiles"));
    assertEquals(
        "CompressionConfiguration[enabled=false, compressionLevel=9, minCompressionSize=256,"
            + " maxDecompressedSize=1000, existingEnvelopes=WRAP, checksum=true, onUndecodable=RAW,"
            + " readGzip=true, valueTypes=[STRINGS, LISTS], exclude=[lock:*], dictionary="
            + profiles.id()
            + ", dictionaryPrefix={shop}, dictionaryRefresh=PT5S, dictionaryFolder=copies,"
            + " dictionaryExclude=[session:*]]",
        CompressionConfiguration.builder()
            .enabled(false)
            .compressionLevel(9)
            .minCompressionSize(256)
            .maxDecompressedSize(1000)
            .existingEnvelopes(ExistingEnvelopes.WRAP)
            .checksum(true)
            .onUndecodable(OnUndecodable.RAW)
            .readGzip(true)
            .valueTypes(Set.of(ValueType.LISTS, ValueType.STRINGS))
            .exclude(List.of("lock:*"))
            .dictionary(profiles)
            .dictionaryPrefix("{shop}")
            .dictionaryRefresh(Duration.ofSeconds(5))
            .dictionaryFolder(Path.of("copies"))
            .dictionaryExclude(List.of("session:*"))
            .build()
            .toString());
    assertEquals(
        "CompressionConfiguration[catalogue=true]",
        CompressionConfiguration.builder().catalogue(true).build().toString());
  }

  private static String refused(UnaryOperator<CompressionConfiguration.Builder> set) {
    CompressionConfiguration.Builder builder = set.apply(CompressionConfiguration.builder());
    return assertThrows(ConfigurationException.class, builder::build).getMessage();
  }
}
