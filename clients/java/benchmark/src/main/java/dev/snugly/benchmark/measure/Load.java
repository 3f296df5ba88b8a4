package dev.snugly.benchmark.measure;

import dev.snugly.benchmark.client.Client;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.HdrHistogram.AtomicHistogram;

/**
 * Tasks that ask clients at the same time: each is a thread with one request under way, as in
 * GLIDE's own benchmark. Every value that is read is compared.
 */
final class Load {
  private static final long LONGEST = Duration.ofMinutes(2).toNanos();
  private static final int DIGITS = 3;

  private final List<Client> clients;
  private final Keyspace keys;
  private final int tasks;
  private final Map<Operation, AtomicHistogram> times = new EnumMap<>(Operation.class);
  private final AtomicLong asked = new AtomicLong();
  private final AtomicReference<Throwable> failure = new AtomicReference<>();

  Load(List<Client> clients, Keyspace keys, int tasks) {
    this.clients = clients;
    this.keys = keys;
    this.tasks = tasks;
    for (Operation operation : Operation.values()) {
      times.put(operation, new AtomicHistogram(LONGEST, DIGITS));
    }
  }

  /**
   * Asks until the time is over or so many operations were asked for.
   *
   * @throws Exception what the first task that failed threw; an error of the JVM as the cause of an
   *     {@link ExecutionException}
   */
  Sample run(Duration most, long operations) throws Exception {
    long started = System.nanoTime();
    long end = started + most.toNanos();
    List<Thread> threads = new ArrayList<>();
    for (int task = 0; task < tasks; task++) {
      SplittableRandom random = new SplittableRandom(task);
      Thread thread = new Thread(() -> ask(random, end, operations), "task-" + task);
      threads.add(thread);
      thread.start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    double seconds = (System.nanoTime() - started) / 1e9;
    fail(failure.get());
    Map<Operation, Latency> latencies = new EnumMap<>(Operation.class);
    times.forEach((operation, histogram) -> latencies.put(operation, Latency.of(histogram)));
    return new Sample(seconds, latencies);
  }

  private static void fail(Throwable found) throws Exception {
    if (found instanceof Exception exception) {
      throw exception;
    }
    if (found != null) {
      throw new ExecutionException("a task has ended", found);
    }
  }

  private void ask(SplittableRandom random, long end, long operations) {
    try {
      long before = System.nanoTime();
      while (before - end < 0 && failure.get() == null) {
        long turn = asked.getAndIncrement();
        if (turn >= operations) {
          return;
        }
        Client client = clients.get((int) (turn % clients.size()));
        before = ask(client, Operation.any(random), random.nextInt(keys.count()));
      }
    } catch (Throwable error) { // an error would end this task alone, and nobody would know
      failure.compareAndSet(null, error);
    }
  }

  /** Asks once, and returns when the answer was there. */
  private long ask(Client client, Operation operation, int number) throws Exception {
    String key = operation == Operation.GET_MISSING ? keys.missing(number) : keys.key(number);
    String value = operation == Operation.GET_MISSING ? null : keys.value(number);
    String found = value;
    long before = System.nanoTime();
    if (operation == Operation.SET) {
      client.set(key, value);
    } else {
      found = client.get(key);
    }
    long after = System.nanoTime();
    times.get(operation).recordValue(Math.min(after - before, LONGEST));
    if (!Objects.equals(found, value)) {
      throw new WrongValueException(key, value, found);
    }
    return after;
  }
}
