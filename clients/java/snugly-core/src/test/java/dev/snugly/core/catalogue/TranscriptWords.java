package dev.snugly.core.catalogue;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.snugly.core.Dictionary;
import dev.snugly.testing.Vectors;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Meanings of the words of transcripts (spec/vectors/README.md). */
final class TranscriptWords {
  static final String PREFIX = "{snugly}";

  /** The clock on the wall when a transcript begins, since 1970. */
  static final Duration BEGIN =
      Duration.between(Instant.EPOCH, Instant.parse("2026-01-31T12:00:00Z"));

  private final Map<String, Dictionary> dictionaries = new LinkedHashMap<>();
  private final DictionaryKeys keys = new DictionaryKeys(PREFIX);

  TranscriptWords() {
    JsonObject all = Vectors.read("envelopes.json").getAsJsonObject("dictionaries");
    for (String name : all.keySet()) {
      dictionaries.put(name, Dictionary.of(Vectors.dictionary(name)));
    }
  }

  Dictionary dictionary(JsonElement name) {
    return dictionaries.get(name.getAsString());
  }

  List<Integer> ids(JsonElement names) {
    List<Integer> ids = new ArrayList<>();
    names.getAsJsonArray().forEach(name -> ids.add(dictionary(name).id()));
    return ids;
  }

  Collection<Integer> allIds() {
    return dictionaries.values().stream().map(Dictionary::id).toList();
  }

  Duration seconds(JsonElement number) {
    return Duration.ofNanos(Math.round(number.getAsDouble() * 1e9));
  }

  static byte[] bytes(String text) {
    return text.getBytes(UTF_8);
  }

  /** The bytes of an argument or a reply. */
  byte[] bytes(JsonElement word) {
    if (word.isJsonPrimitive()) {
      return bytes(word.getAsString());
    }
    JsonObject form = word.getAsJsonObject();
    if (form.has("key_of")) {
      return keys.dictionary(dictionary(form.get("key_of")).id());
    }
    return form.has("dictionary")
        ? dictionary(form.get("dictionary")).bytes()
        : catalogue(form.getAsJsonObject("catalogue"));
  }

  byte[] catalogue(JsonObject described) {
    JsonArray active = new JsonArray();
    JsonArray listed = new JsonArray();
    JsonObject patterns = described.getAsJsonObject("active");
    for (String pattern : patterns == null ? List.<String>of() : patterns.keySet()) {
      JsonObject row = new JsonObject();
      row.addProperty("pattern", pattern);
      row.addProperty("id", dictionary(patterns.get(pattern)).id());
      active.add(row);
      JsonObject entry = row.deepCopy();
      if (described.has("published_at")) {
        long published = described.get("published_at").getAsLong();
        entry.addProperty("published_at", BEGIN.toSeconds() + published);
      }
      listed.add(entry);
    }
    JsonArray forgotten = new JsonArray();
    if (described.has("forgotten")) {
      ids(described.get("forgotten")).forEach(forgotten::add);
    }
    JsonObject document = new JsonObject();
    document.addProperty("version", 1);
    document.add("active", active);
    document.add("dictionaries", listed);
    document.add("forgotten", forgotten);
    return bytes(document.toString());
  }

  DictionaryReply reply(JsonElement written) {
    if (written.isJsonNull()) {
      return DictionaryReply.of(null);
    }
    if (written.isJsonObject()) {
      JsonObject form = written.getAsJsonObject();
      for (String error : List.of("denied", "refused")) {
        if (form.has(error)) {
          return DictionaryReply.error(form.get(error).getAsString());
        }
      }
    } else if (written.getAsJsonPrimitive().isNumber()) {
      return DictionaryReply.of(written.getAsLong());
    }
    return DictionaryReply.of(bytes(written));
  }
}
