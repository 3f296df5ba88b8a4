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

/** A real server on a free port of loopback, which is ended when this is closed. */
public final class Server implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(20);

  private final Process process;
  private final Path folder;
  private final int port;

  /**
   * @param folder where it runs, which is removed with everything in it when it has ended
   */
  private Server(int port, Path folder, List<String> command) {
    this.port = port;
    this.folder = folder;
    try {
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
   * Without it the test fails, or is skipped: see {@link Needed}.
   *
   * @param options what its command line has besides
   */
  public static Server valkey(String... options) {
    return inMemory(Needed.program("SNUGLY_VALKEY_SERVER"), options);
  }

  /** Starts a server of Valkey's or Redis's kind, which keeps nothing on disk. */
  static Server inMemory(String program, String... options) {
    int port = freePort();
    List<String> command = new ArrayList<>();
    command.add(program);
    command.addAll(List.of("--port", Integer.toString(port), "--bind", "127.0.0.1"));
    command.addAll(List.of("--save", "", "--appendonly", "no"));
    command.addAll(List.of(options));
    return new Server(port, folder(), command);
  }

  /** Starts snugly's server, which the environment variable {@code SNUGLY_BIN} names. */
  public static Server snugly() {
    String program = Needed.program("SNUGLY_BIN");
    int port = freePort();
    return new Server(
        port,
        folder(),
        List.of(program, "serve", "--bind", "127.0.0.1", "--port", Integer.toString(port)));
  }

  /**
   * Starts a sentinel that watches a server under the name {@code cache}.
   *
   * @param primary the server
   */
  public static Server sentinel(Server primary) {
    String program = Needed.program("SNUGLY_VALKEY_SERVER");
    int port = freePort();
    Path folder = folder();
    try {
      Files.writeString(
          folder.resolve("sentinel.conf"),
          "port %d\nbind 127.0.0.1\nsentinel monitor cache 127.0.0.1 %d 1\n"
              .formatted(port, primary.port()));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return new Server(port, folder, List.of(program, "sentinel.conf", "--sentinel"));
  }

  /** Makes a folder for files of a test, to be removed. */
  static Path folder() {
    try {
      return Files.createTempDirectory("snugly-test-");
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
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
      remove(folder);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  /** Removes a folder with everything in it. */
  static void remove(Path folder) {
    try (Stream<Path> paths = Files.walk(folder)) {
      for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
