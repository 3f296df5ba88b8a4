package dev.snugly.lettuce;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The threads of one client that do what the event loop must not. They end when there is nothing to
 * do.
 *
 * <p>Replies that need dictionaries wait without a thread, and are decoded as others are.
 */
final class Threads {
  private static final long IDLE_SECONDS = 10;

  private final Executor decoding;

  /** Substitute for what an application's executor does not take. */
  private final ExecutorService substitute = pool("snugly-decoding", 1);

  Threads(LettuceCompression settings) {
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
            });
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
   * @param looked ends then, and never fails
   */
  Executor after(CompletableFuture<Void> looked) {
    return delivery -> {
      // It cannot fail: what comes of the delivery is told to whoever waits for the command.
      CompletableFuture<Void> unused = looked.thenRun(() -> decode(delivery));
    };
  }

  /** Nobody is left to be told that the application's executor takes nothing. */
  private void decode(Runnable delivery) {
    try {
      decoding.execute(delivery);
    } catch (RejectedExecutionException ended) {
      substitute.execute(delivery);
    }
  }
}
