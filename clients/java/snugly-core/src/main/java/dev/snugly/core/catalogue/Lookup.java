package dev.snugly.core.catalogue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;

/**
 * One search for the dictionaries that some values need: all together, and for a while ({@code
 * spec/dictionaries.md}, Reading).
 */
final class Lookup {
  /** Time in which a dictionary that was not found is not looked for again, in rounds. */
  private static final int MISSING_ROUNDS = 2;

  private static final Duration LEAST_MISSING = Duration.ofSeconds(1);

  /** Time between two look-ups, which doubles. */
  private static final Duration FIRST_PAUSE = Duration.ofMillis(20);

  private static final Duration LONGEST_PAUSE = Duration.ofMillis(500);

  private final ManagerSettings settings;
  private final DictionaryCache cache;
  private final ServerState state;
  private final UnknownIds unknown;
  private final MissingIds missing;
  private final Loader loader;

  /** The IDs that are still looked for. */
  private final SortedSet<Integer> wanted;

  private final Set<Integer> found = new TreeSet<>();

  /**
   * The IDs that the server has answered: a connection that is lost says nothing of a dictionary.
   */
  private final Set<Integer> answered = new HashSet<>();

  private List<Integer> joined = List.of();
  private Duration until = Duration.ZERO;
  private Duration pause = FIRST_PAUSE;

  Lookup(
      ManagerSettings settings,
      DictionaryCache cache,
      ServerState state,
      UnknownIds unknown,
      MissingIds missing,
      Loader loader,
      Collection<Integer> ids) {
    this.settings = settings;
    this.cache = cache;
    this.state = state;
    this.unknown = unknown;
    this.missing = missing;
    this.loader = loader;
    wanted = new TreeSet<>(ids);
  }

  /** Begins, and ends with the IDs of those that there are. */
  Step<Set<Integer>> start(Moment now) {
    until = now.monotonic().plus(settings.patience());
    joined = wanted.stream().filter(id -> !cache.lists(id)).toList();
    unknown.join(joined);
    return look(now);
  }

  private Step<Set<Integer>> look(Moment now) {
    takeCached();
    List<Integer> ids = new ArrayList<>(wanted.stream().filter(cache::lists).toList());
    List<Integer> claimed =
        ids.size() < wanted.size() ? unknown.claim(now.monotonic()) : List.<Integer>of();
    // An unknown ID may be listed by now.
    claimed.stream().filter(id -> !ids.contains(id)).forEach(ids::add);
    if (ids.isEmpty()) {
      return pauseOrEnd(now);
    }
    return loader.load(
        ids,
        !claimed.isEmpty(),
        now,
        (loaded, then) -> {
          if (loaded.isAnswered()) {
            answered.addAll(ids);
          }
          return noteLoaded(claimed, loaded, then);
        });
  }

  /** Takes what another reader has brought. */
  private void takeCached() {
    wanted.stream().filter(id -> cache.peek(id) != null).forEach(found::add);
    wanted.removeAll(found);
  }

  private Step<Set<Integer>> noteLoaded(List<Integer> claimed, Loader.Loaded loaded, Moment now) {
    if (!claimed.isEmpty()) {
      unknown.release(outcome(claimed, loaded), now.monotonic());
    }
    wanted.stream().filter(loaded.ids()::contains).forEach(found::add);
    wanted.removeAll(loaded.ids());
    return pauseOrEnd(now);
  }

  /** The catalogue, as it was read meanwhile, may list an ID that was not found. */
  private UnknownIds.Outcome outcome(List<Integer> claimed, Loader.Loaded loaded) {
    if (!loaded.isAnswered()) {
      return UnknownIds.Outcome.UNANSWERED;
    }
    boolean isUseful =
        claimed.stream().allMatch(id -> loaded.ids().contains(id) || cache.lists(id));
    return isUseful ? UnknownIds.Outcome.USEFUL : UnknownIds.Outcome.IN_VAIN;
  }

  private Step<Set<Integer>> pauseOrEnd(Moment now) {
    if (!settings.waits()) {
      giveUp(wanted.stream().filter(id -> !isWorthWaiting(id, now)).toList(), now);
    }
    boolean isOver = now.monotonic().compareTo(until) > 0 || state.isOff(now.monotonic());
    if (wanted.isEmpty() || isOver) {
      giveUp(List.copyOf(wanted), now);
      unknown.leave(joined);
      return new Step.Done<>(found);
    }
    Duration current = pause;
    pause = shorter(pause.multipliedBy(2), LONGEST_PAUSE);
    return new Step.Pause<>(current, this::look);
  }

  /** Whether a client without a dictionary of its own waits: for what is listed, or being asked. */
  private boolean isWorthWaiting(int id, Moment now) {
    return cache.lists(id) || !(answered.contains(id) || unknown.isVain(now.monotonic()));
  }

  /** Looks for some no longer, and remembers those that were looked for in vain. */
  private void giveUp(List<Integer> ids, Moment now) {
    Duration length = longer(settings.interval().multipliedBy(MISSING_ROUNDS), LEAST_MISSING);
    for (int id : ids) {
      wanted.remove(id);
      if (answered.contains(id)) {
        missing.add(id, now.monotonic().plus(length));
      }
    }
  }

  private static Duration longer(Duration one, Duration other) {
    return one.compareTo(other) > 0 ? one : other;
  }

  private static Duration shorter(Duration one, Duration other) {
    return one.compareTo(other) < 0 ? one : other;
  }
}
