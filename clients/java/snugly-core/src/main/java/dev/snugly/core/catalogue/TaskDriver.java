package dev.snugly.core.catalogue;

import dev.snugly.core.Dictionary;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;

/**
 * Does what tasks ask, on one thread: commands over a connection, and copies in a folder. It knows
 * the clocks.
 *
 * <p>It must not have the client's dictionaries, which end the thread by being garbage.
 */
final class TaskDriver implements Request.Driver, AutoCloseable {
  private static final long START = System.nanoTime();

  private final DictionaryServer server;
  private final Copies copies;

  /**
   * Makes a driver.
   *
   * @param server closed with this, and when it is lost
   * @param copies the folder, or null if there is none
   */
  TaskDriver(DictionaryServer server, Copies copies) {
    this.server = server;
    this.copies = copies;
  }

  /** The time. */
  static Moment now() {
    return new Moment(
        Duration.ofNanos(System.nanoTime() - START), Duration.ofMillis(System.currentTimeMillis()));
  }

  /** Does a task that has no pauses, and returns what comes of it. */
  <T> T perform(Task<T> task) {
    if (advance(task.start(now())) instanceof Step.Done<T> done) {
      return done.outcome();
    }
    throw new IllegalStateException("a task that is not to be waited for has a pause");
  }

  /** Goes on with a task until it pauses or ends. */
  <T> Step<T> advance(Step<T> step) {
    Step<T> next = step;
    while (next instanceof Step.Ask<?, T> ask) {
      next = answered(ask);
    }
    return next;
  }

  private <A, T> Step<T> answered(Step.Ask<A, T> ask) {
    A answer = ask.request().by(this);
    return ask.then().resume(answer, now());
  }

  @Override
  public List<DictionaryReply> send(List<DictionaryCommand> commands) {
    try {
      return server.send(commands);
    } catch (RuntimeException error) {
      close();
      DictionaryReply lost = DictionaryReply.lost(String.valueOf(error.getMessage()));
      return commands.stream().map(command -> lost).toList();
    }
  }

  @Override
  public List<Request.Copy> readCopies(Collection<Integer> ids) {
    List<Request.Copy> found = new ArrayList<>();
    for (int id : ids) {
      byte[] bytes = copies.read(id);
      if (bytes != null) {
        found.add(new Request.Copy(id, copies.path(id).toString(), bytes));
      }
    }
    return found;
  }

  @Override
  public Optional<String> writeCopies(Collection<Dictionary> dictionaries) {
    Optional<String> problem = Optional.empty();
    for (Dictionary each : dictionaries) {
      try {
        copies.write(each);
      } catch (IOException error) {
        problem = Optional.of(error.toString());
      }
    }
    return problem;
  }

  @Override
  public void removeCopies(Collection<Integer> ids) {
    ids.forEach(copies::remove);
  }

  /** Closes the connection; there is a new one when it is needed. */
  @Override
  public void close() {
    try {
      server.close();
    } catch (RuntimeException error) {
      // It is given up, whatever has become of it.
    }
  }
}
