package dev.snugly.benchmark.client;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.util.Collection;
import redis.clients.jedis.SslOptions;

/** The certificates of a PEM file for Jedis, which reads key stores only. */
final class Trust {
  private static final String TYPE = "PKCS12";

  private Trust() {}

  /**
   * Returns options for TLS that trust these certificates and no others.
   *
   * @throws GeneralSecurityException if the file has none
   */
  static SslOptions of(Path pem) throws IOException, GeneralSecurityException {
    KeyStore store = KeyStore.getInstance(TYPE);
    store.load(null, null);
    for (Certificate each : certificates(pem)) {
      store.setCertificateEntry(Integer.toString(store.size()), each);
    }
    char[] password = "nothing secret".toCharArray();
    ByteArrayOutputStream stored = new ByteArrayOutputStream();
    store.store(stored, password);
    return SslOptions.builder()
        .trustStoreType(TYPE)
        .truststore(() -> new ByteArrayInputStream(stored.toByteArray()), password)
        .build();
  }

  private static Collection<? extends Certificate> certificates(Path pem)
      throws IOException, CertificateException {
    try (InputStream stream = Files.newInputStream(pem)) {
      var found = CertificateFactory.getInstance("X.509").generateCertificates(stream);
      if (found.isEmpty()) {
        throw new CertificateException(pem + " has no certificate: give one in PEM");
      }
      return found;
    }
  }
}
