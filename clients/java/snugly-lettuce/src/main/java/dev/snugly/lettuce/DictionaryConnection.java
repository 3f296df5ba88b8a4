package dev.snugly.lettuce;

import io.lettuce.core.RedisException;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.cluster.api.sync.RedisClusterCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import java.lang.System.Logger.Level;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The one connection of a client on which dictionaries are asked for, by any number of threads. Its
 * values are left alone. It is opened when it is first needed.
 */
final class DictionaryConnection implements AutoCloseable {
  /** The codec of connections that do not compress. */
  static final RedisCodec<byte[], byte[]> PLAIN = new ByteArrayCodec();

  /** How long a shutdown waits for a question that is on its way. */
  private static final long PATIENCE_SECONDS = 2;

  /**
   * An open connection.
   *
   * @param connection to close
   * @param commands of it
   */
  record Opened(
      StatefulConnection<byte[], byte[]> connection,
      RedisClusterCommands<byte[], byte[]> commands) {}

  private final Supplier<Opened> connect;

  /** Who asks has it to read, so that who has it to write knows that nobody does. */
  private final ReadWriteLock asking = new ReentrantReadWriteLock();

  private volatile boolean isClosed;
  private Opened opened;
  private boolean isWarned;

  DictionaryConnection(Supplier<Opened> connect) {
    this.connect = connect;
  }

  /**
   * Asks one question.
   *
   * @throws RedisException for what fails, and after {@link #close()}
   */
  <T> T ask(Function<RedisClusterCommands<byte[], byte[]>, T> question) {
    asking.readLock().lock();
    try {
      if (isClosed) {
        throw new RedisException("the client is shut down");
      }
      return question.apply(commands());
    } finally {
      asking.readLock().unlock();
    }
  }

  private synchronized RedisClusterCommands<byte[], byte[]> commands() {
    if (opened == null) {
      try {
        opened = connect.get();
      } catch (RuntimeException error) {
        warn(error);
        throw error;
      }
    }
    return opened.commands();
  }

  private void warn(RuntimeException error) {
    if (!isWarned && !isClosed) {
      isWarned = true;
      System.getLogger("dev.snugly")
          .log(
              Level.WARNING,
              "values with dictionaries cannot be read or written, since no connection to ask for"
                  + " dictionaries can be made to the client's own URI; it is tried again",
              error);
    }
  }

  /** Has a connection that is lost opened anew when it is needed, whatever its options are. */
  synchronized void forgetIfLost() {
    if (opened != null && !isClosed && !opened.connection().isOpen()) {
      opened.connection().close();
      opened = null;
    }
  }

  /** Waits for questions that are on their way, if that is not long. The client ends the rest. */
  @Override
  public void close() {
    isClosed = true;
    try {
      if (asking.writeLock().tryLock(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        asking.writeLock().unlock();
      }
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }
}
