package dev.snugly.core.catalogue;

import dev.snugly.core.Budget;
import dev.snugly.core.CompressionConfiguration;
import dev.snugly.core.Counter;
import dev.snugly.core.Dictionaries;
import dev.snugly.core.Dictionary;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * The dictionaries of one client: those at hand for a codec, those that readers need and that are
 * fetched, and a daemon thread that maintains what is in use.
 *
 * <p>The thread begins with the first use, and ends with {@link #close()} or when nobody has this
 * any more. What is asked of the server, and when, is up to a {@code DictionaryManager}.
 */
public final class ManagedDictionaries implements Dictionaries, AutoCloseable {
  /** Longest time that {@link #close()} takes. */
  private static final Duration LONGEST_END = Duration.ofSeconds(1);

  private static final System.Logger LOGGER = System.getLogger("dev.snugly");

  private final DictionaryCache cache;
  private final DictionaryManager manager;
  private final Copies copies;
  private final Supplier<? extends DictionaryServer> servers;
  private final Supplier<Duration> readTimeout;
  private final FetchLoop fetching;
  private final RefreshLoop.Signals signals = new RefreshLoop.Signals();
  private volatile boolean isMaintained;

  /** The thread of the refresh loop, once it has begun. */
  private Thread refreshing;

  /**
   * Dictionaries that nobody maintains yet.
   *
   * @param configuration which dictionaries are used, and where they are
   * @param servers makes connections to the server, not open yet; each is used by one thread and
   *     closed by it
   * @param readTimeout how long the client waits for a reply, zero for any time: dictionaries are
   *     waited for no longer
   * @param counted is told what is counted, as {@link Counter#DICTIONARIES_FETCHED}
   */
  public ManagedDictionaries(
      CompressionConfiguration configuration,
      Supplier<? extends DictionaryServer> servers,
      Supplier<Duration> readTimeout,
      Consumer<Counter> counted) {
    this.servers = servers;
    this.readTimeout = readTimeout;
    cache = DictionaryCache.of(configuration);
    copies = configuration.dictionaryFolder().map(Copies::new).orElse(null);
    manager =
        new DictionaryManager(
            ManagerSettings.of(configuration), cache, new Events(new Told(counted)));
    fetching = new FetchLoop(manager, this::driver, this::unexpected);
  }

  /** Counts events, and logs warnings. */
  private record Told(Consumer<Counter> counted) implements Events.Listener {
    @Override
    public void warning(String message) {
      LOGGER.log(Level.WARNING, message);
    }

    @Override
    public void fetched() {
      counted.accept(Counter.DICTIONARIES_FETCHED);
    }

    @Override
    public void putBack() {
      counted.accept(Counter.DICTIONARIES_PUT_BACK);
    }

    @Override
    public void mended() {
      counted.accept(Counter.DICTIONARIES_MENDED);
    }

    @Override
    public void catalogueLost() {
      // It is of interest to those who train dictionaries, and this client does not.
    }
  }

  private TaskDriver driver() {
    return new TaskDriver(servers.get(), copies);
  }

  private void unexpected(Throwable error) {
    String message = "dictionaries could not be maintained; it is tried again: " + error;
    if (manager.events().isNew(message)) {
      LOGGER.log(Level.WARNING, message, error);
    }
  }

  @Override
  public Dictionary forKey(byte[] key) {
    if (!cache.writes()) {
      return null;
    }
    begin();
    return cache.forKey(key);
  }

  @Override
  public Dictionary find(int id) {
    Dictionary found = cache.find(id);
    if (found != null) {
      begin();
    }
    return found;
  }

  /**
   * Gets a dictionary, once for all who wait for it.
   *
   * @param id its ID, unsigned
   * @param reply whose value it is
   * @return whether it is at hand. One that the catalogue names is waited for for up to one and a
   *     half rounds, and no longer than for a reply; for others there is one look-up a second
   */
  @Override
  public boolean fetch(int id, Budget reply) {
    fetchAll(List.of(id), reply);
    return cache.find(id) != null;
  }

  /**
   * Gets several dictionaries, in one round trip, so that those which are not there take no longer
   * than one does.
   *
   * @param ids their IDs, unsigned. They are at hand then or known not to be there, unless the
   *     thread was interrupted or has waited for long enough
   * @param reply whose values need them
   */
  public void fetchAll(Collection<Integer> ids, Budget reply) {
    try {
      look(ids, reply).get();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException error) {
      unexpected(error.getCause());
    }
  }

  /**
   * The same without waiting.
   *
   * @param ids their IDs, unsigned
   * @param reply whose values need them: together they wait no longer than for a reply
   * @return ends, and never fails, when they are at hand or known not to be there, or have been
   *     waited for for long enough
   */
  public CompletableFuture<Void> look(Collection<Integer> ids, Budget reply) {
    Duration timeout = readTimeout.get();
    Duration waited = reply.waited();
    if (waited.compareTo(longestWait(timeout)) >= 0) {
      return CompletableFuture.completedFuture(null);
    }
    Duration begun = TaskDriver.now().monotonic();
    CompletableFuture<Void> end = fetching.look(ids);
    if (!timeout.isZero()) {
      // The thread goes on, for those who come later.
      end = end.completeOnTimeout(null, timeout.minus(waited).toNanos(), TimeUnit.NANOSECONDS);
    }
    return end.thenRun(() -> reply.addWait(TaskDriver.now().monotonic().minus(begun)));
  }

  private Duration longestWait(Duration timeout) {
    Duration patience = manager.patience();
    return timeout.isZero() || timeout.compareTo(patience) > 0 ? patience : timeout;
  }

  @Override
  public boolean isAllowed() {
    return !manager.isOff(TaskDriver.now().monotonic());
  }

  /** Notes that the client has connected again, to a server that may have lost what it had. */
  public void connected() {
    signals.connected();
  }

  /** Begins maintenance, unless it has begun, or as soon as it can. */
  private void begin() {
    if (isMaintained) {
      return;
    }
    synchronized (this) {
      if (isMaintained || signals.isClosed()) {
        return;
      }
      try {
        Thread thread = new Thread(new RefreshLoop(this, signals, driver()), "snugly-dictionaries");
        thread.setDaemon(true);
        thread.start();
        refreshing = thread;
        isMaintained = true;
      } catch (RuntimeException | OutOfMemoryError error) {
        unexpected(error);
      }
    }
  }

  /**
   * Does what is due.
   *
   * @param isConnected whether the client has connected again
   * @return time until the next round
   */
  Duration refresh(boolean isConnected, TaskDriver driver) {
    if (isConnected) {
      manager.hurry();
    }
    try {
      return driver.perform(manager.refresh());
    } catch (RuntimeException | OutOfMemoryError error) {
      unexpected(error);
      return manager.interval();
    }
  }

  /**
   * Has what values were written with put back, before nobody is left to do that.
   *
   * @return no time, for there is no round after that
   */
  Duration keepOnceMore(TaskDriver driver) {
    try {
      if (cache.writes() && manager.mayKeep(TaskDriver.now().monotonic())) {
        driver.perform(manager.keep());
      }
    } catch (RuntimeException | OutOfMemoryError error) {
      unexpected(error);
    }
    return Duration.ZERO;
  }

  /**
   * Ends the thread. One that values were written with looks before whether their dictionaries are
   * still there, for at most a second. What is at hand stays; nothing more is fetched.
   */
  @Override
  public void close() {
    Thread last;
    synchronized (this) {
      signals.close();
      last = refreshing;
    }
    if (last != null && cache.writes() && last != Thread.currentThread()) {
      try {
        last.join(LONGEST_END.toMillis());
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
      }
    }
    fetching.close();
  }
}
