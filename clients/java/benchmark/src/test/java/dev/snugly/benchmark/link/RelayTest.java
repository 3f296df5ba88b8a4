package dev.snugly.benchmark.link;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.snugly.testing.Vectors;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class RelayTest {
  private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();
  private static final int PATIENCE = 20_000;

  private ServerSocket server;
  private Relay relay;

  @BeforeEach
  void start() throws IOException {
    server = new ServerSocket(0, 50, LOOPBACK);
    server.setSoTimeout(PATIENCE);
    relay = relay("1gbit");
  }

  private Relay relay(String rate) throws IOException {
    return new Relay(new InetSocketAddress(LOOPBACK, server.getLocalPort()), Rate.parse(rate));
  }

  @AfterEach
  void end() throws IOException {
    relay.close();
    server.close();
  }

  private static Socket connect(Relay relay) throws IOException {
    return impatient(new Socket(LOOPBACK, relay.port()));
  }

  private Socket accept() throws IOException {
    return impatient(server.accept());
  }

  private static Socket impatient(Socket socket) throws IOException {
    socket.setSoTimeout(PATIENCE);
    return socket;
  }

  /** Writes in the background; what fails is missing at the other side. */
  private static void write(Socket socket, byte[] bytes) {
    Thread writing =
        new Thread(
            () -> {
              try {
                socket.getOutputStream().write(bytes);
                socket.shutdownOutput();
              } catch (IOException error) {
                throw new UncheckedIOException(error);
              }
            });
    writing.setDaemon(true);
    writing.start();
  }

  @Test
  void bytesArriveInBothDirectionsAsTheyAre() throws IOException {
    byte[] request = Vectors.noise(1, 3_000_000);
    byte[] reply = Vectors.noise(2, 1_000_001);
    try (Socket client = connect(relay);
        Socket accepted = accept()) {
      write(client, request);
      write(accepted, reply);
      assertArrayEquals(request, accepted.getInputStream().readAllBytes());
      assertArrayEquals(reply, client.getInputStream().readAllBytes());
    }
  }

  @Test
  void whoHasSentAllStillGetsTheReply() throws IOException {
    try (Socket client = connect(relay);
        Socket accepted = accept()) {
      client.shutdownOutput();
      assertEquals(-1, accepted.getInputStream().read());
      write(accepted, new byte[] {1, 2, 3});
      assertArrayEquals(new byte[] {1, 2, 3}, client.getInputStream().readAllBytes());
    }
  }

  @Test
  void connectionsDoNotMixAndOneThatDoesNotReadHoldsNobodyUp() throws IOException {
    List<Socket> sockets = new ArrayList<>();
    try {
      Socket client = connect(relay);
      Socket idle = accept();
      sockets.addAll(List.of(client, idle));
      // More than all buffers on the way hold, and nobody reads it.
      write(client, new byte[32 << 20]);
      for (int number = 0; number < 20; number++) {
        byte[] bytes = Vectors.noise(number, 100_000);
        Socket other = connect(relay);
        Socket accepted = accept();
        sockets.addAll(List.of(other, accepted));
        write(other, bytes);
        assertArrayEquals(bytes, accepted.getInputStream().readAllBytes());
      }
      assertEquals(32 << 20, idle.getInputStream().readAllBytes().length);
    } finally {
      for (Socket socket : sockets) {
        socket.close();
      }
    }
  }

  @Test
  void aLinkIsNeverFasterThanItsRateWhoeverSharesIt() throws IOException {
    int size = 50_000;
    try (Relay slow = relay("8mbit");
        Socket one = connect(slow);
        Socket atOne = accept();
        Socket two = connect(slow);
        Socket atTwo = accept()) {
      long started = System.nanoTime();
      write(one, new byte[size]);
      write(two, new byte[size]);
      assertEquals(size, atOne.getInputStream().readAllBytes().length);
      assertEquals(size, atTwo.getInputStream().readAllBytes().length);
      // A byte takes a microsecond; the last ones are not waited for.
      assertTrue(System.nanoTime() - started >= 2L * size * 1000 - 100_000);
    }
  }

  @Test
  void whereNoServerListensConnectionsAreClosedAndTheRelayStays() throws IOException {
    server.close();
    for (int attempt = 0; attempt < 3; attempt++) {
      try (Socket client = connect(relay)) {
        assertTrue(isOver(client));
      }
    }
  }

  @Test
  void closingTheRelayEndsItsConnections() throws IOException {
    try (Socket client = connect(relay);
        Socket accepted = accept()) {
      write(client, new byte[] {1});
      assertEquals(1, accepted.getInputStream().read());
      relay.close();
      assertTrue(isOver(accepted));
      assertTrue(isOver(client));
    }
  }

  @Test
  void aConnectionThatBreaksEndsAtTheOtherSideToo() throws IOException {
    try (Socket client = connect(relay)) {
      try (Socket accepted = accept()) {
        write(client, new byte[] {1});
        assertEquals(1, accepted.getInputStream().read());
        accepted.setSoLinger(true, 0);
      }
      assertTrue(isOver(client));
    }
  }

  /** Whether there is nothing more to be read, after an orderly end or another. */
  private static boolean isOver(Socket socket) throws IOException {
    try {
      return socket.getInputStream().readAllBytes().length == 0;
    } catch (SocketException reset) {
      return true;
    }
  }
}
