package dev.snugly.core.catalogue;

import dev.snugly.core.CompressionConfiguration;
import java.time.Duration;

/**
 * Settings of a {@link DictionaryManager}.
 *
 * @param prefix begins the names of all keys of dictionaries
 * @param refresh time between two readings of the catalogue, and until a new dictionary is used
 * @param waits whether unknown dictionaries are waited for: the client has one of its own
 * @param hasCopies whether copies are kept in a folder
 */
record ManagerSettings(String prefix, Duration refresh, boolean waits, boolean hasCopies) {
  private static final int ROUNDS_PER_REFRESH = 12;

  /** Time that missing dictionaries are waited for, in halves of a round: one more than a round. */
  private static final int PATIENCE_HALVES = 3;

  private static final Duration LEAST_PATIENCE = Duration.ofMillis(1500);

  static ManagerSettings of(CompressionConfiguration configuration) {
    return new ManagerSettings(
        configuration.dictionaryPrefix(),
        configuration.dictionaryRefresh(),
        configuration.dictionary().isPresent(),
        configuration.dictionaryFolder().isPresent());
  }

  /** Time between two rounds. */
  Duration interval() {
    return refresh.dividedBy(ROUNDS_PER_REFRESH);
  }

  /** Longest time that the missing dictionaries of a reply are looked for. */
  Duration patience() {
    Duration patience = interval().multipliedBy(PATIENCE_HALVES).dividedBy(2);
    return patience.compareTo(LEAST_PATIENCE) > 0 ? patience : LEAST_PATIENCE;
  }
}
