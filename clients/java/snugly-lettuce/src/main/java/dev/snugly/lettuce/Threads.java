package dev.snugly.lettuce;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;

/**
 * The threads of one client that do what the event loop must not. They end when there is nothing to
 * do.
 *
 * <p>A dictionary is waited for by one thread, for all replies that need it; they wait without a
 * thread, and are decoded as others are.
 */
final class Threads implements AutoCloseable {
  /** The most dictionaries that are waited for at the same time: as many as a client holds. */
  private static final int MOST_FETCHING = 128;

  private static final long IDLE_SECONDS = 10;

  private final Executor decoding;
  private final ExecutorService fetching = pool("snugly-fetching", MOST_FETCHING);

  /** By its ID, the end of waiting for each dictionary that is waited for. */
  private final Map<Long, CompletableFuture<Void>> fetches = new ConcurrentHashMap<>();

  private final LongConsumer fetch;

  /**
   * @param fetch gets the dictionary of an ID and waits for it
   */
  Threads(LettuceCompression settings, LongConsumer fetch) {
    this.fetch = fetch;
    decoding =
        settings
            .decodeExecutor()
            .orElseGet(() -> pool("snugly-decoding", Runtime.getRuntime().availableProcessors()));
  }

  private static ExecutorService pool(String name, int size) {
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(
            size,
            size,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> {
              Thread thread = new Thread(task, name);
              thread.setDaemon(true);
              return thread;
            },
            // Of a client that is shut down: nothing is waited for any more.
            (task, closed) -> task.run());
    pool.allowCoreThreadTimeOut(true);
    return pool;
  }

  /** Runs what takes long. */
  Executor decoding() {
    return decoding;
  }

  /**
   * Runs what needs dictionaries, as {@link #decoding()} does, when they have been looked for.
   *
   * @param missing their IDs
   */
  Executor fetching(Set<Long> missing) {
    return delivery -> {
      CompletableFuture<?>[] ends =
          missing.stream().map(this::fetched).toArray(CompletableFuture[]::new);
      // It cannot fail: what comes of the delivery is told to whoever waits for the command.
      CompletableFuture<Void> unused =
          CompletableFuture.allOf(ends).thenRun(() -> decode(delivery));
    };
  }

  /** Ends, and never fails, when a dictionary has been looked for. */
  private CompletableFuture<Void> fetched(long id) {
    CompletableFuture<Void> own = new CompletableFuture<>();
    CompletableFuture<Void> other = fetches.putIfAbsent(id, own);
    if (other != null) {
      return other;
    }
    fetching.execute(
        () -> {
          try {
            fetch.accept(id);
          } finally {
            fetches.remove(id);
            own.complete(null);
          }
        });
    return own;
  }

  /** Nobody is left to be told that the application's executor takes nothing. */
  private void decode(Runnable delivery) {
    try {
      decoding.execute(delivery);
    } catch (RejectedExecutionException ended) {
      fetching.execute(delivery);
    }
  }

  /** Waits for no dictionary any more. */
  @Override
  public void close() {
    fetching.shutdownNow().forEach(Runnable::run);
  }
}
