package dev.snugly.core.catalogue;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Dictionary;
import dev.snugly.core.Glob;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The dictionaries that one client has at hand, and which of them it writes with. Times are counted
 * from 1970.
 *
 * <p>It knows dictionaries and what a catalogue says; how they are fetched, and when, is up to the
 * {@link DictionaryManager}. Whoever encodes and decodes reads an immutable snapshot of all this,
 * which is replaced when anything changes.
 */
final class DictionaryCache {
  /** The most that are kept besides those that the client writes with. */
  static final int MOST_HELD = 128;

  private final List<Glob> excluded;
  private final Held given;
  private final boolean writes;
  private final Duration refresh;

  /** Time for what was used last, which goes on with each change. */
  private final AtomicLong clock = new AtomicLong(1);

  private Catalogue catalogue = Catalogue.NONE;
  private boolean isAllowed;

  /** The time when each dictionary of the catalogue was seen first; replaced and never changed. */
  private volatile Map<Integer, Duration> firstSeen = Map.of();

  private volatile Snapshot snapshot;

  /** A dictionary that is at hand. */
  private static final class Held {
    final Dictionary dictionary;
    volatile long lastUsed;

    Held(Dictionary dictionary, long now) {
      this.dictionary = dictionary;
      this.lastUsed = now;
    }

    Dictionary used(AtomicLong clock) {
      long now = clock.get();
      if (lastUsed != now) {
        lastUsed = now;
      }
      return dictionary;
    }
  }

  /** A pattern and the dictionary of its keys, which may be null. */
  private record Selected(Glob glob, Held held) {}

  /**
   * The state that encoders and decoders see.
   *
   * @param held all that are at hand, by their IDs
   * @param everything the dictionary that is written with, whatever the key is, or null
   * @param selection dictionaries by keys, where there is no such one: the first that matches
   */
  private record Snapshot(Map<Integer, Held> held, Held everything, List<Selected> selection) {}

  /** The last use of a dictionary at one moment: it goes on while these are compared. */
  private record LastUse(long time, int id) implements Comparable<LastUse> {
    @Override
    public int compareTo(LastUse other) {
      return time != other.time ? Long.compare(time, other.time) : Integer.compare(id, other.id);
    }
  }

  /**
   * Dictionaries that a catalogue makes necessary.
   *
   * @param wanted the IDs that are written with, now or soon, and that are not at hand
   * @param forgotten the IDs that must not come back
   */
  record Needed(List<Integer> wanted, Set<Integer> forgotten) {}

  /**
   * Makes a cache that is empty, but for the dictionary that the client was given.
   *
   * @param given the one that is written with, whatever the key is, once it is allowed, or null
   * @param writes whether values are written with dictionaries
   * @param excluded globs of keys whose values are written without
   * @param refresh time until a dictionary that was published is used
   */
  DictionaryCache(Dictionary given, boolean writes, List<String> excluded, Duration refresh) {
    this.given = given == null ? null : new Held(given, 0);
    this.writes = writes;
    this.refresh = refresh;
    this.excluded = Glob.all(excluded);
    // One that is given is used when it is beside the data.
    isAllowed = given == null;
    snapshot =
        new Snapshot(given == null ? Map.of() : Map.of(given.id(), this.given), null, List.of());
  }

  static DictionaryCache of(CompressionConfiguration configuration) {
    Dictionary given = configuration.dictionary().orElse(null);
    return new DictionaryCache(
        given,
        configuration.catalogue() || given != null,
        configuration.dictionaryExclude(),
        configuration.dictionaryRefresh());
  }

  /** Whether values are ever written with a dictionary. */
  boolean writes() {
    return writes;
  }

  /** The ID of the dictionary that the client was given, or null. */
  Integer given() {
    return given == null ? null : Integer.valueOf(given.dictionary.id());
  }

  /** The dictionary to write a value of this key with, or null. */
  Dictionary forKey(byte[] key) {
    Snapshot current = snapshot;
    if (current.everything == null && current.selection.isEmpty()) {
      return null;
    }
    if (key != null && Glob.anyMatches(excluded, key)) {
      return null;
    }
    if (current.everything != null) {
      return current.everything.used(clock);
    }
    if (key == null) {
      return null;
    }
    for (Selected selected : current.selection) {
      if (selected.glob.matches(key)) {
        return selected.held == null ? null : selected.held.used(clock);
      }
    }
    return null;
  }

  /** The dictionary of this ID to read a value with, or null. */
  Dictionary find(int id) {
    Held held = snapshot.held.get(id);
    return held == null ? null : held.used(clock);
  }

  /** The dictionary of this ID, which is not used by that, or null. */
  Dictionary peek(int id) {
    Held held = snapshot.held.get(id);
    return held == null ? null : held.dictionary;
  }

