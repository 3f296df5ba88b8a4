package dev.snugly.core.catalogue;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Dictionary;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The dictionaries that one client has at hand, and which of them it writes with.
 *
 * <p>It knows dictionaries and what a catalogue says; it asks nobody. Whoever encodes and decodes
 * reads an immutable picture of all this, which is replaced when anything changes.
 */
final class AtHand {
  /** The most that are kept besides those that the client writes with. */
  private static final int MOST_HELD = 128;

  private final List<Glob> excluded = new ArrayList<>();
  private final boolean writesByCatalogue;
  private final Held given;
  private final Duration refresh;

  /** Goes on with each change; what was used since then is newer. */
  private final AtomicLong clock = new AtomicLong(1);

  private Catalogue catalogue = Catalogue.NONE;
  private Map<Integer, Duration> firstSeen = Map.of();
  private boolean isAllowed;

  private volatile Picture picture;

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

  /** A pattern and what it is written with, which may be null. */
  private record Selected(Glob glob, Held held) {}

  /**
   * What encoders and decoders see.
   *
   * @param everything what is written with, whatever the key is, or null
   * @param selection the first that matches decides, where there is no such one
   */
  private record Picture(Map<Integer, Held> held, Held everything, List<Selected> selection) {}

  AtHand(CompressionConfiguration configuration) {
    configuration.dictionaryExclude().forEach(glob -> excluded.add(new Glob(glob)));
    writesByCatalogue = configuration.catalogue();
    refresh = configuration.dictionaryRefresh();
    given = configuration.dictionary().map(dictionary -> new Held(dictionary, 0)).orElse(null);
    // One that is given is used when it is beside the data.
    isAllowed = given == null;
    picture =
        new Picture(
            given == null ? Map.of() : Map.of(given.dictionary.id(), given), null, List.of());
  }

  /** The dictionary to write a value of this key with, or null. */
  Dictionary forKey(byte[] key) {
    Picture current = picture;
    if (current.everything == null && current.selection.isEmpty()) {
      return null;
    }
    if (key != null && isExcluded(key)) {
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

  private boolean isExcluded(byte[] key) {
    for (Glob glob : excluded) {
      if (glob.matches(key)) {
        return true;
      }
    }
    return false;
  }

  /** The dictionary of this ID, or null. */
  Dictionary find(int id) {
    Held held = picture.held.get(id);
    return held == null ? null : held.used(clock);
  }

  /** The IDs of those that are at hand. */
  List<Integer> held() {
    return List.copyOf(picture.held.keySet());
  }

  /** One that is at hand, without using it, or null. */
  Dictionary peek(int id) {
    Held held = picture.held.get(id);
    return held == null ? null : held.dictionary;
  }

  /**
   * Keeps a dictionary at hand; the one that was used least recently goes if there are too many.
   */
  synchronized void hold(Dictionary dictionary, Duration now) {
    Map<Integer, Held> all = new HashMap<>(picture.held);
    all.putIfAbsent(dictionary.id(), new Held(dictionary, clock.get()));
    show(all, now);
  }

  /**
   * Takes what the catalogue says, and returns the IDs that its writers need and that are not at
   * hand.
   */
  synchronized Set<Integer> read(Catalogue catalogue, Duration now) {
    this.catalogue = catalogue;
    Map<Integer, Duration> seen = new HashMap<>();
    for (Catalogue.Entry entry : catalogue.dictionaries()) {
      seen.put(entry.id(), firstSeen.getOrDefault(entry.id(), now));
    }
    firstSeen = seen;
    Map<Integer, Held> kept = new HashMap<>(picture.held);
    kept.keySet().removeIf(id -> !isGiven(id) && catalogue.forgotten().contains(id));
    show(kept, now);
    return writesByCatalogue ? wanted(now) : Set.of();
  }

  private Set<Integer> wanted(Duration now) {
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
    wanted.removeAll(picture.held.keySet());
    return wanted;
  }

  private List<Integer> choices(Duration now) {
    return catalogue.choices(now, refresh, firstSeen::get);
  }

  /** Says whether values may be written with dictionaries. */
  synchronized void allow(boolean isAllowed, Duration now) {
    if (this.isAllowed != isAllowed) {
      this.isAllowed = isAllowed;
      show(new HashMap<>(picture.held), now);
    }
  }

  /** Chooses anew what to write with: time has passed. */
  synchronized void choose(Duration now) {
    show(new HashMap<>(picture.held), now);
  }

  private boolean isGiven(int id) {
    return given != null && given.dictionary.id() == id;
  }

  /** Replaces the picture: these are at hand, and what is written with follows. */
  private void show(Map<Integer, Held> held, Duration now) {
    clock.incrementAndGet();
    List<Selected> selection = new ArrayList<>();
    if (isAllowed && writesByCatalogue) {
      List<Integer> choices = choices(now);
      for (int index = 0; index < choices.size(); index++) {
        Glob glob = new Glob(catalogue.active().get(index).pattern());
        Integer choice = choices.get(index);
        selection.add(new Selected(glob, choice == null ? null : held.get(choice)));
      }
    }
    List<Map.Entry<Integer, Held>> others = new ArrayList<>();
    for (Map.Entry<Integer, Held> each : held.entrySet()) {
      if (!isInUse(each.getKey(), selection)) {
        others.add(each);
      }
    }
    others.sort(Comparator.comparingLong(each -> each.getValue().lastUsed));
    for (Map.Entry<Integer, Held> each :
        others.subList(0, Math.max(others.size() - MOST_HELD, 0))) {
      held.remove(each.getKey());
    }
    picture =
        new Picture(
            Map.copyOf(held), isAllowed && given != null ? given : null, List.copyOf(selection));
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
