package dev.snugly.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** A real server on a free port of loopback, which is ended when this is closed. */
public final class Server implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(20);

  private final Process process;
  private final Path folder;
  private final int port;

  private Server(int port, List<String> command) {
    this.port = port;
    try {
      folder = Files.createTempDirectory("snugly-test-");
      process =
          new ProcessBuilder(command)
              .directory(folder.toFile())
              .redirectErrorStream(true)
              .redirectOutput(folder.resolve("log").toFile())
              .start();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    try {
      Waiting.until("it answers PING: " + command, this::answersPing);
    } catch (RuntimeException | Error error) {
      close();
      throw error;
    }
  }

  /**
   * Starts a valkey-server, which the environment variable {@code SNUGLY_VALKEY_SERVER} names.
   * Tests that need one are skipped without it.
   *
   * @param options what its command line has besides
   */
  public static Server valkey(String... options) {
    return valkey(freePort(), options);
  }

  static Server valkey(int port, String... options) {
    List<String> command = new ArrayList<>();
    command.add(program("SNUGLY_VALKEY_SERVER"));
    command.addAll(List.of("--port", Integer.toString(port), "--bind", "127.0.0.1"));
    command.addAll(List.of("--save", "", "--appendonly", "no"));
    command.addAll(List.of(options));
    return new Server(port, command);
  }

  /** Starts snugly's server, which the environment variable {@code SNUGLY_BIN} names. */
  public static Server snugly() {
    int port = freePort();
    return new Server(
        port,
        List.of(
            program("SNUGLY_BIN"),
            "serve",
            "--bind",
            "127.0.0.1",
            "--port",
            Integer.toString(port)));
  }

  /**
   * Starts a sentinel that watches a server under the name {@code cache}.
   *
   * @param primary the server
   */
  public static Server sentinel(Server primary) {
    int port = freePort();
    try {
      Path settings = Files.createTempFile("snugly-sentinel-", ".conf");
      Files.writeString(
          settings,
          "port %d\nbind 127.0.0.1\nsentinel monitor cache 127.0.0.1 %d 1\n"
              .formatted(port, primary.port()));
      return new Server(
          port, List.of(program("SNUGLY_VALKEY_SERVER"), settings.toString(), "--sentinel"));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static String program(String variable) {
    String program = System.getenv(variable);
    Assumptions.assumeTrue(program != null, () -> "no server: set " + variable);
    return program;
  }

  /** Returns a port that nobody listens on. */
  static int freePort() {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private boolean answersPing() {
    if (!process.isAlive()) {
      throw new IllegalStateException("it has ended: " + log());
    }
    try (Connection connection = connect()) {
      connection.command("PING");
      return true;
    } catch (UncheckedIOException | Connection.ErrorReply error) {
      return error instanceof Connection.ErrorReply;
    }
  }

  private String log() {
    try {
      return Files.readString(folder.resolve("log"));
    } catch (IOException error) {
      return error.toString();
    }
  }

  /** Returns where it listens, on 127.0.0.1. */
  public int port() {
    return port;
  }

  /** Opens a plain connection. */
  public Connection connect() {
    return new Connection(port);
  }

  @Override
  public void close() {
    process.destroy();
    try {
      if (!process.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
        process.destroyForcibly().waitFor();
      }
      try (Stream<Path> paths = Files.walk(folder)) {
        for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(path);
        }
      }
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
