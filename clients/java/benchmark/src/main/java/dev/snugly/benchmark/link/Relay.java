package dev.snugly.benchmark.link;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Listens on a free port of loopback and connects everybody to one server, over a link that
 * transmits so many bits a second in each direction, whoever they belong to, and adds no other
 * delay.
 *
 * <p>Only the bytes of the connections are counted, not the headers of the network.
 */
public final class Relay implements AutoCloseable {
  private static final int BACKLOG = 1024;

  private final InetSocketAddress server;
  private final ServerSocketChannel listener;
  private final Direction up;
  private final Direction down;
  private final Thread accepting;

  /**
   * Starts to listen.
   *
   * @param server whom to connect to
   * @param rate of each direction, limited
   * @throws IOException if it cannot listen
   */
  public Relay(InetSocketAddress server, Rate rate) throws IOException {
    this.server = server;
    listener = ServerSocketChannel.open();
    listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), BACKLOG);
    up = new Direction("up", rate);
    down = new Direction("down", rate);
    accepting = new Thread(this::accept, "relay-accept");
    accepting.setDaemon(true);
    accepting.start();
  }

  /** Returns where it listens, on 127.0.0.1. */
  public int port() {
    return listener.socket().getLocalPort();
  }

  private void accept() {
    try {
      while (true) {
        connect(listener.accept());
      }
    } catch (ClosedChannelException closed) {
      // close() ends it this way.
    } catch (IOException error) {
      throw new IllegalStateException("the relay can accept no more connections", error);
    }
  }

  private void connect(SocketChannel client) throws IOException {
    SocketChannel target;
    try {
      target = SocketChannel.open(server);
    } catch (IOException refused) {
      client.close();
      return;
    }
    prepare(client);
    prepare(target);
    AtomicInteger open = new AtomicInteger(2);
    up.add(new Flow(client, target, open));
    down.add(new Flow(target, client, open));
  }

  private static void prepare(SocketChannel channel) throws IOException {
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
    channel.configureBlocking(false);
  }

  /** Ends all connections. */
  @Override
  public void close() throws IOException {
    listener.close();
    try {
      accepting.join();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
    up.close();
    down.close();
  }
}
