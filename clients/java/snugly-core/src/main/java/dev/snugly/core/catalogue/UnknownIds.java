package dev.snugly.core.catalogue;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The IDs that no catalogue has and that readers wait for. Whoever makes them up, they cost at most
 * one look-up a second ({@code spec/dictionaries.md}, Reading).
 */
final class UnknownIds {
  /** The most IDs of one look-up. */
  static final int MOST = 1024;

  /** Time after a look-up that was not useful until the next one begins. */
  private static final Duration REST = Duration.ofSeconds(1);

  /** Number of readers that wait for each. */
  private final SortedMap<Integer, Integer> waiting = new TreeMap<>();

  private boolean isLooking;
  private Duration restsUntil = Duration.ZERO;
  private Duration vainUntil = Duration.ZERO;

  /** Outcome of a look-up. */
  enum Outcome {
    /** All of the IDs are there, or are listed in the catalogue by now. */
    USEFUL,
    /** One of them is not. */
    IN_VAIN,
    /** The server was lost: nothing is known of them. */
    UNANSWERED
  }

  /** Whether one was looked for in vain within the last second. */
  synchronized boolean isVain(Duration now) {
    return now.compareTo(vainUntil) < 0;
  }

  /** Has IDs looked for by the next look-up, whoever does it. */
  synchronized void join(Collection<Integer> ids) {
    ids.forEach(id -> waiting.merge(id, 1, Integer::sum));
  }

  /** Ends the wait of one reader. */
  synchronized void leave(Collection<Integer> ids) {
    for (int id : ids) {
      waiting.computeIfPresent(id, (each, readers) -> readers > 1 ? readers - 1 : null);
    }
  }

  /**
   * Begins a look-up, if it is the time for one.
   *
   * @return the IDs to look for; if there are any, {@link #release} is called in the end
   */
  synchronized List<Integer> claim(Duration now) {
    if (isLooking || now.compareTo(restsUntil) < 0 || waiting.isEmpty()) {
      return List.of();
    }
    isLooking = true;
    return waiting.keySet().stream().limit(MOST).toList();
  }

  /** Ends a look-up. */
  synchronized void release(Outcome outcome, Duration now) {
    isLooking = false;
    if (outcome != Outcome.USEFUL) {
      restsUntil = now.plus(REST);
    }
    if (outcome == Outcome.IN_VAIN) {
      vainUntil = now.plus(REST);
    }
  }

  /** Forgets readers and look-ups that nobody will end. */
  synchronized void clear() {
    waiting.clear();
    isLooking = false;
  }
}
