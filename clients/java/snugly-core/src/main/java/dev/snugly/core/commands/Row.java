package dev.snugly.core.commands;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.snugly.core.CommandRefusedException;
import dev.snugly.core.ValueType;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.BinaryOperator;

/** Rules for one command, for a client that compresses certain types of values. */
public final class Row {
  /** No writer encodes a value that is shorter, in bytes, so the server may compare it. */
  private static final int COMPARABLE_BYTES = 32;

  /** Matches are remembered for commands of up to so many words. */
  private static final int REMEMBERED_WORDS = 16;

  private final String name;
  private final boolean carriesValues;
  private final List<Refusal> refusals = new ArrayList<>();
  private final String comparison;
  private final Items items;
  private final Map<String, Items> options = new HashMap<>();
  private final Shape shape;

  /** Shape of replies without values of these types, or null. */
  private final Shape unvalued;

  private final Set<String> with;
  private final Set<String> without;

  /** Positions in commands of so many words, where all of them are alike. */
  private final AtomicReferenceArray<Found> remembered;

  /** A rule: the command is refused if one of these options is given, or always without any. */
  private record Refusal(Set<String> options, String message) {}

  Row(
      String name,
      JsonObject row,
      Set<ValueType> types,
      JsonObject table,
      Shapes shapes,
      Shape unvalued) {
    this.name = name;
    this.unvalued = unvalued;
    carriesValues = row.has("type") && isAmong(row.get("type"), types);
    JsonArray rules = row.has("refuse") ? row.getAsJsonArray("refuse") : new JsonArray();
    for (JsonElement each : rules) {
      JsonObject rule = each.getAsJsonObject();
      if (rule.getAsJsonArray("types").asList().stream().anyMatch(type -> isAmong(type, types))) {
        String reason = rule.get("reason").getAsString();
        refusals.add(new Refusal(Items.words(rule.getAsJsonArray("with")), message(table, reason)));
      }
    }
    comparison = message(table, "compare");
    items = row.has("arguments") ? Items.of(row.getAsJsonArray("arguments")) : rest();
    if (row.has("options")) {
      JsonObject named = row.getAsJsonObject("options");
      named.keySet().forEach(each -> options.put(each, Items.of(named.getAsJsonArray(each))));
    }
    JsonObject reply =
        carriesValues && row.has("reply") ? row.getAsJsonObject("reply") : new JsonObject();
    shape = reply.has("shape") ? shapes.named(reply.get("shape").getAsString()) : null;
    with = Items.words(reply.getAsJsonArray("with"));
    without = Items.words(reply.getAsJsonArray("without"));
    Items fixed = items.withoutTail();
    boolean hasTail = fixed.items().size() < items.items().size();
    int upTo = hasTail ? 1 + fixed.items().size() : REMEMBERED_WORDS;
    remembered = new AtomicReferenceArray<>(fixed.areByLength() ? upTo + 1 : 0);
  }

  private static boolean isAmong(JsonElement type, Set<ValueType> types) {
    return types.contains(ValueType.valueOf(type.getAsString().toUpperCase(Locale.ROOT)));
  }

  private static Items rest() {
    return new Items(List.of(new Items.Item(Items.Kind.REST, Set.of(), null)));
  }

  private String message(JsonObject table, String reason) {
    return table
        .get("message")
        .getAsString()
        .replace("{command}", name)
        .replace("{reason}", table.getAsJsonObject("reasons").get(reason).getAsString());
  }

  boolean carriesValues() {
    return carriesValues;
  }

  boolean mayBeRefused() {
    return !refusals.isEmpty();
  }

  /**
   * Returns the request for a command, and the treatment of its reply.
   *
   * @param words the command's name and its arguments
   * @param encode of a value and its key makes what is sent: the same array for the value as it is
   * @return the request
   * @throws CommandRefusedException if the command must not be sent
   */
  public Request request(List<byte[]> words, BinaryOperator<byte[]> encode) {
    Found found = find(words);
    refuse(words, found);
    if (!carriesValues) {
      return new Request(words, words, unvalued, Found.NOTHING);
    }
    boolean isShaped =
        shape != null && (with.isEmpty() || found.hasOneOf(with)) && !found.hasOneOf(without);
    return new Request(words, encoded(words, found, encode), isShaped ? shape : null, found);
  }

  /** The words with their values encoded: the given ones if all values stay as they are. */
  private static List<byte[]> encoded(
      List<byte[]> words, Found found, BinaryOperator<byte[]> encode) {
    List<byte[]> encoded = words;
    for (int index = 0; index < found.values.size(); index++) {
      int position = found.values.get(index);
      byte[] value = words.get(position);
      byte[] sent = encode.apply(value, words.get(found.keysOfValues.get(index)));
      if (sent != value) {
        encoded = encoded == words ? new ArrayList<>(words) : encoded;
        encoded.set(position, sent);
      }
    }
    return encoded;
  }

  /** Positions of keys and values; {@link Found#NOTHING} if the words do not fit. */
  Found find(List<byte[]> words) {
    int count = words.size();
    if (count >= remembered.length()) {
      return Match.of(items, options, words);
    }
    Found found = remembered.get(count);
    if (found == null) {
      found = Match.of(items, options, words);
      remembered.set(count, found);
    }
    return found;
  }

  private void refuse(List<byte[]> words, Found found) {
    for (Refusal rule : refusals) {
      if (rule.options.isEmpty() || found.hasOneOf(rule.options)) {
        throw new CommandRefusedException(rule.message, name);
      }
    }
    if (carriesValues) {
      for (int position : found.compared) {
        if (!isComparable(words.get(position))) {
          throw new CommandRefusedException(comparison, name);
        }
      }
    }
  }

  private static boolean isComparable(byte[] word) {
    boolean isMarked = word.length >= 3 && word[0] == 0 && word[1] == 1 && word[2] == 2;
    return word.length < COMPARABLE_BYTES && !isMarked;
  }
}
