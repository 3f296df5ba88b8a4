package dev.snugly.core.catalogue;

import static dev.snugly.core.catalogue.DictionaryReply.Kind.DENIED;
import static dev.snugly.core.catalogue.DictionaryReply.Kind.LOST;
import static dev.snugly.core.catalogue.DictionaryReply.Kind.REFUSED;

import dev.snugly.core.Dictionary;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;

/**
 * Maintenance of the dictionaries at hand: so that a server keeps them, and has them again ({@code
 * spec/dictionaries.md}, Keeping dictionaries).
 */
final class Maintenance {
  private final ManagerSettings settings;
  private final DictionaryCache cache;
  private final ServerState state;
  private final Loader loader;
  private final Events events;
  private final DictionaryKeys keys;

  Maintenance(
      ManagerSettings settings,
      DictionaryCache cache,
      ServerState state,
      Loader loader,
      Events events) {
    this.settings = settings;
    this.cache = cache;
    this.state = state;
    this.loader = loader;
    this.events = events;
    keys = new DictionaryKeys(settings.prefix());
  }

  /** Does what is due, and ends with the time in which there is nothing to do. */
  Step<Duration> refresh(Moment now) {
    Task<Duration> end = then -> new Step.Done<>(state.untilRound(then.monotonic()));
    return state.beginRound(now.monotonic(), settings.interval())
        ? readIfDue(now, end)
        : end.start(now);
  }

  /** Has the server see what is in use, puts back what is gone, and mends what is wrong. */
  Step<Void> keep() {
    return new Look<Void>(then -> new Step.Done<>(null)).start();
  }

  private <T> Step<T> readIfDue(Moment now, Task<T> end) {
    boolean hasNone = !cache.writes() && cache.ids().isEmpty();
    if (hasNone || state.isOff(now.monotonic())) {
      return end.start(now);
    }
    if (!state.isReadDue(now.monotonic())) {
      return fetchWanted(now, end);
    }
    return loader.readCatalogue(
        now,
        (isRead, then) -> state.isOff(then.monotonic()) ? end.start(then) : fetchWanted(then, end));
  }

  private <T> Step<T> fetchWanted(Moment now, Task<T> end) {
    List<Integer> wanted = state.wanted().stream().filter(id -> cache.peek(id) == null).toList();
    return wanted.isEmpty()
        ? keepIfAllowed(now, end)
        : loader.load(wanted, false, now, (loaded, then) -> keepIfAllowed(then, end));
  }

  private <T> Step<T> keepIfAllowed(Moment now, Task<T> end) {
    cache.choose(now.wall());
    return state.isKept(now.monotonic()) ? new Look<>(end).start() : end.start(now);
  }

  /** A dictionary that the server should have: nothing is in its place, or something else. */
  private record Absent(int id, boolean isGone) {}

  /** One look at all that are at hand. */
  private final class Look<T> {
    private final Task<T> end;
    private final List<Integer> held = cache.ids();
    private final List<Absent> absent = new ArrayList<>();

    Look(Task<T> end) {
      this.end = end;
    }

    Step<T> start() {
      return touch(held.iterator());
    }

    private Step<T> touch(Iterator<Integer> rest) {
      if (!rest.hasNext()) {
        return touchCatalogue();
      }
      int id = rest.next();
      return send(
          DictionaryCommand.touch(keys.dictionary(id)),
          (reply, then) -> {
            if (!reply.isAnswered()) {
              return fail(reply, then);
            }
            note(id, reply.isSomething() && !state.isForgotten(id), then);
            if (!reply.isSomething()) {
              absent.add(new Absent(id, true));
            }
            return touch(rest);
          });
    }

    private Step<T> touchCatalogue() {
      return send(
          DictionaryCommand.touch(keys.catalogue()),
          (reply, then) -> reply.isAnswered() ? compare(then) : fail(reply, then));
    }

    /** Compares one in each round, in turn, with what is in its place. */
    private Step<T> compare(Moment now) {
      Integer next = state.nextToCompare(held);
      Dictionary compared = next == null ? null : cache.peek(next);
      if (compared == null || absent.contains(new Absent(next, true))) {
        return readIfAbsent(now);
      }
      return send(
          DictionaryCommand.get(keys.dictionary(next)),
          (reply, then) -> {
            if (reply.kind() == DENIED || reply.kind() == LOST) {
              return fail(reply, then);
            }
            if (isOther(reply, compared)) {
              absent.add(new Absent(next, false));
            }
            return readIfAbsent(then);
          });
    }

    /** Whether something else is in the place of a dictionary, of another type perhaps. */
    private boolean isOther(DictionaryReply reply, Dictionary dictionary) {
      return reply.kind() == REFUSED
          || (reply.bytes() != null && !Arrays.equals(reply.bytes(), dictionary.bytes()));
    }

    /** Reads the catalogue first: what is gone may be so because it is forgotten. */
    private Step<T> readIfAbsent(Moment now) {
      return absent.isEmpty()
          ? succeed(now)
          : loader.readCatalogue(
              now, (isRead, then) -> isRead ? putBack(absent.iterator(), then) : succeed(then));
    }

    private Step<T> putBack(Iterator<Absent> rest, Moment now) {
      while (rest.hasNext()) {
        Absent next = rest.next();
        Dictionary held = cache.peek(next.id());
        // One that was given is at hand, whatever the catalogue says.
        if (held != null && !state.isForgotten(next.id())) {
          return send(
              command(next, held),
              (reply, then) ->
                  reply.kind() == LOST ? fail(reply, then) : noteBack(next, reply, rest, then));
        }
      }
      return succeed(now);
    }

    private DictionaryCommand command(Absent each, Dictionary held) {
      byte[] key = keys.dictionary(each.id());
      return each.isGone()
          ? DictionaryCommand.setIfAbsent(key, held.bytes())
          : DictionaryCommand.set(key, held.bytes());
    }

    private Step<T> noteBack(
        Absent each, DictionaryReply reply, Iterator<Absent> rest, Moment now) {
      if (!reply.isAnswered()) {
        // The server may take another one, and this one another time.
        events.warn(
            "dictionaries are not kept from eviction, since the server does not take them: "
                + reply.reason());
        return putBack(rest, now);
      }
      if (reply.isSomething() && each.isGone()) {
        events.listener().putBack();
      } else if (reply.isSomething()) {
        events.listener().mended();
      }
      note(each.id(), true, now);
      return putBack(rest, now);
    }

    private Step<T> send(DictionaryCommand command, Step.Continuation<DictionaryReply, T> then) {
      return new Step.Ask<>(
          new Request.Send(List.of(command)), (replies, now) -> then.resume(replies.get(0), now));
    }

    private Step<T> succeed(Moment now) {
      state.noteRound(false);
      return end.start(now);
    }

    private Step<T> fail(DictionaryReply reply, Moment now) {
      state.noteRound(reply.kind() != DENIED);
      if (reply.kind() == DENIED) {
        state.doNotKeep(now.monotonic().plus(settings.refresh()));
        note(cache.given(), false, now);
        events.warn(
            "dictionaries are not kept from eviction, since that is not allowed: "
                + reply.reason());
      }
      return end.start(now);
    }

    /** Has the dictionary that is given written with only while it is beside the data. */
    private void note(Integer id, boolean isThere, Moment now) {
      if (id != null && id.equals(cache.given())) {
        cache.allow(isThere, now.wall());
      }
    }
  }
}