  /** The IDs of those that are at hand, in their order. */
  List<Integer> ids() {
    return snapshot.held.keySet().stream().sorted().toList();
  }

  /** Whether the catalogue, as it was read last, has the dictionary of this ID. */
  boolean lists(int id) {
    return firstSeen.containsKey(id);
  }

  /**
   * Keeps a dictionary at hand; the one that was used least recently goes if there are too many.
   */
  synchronized void hold(Dictionary dictionary, Duration now) {
    Map<Integer, Held> all = new HashMap<>(snapshot.held);
    all.putIfAbsent(dictionary.id(), new Held(dictionary, clock.getAndIncrement()));
    replace(all, now);
  }

  /**
   * Takes what the catalogue says.
   *
   * @param document the catalogue, or null if there is none
   * @return what its writers need
   * @throws CatalogueException for a document that is none, which counts as none
   */
  Needed read(byte[] document, Duration now) {
    try {
      Catalogue decoded = document == null ? Catalogue.NONE : Catalogue.decode(document);
      return follow(decoded, now);
    } catch (CatalogueException error) {
      follow(Catalogue.NONE, now);
      throw error;
    }
  }

  private synchronized Needed follow(Catalogue read, Duration now) {
    catalogue = read;
    Map<Integer, Duration> seen = new HashMap<>();
    for (Catalogue.Entry entry : read.dictionaries()) {
      seen.put(entry.id(), firstSeen.getOrDefault(entry.id(), now));
    }
    firstSeen = seen;
    Map<Integer, Held> kept = new HashMap<>(snapshot.held);
    kept.keySet().removeIf(id -> !isGiven(id) && read.forgotten().contains(id));
    replace(kept, now);
    return new Needed(choosesByKey() ? wanted(now) : List.of(), read.forgotten());
  }

  private boolean choosesByKey() {
    return writes && given == null;
  }

  private List<Integer> wanted(Duration now) {
    Set<Integer> wanted = new TreeSet<>();
    for (Integer choice : choices(now)) {
      if (choice != null) {
        wanted.add(choice);
      }
    }
    for (Catalogue.Active row : catalogue.active()) {
      if (firstSeen.containsKey(row.id())) {
        wanted.add(row.id());
      }
    }
    wanted.removeAll(snapshot.held.keySet());
    return List.copyOf(wanted);
  }

  private List<Integer> choices(Duration now) {
    return catalogue.choices(now, refresh, firstSeen::get);
  }

  /** Sets whether values may be written with dictionaries. */
  synchronized void allow(boolean isAllowed, Duration now) {
    if (this.isAllowed != isAllowed) {
      this.isAllowed = isAllowed;
      replace(new HashMap<>(snapshot.held), now);
    }
  }

  /** Chooses again what to write with: time has passed. */
  synchronized void choose(Duration now) {
    replace(new HashMap<>(snapshot.held), now);
  }

  private boolean isGiven(int id) {
    return given != null && given.dictionary.id() == id;
  }

  /** Replaces the snapshot: these are at hand, and the choice follows from the catalogue. */
  private void replace(Map<Integer, Held> held, Duration now) {
    clock.incrementAndGet();
    List<Selected> selection = isAllowed && choosesByKey() ? selection(held, now) : List.of();
    dropExcess(held, selection);
    boolean usesGiven = writes && isAllowed && given != null;
    snapshot = new Snapshot(Map.copyOf(held), usesGiven ? given : null, selection);
  }

  private List<Selected> selection(Map<Integer, Held> held, Duration now) {
    List<Selected> selection = new ArrayList<>();
    List<Integer> choices = choices(now);
    for (int index = 0; index < choices.size(); index++) {
      Glob glob = new Glob(catalogue.active().get(index).pattern());
      Integer choice = choices.get(index);
      selection.add(new Selected(glob, choice == null ? null : held.get(choice)));
    }
    return List.copyOf(selection);
  }

  /** Lets go of those that were used least recently, beyond the most that are kept. */
  private void dropExcess(Map<Integer, Held> held, List<Selected> selection) {
    List<LastUse> others = new ArrayList<>();
    held.forEach(
        (id, each) -> {
          if (!isInUse(id, selection)) {
            others.add(new LastUse(each.lastUsed, id));
          }
        });
    Collections.sort(others);
    int excess = Math.max(others.size() - MOST_HELD, 0);
    others.subList(0, excess).forEach(each -> held.remove(each.id));
  }

  private boolean isInUse(int id, List<Selected> selection) {
    if (isGiven(id)) {
      return true;
    }
    for (Selected selected : selection) {
      if (selected.held != null && selected.held.dictionary.id() == id) {
        return true;
      }
    }
    for (Catalogue.Active row : isAllowed ? catalogue.active() : List.<Catalogue.Active>of()) {
      if (row.id() == id) {
        return true;
      }
    }
    return false;
  }
}
