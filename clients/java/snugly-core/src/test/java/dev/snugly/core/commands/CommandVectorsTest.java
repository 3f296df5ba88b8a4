package dev.snugly.core.commands;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.ValueType;
import dev.snugly.testing.Vectors;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The vectors of the command table, which every language plays (spec/vectors/commands.json). */
class CommandVectorsTest {
  private static final JsonObject VECTORS = Vectors.read("commands.json");

  @Test
  void valuesAreWhereTheVectorsSay() {
    List<JsonObject> commands = Vectors.objects(VECTORS.get("commands"));
    assertFalse(commands.isEmpty());
    for (JsonObject each : commands) {
      List<byte[]> words = words(each.get("arguments"));
      Set<ValueType> types = EnumSet.allOf(ValueType.class);
      refused(each).keySet().forEach(type -> types.remove(typeOf(type)));
      Row row = CommandTable.of(types, false).row(words.get(0));
      if (row == null) {
        continue;
      }
      List<byte[]> wanted = new ArrayList<>(words);
      if (each.has("values") && row.carriesValues()) {
        for (JsonElement value : each.getAsJsonArray("values")) {
          int position = value.getAsJsonArray().get(0).getAsInt();
          byte[] key = words.get(value.getAsJsonArray().get(1).getAsInt());
          wanted.set(position, marked(words.get(position), key));
        }
      }
      List<byte[]> sent = row.request(words, CommandVectorsTest::marked).words();
      assertEquals(texts(wanted), texts(sent), each::toString);
    }
  }

  @Test
  void keysAndComparedArgumentsAreWhereTheVectorsSay() {
    CommandTable table = CommandTable.of(EnumSet.allOf(ValueType.class), false);
    for (JsonObject each : Vectors.objects(VECTORS.get("commands"))) {
      List<byte[]> words = words(each.get("arguments"));
      Row row = table.row(words.get(0));
      if (row == null) {
        continue;
      }
      Found found = row.find(words);
      assertEquals(each.get("fits").getAsBoolean(), found != Found.NOTHING, each::toString);
      assertEquals(positions(each, "keys"), found.keys, each::toString);
      assertEquals(positions(each, "compared"), found.compared, each::toString);
    }
  }

  private static List<Integer> positions(JsonObject command, String field) {
    List<Integer> positions = new ArrayList<>();
    if (command.has(field)) {
      command.getAsJsonArray(field).forEach(each -> positions.add(each.getAsInt()));
    }
    return positions;
  }

  @Test
  void refusalsHaveTheWordsOfTheVectors() {
    for (JsonObject each : Vectors.objects(VECTORS.get("commands"))) {
      List<byte[]> words = words(each.get("arguments"));
      for (ValueType type : ValueType.values()) {
        String message = null;
        Row row = CommandTable.of(Set.of(type), false).row(words.get(0));
        try {
          if (row != null) {
            row.request(words, (value, key) -> value);
          }
        } catch (CommandRefusedException error) {
          message = error.getMessage();
        }
        assertEquals(
            refused(each).get(type.name().toLowerCase(Locale.ROOT)), message, each::toString);
      }
    }
  }

  @Test
  void valuesInRepliesAreThoseOfTheVectors() {
    CommandTable table = CommandTable.of(EnumSet.allOf(ValueType.class), false);
    for (JsonObject each : Vectors.objects(VECTORS.get("replies"))) {
      List<byte[]> words = words(each.get("arguments"));
      List<String> wanted = new ArrayList<>();
      for (JsonElement pair : each.getAsJsonArray("values")) {
        JsonElement key = pair.getAsJsonArray().get(1);
        String value = pair.getAsJsonArray().get(0).getAsString();
        wanted.add((key.isJsonNull() ? "?" : key.getAsString()) + ":" + value);
      }
      List<String> found = new ArrayList<>();
      Row row = table.row(words.get(0));
      if (row != null) {
        Restorer note =
            (value, key) -> {
              found.add((key == null ? "?" : text(key)) + ":" + text(value));
              return value;
            };
        row.request(words, (value, key) -> value).restore(reply(each.get("reply")), note);
      }
      assertEquals(wanted, found, each::toString);
    }
  }

  /** The message for each type of values whose clients are refused the command. */
  private static Map<String, String> refused(JsonObject command) {
    Map<String, String> messages = new LinkedHashMap<>();
    if (command.has("refused")) {
      JsonObject refused = command.getAsJsonObject("refused");
      refused.keySet().forEach(type -> messages.put(type, refused.get(type).getAsString()));
    }
    return messages;
  }

  private static ValueType typeOf(String name) {
    return ValueType.valueOf(name.toUpperCase(Locale.ROOT));
  }

  private static List<byte[]> words(JsonElement arguments) {
    List<byte[]> words = new ArrayList<>();
    for (JsonElement each : arguments.getAsJsonArray()) {
      words.add(each.isJsonPrimitive() ? each.getAsString().getBytes(UTF_8) : Vectors.expand(each));
    }
    return words;
  }

  /** A reply as the wire gives it to a client library. */
  private static Object reply(JsonElement written) {
    if (written.isJsonNull()) {
      return null;
    }
    if (written.isJsonArray()) {
      return replies(written);
    }
    if (written.isJsonObject()) {
      JsonObject form = written.getAsJsonObject();
      if (form.has("set")) {
        return new LinkedHashSet<>(replies(form.get("set")));
      }
      if (!form.has("map")) {
        // A status or an error, which has no values.
        return written;
      }
      Map<Object, Object> map = new LinkedHashMap<>();
      for (JsonElement pair : form.getAsJsonArray("map")) {
        map.put(reply(pair.getAsJsonArray().get(0)), reply(pair.getAsJsonArray().get(1)));
      }
      return map;
    }
    boolean isText = written.getAsJsonPrimitive().isString();
    return isText ? written.getAsString().getBytes(UTF_8) : (Object) written.getAsLong();
  }

  private static List<Object> replies(JsonElement written) {
    List<Object> replies = new ArrayList<>();
    written.getAsJsonArray().forEach(each -> replies.add(reply(each)));
    return replies;
  }

  private static byte[] marked(byte[] value, byte[] key) {
    return ("<" + text(key) + ":" + text(value) + ">").getBytes(ISO_8859_1);
  }

  private static List<String> texts(List<byte[]> words) {
    return words.stream().map(CommandVectorsTest::text).toList();
  }

  private static String text(byte[] bytes) {
    return new String(bytes, ISO_8859_1);
  }
}
