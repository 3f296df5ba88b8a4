package dev.snugly.core.catalogue;

import java.util.HashSet;
import java.util.Set;

/** Events of a client's dictionaries, for people and statistics. */
final class Events {
  /** The most different warnings that are told. */
  private static final int MOST_WARNINGS = 1000;

  private final Listener listener;
  private final Set<String> warnings = new HashSet<>();

  /** Takes events, on the thread of whoever drives the task that has them. */
  interface Listener {
    /** Something that the application's people should know, told once. */
    void warning(String message);

    /** A dictionary was fetched, or its copy was read. */
    void fetched();

    /** A dictionary that was gone was put back. */
    void putBack();

    /** Something else was in a dictionary's place, and was overwritten. */
    void mended();

    /** The catalogue is gone: all data was deleted. */
    void catalogueLost();
  }

  Events(Listener listener) {
    this.listener = listener;
  }

  Listener listener() {
    return listener;
  }

  /** Tells of a warning that is new. */
  void warn(String message) {
    if (isNew(message)) {
      listener.warning(message);
    }
  }

  /** Whether a warning is new. Each is told once. */
  synchronized boolean isNew(String message) {
    return warnings.size() < MOST_WARNINGS && warnings.add(message);
  }
}
