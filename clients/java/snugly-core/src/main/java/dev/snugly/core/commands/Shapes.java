package dev.snugly.core.commands;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.snugly.core.Gzip;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The shapes of the table, by their names. */
final class Shapes {
  private final JsonObject json;
  private final Map<String, Shape> made = new HashMap<>();

  Shapes(JsonObject json) {
    this.json = json;
  }

  Shape named(String name) {
    Shape shape = made.get(name);
    if (shape == null) {
      shape = make(json.get(name));
      made.put(name, shape);
    }
    return shape;
  }

  private Shape make(JsonElement element) {
    if (element.isJsonPrimitive()) {
      // Of transactions, each reply is restored as that of its own command.
      return element.getAsString().equals("value") ? Shapes::value : Shapes::nothing;
    }
    JsonObject shape = element.getAsJsonObject();
    boolean isNamed = shape.has("key");
    if (shape.has("each")) {
      return each(named(shape.get("each").getAsString()), isNamed);
    }
    if (shape.has("pairs")) {
      return pairs(named(shape.get("pairs").getAsString()), isNamed);
    }
    return at(shape.get("at").getAsInt(), named(shape.get("is").getAsString()), isNamed);
  }

  private static Object value(Object reply, Restorer restorer, byte[] key, Request request) {
    return reply instanceof byte[] stored ? restorer.value(stored, key) : reply;
  }

  private static Object nothing(Object reply, Restorer restorer, byte[] key, Request request) {
    return reply;
  }

  /**
   * GZIP files wherever they are: whoever wrote them did not look at commands. Envelopes are left
   * alone.
   */
  static Object files(Object reply, Restorer restorer, byte[] key, Request request) {
    if (reply instanceof byte[] stored) {
      return Gzip.begins(stored) ? restorer.value(stored, null) : stored;
    }
    if (reply instanceof Map.Entry<?, ?> entry) {
      return restorer.entry(entry.getKey(), files(entry.getValue(), restorer, key, request));
    }
    if (reply instanceof List<?> list) {
      List<Object> restored = new ArrayList<>(list.size());
      list.forEach(item -> restored.add(files(item, restorer, key, request)));
      return restored;
    }
    return reply;
  }

  /** {@code isOfArguments}: each element belongs to the key of the arguments in its place. */
  private static Shape each(Shape inner, boolean isOfArguments) {
    return (reply, restorer, key, request) -> {
      if (!(reply instanceof List<?> list)) {
        return inner.apply(reply, restorer, key, request);
      }
      List<Object> restored = new ArrayList<>(list.size());
      for (Object item : list) {
        byte[] own = isOfArguments ? request.key(restored.size()) : key;
        restored.add(inner.apply(item, restorer, own, request));
      }
      return restored;
    };
  }

  /** {@code isNamed}: the key stands in the reply, as element 0. */
  private static Shape at(int position, Shape inner, boolean isNamed) {
    return (reply, restorer, key, request) -> {
      if (!(reply instanceof List<?> list) || list.size() <= position) {
        return reply;
      }
      List<Object> restored = new ArrayList<>(list);
      byte[] own = isNamed ? named(list.get(0), key) : key;
      restored.set(position, inner.apply(list.get(position), restorer, own, request));
      return restored;
    };
  }

  /** {@code isNamed}: the key stands in the reply, as the first of the pair. */
  private static Shape pairs(Shape inner, boolean isNamed) {
    return (reply, restorer, key, request) -> {
      Second second =
          (first, item) -> inner.apply(item, restorer, isNamed ? named(first, key) : key, request);
      if (reply instanceof Map<?, ?> map) {
        Map<Object, Object> restored = new LinkedHashMap<>();
        map.forEach((first, item) -> restored.put(first, second.of(first, item)));
        return restored;
      }
      if (!(reply instanceof List<?> list) || list.isEmpty()) {
        return reply;
      }
      if (list.get(0) instanceof Map.Entry) {
        return entries(list, second, restorer);
      }
      return list.get(0) instanceof List ? nested(list, second) : flat(list, second);
    };
  }

  /** Of the first of a pair and the second, what becomes of the second. */
  private interface Second {
    Object of(Object first, Object item);
  }

  private static List<Object> entries(List<?> list, Second second, Restorer restorer) {
    List<Object> restored = new ArrayList<>(list.size());
    for (Object item : list) {
      restored.add(
          item instanceof Map.Entry<?, ?> entry
              ? restorer.entry(entry.getKey(), second.of(entry.getKey(), entry.getValue()))
              : item);
    }
    return restored;
  }

  private static List<Object> nested(List<?> list, Second second) {
    List<Object> restored = new ArrayList<>(list.size());
    for (Object item : list) {
      if (item instanceof List<?> pair && pair.size() == 2) {
        List<Object> both = new ArrayList<>(2);
        both.add(pair.get(0));
        both.add(second.of(pair.get(0), pair.get(1)));
        restored.add(both);
      } else {
        restored.add(item);
      }
    }
    return restored;
  }

  private static List<Object> flat(List<?> list, Second second) {
    List<Object> restored = new ArrayList<>(list);
    for (int at = 1; at < restored.size(); at += 2) {
      restored.set(at, second.of(list.get(at - 1), list.get(at)));
    }
    return restored;
  }

  /** The key that a reply names, or the one known so far where it names none. */
  private static byte[] named(Object item, byte[] key) {
    return item instanceof byte[] name ? name : key;
  }
}
