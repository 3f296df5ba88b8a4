package dev.snugly.core.commands;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * The items of a pattern.
 *
 * @param items from left to right
 */
record Items(List<Item> items) {
  /** Kinds of items, by what they take. */
  enum Kind {
    KEY,
    VALUE,
    COMPARED,
    FIELD,
    WORD,
    ID,
    OPTIONS,
    TAIL,
    REST,
    MAYBE,
    REPEAT,
    COUNTED;

    /** Whether it takes the same, however the arguments read. */
    boolean isByLength() {
      return switch (this) {
        case KEY, VALUE, COMPARED, FIELD, WORD, REPEAT, REST -> true;
        case ID, OPTIONS, TAIL, MAYBE, COUNTED -> false;
      };
    }
  }

  /**
   * One item.
   *
   * @param kind what it takes
   * @param words of MAYBE: what it may be
   * @param group of REPEAT and COUNTED: what comes again
   */
  record Item(Kind kind, Set<String> words, Items group) {}

  static Items of(JsonArray pattern) {
    List<Item> items = new ArrayList<>();
    pattern.forEach(each -> items.add(item(each)));
    return new Items(List.copyOf(items));
  }

  private static Item item(JsonElement json) {
    if (json.isJsonPrimitive()) {
      return new Item(kind(json.getAsString()), Set.of(), null);
    }
    JsonObject one = json.getAsJsonObject();
    String name = one.keySet().iterator().next();
    Kind kind = kind(name);
    JsonArray content = one.getAsJsonArray(name);
    return kind == Kind.MAYBE
        ? new Item(kind, words(content), null)
        : new Item(kind, Set.of(), of(content));
  }

  private static Kind kind(String name) {
    return Kind.valueOf(name.toUpperCase(Locale.ROOT));
  }

  static Set<String> words(JsonArray json) {
    Set<String> words = new LinkedHashSet<>();
    if (json != null) {
      json.forEach(word -> words.add(word.getAsString()));
    }
    return words;
  }

  /** Whether what these find depends on nothing but how many arguments there are. */
  boolean areByLength() {
    for (Item item : items) {
      if (!item.kind().isByLength() || (item.group() != null && !item.group().areByLength())) {
        return false;
      }
    }
    return true;
  }

  /** The same without a tail or options at the end, which say nothing if there are none. */
  Items withoutTail() {
    int last = items.size() - 1;
    Kind kind = items.get(last).kind();
    return kind == Kind.TAIL || kind == Kind.OPTIONS ? new Items(items.subList(0, last)) : this;
  }
}
