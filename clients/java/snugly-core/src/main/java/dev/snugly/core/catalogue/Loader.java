package dev.snugly.core.catalogue;

import static dev.snugly.core.catalogue.DictionaryReply.Kind.DENIED;
import static dev.snugly.core.catalogue.DictionaryReply.Kind.LOST;

import dev.snugly.core.Dictionary;
import dev.snugly.core.DictionaryException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;

/** Brings dictionaries and what the catalogue says into a client's cache. */
final class Loader {
  /**
   * Outcome of loading dictionaries.
   *
   * @param ids those that are at hand now
   * @param isAnswered whether the server has said that the others are not there
   */
  record Loaded(Collection<Integer> ids, boolean isAnswered) {}

  private final ManagerSettings settings;
  private final DictionaryCache cache;
  private final ServerState state;
  private final MissingIds missing;
  private final Events events;
  private final DictionaryKeys keys;

  Loader(
      ManagerSettings settings,
      DictionaryCache cache,
      ServerState state,
      MissingIds missing,
      Events events) {
    this.settings = settings;
    this.cache = cache;
    this.state = state;
    this.missing = missing;
    this.events = events;
    keys = new DictionaryKeys(settings.prefix());
  }

  /**
   * Gets dictionaries in one round trip, after their copies.
   *
   * @param withCatalogue whether the catalogue is read as well
   * @param then takes what comes of it
   */
  <T> Step<T> load(
      List<Integer> ids, boolean withCatalogue, Moment now, Step.Continuation<Loaded, T> then) {
    if (!settings.hasCopies()) {
      return fetch(ids, new TreeMap<>(), withCatalogue, now, then);
    }
    return new Step.Ask<>(
        new Request.ReadCopies(ids),
        (copies, read) -> {
          SortedMap<Integer, Dictionary> found = new TreeMap<>();
          copies.forEach(each -> addProven(each.id, each.bytes, each.place, found));
          return fetch(ids, found, withCatalogue, read, then);
        });
  }

  /** Gets those from the server of which there are no copies. */
  private <T> Step<T> fetch(
      List<Integer> ids,
      SortedMap<Integer, Dictionary> copied,
      boolean withCatalogue,
      Moment now,
      Step.Continuation<Loaded, T> then) {
    List<Integer> rest = ids.stream().filter(id -> !copied.containsKey(id)).toList();
    List<DictionaryCommand> commands = new ArrayList<>();
    rest.forEach(id -> commands.add(DictionaryCommand.get(keys.dictionary(id))));
    if (withCatalogue) {
      commands.add(DictionaryCommand.get(keys.catalogue()));
    }
    if (commands.isEmpty()) {
      return hold(copied, true, now, then);
    }
    return new Step.Ask<>(
        new Request.Send(commands),
        (replies, fetched) -> {
          if (!isUsable(replies, fetched)) {
            return hold(copied, false, fetched, then);
          }
          SortedMap<Integer, Dictionary> found = provenOf(rest, replies);
          Task<T> end = read -> keep(copied, found, read, then);
          return withCatalogue
              ? takeCatalogue(replies.get(rest.size()), fetched, end)
              : end.start(fetched);
        });
  }

  /** Whether the server has answered, and nothing is forbidden. */
  private boolean isUsable(List<DictionaryReply> replies, Moment now) {
    for (DictionaryReply reply : replies) {
      if (reply.kind() == DENIED) {
        turnOff(reply.reason(), now);
      }
      if (reply.kind() == DENIED || reply.kind() == LOST) {
        return false;
      }
    }
    return true;
  }

  /** Dictionaries among some replies that are those that were asked for. */
  private SortedMap<Integer, Dictionary> provenOf(
      List<Integer> ids, List<DictionaryReply> replies) {
    SortedMap<Integer, Dictionary> found = new TreeMap<>();
    for (int index = 0; index < ids.size(); index++) {
      int id = ids.get(index);
      String place = new String(keys.dictionary(id), StandardCharsets.UTF_8);
      addProven(id, replies.get(index).bytes(), place, found);
    }
    return found;
  }

