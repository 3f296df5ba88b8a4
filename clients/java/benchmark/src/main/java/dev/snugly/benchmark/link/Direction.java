package dev.snugly.benchmark.link;

import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.Iterator;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;

/**
 * One direction of a link: a thread that moves what any source has to its target, one piece after
 * the other, and takes as long for each as the link would.
 */
final class Direction implements AutoCloseable {
  /**
   * About how much later than asked for the system wakes a thread, in nanoseconds. Shorter times
   * are not waited for: they are added to the next.
   */
  private static final long WAKING = 50_000;

  private final Selector selector = Selector.open();
  private final Queue<Flow> added = new ConcurrentLinkedQueue<>();
  private final Pace pace;
  private final Thread thread;
  private volatile boolean closed;

  Direction(String name, Rate rate) throws IOException {
    pace = new Pace(rate, System.nanoTime());
    thread = new Thread(this::run, "relay-" + name);
    thread.setDaemon(true);
    thread.start();
  }

  /** Moves from now on what a flow has. */
  void add(Flow flow) {
    added.add(flow);
    selector.wakeup();
  }

  private void run() {
    try (selector) {
      boolean isBusy = false;
      while (!closed) {
        // selectNow() takes the note of wakeup() too, so what that was for is looked at.
        if (selector.selectNow() == 0 && added.isEmpty() && !closed) {
          selector.select();
          isBusy = false;
        }
        // Bytes that are here after nothing was moved may have come just now.
        if (!isBusy) {
          pace.idle(System.nanoTime());
        }
        for (Flow flow = added.poll(); flow != null; flow = added.poll()) {
          flow.register(selector);
        }
        isBusy = moveWhatIsReady();
      }
      for (SelectionKey key : selector.keys()) {
        key.channel().close();
      }
    } catch (IOException error) {
      throw new IllegalStateException("the relay cannot look after its connections", error);
    }
  }

  /** Returns whether there was anything to be transmitted. */
  private boolean moveWhatIsReady() {
    boolean hasMoved = false;
    Iterator<SelectionKey> ready = selector.selectedKeys().iterator();
    while (ready.hasNext()) {
      Flow flow = (Flow) ready.next().attachment();
      ready.remove();
      int size = flow.read();
      if (size > 0) {
        hasMoved = true;
        await(pace.remaining(System.nanoTime(), size));
      }
      flow.write();
    }
    return hasMoved;
  }

  private static void await(long nanoseconds) {
    if (nanoseconds > WAKING) {
      LockSupport.parkNanos(nanoseconds - WAKING);
    }
  }

  /** Ends all connections, and returns when that is done. */
  @Override
  public void close() {
    closed = true;
    selector.wakeup();
    try {
      thread.join();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }
}
