package dev.snugly.core.catalogue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Does the look-ups of all readers of a client, on one daemon thread and over one connection, which
 * end when nobody waits for a dictionary any more. So whoever makes up IDs takes neither
 * connections nor threads.
 */
final class FetchLoop {
  private final DictionaryManager manager;
  private final Supplier<TaskDriver> drivers;
  private final Consumer<Throwable> unexpected;

  // Guarded by this, as all fields below.
  private final Map<Integer, CompletableFuture<Void>> awaited = new HashMap<>();

  /** The look-ups that pause or have not begun, the one that is due first in front. */
  private final PriorityQueue<Fetch> waiting =
      new PriorityQueue<>(Comparator.comparing((Fetch fetch) -> fetch.due));

  private boolean isRunning;
  private boolean isClosed;

  /** A look-up. Only the thread goes on with it. */
  private static final class Fetch {
    /** The IDs that somebody waits for. */
    final Set<Integer> ids;

    Task<Set<Integer>> rest;
    Duration due;

    Fetch(Set<Integer> ids, Task<Set<Integer>> task, Duration due) {
      this.ids = ids;
      this.rest = task;
      this.due = due;
    }
  }

  /**
   * Makes a loop that has not begun.
   *
   * @param drivers opens a driver for the thread
   * @param unexpected is told what must not happen, or that there can be no thread
   */
  FetchLoop(
      DictionaryManager manager, Supplier<TaskDriver> drivers, Consumer<Throwable> unexpected) {
    this.manager = manager;
    this.drivers = drivers;
    this.unexpected = unexpected;
  }

  /**
   * Looks for dictionaries, each once for all who wait for it.
   *
   * @return ends, and never fails, when all are at hand or known not to be there
   */
  CompletableFuture<Void> look(Collection<Integer> ids) {
    List<CompletableFuture<Void>> ends = new ArrayList<>();
    synchronized (this) {
      Duration now = TaskDriver.now().monotonic();
      Set<Integer> fresh = new LinkedHashSet<>();
      for (int id : isClosed ? List.<Integer>of() : ids) {
        if (awaited.containsKey(id)) {
          ends.add(awaited.get(id));
        } else if (!isSettled(id, now)) {
          fresh.add(id);
        }
      }
      if (!fresh.isEmpty()) {
        fresh.forEach(
            id -> ends.add(awaited.computeIfAbsent(id, each -> new CompletableFuture<>())));
        waiting.add(new Fetch(fresh, manager.fetch(List.copyOf(fresh)), now));
        wake();
      }
    }
    return CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new));
  }

  private boolean isSettled(int id, Duration now) {
    return manager.cache().peek(id) != null || manager.isMissing(id, now);
  }

  private void wake() {
    if (isRunning) {
      notifyAll();
      return;
    }
    try {
      Thread thread = new Thread(this::run, "snugly-fetching");
      thread.setDaemon(true);
      thread.start();
      isRunning = true;
    } catch (RuntimeException | OutOfMemoryError error) {
      unexpected.accept(error);
      giveUp();
    }
  }

  private void run() {
    try (TaskDriver driver = drivers.get()) {
      for (Fetch next = next(); next != null; next = next()) {
        advance(next, driver);
      }
    } catch (InterruptedException ended) {
      Thread.currentThread().interrupt();
      stop();
    } catch (RuntimeException | OutOfMemoryError error) {
      unexpected.accept(error);
      stop();
    }
  }

  /** Waits for what is due first; null if nothing is wanted any more. */
  private synchronized Fetch next() throws InterruptedException {
    while (!waiting.isEmpty()) {
      Duration pause = waiting.peek().due.minus(TaskDriver.now().monotonic());
      if (pause.isNegative() || pause.isZero()) {
        return waiting.poll();
      }
      // Rounded up, so that it is due then.
      wait(pause.toMillis() + 1);
    }
    isRunning = false;
    return null;
  }

  private void advance(Fetch fetch, TaskDriver driver) {
    Step<Set<Integer>> step = driver.advance(fetch.rest.start(TaskDriver.now()));
    if (step instanceof Step.Pause<Set<Integer>> pause) {
      Duration now = TaskDriver.now().monotonic();
      end(fetch.ids.stream().filter(id -> isSettled(id, now)).toList(), fetch);
      fetch.rest = pause.then();
      fetch.due = now.plus(pause.length());
      pause(fetch);
    } else {
      end(List.copyOf(fetch.ids), fetch);
    }
  }

  private synchronized void pause(Fetch fetch) {
    if (!isClosed) {
      waiting.add(fetch);
    }
  }

  /** Tells those who wait for some of the dictionaries of a look-up. */
  private void end(List<Integer> ids, Fetch fetch) {
    List<CompletableFuture<Void>> ended = new ArrayList<>();
    synchronized (this) {
      for (int id : ids) {
        fetch.ids.remove(id);
        CompletableFuture<Void> end = awaited.remove(id);
        if (end != null) {
          ended.add(end);
        }
      }
    }
    ended.forEach(end -> end.complete(null));
  }

  private void stop() {
    synchronized (this) {
      isRunning = false;
    }
    giveUp();
  }

  /** Tells all who wait that there is nothing. */
  private void giveUp() {
    List<CompletableFuture<Void>> all;
    synchronized (this) {
      all = List.copyOf(awaited.values());
      awaited.clear();
      waiting.clear();
      manager.forgetLookups();
      notifyAll();
    }
    all.forEach(end -> end.complete(null));
  }

  /** Looks for nothing any more. */
  void close() {
    synchronized (this) {
      isClosed = true;
    }
    giveUp();
  }
}
