package dev.snugly.core.catalogue;

import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.function.Function;

/**
 * Maintains the dictionaries of one client on a daemon thread, which ends when it is told so or
 * when nobody has the client's dictionaries any more.
 */
final class RefreshLoop implements Runnable {
  /** Least time between two rounds. */
  private static final Duration LEAST_PAUSE = Duration.ofSeconds(1);

  private final WeakReference<ManagedDictionaries> reference;
  private final Signals signals;
  private final TaskDriver driver;

  /** Signals to the thread. They do not have the dictionaries, which may be gone. */
  static final class Signals {
    private boolean isClosed;
    private boolean isConnected;

    synchronized void close() {
      isClosed = true;
      notifyAll();
    }

    synchronized void connected() {
      isConnected = true;
      notifyAll();
    }

    synchronized boolean isClosed() {
      return isClosed;
    }

    /** Whether the client has connected since this was asked last. */
    private synchronized boolean takeConnected() {
      boolean wasConnected = isConnected;
      isConnected = false;
      return wasConnected;
    }

    /**
     * Waits until the next round is due, and says whether there is one.
     *
     * @param soonest the least wait after the client has connected, as it opens many connections at
     *     a time
     */
    private synchronized boolean await(Duration longest, Duration soonest)
        throws InterruptedException {
      long begun = System.nanoTime();
      while (!isClosed) {
        long waited = System.nanoTime() - begun;
        long rest = (isConnected ? soonest : longest).toNanos() - waited;
        if (rest <= 0) {
          return true;
        }
        // Rounded up, so that the round is due then.
        wait(rest / 1_000_000 + 1);
      }
      return false;
    }
  }

  RefreshLoop(ManagedDictionaries dictionaries, Signals signals, TaskDriver driver) {
    reference = new WeakReference<>(dictionaries);
    this.signals = signals;
    this.driver = driver;
  }

  @Override
  public void run() {
    try (driver) {
      Duration pause = Duration.ZERO;
      while (pause != null && signals.await(pause, min(pause, LEAST_PAUSE))) {
        boolean isConnected = signals.takeConnected();
        pause = withDictionaries(each -> each.refresh(isConnected, driver));
      }
      withDictionaries(each -> each.keepOnceMore(driver));
    } catch (InterruptedException ended) {
      Thread.currentThread().interrupt();
    }
  }

  /** Does something with the dictionaries; null if they are gone. */
  private Duration withDictionaries(Function<ManagedDictionaries, Duration> round) {
    ManagedDictionaries dictionaries = reference.get();
    return dictionaries == null ? null : round.apply(dictionaries);
  }

  private static Duration min(Duration one, Duration other) {
    return one.compareTo(other) < 0 ? one : other;
  }
}
