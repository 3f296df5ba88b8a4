package dev.snugly.testing;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;
import java.util.List;

/** A key of somebody at localhost, and its certificate, which is signed by itself. */
final class Identity {
  /** Of all key stores. */
  static final String PASSWORD = "loopback";

  private static final String ALIAS = "it";

  private final Path store;
  private final KeyStore keys;

  private Identity(Path store) {
    this.store = store;
    keys = opened(store);
  }

  /** Reads a key store. */
  static KeyStore opened(Path store) {
    try {
      return KeyStore.getInstance(store.toFile(), PASSWORD.toCharArray());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }

  /**
   * Makes one, with the JDK's own {@code keytool}.
   *
   * @param folder where its files are put
   * @param name what they begin with
   */
  static Identity make(Path folder, String name) {
    Path store = folder.resolve(name + ".p12");
    List<String> command =
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
            "-genkeypair",
            "-alias",
            ALIAS,
            "-keyalg",
            "EC",
            "-groupname",
            "secp256r1",
            "-dname",
            "CN=" + name,
            "-ext",
            "san=dns:localhost,ip:127.0.0.1",
            "-storetype",
            "PKCS12",
            "-keystore",
            store.toString(),
            "-storepass",
            PASSWORD);
    try {
      Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
      String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      if (process.waitFor() != 0) {
        throw new IllegalStateException("keytool has failed: " + output);
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(error);
    }
    return new Identity(store);
  }

  /** Returns a key store with the key and the certificate. */
  Path store() {
    return store;
  }

  /** Returns a key store that trusts the certificate, and nothing else. */
  Path trust() {
    Path file = beside("-trust.p12");
    try (OutputStream bytes = Files.newOutputStream(file)) {
      KeyStore trust = KeyStore.getInstance("PKCS12");
      trust.load(null, null);
      trust.setCertificateEntry(ALIAS, keys.getCertificate(ALIAS));
      trust.store(bytes, PASSWORD.toCharArray());
      return file;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Returns a file with the key, as servers read it. */
  Path key() {
    try {
      byte[] key = keys.getKey(ALIAS, PASSWORD.toCharArray()).getEncoded();
      return pem("-key.pem", "PRIVATE KEY", key);
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Returns a file with the certificate, as servers read it. */
  Path certificate() {
    try {
      return pem(".pem", "CERTIFICATE", keys.getCertificate(ALIAS).getEncoded());
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }

  private Path pem(String ending, String label, byte[] content) {
    String text = Base64.getMimeEncoder().encodeToString(content);
    String pem = "-----BEGIN %s-----\n%s\n-----END %s-----\n".formatted(label, text, label);
    try {
      return Files.writeString(beside(ending), pem);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private Path beside(String ending) {
    String name = store.getFileName().toString();
    return store.resolveSibling(name.substring(0, name.lastIndexOf('.')) + ending);
  }
}
