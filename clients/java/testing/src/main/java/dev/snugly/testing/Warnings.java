package dev.snugly.testing;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Messages that anybody logs, as a warning or worse, while this is open. */
public final class Warnings extends Handler implements AutoCloseable {
  private final List<String> messages = new CopyOnWriteArrayList<>();

  /** Begins to listen. */
  public Warnings() {
    Logger.getLogger("").addHandler(this);
  }

  /** Returns them in their order, each behind the name of its logger and a colon. */
  public List<String> messages() {
    return messages;
  }

  @Override
  public void publish(LogRecord logged) {
    if (logged.getLevel().intValue() >= Level.WARNING.intValue()) {
      messages.add(logged.getLoggerName() + ": " + logged.getMessage());
    }
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    Logger.getLogger("").removeHandler(this);
  }
}
