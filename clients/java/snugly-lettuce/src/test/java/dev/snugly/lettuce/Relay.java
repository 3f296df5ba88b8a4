package dev.snugly.lettuce;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicInteger;

/** Stands between a client and a server, and cuts a connection in the middle of a reply. */
final class Relay implements AutoCloseable {
  private static final int NEVER = Integer.MAX_VALUE;

  private final ServerSocket listening;
  private final int server;

  /** Bytes of replies that pass before the connection is cut. */
  private final AtomicInteger left = new AtomicInteger(NEVER);

  Relay(int server) {
    this.server = server;
    try {
      listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    start(this::accept);
  }

  int port() {
    return listening.getLocalPort();
  }

  /** Cuts the connection once on which this many bytes of replies have come from now on. */
  void cutAfter(int bytes) {
    left.set(bytes);
  }

  boolean hasCut() {
    return left.get() == NEVER;
  }

  private static void start(Runnable task) {
    Thread thread = new Thread(task, "relay");
    thread.setDaemon(true);
    thread.start();
  }

  private void accept() {
    while (true) {
      try {
        Socket client = listening.accept();
        Socket behind = new Socket(InetAddress.getLoopbackAddress(), server);
        start(() -> pass(client, behind, false));
        start(() -> pass(behind, client, true));
      } catch (IOException closed) {
        return;
      }
    }
  }

  private void pass(Socket from, Socket to, boolean isReply) {
    try (from;
        to) {
      InputStream source = from.getInputStream();
      OutputStream target = to.getOutputStream();
      byte[] bytes = new byte[4096];
      for (int count = source.read(bytes); count >= 0; count = source.read(bytes)) {
        int passing = isReply ? Math.min(count, left.get()) : count;
        target.write(bytes, 0, passing);
        if (isReply && left.get() != NEVER && left.addAndGet(-passing) == 0) {
          left.set(NEVER);
          return;
        }
      }
    } catch (IOException closed) {
      // The other direction has ended.
    }
  }

  @Override
  public void close() {
    try {
      listening.close();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
