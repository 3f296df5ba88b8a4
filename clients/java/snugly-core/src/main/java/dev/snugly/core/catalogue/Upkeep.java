package dev.snugly.core.catalogue;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Dictionary;
import dev.snugly.core.DictionaryException;
import dev.snugly.core.catalogue.DictionaryServer.Failure;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What one client asks its server about dictionaries, by the rules of {@code spec/dictionaries.md}.
 *
 * <p>It knows the rules and the settings, and no threads: rounds are one at a time, and any number
 * of fetches beside them.
 */
final class Upkeep {
  /** How often what is in use is looked after, for each time that the catalogue is read. */
  private static final int ROUNDS_PER_REFRESH = 12;

  /** How long a missing dictionary is waited for, in rounds: its holders put it back within one. */
  private static final double PATIENCE = 1.5;

  /** How long one that was not found is not looked for again, in rounds. */
  private static final double MISSING = 2;

  /** Both are at least this, in nanoseconds. */
  private static final long LEAST = Duration.ofSeconds(1).toNanos();

  private static final long FIRST_PAUSE = 20;
  private static final long LONGEST_PAUSE = 500;
  private static final int MOST_REMEMBERED = 1000;

  private static final System.Logger LOGGER = System.getLogger("dev.snugly");

  private final AtHand atHand;
  private final Events events;
  private final DictionaryKeys keys;
  private final Copies copies;
  private final Duration refresh;
  private final Integer given;
  private final boolean writes;
  private final Set<String> warned = ConcurrentHashMap.newKeySet();

  /** Until when each is not looked for, by {@link System#nanoTime()}; the oldest is first. */
  private final Map<Integer, Long> missing = new LinkedHashMap<>();

  private volatile Long offUntil;
  private volatile Set<Integer> forgotten = Set.of();
  private Long unkeptUntil;
  private Long due;
  private Set<Integer> wanted = Set.of();

  /** What is counted. */
  interface Events {
    void fetched();

    void putBack();
  }

  Upkeep(CompressionConfiguration configuration, AtHand atHand, Events events) {
    this.atHand = atHand;
    this.events = events;
    keys = new DictionaryKeys(configuration.dictionaryPrefix());
    copies = configuration.dictionaryFolder().map(Copies::new).orElse(null);
    refresh = configuration.dictionaryRefresh();
    given = configuration.dictionary().map(Dictionary::id).orElse(null);
    writes = configuration.catalogue() || given != null;
  }

  /** The time between two rounds. */
  Duration interval() {
    return refresh.dividedBy(ROUNDS_PER_REFRESH);
  }

  private long rounds(double count) {
    return Math.max((long) (count * interval().toNanos()), LEAST);
  }

  /** The time of day, counted from 1970. */
  static Duration now() {
    return Duration.ofMillis(System.currentTimeMillis());
  }

  /**
   * Whether dictionaries are not to be had, for want of permission; it is asked again after a
   * refresh.
   */
  private boolean isOff() {
    Long until = offUntil;
    return until != null && System.nanoTime() - until < 0;
  }

  /** Whether there is no use in looking for a dictionary now. */
  boolean isMissing(int id) {
    if (isOff()) {
      return true;
    }
    synchronized (missing) {
      Long until = missing.get(id);
      return until != null && System.nanoTime() - until < 0;
    }
  }

  private void rememberMissing(int id) {
    synchronized (missing) {
      missing.remove(id);
      while (missing.size() >= MOST_REMEMBERED) {
        missing.remove(missing.keySet().iterator().next());
      }
      missing.put(id, System.nanoTime() + rounds(MISSING));
    }
  }

