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
import java.util.function.Supplier;
import java.util.stream.Stream;

/** A real server on a free port of loopback, which is ended when this is closed. */
public final class Server implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofMinutes(1);

  /** Number of times that a server is started whose port another process has taken before. */
  private static final int STARTS = 5;

  private final Process process;
  private final Path folder;
  private final int port;

  /**
   * @param folder where it runs, which is removed with everything in it when it has ended
   */
  private Server(int port, Path folder, CommandLine command) {
    this.port = port;
    this.folder = folder;
    try {
      process =
          new ProcessBuilder(command.with(port, folder))
              .directory(folder.toFile())
              .redirectErrorStream(true)
              .redirectOutput(folder.resolve("log").toFile())
              .start();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** Makes the command line of a server, for a port and a folder. */
  @FunctionalInterface
  private interface CommandLine {
    List<String> with(int port, Path folder) throws IOException;
  }

  /** Starts a server on a free port, and returns it once it answers there. */
  private static Server start(CommandLine command) {
    for (int start = 1; ; start++) {
      Server server = new Server(freePort(), folder(), command);
      try {
        Waiting.until(
            "it answers at " + server.port, () -> !server.process.isAlive() || server.answers());
        if (server.process.isAlive()) {
          return server;
        }
        String log = server.log();
        if (start == STARTS || !log.contains("Address already in use")) {
          throw new IllegalStateException("it has ended: " + log);
        }
      } catch (RuntimeException | Error error) {
        server.close();
        throw error;
      }
      server.close();
    }
  }

  /**
   * Starts a valkey-server, which the environment variable {@code SNUGLY_VALKEY_SERVER} names.
   * Without it the test fails, or is skipped: see {@link Needed}.
   *
   * @param options what its command line has besides
   */
  public static Server valkey(String... options) {
    return inMemory(Needed.program("SNUGLY_VALKEY_SERVER"), () -> List.of(options));
  }

  /**
   * Starts a server of Valkey's or Redis's kind, which keeps nothing on disk.
   *
   * @param options what its command line has besides, which is another each time that it is started
   *     anew
   */
  static Server inMemory(String program, Supplier<List<String>> options) {
    return start(
        (port, folder) -> {
          List<String> command = new ArrayList<>();
          command.add(program);
          command.addAll(List.of("--port", Integer.toString(port), "--bind", "127.0.0.1"));
          command.addAll(List.of("--save", "", "--appendonly", "no"));
          command.addAll(options.get());
          return command;
        });
  }

  /** Starts snugly's server, which the environment variable {@code SNUGLY_BIN} names. */
  public static Server snugly() {
    String program = Needed.program("SNUGLY_BIN");
    return start(
        (port, folder) ->
            List.of(program, "serve", "--bind", "127.0.0.1", "--port", Integer.toString(port)));
  }

  /**
   * Starts a sentinel that watches a server under the name {@code cache}.
   *
   * @param primary the server
   */
  public static Server sentinel(Server primary) {
    String program = Needed.program("SNUGLY_VALKEY_SERVER");
    return start(
        (port, folder) -> {
          Files.writeString(
              folder.resolve("sentinel.conf"),
              "port %d\nbind 127.0.0.1\nsentinel monitor cache 127.0.0.1 %d 1\n"
                  .formatted(port, primary.port()));
          return List.of(program, "sentinel.conf", "--sentinel");
        });
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

  /** Whether it is this process that answers, and not another one that has taken the port. */
  private boolean answers() {
    try (Connection connection = connect()) {
      return connection.text("INFO", "server").contains("process_id:" + process.pid() + "\r\n");
    } catch (UncheckedIOException | Connection.ErrorReply error) {
      return false;
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
