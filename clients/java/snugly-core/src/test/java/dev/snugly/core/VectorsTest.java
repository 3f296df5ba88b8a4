package dev.snugly.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.snugly.testing.Vectors;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The vectors of the specification hold for this library. */
class VectorsTest {
  private static final JsonObject ENVELOPES = Vectors.read("envelopes.json");
  private static final JsonObject LZ4_DICTIONARY = Vectors.read("lz4_dictionary.json");
  private static final JsonObject WRITERS = Vectors.read("writers.json");
  private static final JsonObject CATALOGUE = Vectors.read("catalogue.json");
  private static final Map<String, Dictionary> DICTIONARIES =
      dictionaries(ENVELOPES, LZ4_DICTIONARY);

  static Stream<Named<JsonObject>> envelopes() {
    return Stream.concat(named(ENVELOPES.get("cases")), named(LZ4_DICTIONARY.get("cases")));
  }

  static Stream<Named<JsonObject>> writers() {
    return named(WRITERS.get("cases"));
  }

  static Stream<Named<JsonObject>> refused() {
    return named(CATALOGUE.get("refused"));
  }

  private static Stream<Named<JsonObject>> named(JsonElement cases) {
    return Vectors.objects(cases).stream()
        .map(each -> Named.of(each.get("name").getAsString(), each));
  }

  @ParameterizedTest
  @MethodSource("envelopes")
  void aReaderFindsWhatTheVectorSays(JsonObject vector) {
    byte[] stored = Vectors.expand(vector.get("envelope"));
    Codec codec = reader(vector);
    switch (vector.get("expect").getAsString()) {
      case "value" -> assertArrayEquals(Vectors.expand(vector.get("value")), codec.decode(stored));
      case "untouched" -> assertSame(stored, codec.decode(stored));
      default -> {
        UndecodableException error =
            assertThrows(UndecodableException.class, () -> codec.decode(stored));
        assertEquals(vector.get("error").getAsString(), error.kind().toString(), error.toString());
        assertArrayEquals(stored, error.stored());
      }
    }
  }

  @ParameterizedTest
  @MethodSource("envelopes")
  void aReaderFindsTheSameInADirectBuffer(JsonObject vector) {
    byte[] stored = Vectors.expand(vector.get("envelope"));
    ByteBuffer direct = ByteBuffer.allocateDirect(stored.length).put(stored).flip();
    Codec codec = reader(vector);
    switch (vector.get("expect").getAsString()) {
      case "value" ->
          assertEquals(
              ByteBuffer.wrap(Vectors.expand(vector.get("value"))), codec.decode(direct, null));
      case "untouched" -> assertSame(direct, codec.decode(direct, null));
      default -> {
        UndecodableException error =
            assertThrows(UndecodableException.class, () -> codec.decode(direct, null));
        assertEquals(vector.get("error").getAsString(), error.kind().toString(), error.toString());
        assertArrayEquals(stored, error.stored());
      }
    }
  }

  @Test
  void errorsAreOfTheKindsThatTheVectorsDefine() {
    for (String kind : ENVELOPES.getAsJsonObject("errors").keySet()) {
      UndecodableException.Kind.valueOf(kind.toUpperCase(Locale.ROOT));
    }
  }

  @ParameterizedTest
  @MethodSource("writers")
  void aWriterDoesWhatTheVectorSays(JsonObject vector) {
    byte[] value = Vectors.expand(vector.get("value"));
    Codec codec = writer(vector);
    byte[] sent = codec.encode(value);
    assertEquals(vector.get("expect").getAsString().equals("as_is"), sent == value);
    if (sent != value) {
      assertTrue(Envelope.inspect(sent).isPresent());
      assertArrayEquals(value, codec.decode(sent));
    }
  }

  @ParameterizedTest
  @MethodSource("writers")
  void aWriterDoesTheSameBetweenDirectBuffers(JsonObject vector) {
    byte[] value = Vectors.expand(vector.get("value"));
    ByteBuffer direct = ByteBuffer.allocateDirect(value.length).put(value).flip();
    ByteBuffer target = ByteBuffer.allocateDirect(Codec.maxEncodedSize(value.length));
    Codec codec = writer(vector);
    codec.encode(direct, null, target);
    byte[] sent = new byte[target.flip().remaining()];
    target.get(sent);
    boolean isAsItIs = vector.get("expect").getAsString().equals("as_is");
    assertEquals(isAsItIs, Arrays.equals(value, sent));
    if (!isAsItIs) {
      assertArrayEquals(value, codec.decode(sent));
    }
  }

  @ParameterizedTest
  @MethodSource("refused")
  void whatIsNoDictionaryIsRefused(JsonObject vector) {
    byte[] bytes = Vectors.expand(vector.get("bytes"));
    DictionaryException error = assertThrows(DictionaryException.class, () -> Dictionary.of(bytes));
    assertEquals(vector.get("error").getAsString(), error.kind().name().toLowerCase(Locale.ROOT));
  }

