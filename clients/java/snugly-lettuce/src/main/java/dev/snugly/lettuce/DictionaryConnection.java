package dev.snugly.lettuce;

import io.lettuce.core.RedisCommandInterruptedException;
import io.lettuce.core.RedisConnectionException;
import io.lettuce.core.RedisException;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import java.lang.System.Logger.Level;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The one connection of a client on which dictionaries are asked for, by any number of threads. Its
 * values are left alone. It is opened when it is first needed, by the first that needs it for all
 * others; when that fails, the next one tries again.
 */
final class DictionaryConnection {
  /** The codec of connections that do not compress. */
  static final RedisCodec<byte[], byte[]> PLAIN = new ByteArrayCodec();

  /** Longest wait of a shutdown for a question that is on its way. */
  private static final long PATIENCE_SECONDS = 2;

  /**
   * An open connection.
   *
   * @param connection to close
   * @param commands of it
   */
  record Opened(
      StatefulConnection<byte[], byte[]> connection,
      RedisClusterAsyncCommands<byte[], byte[]> commands) {
    /** Longest wait for a reply, in nanoseconds; 0 for any time. */
    long timeoutNanos() {
      return connection.getTimeout().toNanos();
    }
  }

  private final Supplier<Opened> connect;

  private final AtomicBoolean isClosed = new AtomicBoolean();

  /** The questions that are on their way, and one more until this is closed. */
  private final AtomicInteger asking = new AtomicInteger(1);

  private final CompletableFuture<Void> ended = new CompletableFuture<>();

  /** The connection, once it is open; null before the first, and after a failure. */
  private final AtomicReference<CompletableFuture<Opened>> opening = new AtomicReference<>();

  private final AtomicBoolean isWarned = new AtomicBoolean();

  DictionaryConnection(Supplier<Opened> connect) {
    this.connect = connect;
  }

  /**
   * Asks one question.
   *
   * @throws RedisException for what fails, and after {@link #closeAsync()}
   */
  <T> T ask(Function<Opened, T> question) {
    asking.incrementAndGet();
    try {
      if (isClosed.get()) {
        throw new RedisException("the client is shut down");
      }
      return question.apply(opened());
    } finally {
      if (asking.decrementAndGet() == 0) {
        // A thread that waits for the end interrupts this thread.
        ended.completeAsync(() -> null);
      }
    }
  }

  private Opened opened() {
    CompletableFuture<Opened> own = new CompletableFuture<>();
    CompletableFuture<Opened> other = opening.compareAndExchange(null, own);
    return other == null ? openForAll(own) : awaited(other);
  }

  private Opened openForAll(CompletableFuture<Opened> told) {
    try {
      Opened opened = connect.get();
      told.complete(opened);
      return opened;
    } catch (RuntimeException | Error error) {
      opening.set(null);
      told.completeExceptionally(error);
      warn(error);
      throw error;
    }
  }

  private static Opened awaited(CompletableFuture<Opened> opening) {
    try {
      return opening.get();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new RedisCommandInterruptedException(error);
    } catch (ExecutionException error) {
      throw new RedisConnectionException(
          "there is no connection to ask for dictionaries", error.getCause());
    }
  }

  private void warn(Throwable error) {
    if (!isClosed.get() && isWarned.compareAndSet(false, true)) {
      System.getLogger("dev.snugly")
          .log(
              Level.WARNING,
              "values with dictionaries cannot be read or written, since no connection to ask for"
                  + " dictionaries can be made to the client's own URI; it is tried again",
              error);
    }
  }

  /** Has a connection that is lost opened anew when it is needed, whatever its options are. */
  void forgetIfLost() {
    CompletableFuture<Opened> last = opening.get();
    if (last == null || !last.isDone() || last.isCompletedExceptionally()) {
      return;
    }
    Opened opened = last.join();
    boolean isLost = !opened.connection().isOpen();
    // Only then: a client that is shut down by now may have closed it itself a moment ago.
    if (isLost && !isClosed.get() && opening.compareAndSet(last, null)) {
      opened.connection().close();
    }
  }

  /**
   * Has no more questions asked. The client closes the connection with all others.
   *
   * @return ends when no question is on its way, or if that is long before
   */
  CompletableFuture<Void> closeAsync() {
    if (isClosed.compareAndSet(false, true)) {
      if (asking.decrementAndGet() == 0) {
        ended.complete(null);
      } else {
        CompletableFuture.delayedExecutor(PATIENCE_SECONDS, TimeUnit.SECONDS)
            .execute(() -> ended.complete(null));
      }
    }
    return ended;
  }
}
