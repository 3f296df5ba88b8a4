package dev.snugly.core.catalogue;

import java.time.Duration;
import java.util.List;
import java.util.Set;

/**
 * Knowledge of a client about its server's dictionaries beside those in its cache: the last
 * catalogue, and the times of what is due. Times are by the monotonic clock.
 */
final class ServerState {
  /** Time until the next round while the server cannot be reached. */
  private static final Duration SOON = Duration.ofMillis(500);

  private boolean hasCatalogue;
  private List<Integer> wanted = List.of();
  private Set<Integer> forgotten = Set.of();

  private Duration readAt = Duration.ZERO;
  private Duration roundAt = Duration.ZERO;

  /** The end of the time in which dictionaries are not asked for, for want of permission. */
  private Duration offUntil = Duration.ZERO;

  /** The end of the time in which they are not kept from eviction, for want of permission. */
  private Duration unkeptUntil = Duration.ZERO;

  /** Whether the server could not be reached in the last round. */
  private boolean hasFailed;

  /** The last dictionary that was compared with what is in its place. */
  private int compared;

  synchronized boolean isOff(Duration now) {
    return now.compareTo(offUntil) < 0;
  }

  /** Has dictionaries not asked for until a time. */
  synchronized void turnOff(Duration until) {
    offUntil = until;
    readAt = until;
    wanted = List.of();
  }

  synchronized boolean isReadDue(Duration now) {
    return now.compareTo(readAt) >= 0;
  }

  /**
   * Notes that the catalogue was read.
   *
   * @return whether there was one before, and is none any more
   */
  synchronized boolean noteRead(boolean hasCatalogue, Duration next) {
    boolean isLost = this.hasCatalogue && !hasCatalogue;
    this.hasCatalogue = hasCatalogue;
    readAt = next;
    offUntil = Duration.ZERO;
    wanted = List.of();
    return isLost;
  }

  synchronized void noteNeeded(DictionaryCache.Needed needed) {
    wanted = needed.wanted();
    forgotten = needed.forgotten();
  }

  /** The dictionaries that are written with, now or soon, and that were not at hand. */
  synchronized List<Integer> wanted() {
    return wanted;
  }

  synchronized boolean isForgotten(int id) {
    return forgotten.contains(id);
  }

  /** Begins a round if one is due, and says whether it was. */
  synchronized boolean beginRound(Duration now, Duration interval) {
    boolean isDue = now.compareTo(roundAt) >= 0;
    if (isDue) {
      roundAt = now.plus(interval);
    }
    return isDue;
  }

  /** The time until the next round. */
  synchronized Duration untilRound(Duration now) {
    if (hasFailed && roundAt.compareTo(now.plus(SOON)) > 0) {
      roundAt = now.plus(SOON);
    }
    return roundAt.compareTo(now) > 0 ? roundAt.minus(now) : Duration.ZERO;
  }

  /** Makes the next round due now. */
  synchronized void hurry() {
    roundAt = Duration.ZERO;
  }

  synchronized void noteRound(boolean hasFailed) {
    this.hasFailed = hasFailed;
  }

  synchronized boolean isKept(Duration now) {
    return now.compareTo(unkeptUntil) >= 0;
  }

  synchronized void doNotKeep(Duration until) {
    unkeptUntil = until;
  }

  /** The next one to be compared, in turn; null if there is none. */
  synchronized Integer nextToCompare(List<Integer> held) {
    if (held.isEmpty()) {
      return null;
    }
    int next = held.stream().filter(id -> id > compared).findFirst().orElse(held.get(0));
    compared = next;
    return next;
  }
}