  @Test
  void aDictionaryHasTheIdOfItsContent() {
    for (JsonObject each : Vectors.objects(CATALOGUE.get("ids"))) {
      byte[] content = Vectors.expand(each.get("content"));
      byte[] bytes = new byte[8 + content.length];
      System.arraycopy(content, 0, bytes, 8, content.length);
      assertEquals(each.get("id").getAsInt(), Dictionary.idOf(bytes));
    }
    for (JsonObject file : List.of(ENVELOPES, LZ4_DICTIONARY)) {
      JsonObject dictionaries = file.getAsJsonObject("dictionaries");
      for (String name : dictionaries.keySet()) {
        JsonObject each = dictionaries.getAsJsonObject(name);
        assertEquals(each.get("id").getAsInt(), DICTIONARIES.get(name).id());
      }
    }
  }

  @Test
  void theExamplesOfTheSpecificationHold() throws IOException {
    String text = Files.readString(Vectors.specification().resolve("envelope.md"));
    Matcher example =
        Pattern.compile("```example(?:-82)?\n(\\w+): (.*)\nenvelope: (.*)\n").matcher(text);
    List<String> seen = new ArrayList<>();
    Codec codec = new Codec(CompressionConfiguration.defaults(), all());
    while (example.find()) {
      byte[] stored = HexFormat.of().parseHex(example.group(3).replace(" ", ""));
      seen.add(example.group(2));
      if (example.group(1).equals("error")) {
        UndecodableException error =
            assertThrows(UndecodableException.class, () -> codec.decode(stored));
        assertEquals(example.group(2), error.kind().toString());
      } else if (example.group(2).equals("(not an envelope)")) {
        assertSame(stored, codec.decode(stored));
      } else {
        byte[] value = Vectors.expand(JsonParser.parseString(example.group(2)));
        assertArrayEquals(value, codec.decode(stored));
      }
    }
    assertTrue(seen.size() >= 9, () -> "only " + seen);
  }

  private static Codec writer(JsonObject vector) {
    JsonObject options = WRITERS.getAsJsonObject("defaults").deepCopy();
    if (vector.has("options")) {
      vector
          .getAsJsonObject("options")
          .entrySet()
          .forEach(e -> options.add(e.getKey(), e.getValue()));
    }
    CompressionConfiguration.Builder builder =
        CompressionConfiguration.builder()
            .backend(CompressionBackend.valueOf(upper(options.get("backend"))))
            .minCompressionSize(options.get("min_compression_size").getAsInt())
            .existingEnvelopes(ExistingEnvelopes.valueOf(upper(options.get("existing_envelopes"))));
    if (options.has("level")) {
      builder.compressionLevel(options.get("level").getAsInt());
    }
    return new Codec(builder.build());
  }

  private static String upper(JsonElement name) {
    return name.getAsString().toUpperCase(Locale.ROOT);
  }

  private static Codec reader(JsonObject vector) {
    CompressionConfiguration.Builder builder = CompressionConfiguration.builder();
    if (vector.has("options")) {
      builder.maxDecompressedSize(
          vector.getAsJsonObject("options").get("max_decompressed_size").getAsInt());
    }
    Map<Integer, Dictionary> dictionaries = new HashMap<>();
    if (vector.has("dictionaries")) {
      for (JsonElement name : vector.getAsJsonArray("dictionaries")) {
        Dictionary each = DICTIONARIES.get(name.getAsString());
        dictionaries.put(each.id(), each);
      }
    }
    return new Codec(builder.build(), reading(dictionaries));
  }

  private static Dictionaries all() {
    Map<Integer, Dictionary> dictionaries = new HashMap<>();
    DICTIONARIES.values().forEach(each -> dictionaries.put(each.id(), each));
    return reading(dictionaries);
  }

  /** Those of the files, by name; a name that several of them have is the same dictionary. */
  private static Map<String, Dictionary> dictionaries(JsonObject... files) {
    Map<String, Dictionary> dictionaries = new HashMap<>();
    for (JsonObject file : files) {
      JsonObject each = file.getAsJsonObject("dictionaries");
      for (String name : each.keySet()) {
        byte[] bytes = Vectors.expand(each.getAsJsonObject(name).get("bytes"));
        dictionaries.put(name, Dictionary.of(bytes));
      }
    }
    return dictionaries;
  }

  private static Dictionaries reading(Map<Integer, Dictionary> dictionaries) {
    return new Dictionaries() {
      @Override
      public Dictionary forKey(byte[] key) {
        return null;
      }

      @Override
      public Dictionary find(int id) {
        return dictionaries.get(id);
      }
    };
  }
}
