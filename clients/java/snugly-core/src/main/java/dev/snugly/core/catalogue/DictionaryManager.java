package dev.snugly.core.catalogue;

import java.time.Duration;
import java.util.Collection;
import java.util.Set;

/**
 * Rules for the dictionaries of one client: what its server is asked about them, and when ({@code
 * spec/dictionaries.md}).
 *
 * <p>It knows the rules, as {@link Task tasks}: {@link #fetch} for readers that miss dictionaries,
 * {@link #refresh} for whoever maintains them from time to time, and {@link #keep} for the last
 * time. It knows no connections, threads, clocks or files. Any number of tasks may be under way at
 * the same time, each on one thread at a time.
 */
final class DictionaryManager {
  private final ManagerSettings settings;
  private final DictionaryCache cache;
  private final Events events;
  private final ServerState state = new ServerState();
  private final UnknownIds unknown = new UnknownIds();
  private final MissingIds missing = new MissingIds();
  private final Loader loader;
  private final Maintenance maintenance;

  /** Makes the manager of a client that knows nothing of its server yet. */
  DictionaryManager(ManagerSettings settings, DictionaryCache cache, Events events) {
    this.settings = settings;
    this.cache = cache;
    this.events = events;
    loader = new Loader(settings, cache, state, missing, events);
    maintenance = new Maintenance(settings, cache, state, loader, events);
  }

  /** Time between two rounds. */
  Duration interval() {
    return settings.interval();
  }

  /** Longest time that the missing dictionaries of a reply are looked for. */
  Duration patience() {
    return settings.patience();
  }

  DictionaryCache cache() {
    return cache;
  }

  Events events() {
    return events;
  }

  /** Looks for dictionaries, all together and for a while, and gives the IDs of those found. */
  Task<Set<Integer>> fetch(Collection<Integer> ids) {
    return now -> new Lookup(settings, cache, state, unknown, missing, loader, ids).start(now);
  }

  /** Does what is due, and gives the time in which there is nothing to do. */
  Task<Duration> refresh() {
    return maintenance::refresh;
  }

  /** Has the server see what is in use, puts back what is gone, and mends what is wrong. */
  Task<Void> keep() {
    return now -> maintenance.keep();
  }

  /** Makes everything due: a connection was lost, and the server may have lost more. */
  void hurry() {
    state.hurry();
  }

  /** Whether it is no use to look for a dictionary now. */
  boolean isMissing(int id, Duration now) {
    return state.isOff(now) || missing.has(id, now);
  }

  /** Whether dictionaries are not to be had now, for want of permission. */
  boolean isOff(Duration now) {
    return state.isOff(now);
  }

  /** Whether dictionaries may be read and kept, as far as is known. */
  boolean mayKeep(Duration now) {
    return !state.isOff(now) && state.isKept(now);
  }

  /** Forgets the searches that are under way, and that nobody will end. */
  void forgetLookups() {
    unknown.clear();
  }
}
