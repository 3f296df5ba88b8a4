package snugly.clients;

import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** Keeps what anybody logs as a warning or worse, instead of printing it. */
final class Complaints extends Handler {
  private final List<String> messages = new ArrayList<>();

  private Complaints() {
    setLevel(Level.WARNING);
    setFormatter(new SimpleFormatter());
  }

  static Complaints collect() {
    var complaints = new Complaints();
    LogManager.getLogManager().reset();
    Logger.getLogger("").addHandler(complaints);
    return complaints;
  }

  /** What was said since the last time. */
  synchronized List<String> take() {
    var taken = List.copyOf(messages);
    messages.clear();
    return taken;
  }

  @Override
  public synchronized void publish(LogRecord line) {
    if (isLoggable(line)) {
      messages.add(getFormatter().format(line));
    }
  }

  @Override
  public void flush() {}

  @Override
  public void close() {}
}
