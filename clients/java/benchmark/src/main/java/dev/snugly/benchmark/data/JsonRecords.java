package dev.snugly.benchmark.data;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.UUID;

/** Makes up records as an interface for orders would answer with: alike, and never the same. */
final class JsonRecords {
  private static final List<String> NAMES =
      List.of("Ada", "Boris", "Chen", "Dalia", "Emeka", "Farah", "Goran", "Hana", "Ines", "Jonas");
  private static final List<String> CITIES =
      List.of("Lyon", "Porto", "Graz", "Turku", "Leeds", "Gdansk", "Izmir", "Bergen", "Cork");
  private static final List<String> STATES = List.of("paid", "sent", "returned", "open");
  private static final List<String> WORDS =
      List.of(
          "blue", "cotton", "lamp", "table", "walnut", "chair", "set", "of", "two", "small", "with",
          "handle", "steel", "bottle", "linen", "cover", "round", "mirror", "oak", "shelf", "wool",
          "rug", "glass", "bowl", "green", "large", "candle", "holder", "brass", "clock");
  private static final long FIRST_SECOND = 1_700_000_000L;
  private static final int SECONDS = 100_000_000;

  private final Random random;

  JsonRecords(Random random) {
    this.random = random;
  }

  /** Returns another record, of some hundred bytes. */
  String next() {
    JsonObject order = new JsonObject();
    order.addProperty("id", new UUID(random.nextLong(), random.nextLong()).toString());
    order.addProperty("number", random.nextInt(10_000_000));
    order.addProperty("state", any(STATES));
    order.addProperty("created_at", time());
    order.addProperty("updated_at", time());
    JsonObject customer = new JsonObject();
    String name = any(NAMES);
    customer.addProperty("name", name);
    customer.addProperty(
        "email", name.toLowerCase(Locale.ROOT) + random.nextInt(100_000) + "@example.com");
    customer.addProperty("city", any(CITIES));
    order.add("customer", customer);
    JsonArray items = new JsonArray();
    int count = 1 + random.nextInt(4);
    for (int item = 0; item < count; item++) {
      items.add(item());
    }
    order.add("items", items);
    return order.toString();
  }

  private JsonObject item() {
    JsonObject item = new JsonObject();
    item.addProperty("sku", Long.toString(random.nextLong() >>> 24, 36));
    item.addProperty("title", String.join(" ", any(WORDS), any(WORDS), any(WORDS), any(WORDS)));
    item.addProperty("quantity", 1 + random.nextInt(5));
    item.addProperty("cents", 100 + random.nextInt(50_000));
    return item;
  }

  private String time() {
    return Instant.ofEpochSecond(FIRST_SECOND + random.nextInt(SECONDS)).toString();
  }

  private String any(List<String> words) {
    return words.get(random.nextInt(words.size()));
  }
}
