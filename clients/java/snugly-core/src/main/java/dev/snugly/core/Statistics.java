package dev.snugly.core;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** Counts up to one moment. */
public final class Statistics {
  private final long[] cells;

  Statistics(long[] cells) {
    this.cells = cells;
  }

  /** Returns the counter's number for one encoding, or its only number. */
  public long of(Counter counter, Encoding encoding) {
    return cells[counter.cell(encoding)];
  }

  /** Returns the counter's number over all encodings. */
  public long total(Counter counter) {
    if (!counter.isPerEncoding()) {
      return of(counter, Encoding.IDENTITY);
    }
    long total = 0;
    for (Encoding encoding : Encoding.values()) {
      total += of(counter, encoding);
    }
    return total;
  }

  /** Returns all numbers by their names, such as {@code encodedBytesOutZstdDictionary}. */
  public Map<String, Long> asMap() {
    Map<String, Long> named = new LinkedHashMap<>();
    for (Counter counter : Counter.values()) {
      if (!counter.isPerEncoding()) {
        named.put(camelCase(counter.toString()), of(counter, Encoding.IDENTITY));
        continue;
      }
      for (Encoding encoding : Encoding.values()) {
        named.put(camelCase(counter + "_" + encoding), of(counter, encoding));
      }
    }
    return Collections.unmodifiableMap(named);
  }

  /** Returns the numbers that are not 0, with the names of {@link #asMap()}, on one line. */
  @Override
  public String toString() {
    return asMap().entrySet().stream()
        .filter(each -> each.getValue() != 0)
        .map(Map.Entry::toString)
        .collect(Collectors.joining(", ", "{", "}"));
  }

  private static String camelCase(String name) {
    StringBuilder camel = new StringBuilder(name.length());
    for (String word : name.split("_", -1)) {
      String first = word.substring(0, 1);
      camel.append(camel.isEmpty() ? first : first.toUpperCase(Locale.ROOT));
      camel.append(word, 1, word.length());
    }
    return camel.toString();
  }
}