  /** Adds a dictionary if it is what some bytes are. */
  private void addProven(
      int id, byte[] bytes, String place, SortedMap<Integer, Dictionary> proven) {
    if (bytes == null) {
      return;
    }
    try {
      Dictionary found = Dictionary.of(bytes);
      if (found.id() == id) {
        proven.put(id, found);
      } else {
        events.warn("what is at " + place + " is not used: it is the dictionary " + found.id());
      }
    } catch (DictionaryException error) {
      events.warn("what is at " + place + " is not used: " + error.getMessage());
    }
  }

  /** Copies what was fetched, if there are copies, and holds all. */
  private <T> Step<T> keep(
      SortedMap<Integer, Dictionary> copied,
      SortedMap<Integer, Dictionary> fetched,
      Moment now,
      Step.Continuation<Loaded, T> then) {
    SortedMap<Integer, Dictionary> all = new TreeMap<>(copied);
    all.putAll(fetched);
    if (!settings.hasCopies() || fetched.isEmpty()) {
      return hold(all, true, now, then);
    }
    return new Step.Ask<>(
        new Request.WriteCopies(List.copyOf(fetched.values())),
        (problem, end) -> {
          problem.ifPresent(why -> events.warn("copies of dictionaries cannot be kept: " + why));
          return hold(all, true, end, then);
        });
  }

  private <T> Step<T> hold(
      SortedMap<Integer, Dictionary> found,
      boolean isAnswered,
      Moment now,
      Step.Continuation<Loaded, T> then) {
    found.forEach(
        (id, dictionary) -> {
          cache.hold(dictionary, now.wall());
          missing.remove(id);
          events.listener().fetched();
        });
    return then.resume(new Loaded(found.keySet(), isAnswered), now);
  }

  /**
   * Reads the catalogue.
   *
   * @param then is told whether the server gave what there is
   */
  <T> Step<T> readCatalogue(Moment now, Step.Continuation<Boolean, T> then) {
    return new Step.Ask<>(
        new Request.Send(List.of(DictionaryCommand.get(keys.catalogue()))),
        (replies, read) -> {
          DictionaryReply reply = replies.get(0);
          if (reply.kind() == DENIED) {
            turnOff(reply.reason(), read);
          }
          return takeCatalogue(reply, read, end -> then.resume(reply.isAnswered(), end));
        });
  }

  /** Takes what the catalogue says, and removes the copies of what is forgotten. */
  private <T> Step<T> takeCatalogue(DictionaryReply reply, Moment now, Task<T> then) {
    if (!reply.isAnswered()) {
      return then.start(now);
    }
    noteCatalogue(reply.bytes() != null, now);
    List<Integer> forgotten = List.of();
    try {
      DictionaryCache.Needed needed = cache.read(reply.bytes(), now.wall());
      state.noteNeeded(needed);
      forgotten = List.copyOf(needed.forgotten());
    } catch (CatalogueException error) {
      events.warn("values are written without dictionaries: " + error.getMessage());
    }
    return settings.hasCopies() && !forgotten.isEmpty()
        ? new Step.Ask<>(new Request.RemoveCopies(forgotten), (removed, end) -> then.start(end))
        : then.start(now);
  }

  private void noteCatalogue(boolean isThere, Moment now) {
    if (state.noteRead(isThere, now.monotonic().plus(settings.refresh()))) {
      events.listener().catalogueLost();
    }
    if (cache.given() == null) {
      // Permission may have been missing before.
      cache.allow(true, now.wall());
    }
  }

  /** Asks for nothing until a refresh has passed: the keys may not be read. */
  private void turnOff(String reason, Moment now) {
    state.turnOff(now.monotonic().plus(settings.refresh()));
    cache.allow(false, now.wall());
    events.warn(
        "dictionaries are off, since the keys "
            + settings.prefix()
            + ":* may not be read: "
            + reason);
  }
}