  /** Gets a dictionary, which is tried for a while, and says whether it is at hand. */
  boolean find(int id, DictionaryServer server) throws InterruptedException {
    long patience = System.nanoTime() + rounds(PATIENCE);
    long pause = FIRST_PAUSE;
    while (!fetch(id, server)) {
      if (isOff() || System.nanoTime() - patience > 0) {
        rememberMissing(id);
        return false;
      }
      Thread.sleep(pause);
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
    return true;
  }

  private boolean fetch(int id, DictionaryServer server) {
    Dictionary found = copies == null ? null : proven(id, copies.read(id), copies.path(id));
    if (found == null) {
      byte[] key = keys.dictionary(id);
      byte[] content;
      try {
        content = server.get(key);
      } catch (RuntimeException error) {
        failed(server, error);
        return false;
      }
      found = proven(id, content, new String(key, StandardCharsets.UTF_8));
      if (found == null) {
        return false;
      }
      keepCopy(found);
    }
    atHand.hold(found, now());
    events.fetched();
    synchronized (missing) {
      missing.remove(id);
    }
    return true;
  }

  /** An error in reading: dictionaries are off if it is not allowed. */
  private void failed(DictionaryServer server, RuntimeException error) {
    Failure failure = server.failure(error);
    if (failure == Failure.DENIED) {
      offUntil = System.nanoTime() + refresh.toNanos();
      wanted = Set.of();
      atHand.allow(false, now());
      warn("dictionaries are off, since their keys may not be read: " + error.getMessage());
    } else if (failure == Failure.PASSING) {
      server.close();
    }
  }

  /** The dictionary, if that is what the content is. */
  private Dictionary proven(int id, byte[] content, Object where) {
    if (content == null) {
      return null;
    }
    try {
      Dictionary found = Dictionary.of(content);
      if (found.id() == id) {
        return found;
      }
      warn("what is at " + where + " is not used: it is the dictionary " + found.id());
    } catch (DictionaryException error) {
      warn("what is at " + where + " is not used: " + error.getMessage());
    }
    return null;
  }

  private void keepCopy(Dictionary dictionary) {
    if (copies == null) {
      return;
    }
    try {
      copies.write(dictionary);
    } catch (IOException error) {
      warn("copies of dictionaries cannot be kept: " + error);
    }
  }

  /** What is to be done every {@link #interval()}. */
  void round(DictionaryServer server) {
    if (isOff() || (!writes && atHand.held().isEmpty())) {
      return;
    }
    if (due == null || System.nanoTime() - due >= 0) {
      read(server);
      if (isOff()) {
        return;
      }
    }
    for (int id : wanted) {
      if (atHand.peek(id) == null) {
        fetch(id, server);
      }
    }
    atHand.choose(now());
    if (unkeptUntil == null || System.nanoTime() - unkeptUntil >= 0) {
      keep(server);
    }
  }

  /** Reads the catalogue, and says whether the server gave what there is. */
  private boolean read(DictionaryServer server) {
    byte[] document;
    try {
      document = server.get(keys.catalogue());
    } catch (RuntimeException error) {
      failed(server, error);
      return false;
    }
    due = System.nanoTime() + refresh.toNanos();
    if (given == null) {
      // Permission may have been missing before.
      atHand.allow(true, now());
    }
    Catalogue catalogue = Catalogue.NONE;
    try {
      catalogue = document == null ? catalogue : Catalogue.decode(document);
    } catch (CatalogueException error) {
      warn("values are written without dictionaries: " + error.getMessage());
    }
    wanted = atHand.read(catalogue, now());
    forgotten = catalogue.forgotten();
    if (copies != null) {
      forgotten.forEach(copies::remove);
    }
    return true;
  }

  /** Has the server see that what is at hand is in use, and puts back what is gone. */
  private void keep(DictionaryServer server) {
    try {
      List<Integer> gone = touch(server);
      // It may be gone because it is to be forgotten.
      if (!gone.isEmpty() && read(server) && !isOff()) {
        putBack(gone, server);
      }
    } catch (RuntimeException error) {
      Failure failure = server.failure(error);
      if (failure == Failure.DENIED) {
        unkeptUntil = System.nanoTime() + refresh.toNanos();
        note(given, false);
        warn(
            "dictionaries are not kept from eviction, since that is not allowed: "
                + error.getMessage());
      } else if (failure == Failure.PASSING) {
        server.close();
      }
    }
  }

  /** Has the server see what is in use, and returns what it does not have. */
  private List<Integer> touch(DictionaryServer server) {
    List<Integer> gone = new ArrayList<>();
    for (int id : atHand.held()) {
      boolean isThere = server.touch(keys.dictionary(id));
      note(id, isThere && !forgotten.contains(id));
      if (!isThere) {
        gone.add(id);
      }
    }
    server.touch(keys.catalogue());
    return gone;
  }

  private void putBack(List<Integer> gone, DictionaryServer server) {
    for (int id : gone) {
      Dictionary held = atHand.peek(id);
      // One that was given is at hand, whatever the catalogue says.
      if (held == null || forgotten.contains(id)) {
        continue;
      }
      try {
        if (server.setIfAbsent(keys.dictionary(id), held.bytes())) {
          events.putBack();
        }
        note(id, true);
      } catch (RuntimeException error) {
        if (server.failure(error) != Failure.REPLY) {
          throw error;
        }
        // The server may take another one, and this one another time.
        warn(
            "dictionaries are not kept from eviction, since the server does not take them: "
                + error.getMessage());
      }
    }
  }

  /** Has the dictionary that is given written with only while it is beside the data. */
  private void note(Integer id, boolean isThere) {
    if (id != null && id.equals(given)) {
      atHand.allow(isThere, now());
    }
  }

  /** Logs a warning, each once. */
  private void warn(String message) {
    warn(message, null);
  }

  /** Logs a warning and what caused it, or null, each once by its message. */
  void warn(String message, Throwable cause) {
    if (warned.size() < MOST_REMEMBERED && warned.add(message)) {
      LOGGER.log(Level.WARNING, message, cause);
    }
  }
}
