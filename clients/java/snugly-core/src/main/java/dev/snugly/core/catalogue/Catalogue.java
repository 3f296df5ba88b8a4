package dev.snugly.core.catalogue;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntFunction;

/**
 * A catalogue: the dictionaries, and the one that writers use for each pattern of keys.
 *
 * @param active what writers use: the first pattern that matches a key decides
 * @param dictionaries every dictionary that values may need, the older ones of a pattern too
 * @param forgotten IDs of dictionaries that must not come back
 */
public record Catalogue(List<Active> active, List<Entry> dictionaries, Set<Integer> forgotten) {
  /** The catalogue of a server that has none. */
  static final Catalogue NONE = new Catalogue(List.of(), List.of(), Set.of());

  static final long VERSION = 1;
  static final int MAX_BYTES = 1 << 20;
  static final int MAX_ACTIVE = 128;
  static final int MAX_DICTIONARIES = 1024;
  static final int MAX_FORGOTTEN = 1024;
  static final int MAX_PATTERN_BYTES = 256;

  /**
   * Which dictionary is used for which keys.
   *
   * @param pattern a glob of KEYS
   * @param id the dictionary's ID, unsigned
   */
  public record Active(String pattern, int id) {}

  /**
   * One dictionary.
   *
   * @param id its ID, unsigned
   * @param pattern the keys that it was trained for, a glob of KEYS
   * @param publishedAt when it was published, in seconds since 1970; null counts as long ago
   */
  public record Entry(int id, String pattern, Long publishedAt) {
    /** From when on a writer may use it, counted from 1970 as {@code firstSeen} is. */
    Duration usableFrom(Duration firstSeen, Duration refresh) {
      if (publishedAt == null) {
        return Duration.ZERO;
      }
      Duration published = Duration.ofSeconds(publishedAt);
      return (published.compareTo(firstSeen) < 0 ? published : firstSeen).plus(refresh);
    }
  }

  /**
   * Reads a document.
   *
   * @param document what is at the catalogue's key
   * @return what it says
   * @throws CatalogueException for what is none, has another version, or is over a limit
   */
  public static Catalogue decode(byte[] document) {
    if (document.length > MAX_BYTES) {
      throw tooLarge("a catalogue of " + document.length + " bytes is too long", MAX_BYTES);
    }
    Catalogue catalogue = Documents.read(document);
    catalogue.check();
    return catalogue;
  }

  private void check() {
    if (active.size() > MAX_ACTIVE) {
      throw tooLarge("the catalogue has " + active.size() + " active patterns", MAX_ACTIVE);
    }
    if (dictionaries.size() > MAX_DICTIONARIES) {
      throw tooLarge(
          "the catalogue has " + dictionaries.size() + " dictionaries", MAX_DICTIONARIES);
    }
    if (forgotten.size() > MAX_FORGOTTEN) {
      throw tooLarge(
          "the catalogue has " + forgotten.size() + " forgotten dictionaries", MAX_FORGOTTEN);
    }
    for (Active row : active) {
      int length = row.pattern.getBytes(StandardCharsets.UTF_8).length;
      if (length > MAX_PATTERN_BYTES) {
        throw tooLarge("the catalogue has a pattern of " + length + " bytes", MAX_PATTERN_BYTES);
      }
    }
    Set<Integer> ids = new HashSet<>();
    for (Entry entry : dictionaries) {
      if (!ids.add(entry.id)) {
        throw new CatalogueException(
            CatalogueException.Kind.UNREADABLE,
            "the catalogue has the dictionary " + Integer.toUnsignedString(entry.id) + " twice");
      }
    }
  }

  private static CatalogueException tooLarge(String what, int most) {
    return new CatalogueException(
        CatalogueException.Kind.TOO_LARGE, what + ", and at most " + most + " are accepted");
  }

  /**
   * Choices of a writer at a moment, in the order of the active patterns: null for no dictionary.
   * One that may not be used yet is replaced by the last one of its pattern that may.
   *
   * @param now counted from 1970, as what {@code firstSeen} gives for the ID of a dictionary
   */
  List<Integer> choices(Duration now, Duration refresh, IntFunction<Duration> firstSeen) {
    List<Integer> choices = new ArrayList<>(active.size());
    for (Active row : active) {
      Integer own = null;
      Entry last = null;
      for (Entry entry : dictionaries) {
        if (entry.usableFrom(firstSeen.apply(entry.id), refresh).compareTo(now) > 0) {
          continue;
        }
        if (entry.id == row.id) {
          own = entry.id;
        }
        if (entry.pattern.equals(row.pattern) && isLater(entry, last)) {
          last = entry;
        }
      }
      choices.add(own != null || last == null ? own : Integer.valueOf(last.id));
    }
    return choices;
  }

  private static boolean isLater(Entry entry, Entry than) {
    if (than == null || than.publishedAt == null) {
      return true;
    }
    return entry.publishedAt != null && entry.publishedAt >= than.publishedAt;
  }
}
