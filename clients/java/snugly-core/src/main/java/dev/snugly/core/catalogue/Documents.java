package dev.snugly.core.catalogue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** The JSON of a catalogue. Fields that nobody knows are ignored. */
final class Documents {
  private static final BigDecimal MOST_ID = BigDecimal.valueOf(0xFFFF_FFFFL);

  /** A time behind this one is as good as never, in seconds; clocks are computed with it. */
  private static final BigDecimal LATEST = BigDecimal.valueOf(1L << 50);

  private static final BigDecimal MOST_TIME = new BigDecimal("18446744073709551615");

  private Documents() {}

  static Catalogue read(byte[] document) {
    try {
      JsonObject root = object(parse(document), "the document");
      BigDecimal version = number(root, "version", MOST_TIME);
      if (version == null) {
        throw unreadable("it has no version", null);
      }
      if (version.compareTo(BigDecimal.valueOf(Catalogue.VERSION)) != 0) {
        throw new CatalogueException(
            CatalogueException.Kind.VERSION,
            "the catalogue has version "
                + version
                + ", and this client knows version "
                + Catalogue.VERSION
                + ": update the client");
      }
      return catalogue(root);
    } catch (IOException | JsonParseException | IllegalStateException | NumberFormatException e) {
      throw unreadable(e.getMessage(), e);
    }
  }

  private static JsonElement parse(byte[] document) throws IOException {
    String text;
    try {
      text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(document)).toString();
    } catch (CharacterCodingException error) {
      throw unreadable("it is no text", error);
    }
    JsonReader reader = new JsonReader(new StringReader(text));
    reader.setStrictness(Strictness.STRICT);
    JsonElement parsed = JsonParser.parseReader(reader);
    if (reader.peek() != JsonToken.END_DOCUMENT) {
      throw unreadable("something follows it", null);
    }
    return parsed;
  }

  private static Catalogue catalogue(JsonObject root) {
    List<Catalogue.Active> active = new ArrayList<>();
    for (JsonElement each : array(root, "active")) {
      JsonObject row = object(each, "active");
      active.add(new Catalogue.Active(pattern(row), id(row)));
    }
    List<Catalogue.Entry> dictionaries = new ArrayList<>();
    for (JsonElement each : array(root, "dictionaries")) {
      JsonObject row = object(each, "dictionaries");
      BigDecimal published = number(row, "published_at", MOST_TIME);
      Long publishedAt = published == null ? null : published.min(LATEST).longValueExact();
      dictionaries.add(new Catalogue.Entry(id(row), pattern(row), publishedAt));
    }
    Set<Integer> forgotten = new HashSet<>();
    for (JsonElement each : array(root, "forgotten")) {
      forgotten.add(whole(each, "forgotten", MOST_ID).intValue());
    }
    return new Catalogue(List.copyOf(active), List.copyOf(dictionaries), Set.copyOf(forgotten));
  }

  private static JsonArray array(JsonObject object, String field) {
    JsonElement value = object.get(field);
    if (value == null) {
      return new JsonArray();
    }
    if (!value.isJsonArray()) {
      throw unreadable(field + " is no array", null);
    }
    return value.getAsJsonArray();
  }

  private static JsonObject object(JsonElement value, String what) {
    if (!value.isJsonObject()) {
      throw unreadable(what + " is no object", null);
    }
    return value.getAsJsonObject();
  }

  private static String pattern(JsonObject row) {
    JsonElement value = row.get("pattern");
    if (value == null || !value.isJsonPrimitive() || !value.getAsJsonPrimitive().isString()) {
      throw unreadable("pattern is no text", null);
    }
    return value.getAsString();
  }

  private static int id(JsonObject row) {
    BigDecimal id = number(row, "id", MOST_ID);
    if (id == null) {
      throw unreadable("there is no id", null);
    }
    return id.intValue();
  }

  /** A field that is a whole number, or null if there is none. */
  private static BigDecimal number(JsonObject object, String field, BigDecimal most) {
    JsonElement value = object.get(field);
    return value == null || value.isJsonNull() ? null : whole(value, field, most);
  }

  private static BigDecimal whole(JsonElement value, String field, BigDecimal most) {
    if (!value.isJsonPrimitive() || !value.getAsJsonPrimitive().isNumber()) {
      throw unreadable(field + " is no number", null);
    }
    BigDecimal number = value.getAsBigDecimal();
    // One with a long exponent takes for ever to be made whole.
    boolean isWhole = number.scale() <= 0 && number.precision() - number.scale() <= 20;
    if (!isWhole || number.signum() < 0 || number.compareTo(most) > 0) {
      throw unreadable(field + " is " + number + ", which it may not be", null);
    }
    return number;
  }

  private static CatalogueException unreadable(String why, Throwable cause) {
    return new CatalogueException(
        CatalogueException.Kind.UNREADABLE, "not a catalogue of dictionaries: " + why, cause);
  }
}
