package dev.snugly.benchmark;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;

/**
 * Speaks TLS on a free port of loopback for a server that does not, since not every build of
 * valkey-server can. Its certificate is its own, so nobody trusts it unasked.
 */
final class TlsFront implements AutoCloseable {
  private static final String PASSWORD = "not secret";
  private static final String ALIAS = "front";

  private final SSLServerSocket listener;
  private final Path certificate;
  private final ConcurrentLinkedQueue<Socket> open = new ConcurrentLinkedQueue<>();

  /**
   * Starts to listen.
   *
   * @param folder where the certificate is made
   * @param server the port that is spoken for
   */
  TlsFront(Path folder, int server) throws Exception {
    KeyStore store = made(folder.resolve("store.p12"));
    certificate = folder.resolve("certificate.pem");
    byte[] encoded = store.getCertificate(ALIAS).getEncoded();
    Files.writeString(
        certificate,
        "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n"
            .formatted(
                Base64.getMimeEncoder(64, "\n".getBytes(StandardCharsets.US_ASCII))
                    .encodeToString(encoded)));
    listener = (SSLServerSocket) context(store).getServerSocketFactory().createServerSocket();
    listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    daemon(() -> accept(server));
  }

  private static KeyStore made(Path store) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "keytool").toString());
    command.addAll(List.of("-genkeypair", "-alias", ALIAS, "-keyalg", "EC", "-validity", "2"));
    command.addAll(List.of("-dname", "CN=localhost", "-ext", "san=ip:127.0.0.1"));
    command.addAll(List.of("-keystore", store.toString(), "-storepass", PASSWORD));
    int code =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start()
            .waitFor();
    if (code != 0) {
      throw new IllegalStateException("keytool has ended with " + code);
    }
    return KeyStore.getInstance(store.toFile(), PASSWORD.toCharArray());
  }

  private static SSLContext context(KeyStore store) throws GeneralSecurityException {
    KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    keys.init(store, PASSWORD.toCharArray());
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(keys.getKeyManagers(), null, null);
    return context;
  }

  int port() {
    return listener.getLocalPort();
  }

  /** Returns a PEM file with its certificate. */
  Path certificate() {
    return certificate;
  }

  private void accept(int server) {
    while (!listener.isClosed()) {
      try {
        Socket client = listener.accept();
        Socket target = new Socket(InetAddress.getLoopbackAddress(), server);
        open.addAll(List.of(client, target));
        daemon(() -> move(client, target));
        daemon(() -> move(target, client));
      } catch (IOException closed) {
        // The client notices.
      }
    }
  }

  private static void move(Socket from, Socket to) {
    try (from;
        to;
        InputStream input = from.getInputStream()) {
      input.transferTo(to.getOutputStream());
    } catch (IOException closed) {
      // Both are closed now, which each side notices.
    }
  }

  private static void daemon(Runnable work) {
    Thread thread = new Thread(work, "tls-front");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() throws IOException {
    listener.close();
    for (Socket each : open) {
      each.close();
    }
  }
}
