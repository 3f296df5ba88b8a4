package dev.snugly.testing;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.List;
import java.util.stream.Stream;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.Assumptions;

/**
 * A real redis-server that also listens on an encrypted port, where it wants a certificate of the
 * client, too.
 */
public final class EncryptedServer implements AutoCloseable {
  /** Opens {@link #clientStore()} and {@link #trustStore()}. */
  public static final String PASSWORD = Identity.PASSWORD;

  /** Errors of servers that were built without TLS: Redis until 7.0, and later ones and Valkey. */
  private static final List<String> WITHOUT_TLS =
      List.of("Bad directive", "Failed finding TLS support");

  private int port;
  private final Path folder;
  private final Path clientStore;
  private final Path trustStore;
  private final Server server;

  private EncryptedServer(String program) {
    folder = Server.folder();
    try {
      Identity own = Identity.make(folder, "server");
      Identity client = Identity.make(folder, "client");
      clientStore = client.store();
      trustStore = own.trust();
      server =
          Server.inMemory(
              program,
              () -> {
                port = Server.freePort();
                return List.of(
                    "--tls-port",
                    Integer.toString(port),
                    "--tls-cert-file",
                    own.certificate().toString(),
                    "--tls-key-file",
                    own.key().toString(),
                    "--tls-ca-cert-file",
                    client.certificate().toString());
              });
    } catch (RuntimeException | Error error) {
      Server.remove(folder);
      throw error;
    }
  }

  /**
   * Starts the redis-server that is installed. Tests that need it are skipped where there is none,
   * or one that was built without TLS.
   */
  public static EncryptedServer start() {
    String program = installed("redis-server");
    try {
      return new EncryptedServer(program);
    } catch (IllegalStateException error) {
      Assumptions.assumeFalse(
          WITHOUT_TLS.stream().anyMatch(error.getMessage()::contains),
          () -> program + " was built without TLS");
      throw error;
    }
  }

  private static String installed(String name) {
    String found =
        Stream.of(System.getenv("PATH").split(File.pathSeparator))
            .map(folder -> Path.of(folder, name))
            .filter(Files::isExecutable)
            .findFirst()
            .map(Path::toString)
            .orElse(null);
    Assumptions.assumeTrue(found != null, () -> "no " + name + " is installed");
    return found;
  }

  /** Returns where it listens for encrypted connections, on localhost. */
  public int port() {
    return port;
  }

  /** Returns a PKCS12 store with the only client that it lets in. */
  public Path clientStore() {
    return clientStore;
  }

  /** Returns a PKCS12 store with the certificate that it shows. */
  public Path trustStore() {
    return trustStore;
  }

  /**
   * Returns what a client encrypts with whose library takes no stores.
   *
   * @param trusted a store with the server's certificate
   */
  public SSLContext context(Path trusted) {
    try {
      KeyManagerFactory keys =
          KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      keys.init(Identity.opened(clientStore), PASSWORD.toCharArray());
      TrustManagerFactory trust =
          TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      trust.init(Identity.opened(trusted));
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
      return context;
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Opens a plain connection, which is not encrypted. */
  public Connection connect() {
    return server.connect();
  }

  @Override
  public void close() {
    server.close();
    Server.remove(folder);
  }
}
