package dev.snugly.core.catalogue;

import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Dictionaries;
import dev.snugly.core.Dictionary;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Looks after the dictionaries of one client: gives a codec what is at hand, fetches what readers
 * need, and keeps on a daemon thread what is in use.
 *
 * <p>The thread begins with the first use, and ends with {@link #close()} or when nobody has the
 * keeper any more.
 */
public final class Keeper implements Dictionaries, AutoCloseable {
  private final AtHand atHand;
  private final Upkeep upkeep;
  private final boolean writes;
  private final Supplier<? extends DictionaryServer> servers;
  private final Map<Integer, CompletableFuture<Outcome>> fetching = new ConcurrentHashMap<>();
  private final CountDownLatch closed = new CountDownLatch(1);
  private volatile boolean isKeeping;

  /**
   * A keeper that has not begun yet.
   *
   * @param configuration what dictionaries are written with, and where they are
   * @param servers opens a way to the server; each is used by one thread and closed by it
   * @param counted is told what is counted, as {@link Counter#DICTIONARIES_FETCHED}
   */
  public Keeper(
      CompressionConfiguration configuration,
      Supplier<? extends DictionaryServer> servers,
      Consumer<Counter> counted) {
    this.servers = servers;
    writes = configuration.catalogue() || configuration.dictionary().isPresent();
    atHand = new AtHand(configuration);
    upkeep =
        new Upkeep(
            configuration,
            atHand,
            new Upkeep.Events() {
              @Override
              public void fetched() {
                counted.accept(Counter.DICTIONARIES_FETCHED);
              }

              @Override
              public void putBack() {
                counted.accept(Counter.DICTIONARIES_PUT_BACK);
              }
            });
  }

  @Override
  public Dictionary forKey(byte[] key) {
    if (!writes) {
      return null;
    }
    begin();
    return atHand.forKey(key);
  }

  @Override
  public Dictionary find(int id) {
    Dictionary found = atHand.find(id);
    if (found != null) {
      begin();
    }
    return found;
  }

  /**
   * Gets a dictionary, once for all who wait for it, on the thread of the first of them.
   *
   * @param id its ID, unsigned
   * @return whether it is at hand; it is tried for one and a half rounds
   */
  @Override
  public boolean fetch(int id) {
    if (closed.getCount() == 0) {
      return false;
    }
    CompletableFuture<Outcome> own = new CompletableFuture<>();
    Outcome outcome = Outcome.INTERRUPTED;
    while (outcome == Outcome.INTERRUPTED) {
      CompletableFuture<Outcome> other = fetching.putIfAbsent(id, own);
      if (other == null) {
        return lookForAll(id, own) == Outcome.FOUND;
      }
      outcome = other.join();
    }
    return outcome == Outcome.FOUND;
  }

  /** What came of looking for a dictionary; those who wait for an interrupted thread look again. */
  private enum Outcome {
    FOUND,
    MISSING,
    INTERRUPTED
  }

  private Outcome lookForAll(int id, CompletableFuture<Outcome> told) {
    Outcome outcome = Outcome.MISSING;
    try {
      outcome = look(id);
    } finally {
      fetching.remove(id);
      told.complete(outcome);
    }
    return outcome;
  }

  private Outcome look(int id) {
    if (atHand.find(id) != null) {
      return Outcome.FOUND;
    }
    if (upkeep.isMissing(id)) {
      return Outcome.MISSING;
    }
    try (DictionaryServer server = servers.get()) {
      return upkeep.find(id, server) ? Outcome.FOUND : Outcome.MISSING;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return Outcome.INTERRUPTED;
    } catch (RuntimeException error) {
      unexpected(error);
      return Outcome.MISSING;
    }
  }

  private void unexpected(Throwable error) {
    upkeep.warn("dictionaries could not be looked after; it is tried again: " + error, error);
  }

  /** Begins to look after dictionaries, unless somebody does, or as soon as it can be done. */
  private void begin() {
    if (isKeeping) {
      return;
    }
    synchronized (this) {
      if (isKeeping || closed.getCount() == 0) {
        return;
      }
      try {
        Thread thread = new Thread(new Care(this), "snugly-dictionaries");
        thread.setDaemon(true);
        thread.start();
        isKeeping = true;
      } catch (RuntimeException | OutOfMemoryError error) {
        unexpected(error);
      }
    }
  }

  /** Ends the thread. What is at hand stays; nothing more is fetched. */
  @Override
  public void close() {
    synchronized (this) {
      closed.countDown();
    }
  }

  /** What the thread does while the keeper is there. */
  private static final class Care implements Runnable {
    private final WeakReference<Keeper> reference;
    private final CountDownLatch closed;
    private final DictionaryServer server;

    Care(Keeper keeper) {
      reference = new WeakReference<>(keeper);
      closed = keeper.closed;
      server = keeper.servers.get();
    }

    @Override
    public void run() {
      try {
        long pause = 0;
        while (!closed.await(pause, TimeUnit.NANOSECONDS)) {
          Keeper keeper = reference.get();
          if (keeper == null) {
            return;
          }
          pause = keeper.upkeep.interval().toNanos();
          try {
            keeper.upkeep.round(server);
          } catch (RuntimeException | OutOfMemoryError error) {
            keeper.unexpected(error);
          }
        }
      } catch (InterruptedException ended) {
        Thread.currentThread().interrupt();
      } finally {
        server.close();
      }
    }
  }
}
