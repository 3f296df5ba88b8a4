package dev.snugly.core.catalogue;

import java.time.Duration;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/** The IDs that were looked for in vain, and until when they are not looked for again. */
final class MissingIds {
  private static final int MOST = 1024;

  /** The end of each; the oldest is first. */
  private final Map<Integer, Duration> ends = new LinkedHashMap<>();

  synchronized void add(int id, Duration until) {
    ends.put(id, until);
    if (ends.size() > MOST) {
      Iterator<Integer> oldest = ends.keySet().iterator();
      oldest.next();
      oldest.remove();
    }
  }

  synchronized void remove(int id) {
    ends.remove(id);
  }

  synchronized boolean has(int id, Duration now) {
    Duration end = ends.get(id);
    return end != null && now.compareTo(end) < 0;
  }
}
