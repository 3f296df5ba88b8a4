package dev.snugly.lettuce;

import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** The threads that do what the event loop must not. They end when there is nothing to do. */
final class Threads {
  /** For long decoding: as many as there are processors. */
  static final Executor DECODING =
      pool("snugly-decoding", Runtime.getRuntime().availableProcessors());

  /** For replies whose dictionary is still to be fetched, so that they keep no others waiting. */
  static final Executor FETCHING = pool("snugly-fetching", 8);

  private static final long IDLE_SECONDS = 10;

  private Threads() {}

  private static Executor pool(String name, int size) {
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
}
